//! Writes a dump as pf.conf. In iptables the first matching rule decides, so every verdict is
//! `quick`. A user-defined chain becomes an anchor wherever it is called.

use std::fmt::Write;

use super::connection::Connection;
use super::criteria::{Condition, Criteria};
use super::dump::{Chain, Dump, Policy, Table};
use super::hook::Hook;
use super::order::asks_for_connections;
use super::rule::Rule;
use super::target::Target;
use crate::messages::{Messages, Place};
use crate::words;

/// Most rules after chains and lists are expanded.
const MOST_RULES: usize = 200_000;
/// Deepest nesting of anchors; pf enters no more than 64.
const DEEPEST: usize = 60;

/// Tag of packets to the machine itself.
const LOCAL: &str = "local";
/// Tag of packets of a forwarded connection.
const ESTABLISHED: &str = "established";
/// Tag of packets that a rule of the nat table matched.
const TRANSLATED: &str = "translated";

/// Returns the pf.conf of `dump`, which was read from `file`.
pub fn write(dump: &Dump, file: &str, messages: &mut Messages) -> String {
    let asks = |table: &Table, names: &[&str]| {
        let mut chains = names.iter().filter_map(|name| table.get(*name));
        chains.any(|chain| asks_for_connections(chain, table, 0, &mut 100_000))
    };
    let translates = dump.nat.values().any(|chain| !chain.rules.is_empty());
    let mut writer = Writer {
        table: &dump.filter,
        hook: Hook::Input,
        stateful: translates,
        established_passed: false,
        has_postrouting: dump.nat.get("POSTROUTING").is_some_and(|chain| !chain.rules.is_empty()),
        calls: Vec::new(),
        depth: 0,
        rules: 0,
        text: head(file),
        messages,
    };
    writer.table = &dump.nat;
    writer.chain(Hook::Prerouting);
    writer.chain(Hook::NatOutput);
    writer.arrivals(translates);
    writer.table = &dump.filter;
    writer.stateful = translates || asks(&dump.filter, &["INPUT", "OUTPUT"]);
    writer.chain(Hook::Input);
    writer.chain(Hook::Output);
    writer.stateful = translates || asks(&dump.filter, &["FORWARD"]);
    writer.chain(Hook::Forward);
    writer.table = &dump.nat;
    writer.postrouting();
    writer.text
}

fn head(file: &str) -> String {
    let file = words::comment(file);
    format!(
        "# Made of {file} by `pfctl import iptables`. Numbers in comments are lines of that file.\n\
         # pf evaluates a forwarded packet twice. It passes in, and FORWARD decides on its way \
         out.\n\
         # docs/start/iptables.md lists the assumptions.\n"
    )
}

struct Writer<'d, 'm, 't> {
    /// Table whose chains are called.
    table: &'d Table,
    hook: Hook,
    /// True if accepting rules create states.
    stateful: bool,
    /// True if an earlier rule accepts packets of all connections.
    established_passed: bool,
    /// True if accepted outbound packets go through POSTROUTING.
    has_postrouting: bool,
    /// Chains around the current rule, outermost first.
    calls: Vec<&'d str>,
    /// Number of anchors around the current rule.
    depth: usize,
    rules: usize,
    text: String,
    messages: &'m mut Messages<'t>,
}

impl<'d> Writer<'d, '_, '_> {
    /// Writes the rules that separate packets to the machine from forwarded packets.
    fn arrivals(&mut self, translates: bool) {
        let _ = write!(
            self.text,
            "\n\
             # Packets for other machines are filtered on their way out.\n\
             match in inet to {{ (self), (self:broadcast), 127.0.0.0/8, 224.0.0.0/4, \
             255.255.255.255 }} tag {LOCAL}\n"
        );
        if translates {
            self.line(&format!("pass in quick inet ! tagged {LOCAL}"));
        }
        self.line(&format!("pass in quick inet ! tagged {LOCAL} no state"));
    }

    /// Writes a built-in chain, if the dump has it.
    fn chain(&mut self, hook: Hook) {
        self.hook = hook;
        self.established_passed = false;
        let Some((name, chain)) = self.table.get_key_value(hook.name()) else {
            if !hook.translates_destinations() {
                self.accept(&Criteria::default());
            }
            return;
        };
        if hook.translates_destinations() && chain.rules.is_empty() {
            return;
        }
        let _ = write!(self.text, "\n# Chain {name}\n");
        self.calls.push(name);
        self.rules(&chain.rules);
        self.calls.pop();
        if hook.translates_destinations() {
            return;
        }
        let _ = writeln!(self.text, "# {}: the policy of {name}", chain.place.line);
        match chain.policy {
            Some(Policy::Drop) => {
                let origin = hook.origin();
                self.line(&format!("block drop {} quick inet all{origin}", hook.direction()));
            }
            _ => self.accept(&Criteria::default()),
        }
    }

    /// Writes POSTROUTING as an anchor that earlier rules call. No packet enters it at its own
    /// position.
    fn postrouting(&mut self) {
        if !self.has_postrouting {
            return;
        }
        let Some((name, chain)) = self.table.get_key_value(Hook::Postrouting.name()) else {
            return;
        };
        self.hook = Hook::Postrouting;
        self.established_passed = true;
        self.text += "\n# Chain POSTROUTING: accepted packets enter it on their way out.\n";
        self.text += "anchor \"postrouting\" out inet all {\n";
        self.depth += 1;
        self.calls.push(name);
        self.rules(&chain.rules);
        self.calls.pop();
        let _ = writeln!(self.text, "    # {}: the policy of {name}", chain.place.line);
        self.accept(&Criteria::default());
        self.depth -= 1;
        self.text += "}\n";
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text += "    ";
        }
        self.text += text;
        self.text.push('\n');
    }

    /// Writes the rules of a chain, or the last ones of them.
    fn rules(&mut self, rules: &'d [Rule]) {
        for (number, rule) in rules.iter().enumerate() {
            if self.rules > MOST_RULES || self.messages.is_full() {
                return;
            }
            let place = rule.place;
            self.line(&format!("# {}: {}", place.line, words::comment(&rule.text)));
            if let Some(message) = rule.criteria.inexpressible() {
                self.messages.error(place, message, None);
                continue;
            }
            let Some(variants) = self.variants(rule) else { continue };
            let before = self.text.len();
            for criteria in &variants {
                self.rule(rule, criteria);
            }
            if self.text.len() == before {
                self.line("# (no rule: no packet matches here)");
            }
            let returns = matches!(rule.target, Target::Return | Target::Goto(..));
            if returns && self.calls.len() > 1 && self.text.len() > before {
                return self.rest(rule, &rules[number + 1..]);
            }
        }
    }

    /// Writes the rules behind one that returns, for packets that did not match it.
    fn rest(&mut self, returning: &Rule, rules: &'d [Rule]) {
        if rules.is_empty() {
            return;
        }
        let tag = return_tag(returning);
        self.anchor(returning.place, &format!(" inet all ! tagged \"{tag}\""), |writer| {
            writer.rules(rules);
        });
    }

    /// Returns the criteria of the pf.conf rules that a rule becomes, or `None` if it becomes none.
    fn variants(&mut self, rule: &Rule) -> Option<Vec<Criteria>> {
        let mut variants = rule.criteria.variants();
        if let Some(connection) = rule.criteria.connection {
            let only_established = !connection.new && !connection.invalid;
            let verdict =
                matches!(rule.target, Target::Drop | Target::Unreachable(_) | Target::Reset);
            if connection.established && (connection.invalid || verdict)
                || only_established && rule.target != Target::Accept
            {
                let help = "pf passes packets of a connection by its state, without rules; a rule \
                            can only ACCEPT them";
                let message = "this use of ESTABLISHED has no equivalent";
                self.messages.error(rule.place, message, Some(help));
                return None;
            }
            if only_established && self.hook != Hook::Forward {
                self.line("# (no rule: packets of a connection pass by its state)");
                return None;
            }
            if connection.invalid && !connection.new {
                if rule.target == Target::Accept {
                    let message = "accepting INVALID packets has no equivalent";
                    self.messages.error(rule.place, message, None);
                    return None;
                }
                variants = variants.iter().flat_map(Criteria::invalid).collect();
            }
            if connection.new && !connection.invalid {
                let accepts = rule.target == Target::Accept;
                variants = match connection.established {
                    false => variants.iter().filter_map(Criteria::beginning).collect(),
                    true if accepts => self.new_and_established(&variants),
                    true => variants,
                };
            }
        }
        let chance = rule.criteria.is_of_chance();
        if chance && (variants.len() > 1 || matches!(rule.target, Target::Goto(..))) {
            let message = "a rule of chance that needs several rules in pf has no equivalent";
            self.messages.error(rule.place, message, None);
            return None;
        }
        Some(variants)
    }

    /// Returns criteria for packets that begin a connection and packets that belong to one. Only
    /// FORWARD needs the latter.
    fn new_and_established(&self, variants: &[Criteria]) -> Vec<Criteria> {
        let with = |new| {
            let connection = Connection { new, established: !new, invalid: false };
            variants.iter().map(move |variant| variant.with_connection(connection))
        };
        let mut rules: Vec<Criteria> = with(true).filter_map(|new| new.beginning()).collect();
        if self.hook == Hook::Forward {
            rules.extend(with(false));
        }
        rules
    }

    /// Writes a pf.conf rule or an anchor.
    fn rule(&mut self, rule: &'d Rule, criteria: &Criteria) {
        let Some(condition) = self.condition(criteria) else { return };
        let Condition { on, rest } = &condition;
        let direction = self.hook.direction();
        let text = match &rule.target {
            Target::Accept => return self.accept_rule(rule, criteria),
            Target::Nothing => format!("match {direction}{on}{rest}"),
            Target::Log(options, prefix) => {
                let label = prefix.as_ref().filter(|prefix| !prefix.is_empty());
                let label = label.map_or(String::new(), |label| format!(" label \"{label}\""));
                format!("match {direction} log{options}{on}{rest}{label}")
            }
            Target::MaxMss(size) => format!("match {direction}{on}{rest} scrub (max-mss {size})"),
            Target::Drop => format!("block drop {direction} quick{on}{rest}"),
            Target::Unreachable(code) => {
                format!("block return-icmp ({code}) {direction} quick{on}{rest}")
            }
            Target::Reset => format!("block return-rst {direction} quick{on}{rest}"),
            Target::Return => return self.return_rule(rule, criteria, &condition),
            Target::Jump(place, name) => return self.call(*place, name, &condition),
            Target::Goto(place, name) => {
                self.call(*place, name, &condition);
                return self.return_rule(rule, criteria, &condition);
            }
            Target::Destination(_)
            | Target::Redirect(_)
            | Target::Source(_)
            | Target::Masquerade(_) => match self.translation(rule) {
                Some(translation) => translation_rule(self.hook, &condition, &translation),
                None => return,
            },
        };
        self.count(rule.place, criteria.rules());
        self.line(&text);
    }

    /// Returns the criteria at this hook, with the criterion on connections.
    fn condition(&self, criteria: &Criteria) -> Option<Condition> {
        let mut condition = criteria.condition(self.hook)?;
        if let Some(connection) = criteria.connection.filter(|_| self.hook == Hook::Forward) {
            condition.rest += &match (connection.established, connection.new) {
                (true, true) => String::new(),
                (true, false) => format!(" tagged {ESTABLISHED}"),
                (false, _) => format!(" ! tagged {ESTABLISHED}"),
            };
        }
        if self.hook.translates_destinations() {
            condition.rest += &format!(" ! tagged {TRANSLATED}");
        }
        Some(condition)
    }

    fn count(&mut self, place: Place, rules: usize) {
        let before = self.rules;
        self.rules = self.rules.saturating_add(rules);
        if before <= MOST_RULES && self.rules > MOST_RULES {
            let help = Some("each call of a chain is expanded to its rules");
            let message = format!("this makes more than {MOST_RULES} rules");
            self.messages.error(place, message, help);
        }
    }

    /// Writes ACCEPT. Only packets that begin a connection create a state.
    fn accept_rule(&mut self, rule: &Rule, criteria: &Criteria) {
        self.count(rule.place, criteria.rules());
        match criteria.connection.filter(|_| self.hook == Hook::Forward) {
            Some(Connection { established: true, new: false, .. }) => {
                self.pass(criteria, " no state");
                self.established_passed |=
                    self.calls.len() == 1 && criteria.is_only_about_connections();
            }
            _ => self.accept(criteria),
        }
    }

    /// Passes packets, with or without a state. Outbound packets pass through POSTROUTING.
    fn accept(&mut self, criteria: &Criteria) {
        if self.hook.translates_destinations() {
            if let Some(Condition { on, rest }) = self.condition(criteria) {
                let direction = self.hook.direction();
                self.line(&format!("match {direction}{on}{rest} tag {TRANSLATED}"));
            }
            return;
        }
        if self.has_postrouting && matches!(self.hook, Hook::Output | Hook::Forward) {
            if let Some(Condition { on, rest }) = self.condition(criteria) {
                self.line(&format!("anchor \"/postrouting\" out{on}{rest}"));
            }
            return;
        }
        if !self.stateful {
            return self.pass(criteria, " no state");
        }
        if let Some(beginning) = criteria.beginning() {
            let tag = format!(" tag {ESTABLISHED}");
            let forwards = matches!(self.hook, Hook::Forward | Hook::Postrouting);
            self.pass(&beginning, if forwards { &tag } else { "" });
        }
        let only_new = criteria.connection.is_some_and(|connection| !connection.invalid);
        if criteria.may_be_invalid() && !only_new {
            self.pass(criteria, " no state");
        }
    }

    fn pass(&mut self, criteria: &Criteria, options: &str) {
        if let Some(Condition { on, rest }) = self.condition(criteria) {
            self.line(&format!("pass {} quick{on}{rest}{options}", self.hook.direction()));
        }
    }

    /// Writes RETURN. In a built-in chain it leads to the policy; in others it sets a tag that
    /// excludes packets from later rules.
    fn return_rule(&mut self, rule: &Rule, criteria: &Criteria, condition: &Condition) {
        self.count(rule.place, criteria.rules());
        let Condition { on, rest } = condition;
        let direction = self.hook.direction();
        if let [name] = self.calls[..] {
            let policy = self.table.get(name).and_then(|chain| chain.policy);
            return match policy {
                Some(Policy::Drop) => self.line(&format!("block drop {direction} quick{on}{rest}")),
                _ => self.accept(criteria),
            };
        }
        if self.hook == Hook::Forward && self.stateful && !self.established_passed {
            let help = "put `-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT` in front of all \
                        rules of FORWARD";
            let message = "returning before connections were accepted has no equivalent";
            self.messages.error(rule.place, message, Some(help));
        }
        self.line(&format!("match {direction}{on}{rest} tag \"{}\"", return_tag(rule)));
    }

    /// Writes the chain that a rule calls, as an anchor.
    fn call(&mut self, place: Place, name: &'d str, condition: &Condition) {
        let Some(chain): Option<&'d Chain> = self.table.get(name) else {
            return self.messages.error(place, format!("chain '{name}' is not declared"), None);
        };
        if chain.policy.is_some() {
            return self.messages.error(place, "a built-in chain cannot be called", None);
        }
        if self.calls.contains(&name) {
            return self.messages.error(place, format!("chain '{name}' calls itself"), None);
        }
        self.calls.push(name);
        self.anchor(place, &format!("{}{}", condition.on, condition.rest), |writer| {
            writer.rules(&chain.rules);
        });
        self.calls.pop();
    }

    /// Writes an anchor for packets that match `condition`. `contents` writes its rules.
    fn anchor(&mut self, place: Place, condition: &str, contents: impl FnOnce(&mut Self)) {
        self.count(place, 1);
        if self.depth == DEEPEST {
            let help = Some("pf nests at most 64 anchors");
            return self.messages.error(place, "chains call each other too deep", help);
        }
        self.line(&format!("anchor {}{condition} {{", self.hook.direction()));
        self.depth += 1;
        contents(self);
        self.depth -= 1;
        self.line("}");
    }

    /// Returns the `rdr-to` or `nat-to` that a rule of the nat table becomes.
    fn translation(&mut self, rule: &Rule) -> Option<String> {
        let destination = self.hook.translates_destinations();
        let interface = |interface: &Option<super::criteria::Interface>| {
            let named = interface.as_ref().filter(|interface| !interface.negated)?;
            Some(words::interface(&named.name))
        };
        let refused = match &rule.target {
            Target::Destination(to) if destination => return Some(format!("rdr-to {to}")),
            Target::Source(from) if self.hook == Hook::Postrouting => {
                return Some(format!("nat-to {from}"));
            }
            Target::Redirect(ports) if destination => {
                match interface(&rule.criteria.in_interface) {
                    Some(name) => return Some(format!("rdr-to ({name}:0){ports}")),
                    None => "REDIRECT needs -i: pf must know to which interface's address",
                }
            }
            Target::Masquerade(ports) if self.hook == Hook::Postrouting => {
                match interface(&rule.criteria.out_interface) {
                    Some(name) => return Some(format!("nat-to ({name}:0){ports}")),
                    None => "MASQUERADE needs -o: pf must know which interface's address",
                }
            }
            _ => "this target does not belong into this chain",
        };
        self.messages.error(rule.place, refused, None);
        None
    }
}

/// Returns a rule that translates. After a translation of destinations, the packet still has to be
/// filtered.
fn translation_rule(hook: Hook, condition: &Condition, translation: &str) -> String {
    let Condition { on, rest } = condition;
    match hook {
        Hook::Postrouting => format!("pass out quick{on}{rest} {translation} tag {ESTABLISHED}"),
        _ => format!("match {}{on}{rest} {translation} tag {TRANSLATED}", hook.direction()),
    }
}

/// Returns the tag of packets that the rule returns to the calling chain.
fn return_tag(rule: &Rule) -> String {
    format!("return:{}", rule.place.line)
}
