//! The choice of states by words: a rule, a label, and criteria in pf's words.

use anyhow::{Result, bail};
use pfctl::criteria::{Criteria, Entries};
use pfctl::request::Args;
use skipstep_model::{Carried, LinkHeader, Packet};
use skipstep_pfconf::Diagnostic;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::rule::Action;
use skipstep_ruleset::{Rule, RuleId, Ruleset};
use skipstep_views::StateView;
use skipstep_wire::build::{self, Icmp, Tcp, Udp};
use skipstep_wire::protocol;

use crate::rows::states::path;

/// A choice of states.
pub struct StateFilter {
    rule: Option<RuleId>,
    label: Option<String>,
    /// Criteria in pf's words; `None` if there are none.
    criteria: Option<Criteria>,
    /// The results for known states, by id. The addresses and ports of a state never change.
    known: Vec<(u64, bool)>,
}

impl StateFilter {
    /// Parses `rule ID`, `label NAME`, and then criteria in pf's words.
    ///
    /// # Errors
    /// Fails with a message for the user if a word is wrong, or if a table cannot be read.
    pub fn parse(text: &str, args: &Args, host: Host, entries: Entries) -> Result<StateFilter> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut words = &words[..];
        let (mut rule, mut label) = (None, None);
        loop {
            match words {
                ["rule", id, rest @ ..] => (rule, words) = (Some(rule_id(id)?), rest),
                ["label", name, rest @ ..] => (label, words) = (Some((*name).to_owned()), rest),
                ["rule" | "label"] => bail!("{}: its value is missing", words[0]),
                _ => break,
            }
        }
        let criteria = match words {
            [] => None,
            words => match Criteria::parse(words, args, host, entries)? {
                Ok(criteria) => Some(criteria),
                Err(diagnostics) => bail!("{}", message(&diagnostics)),
            },
        };
        if criteria.as_ref().is_some_and(|criteria| !criteria.rules().iter().all(is_of_states)) {
            bail!(
                "a state has no such property: use in, out, on, inet, proto, from, to, port, tagged"
            );
        }
        Ok(StateFilter { rule, label, criteria, known: Vec::new() })
    }

    /// Returns the numbers of the states that the filter chooses. `states` are sorted by id.
    pub fn choose(&mut self, states: &[StateView], ruleset: &Ruleset) -> Vec<u32> {
        let mut known = Vec::with_capacity(states.len());
        let chooses = |state: &StateView| {
            let matches = match self.known.binary_search_by_key(&state.id, |(id, _)| *id) {
                Ok(place) => self.known[place].1,
                Err(_) => self
                    .criteria
                    .as_mut()
                    .is_none_or(|criteria| criteria.matches(&packet(state)).unwrap_or(false)),
            };
            if self.criteria.is_some() {
                known.push((state.id, matches));
            }
            matches
        };
        let by_rule: Vec<bool> = states
            .iter()
            .map(|state| is_made_by(&self.rule, &self.label, state, ruleset))
            .collect();
        let matches: Vec<bool> = states.iter().map(chooses).collect();
        self.known = known;
        let both = by_rule.into_iter().zip(matches).map(|(rule, criteria)| rule && criteria);
        (0u32..).zip(both).filter(|(_, is_chosen)| *is_chosen).map(|(row, _)| row).collect()
    }
}

/// Parses `3` or `ssh/0`.
fn rule_id(text: &str) -> Result<RuleId> {
    let (anchor, number) = text.rsplit_once('/').unwrap_or(("", text));
    match number.parse() {
        Ok(number) => Ok(RuleId::new(anchor, number)),
        Err(_) => bail!("rule {text}: give the number of a rule, as in rule 3 or rule ssh/0"),
    }
}

/// Returns the first error, with its advice.
pub fn message(diagnostics: &[Diagnostic]) -> String {
    let first = diagnostics.iter().find(|diagnostic| !diagnostic.kind.is_harmless());
    first.map_or_else(|| "wrong filter".to_owned(), |first| first.message.clone())
}

fn is_made_by(
    rule: &Option<RuleId>,
    label: &Option<String>,
    state: &StateView,
    ruleset: &Ruleset,
) -> bool {
    let by_rule = rule.as_ref().is_none_or(|rule| state.rule.as_ref() == Some(rule));
    let has = |label: &String| {
        let made_by = state.rule.as_ref().and_then(|rule| ruleset.rule(rule));
        made_by.is_some_and(|rule| rule.labels.contains(label))
    };
    by_rule && label.as_ref().is_none_or(has)
}

/// True if the rule has only criteria for properties of states.
fn is_of_states(rule: &Rule) -> bool {
    let allowed = Rule {
        number: rule.number,
        line: rule.line,
        file: rule.file.clone(),
        action: Action::Block,
        direction: rule.direction,
        interface: rule.interface.clone(),
        family: rule.family,
        protocol: rule.protocol,
        source: rule.source.clone(),
        destination: rule.destination.clone(),
        icmp: rule.icmp.filter(|icmp| icmp.code.is_none()),
        tagged: rule.tagged.clone(),
        ..Rule::default()
    };
    *rule == allowed
}

/// Returns a packet with the properties of a state, as the peer that made the state sends it.
fn packet(state: &StateView) -> Packet {
    let path = path(state);
    let ((source, from), (destination, to)) = (path.source, path.destination);
    let ip = build::ip(source, destination);
    let bytes = match state.protocol {
        // the model refuses port 0 as a destination
        protocol::TCP => ip.tcp(&Tcp::new(from, to.max(1)).flags("S")),
        protocol::UDP => ip.udp(&Udp::new(from, to.max(1))),
        // the port of the destination is the type of the query
        protocol::ICMP | protocol::ICMP6 => ip.icmp(&Icmp::new(to as u8, 0)),
        other => ip.raw(other, &[]),
    };
    Packet {
        direction: state.direction,
        interface: pfctl::show::states::name_of(state).to_owned(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried { tag: state.tag.clone(), ..Carried::default() },
        owner: None,
    }
}
