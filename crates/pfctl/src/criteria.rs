//! Criteria in pf's words, such as `on wan0 proto tcp port 22`, which choose packets. The model
//! evaluates a `block` rule with these criteria.

use anyhow::Result;
use skipstep_model::{Decision, Firewall, Packet};
use skipstep_pfconf::Diagnostic;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Optimization, Reason, Rule, TableEntry};

use crate::explain::add_interface;
use crate::load::{self, Source};
use crate::request::Args;

/// Returns the entries of a table in force.
pub type Entries<'a> = &'a dyn Fn(&str) -> Result<Vec<TableEntry>>;

/// Criteria that choose packets.
pub struct Criteria {
    /// Rules of which one must match; `None` for all packets.
    firewall: Option<Firewall>,
    host: Host,
}

impl Criteria {
    /// Parses the words of a rule behind its action; no words choose all packets. A port without
    /// `from` or `to` is that of either end, and a port without `proto` that of TCP and UDP. The
    /// inner result has the diagnostics of wrong words.
    ///
    /// # Errors
    /// Fails if a table cannot be read.
    pub fn parse(
        words: &[&str],
        args: &Args,
        host: Host,
        entries: Entries,
    ) -> Result<Result<Criteria, Vec<Diagnostic>>> {
        if words.is_empty() {
            return Ok(Ok(Criteria { firewall: None, host }));
        }
        let source = Source { name: "filter".into(), text: rules(words) };
        // the rules stay as they are written
        let args = Args { optimization: Some(Optimization::None), no_action: true, ..args.clone() };
        let mut ruleset = match load::parse(&source, &args, &host) {
            Ok(loaded) => loaded.ruleset,
            Err(rejected) => return Ok(Err(rejected.diagnostics)),
        };
        for table in &mut ruleset.tables {
            table.entries = entries(&table.name)?;
        }
        // a fragment is evaluated, too
        ruleset.options.reassemble = false;
        let firewall = Some(Firewall::new(ruleset, host.clone()));
        Ok(Ok(Criteria { firewall, host }))
    }

    /// Returns the rules of which one must match.
    pub fn rules(&self) -> &[Rule] {
        self.firewall.as_ref().map_or(&[], |firewall| firewall.ruleset().rules_of(""))
    }

    /// True if the criteria choose the packet; `None` if the packet is damaged, so that the model
    /// does not evaluate rules.
    pub fn matches(&mut self, packet: &Packet) -> Option<bool> {
        let Some(firewall) = &mut self.firewall else { return Some(true) };
        if self.host.interface(&packet.interface).is_none() {
            add_interface(&mut self.host, &packet.interface);
            firewall.change_host(self.host.clone());
        }
        let fate = firewall.packet(packet);
        let is_blocked = matches!(fate.decision, Decision::Rule(_));
        (is_blocked || fate.counted.contains(&Reason::Match)).then_some(is_blocked)
    }
}

/// Returns rules with these criteria.
fn rules(words: &[&str]) -> String {
    let place = |wanted: &[&str]| words.iter().position(|word| wanted.contains(word));
    let Some(port) = place(&["port"]) else { return format!("block drop {}\n", words.join(" ")) };
    let ends = place(&["from", "to"]).unwrap_or(port);
    let (before, behind) = (words[..ends].join(" "), words[ends..].join(" "));
    let protocols = if place(&["proto"]).is_none() { "proto { tcp udp } " } else { "" };
    let rule = |end: &str| format!("block drop {before} {protocols}{end}{behind}\n");
    if ends < port { rule("") } else { rule("from any ") + &rule("to any ") }
}
