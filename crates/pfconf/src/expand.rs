//! Expansion of statements to rules: one rule for each combination of list items. The order is that
//! of pf: interfaces vary slowest, then protocols, ICMP types, sources, destinations, source ports
//! and destination ports.

mod binat;
mod legacy;
mod pool;
mod translation;

use std::sync::Arc;

use skipstep_ruleset::AutomaticTables;
use skipstep_ruleset::rule::{IcmpMatch, InterfaceMatch, StateOptions, TcpFlags};
use skipstep_ruleset::{
    Action, Address, AnchorCall, BlockPolicy, BlockReturn, Direction, Endpoint, Family, Host,
    KeepKind, LegacyKind, Not, Options, Owner, Ports, Rule, Table,
};

use crate::ast::{self, AnchorStatement, Antispoof, Keep, RuleStatement, StateOption, Translation};
use crate::context::Context;
use crate::label::{self, Macros};
use crate::resolve::{self, Modifiers};
use crate::{check, keep};

const TCP: u8 = 6;

/// Most rules of a rule set (`PF_MAX_RULES` of bpf/abi.h).
// Differs from OpenBSD: linux.md, "Rules"
pub const MOST_RULES: usize = 131_072;

/// Most addresses in pools. The addresses of a list are counted for each rule that the list makes.
pub const MOST_POOLED: usize = 1 << 18;

/// Most bytes of a label or tag.
const LONGEST_LABEL: usize = 63;

/// Input and output of the expansion of a statement.
pub struct Expansion<'a> {
    /// Interfaces and names.
    pub context: &'a Context<'a>,
    /// The options of the `set` statements before the statement.
    pub options: &'a Options,
    /// Options of `set state-defaults`, which rules without state keyword have.
    pub state_defaults: &'a [StateOption],
    /// Line on which the statement begins.
    pub line: u32,
    /// The included file that contains the line.
    pub file: Option<&'a Arc<str>>,
    /// Rules of the rule set, including those of earlier statements.
    pub rules: &'a mut Vec<Rule>,
    /// Number of rules that may still be added.
    pub room: usize,
    /// Number of addresses that may still be added to `tables`.
    pub pooled: &'a mut usize,
    /// Names for tables that replace lists of addresses in pools.
    pub automatic: &'a mut AutomaticTables,
    /// The tables made of pools, each with the line that `pfctl -nv` prints.
    pub tables: Vec<(String, Table)>,
    /// Messages in OpenBSD's order.
    pub messages: Vec<Message>,
}

/// A message about a statement.
pub enum Message {
    /// An error with its place.
    Error(String),
    /// An error that OpenBSD prints without a place.
    Bare(String),
    /// A warning with its place.
    Warning(String),
}

/// A statement is wrong; `messages` has the reason.
#[derive(Debug)]
pub struct Refused;

/// One item of each list.
struct Combination<'a> {
    interface: Option<&'a Not<InterfaceMatch>>,
    protocol: Option<u8>,
    icmp: Option<(u8, IcmpMatch)>,
    source: Option<&'a ast::Host>,
    destination: Option<&'a ast::Host>,
    source_ports: Option<Ports>,
    destination_ports: Option<Ports>,
    system: Option<&'a String>,
    user: Option<Owner>,
    group: Option<Owner>,
}

/// The lists of a statement; an empty list stands for everything.
struct Lists<'a> {
    interfaces: &'a [Not<InterfaceMatch>],
    protocols: &'a [u8],
    icmp: &'a [(u8, IcmpMatch)],
    sources: &'a [ast::Host],
    destinations: &'a [ast::Host],
    source_ports: &'a [Ports],
    destination_ports: &'a [Ports],
    /// Not a list. Its pools make each combination another rule.
    translation: &'a Translation,
    systems: &'a [String],
    users: &'a [Owner],
    groups: &'a [Owner],
    /// Not a list. Kind of the legacy rule.
    kind: Option<LegacyKind>,
}

impl<'a> Lists<'a> {
    fn from_statement(statement: &'a RuleStatement) -> Self {
        Lists {
            kind: None,
            interfaces: &statement.interfaces,
            protocols: &statement.protocols,
            icmp: statement.options.icmp.as_deref().unwrap_or_default(),
            sources: &statement.source.hosts,
            destinations: &statement.destination.hosts,
            source_ports: &statement.source.ports,
            destination_ports: &statement.destination.ports,
            translation: &statement.options.translation,
            systems: &statement.systems,
            users: &statement.options.users,
            groups: &statement.options.groups,
        }
    }

    /// Returns the lists of a rule whose only criterion is the source.
    fn from_sources(sources: &'a [ast::Host]) -> Self {
        static NONE: Translation = Translation::NONE;
        Lists {
            interfaces: &[],
            protocols: &[],
            icmp: &[],
            sources,
            destinations: &[],
            source_ports: &[],
            destination_ports: &[],
            systems: &[],
            users: &[],
            groups: &[],
            translation: &NONE,
            kind: None,
        }
    }

    /// Returns the number of combinations; `None` if it overflows.
    fn count(&self) -> Option<usize> {
        let lengths = [
            self.interfaces.len(),
            self.protocols.len(),
            self.icmp.len(),
            self.sources.len(),
            self.destinations.len(),
            self.source_ports.len(),
            self.destination_ports.len(),
            self.systems.len(),
            self.users.len(),
            self.groups.len(),
        ];
        lengths.iter().try_fold(1, |product: usize, n| product.checked_mul(*n.max(&1)))
    }

    /// Returns a combination by number. The last list varies fastest.
    fn combination(&self, number: usize) -> Combination<'a> {
        let mut rest = number;
        Combination {
            group: pick(self.groups, &mut rest).copied(),
            user: pick(self.users, &mut rest).copied(),
            system: pick(self.systems, &mut rest),
            destination_ports: pick(self.destination_ports, &mut rest).copied(),
            source_ports: pick(self.source_ports, &mut rest).copied(),
            destination: pick(self.destinations, &mut rest),
            source: pick(self.sources, &mut rest),
            icmp: pick(self.icmp, &mut rest).copied(),
            protocol: pick(self.protocols, &mut rest).copied(),
            interface: pick(self.interfaces, &mut rest),
        }
    }

    /// Returns the tails of the lists that begin with the items of a combination.
    fn rest(&self, number: usize) -> Lists<'a> {
        let mut rest = number;
        Lists {
            groups: tail(self.groups, &mut rest),
            users: tail(self.users, &mut rest),
            systems: tail(self.systems, &mut rest),
            destination_ports: tail(self.destination_ports, &mut rest),
            source_ports: tail(self.source_ports, &mut rest),
            destinations: tail(self.destinations, &mut rest),
            sources: tail(self.sources, &mut rest),
            icmp: tail(self.icmp, &mut rest),
            protocols: tail(self.protocols, &mut rest),
            interfaces: tail(self.interfaces, &mut rest),
            translation: self.translation,
            kind: self.kind,
        }
    }
}

/// Returns the tail of `list` from the item whose index is in `rest`. Divides `rest` for the next
/// list.
fn tail<'a, T>(list: &'a [T], rest: &mut usize) -> &'a [T] {
    let length = list.len().max(1);
    let tail = &list[(*rest % length).min(list.len())..];
    *rest /= length;
    tail
}

/// Returns the item of `list` whose index is in `rest`; `None` if the list is empty. Divides `rest`
/// for the next list.
fn pick<'a, T>(list: &'a [T], rest: &mut usize) -> Option<&'a T> {
    let length = list.len().max(1);
    let item = list.get(*rest % length);
    *rest /= length;
    item
}

impl Expansion<'_> {
    /// Expands a `pass`, `block` or `match` statement.
    ///
    /// # Errors
    /// Fails if the statement is wrong as a whole; `messages` then has the reason.
    pub fn rule(&mut self, statement: &RuleStatement) -> Result<(), Refused> {
        let mut template = self.template(statement, false)?;
        self.check_tcp(statement, "OS fingerprinting only apply to tcp")?;
        template.state = self.state(statement)?.map(Box::new);
        if statement.options.flags.is_none()
            && statement.action == Action::Pass
            && template.state.is_some()
            && !template.fragment
        {
            template.tcp_flags = Some(TcpFlags { set: 0x02, mask: 0x12 });
        }
        self.route_and_divert(&mut template, &statement.options.translation)?;
        self.combinations(&template, &Lists::from_statement(statement));
        Ok(())
    }

    /// Expands an `anchor` statement, which calls `call`.
    ///
    /// # Errors
    /// Fails if the statement is wrong as a whole; `messages` then has the reason.
    pub fn anchor(&mut self, statement: &AnchorStatement, call: AnchorCall) -> Result<(), Refused> {
        self.check_tcp(&statement.rule, "OS fingerprinting only applies to tcp")?;
        let mut template = self.template(&statement.rule, true)?;
        if matches!(statement.rule.options.keep, Some(Keep::State(..))) {
            return self.refuse("cannot specify state handling on anchors");
        }
        self.check_anchor(&statement.rule.options.translation)?;
        template.anchor = Some(Box::new(call));
        self.combinations(&template, &Lists::from_statement(&statement.rule));
        Ok(())
    }

    /// Returns a rule with all parts of the statement that are not lists, and without state.
    fn template(&mut self, statement: &RuleStatement, anchor: bool) -> Result<Rule, Refused> {
        let options = &statement.options;
        if options.once && (anchor || statement.action == Action::Match) {
            return self.refuse("'once' only applies to pass/block rules");
        }
        let tagged = options.tagged.as_ref().map(|tagged| &tagged.value);
        if options.tag.iter().chain(tagged).any(|tag| tag.len() > LONGEST_LABEL) {
            return self.refuse("tag too long, max 63 chars");
        }
        if options.labels.iter().any(|label| label.len() > LONGEST_LABEL) {
            return self.refuse("rule label too long (max 63 chars)");
        }
        let tcp_flags = options.flags.flatten();
        if tcp_flags.is_some_and(|flags| flags.set & flags.mask != flags.set) {
            return self.refuse("flags always false");
        }
        self.check_af_to(statement)?;
        Ok(Rule {
            action: statement.action,
            block_return: self.block_return(statement),
            direction: statement.direction,
            log: statement.log,
            quick: statement.quick,
            family: statement
                .family
                .or_else(|| common_family(&statement.source.hosts))
                .or_else(|| common_family(&statement.destination.hosts)),
            received_on: options.received_on.clone(),
            tcp_flags,
            // pf does not compare with 0
            tos: options.tos.filter(|tos| *tos != 0),
            prio: options.prio,
            max_pkt_rate: options.max_pkt_rate.filter(|(packets, _)| *packets > 0),
            state_limiter: options.state_limiter,
            source_limiter: options.source_limiter,
            set_prio: options.set_prio,
            set_tos: options.set_tos,
            set_queue: options.set_queue.clone(),
            set_delay: options.set_delay,
            once: options.once,
            rtable: options.rtable,
            max_pkt_size: options.max_pkt_size,
            ridentifier: options.ridentifier,
            probability: options.probability,
            fragment: options.fragment,
            scrub: options.scrub,
            allow_opts: options.allow_opts,
            labels: non_empty(&options.labels),
            tag: options.tag.clone(),
            tagged: options.tagged.clone(),
            ..self.blank()
        })
    }

    /// Checks that the protocols include TCP, if the rule has TCP criteria.
    fn check_tcp(&mut self, statement: &RuleStatement, os_message: &str) -> Result<(), Refused> {
        let flags = statement.options.flags.flatten().is_some();
        let systems = !statement.systems.is_empty();
        let protocols = &statement.protocols;
        if !flags && !systems || protocols.is_empty() || protocols.contains(&TCP) {
            return Ok(());
        }
        for (used, message) in [(flags, "flags only apply to tcp"), (systems, os_message)] {
            if used {
                self.error(message);
            }
        }
        Err(Refused)
    }

    /// Expands an `antispoof` statement to two rules for each interface. The first blocks packets
    /// with a source in a network of the interface that arrive elsewhere. The second blocks packets
    /// with the interface's own address as source; loopback interfaces have no second rule.
    ///
    /// # Errors
    /// Fails if a label is too long.
    pub fn antispoof(&mut self, statement: &Antispoof) -> Result<(), Refused> {
        if statement.labels.iter().any(|label| label.len() > LONGEST_LABEL) {
            return self.refuse("rule label too long (max 63 chars)");
        }
        let template = Rule {
            action: Action::Block,
            direction: Some(Direction::In),
            log: statement.log,
            quick: statement.quick,
            family: statement.family,
            labels: non_empty(&statement.labels),
            rtable: statement.rtable,
            ridentifier: statement.ridentifier,
            ..self.blank()
        };
        for (name, dynamic) in &statement.interfaces {
            let elsewhere = [Not { negated: true, value: interface_match(name) }];
            let networks =
                self.own(name, *dynamic, Modifiers { network: true, ..Modifiers::default() });
            if !networks.is_empty() {
                let lists = Lists { interfaces: &elsewhere, ..Lists::from_sources(&networks) };
                self.combinations(&template, &lists);
            }
            if self.context.host.interface(name).is_some_and(|interface| interface.loopback) {
                continue;
            }
            let own = self.own(name, *dynamic, Modifiers::default());
            if !own.is_empty() {
                self.combinations(&template, &Lists::from_sources(&own));
            }
        }
        Ok(())
    }

    fn own(&self, name: &str, dynamic: bool, modifiers: Modifiers) -> Vec<ast::Host> {
        if !dynamic {
            return resolve::interface_addresses(name, modifiers, self.context);
        }
        vec![ast::Host::new(resolve::dynamic(name, modifiers, 128))]
    }

    fn refuse<T>(&mut self, text: impl Into<String>) -> Result<T, Refused> {
        self.messages.push(Message::Error(text.into()));
        Err(Refused)
    }

    /// Returns a rule without criteria.
    fn blank(&self) -> Rule {
        Rule { line: self.line, file: self.file.cloned(), ..Rule::default() }
    }

    fn block_return(&self, statement: &RuleStatement) -> BlockReturn {
        match (statement.action, statement.block_return, self.options.block_policy) {
            (Action::Block, Some(block_return), _) => block_return,
            (Action::Block, None, BlockPolicy::Return) => BlockReturn::Return,
            (Action::Pass, ..) if self.options.fail_policy == BlockPolicy::Return => {
                BlockReturn::Return
            }
            _ => BlockReturn::Drop,
        }
    }

    /// Returns the state options of the rule. A `pass` rule without state keyword has `keep state`
    /// with the options of `set state-defaults`.
    fn state(&mut self, statement: &RuleStatement) -> Result<Option<StateOptions>, Refused> {
        let (kind, written) = match &statement.options.keep {
            Some(Keep::No) => return Ok(None),
            Some(Keep::State(kind, written)) => (*kind, written.as_slice()),
            None if statement.action == Action::Pass => (KeepKind::Keep, self.state_defaults),
            None => return Ok(None),
        };
        match keep::options(kind, written, self.options) {
            Ok(state) => Ok(Some(state)),
            Err(message) => self.refuse(message),
        }
    }

    fn combinations(&mut self, template: &Rule, lists: &Lists) {
        let Some(count) = lists.count().filter(|count| *count <= self.room) else {
            return self.error(&format!("rule set expands to more than {MOST_RULES} rules"));
        };
        self.room -= count;
        let before = self.rules.len();
        let mut errors = 0;
        for index in 0..count {
            self.combination(template, lists, index, &mut errors);
            if *self.pooled == 0 {
                return self.error(&format!("pools expand to more than {MOST_POOLED} addresses"));
            }
        }
        if self.rules.len() == before {
            self.error("rule expands to no valid combination");
        }
    }

    /// Adds the rule of one combination, unless its parts differ in family or interface. After an
    /// error no further rule of the statement is added.
    fn combination(&mut self, template: &Rule, lists: &Lists, number: usize, errors: &mut u32) {
        let (parts, translation) = (&lists.combination(number), lists.translation);
        let mut family = template.family;
        let pools = self.pool_addresses(translation, &mut family, errors);
        let Some(family) = combined_family(family, parts) else {
            return;
        };
        let Some(interface) = self.combined_interface(parts) else {
            return;
        };
        let mut rule = template.clone();
        rule.family = family;
        self.expand_macros(&mut rule, interface.as_ref().map(|not| &not.value), parts);
        rule.interface = interface;
        rule.protocol = parts.protocol;
        rule.source = self.endpoint(parts.source, parts.source_ports, family, errors);
        rule.destination =
            self.endpoint(parts.destination, parts.destination_ports, family, errors);
        rule.icmp = parts.icmp.map(|(_, icmp)| icmp);
        (rule.user, rule.group) = (parts.user, parts.group);
        rule.os = parts.system.cloned();
        if rule.protocol.is_some_and(|protocol| protocol != TCP) {
            rule.tcp_flags = None;
            if let Some(state) = &mut rule.state {
                state.kind = KeepKind::Keep;
            }
        }
        if parts.icmp.is_some_and(|(protocol, _)| rule.protocol != Some(protocol)) {
            self.error("icmp-type mismatch");
            *errors += 1;
        }
        if translation.binat {
            self.check_binat(template, parts, pools.nat.as_ref(), errors);
            rule.direction = Some(Direction::Out);
        }
        self.apply_pools(translation, &pools, parts.destination_ports, &mut rule, errors);
        let warning = check::warning(&rule).map(|text| Message::Warning(text.to_string()));
        self.messages.extend(warning);
        let wrong = check::rule(&rule, translation, lists.kind, self.context.dialect);
        for text in &wrong {
            self.error(text);
        }
        let outbound = (translation.binat && *errors == 0).then(|| rule.clone());
        if wrong.is_empty() && *errors == 0 {
            rule.number = self.rules.len() as u32;
            self.rules.push(rule);
        } else {
            self.error("skipping rule due to errors");
        }
        if let Some(outbound) = outbound {
            self.inbound(&outbound, lists, number);
        }
    }

    /// Returns the interface of the rule: the written one, or that of a link-local address. The
    /// outer `None` means that they differ.
    fn combined_interface(&self, parts: &Combination) -> Option<Option<Not<InterfaceMatch>>> {
        let scope =
            |host: Option<&ast::Host>| host.map(|host| host.scope).filter(|scope| *scope != 0);
        let (source, destination) = (scope(parts.source), scope(parts.destination));
        if source.is_some() && destination.is_some() && source != destination {
            return None;
        }
        let Some(scope) = source.or(destination) else {
            return Some(parts.interface.cloned());
        };
        let owner =
            self.context.host.interfaces.iter().find(|interface| interface.index == scope)?;
        let owned = InterfaceMatch::Named(owner.name.clone());
        match parts.interface {
            None => Some(Some(Not { negated: false, value: owned })),
            Some(interface) => (interface.value == owned).then(|| Some(interface.clone())),
        }
    }

    fn endpoint(
        &mut self,
        host: Option<&ast::Host>,
        ports: Option<Ports>,
        family: Option<Family>,
        errors: &mut u32,
    ) -> Endpoint {
        let Some(host) = host else {
            return Endpoint { host: Host::default(), ports };
        };
        let address = match &host.address {
            ast::Address::Net(address, length) => match resolve::net(*address, *length) {
                Some(net) => Address::Net(net),
                None => {
                    let text = format!("netmask {length} invalid for IPv4 address");
                    self.messages.push(Message::Bare(text));
                    *errors += 1;
                    Address::Any
                }
            },
            ast::Address::Range(low, high) => Address::Range(*low, *high),
            ast::Address::Table(name) => Address::Table(name.clone()),
            ast::Address::Dynamic { interface, prefix } => {
                let whole = if family == Some(Family::Inet) { 32 } else { 128 };
                let prefix = Some(*prefix).filter(|prefix| *prefix < whole);
                Address::Dynamic(skipstep_ruleset::address::DynamicAddress {
                    prefix,
                    ..interface.clone()
                })
            }
            ast::Address::Any => Address::Any,
            ast::Address::NoRoute => Address::NoRoute,
            ast::Address::UrpfFailed => Address::UrpfFailed,
            ast::Address::RouteLabel(label) => Address::RouteLabel(label.clone()),
        };
        Endpoint { host: Host { negated: host.negated, address }, ports }
    }

    fn expand_macros(
        &mut self,
        rule: &mut Rule,
        interface: Option<&InterfaceMatch>,
        parts: &Combination,
    ) {
        let macros = Macros {
            interface,
            family: rule.family,
            source: parts.source,
            destination: parts.destination,
            source_ports: parts.source_ports,
            destination_ports: parts.destination_ports,
            protocol: parts.protocol,
            names: self.context.names,
        };
        for text in label::names(rule) {
            *text = macros.expand(text);
            if text.len() > LONGEST_LABEL {
                self.error("label too long after its macros are replaced");
            }
        }
    }

    fn error(&mut self, text: &str) {
        self.messages.push(Message::Error(text.to_string()));
    }
}

/// Returns the labels that are not empty.
fn non_empty<'a>(labels: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    labels.into_iter().filter(|label| !label.is_empty()).cloned().collect()
}

fn interface_match(name: &str) -> InterfaceMatch {
    if name == "any" { InterfaceMatch::Any } else { InterfaceMatch::Named(name.to_string()) }
}

/// Returns the family that all hosts of a list have.
fn common_family(hosts: &[ast::Host]) -> Option<Family> {
    let family = hosts.first()?.family();
    if hosts.iter().all(|host| host.family() == family) { family } else { None }
}

/// Returns the family of the rule and both hosts. The outer `None` means that they differ.
fn combined_family(rule: Option<Family>, parts: &Combination) -> Option<Option<Family>> {
    let source = parts.source.and_then(ast::Host::family);
    let destination = parts.destination.and_then(ast::Host::family);
    let mut families = [rule, source, destination].into_iter().flatten();
    let first = families.next();
    families.all(|family| Some(family) == first).then_some(first)
}
