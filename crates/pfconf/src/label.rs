//! Macros in labels and tags: `$if`, `$srcaddr`, `$dstaddr`, `$srcport`, `$dstport`, `$proto` and
//! `$nr`.

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Family, PortMatch, Ports, Rule};

use crate::ast::{Address, Host};
use crate::names::Names;
use crate::print;

/// The values of the macros in one rule.
pub struct Macros<'a> {
    pub interface: Option<&'a InterfaceMatch>,
    pub family: Option<Family>,
    pub source: Option<&'a Host>,
    pub destination: Option<&'a Host>,
    pub source_ports: Option<Ports>,
    pub destination_ports: Option<Ports>,
    pub protocol: Option<u8>,
    pub names: &'a Names,
}

impl Macros<'_> {
    /// Returns `text` with all macros but `$nr` replaced.
    pub fn expand(&self, text: &str) -> String {
        if !text.contains('$') {
            return text.to_string();
        }
        let protocol = self.protocol.unwrap_or(0);
        let name =
            self.names.protocol_name(protocol).map_or_else(|| protocol.to_string(), str::to_string);
        text.replace("$if", &self.interface.map_or("any".into(), print::interface))
            .replace("$srcaddr", &self.address(self.source))
            .replace("$dstaddr", &self.address(self.destination))
            .replace("$srcport", &ports(self.source_ports))
            .replace("$dstport", &ports(self.destination_ports))
            .replace("$proto", &name)
    }

    fn address(&self, host: Option<&Host>) -> String {
        let Some(host) = host else {
            return "any".to_string();
        };
        let text = match &host.address {
            Address::Net(..) if self.family.is_none() => "any".to_string(),
            Address::Net(..) => print::host(host),
            Address::Dynamic { interface, .. } => format!("({})", interface.interface),
            Address::Table(name) => format!("<{name}>"),
            Address::NoRoute => "no-route".to_string(),
            Address::UrpfFailed => "urpf-failed".to_string(),
            Address::Any => "any".to_string(),
            Address::RouteLabel(_) | Address::Range(..) => "?".to_string(),
        };
        if host.negated { format!("! {text}") } else { text }
    }
}

fn ports(ports: Option<Ports>) -> String {
    let Some(Ports { op, low, high }) = ports else {
        return String::new();
    };
    match op {
        PortMatch::Equal => low.to_string(),
        PortMatch::NotEqual => format!("!={low}"),
        PortMatch::Less => format!("<{low}"),
        PortMatch::LessEqual => format!("<={low}"),
        PortMatch::Greater => format!(">{low}"),
        PortMatch::GreaterEqual => format!(">={low}"),
        PortMatch::Inside => format!("{low}><{high}"),
        PortMatch::Outside => format!("{low}<>{high}"),
        // empty, as in pf, which does not print ranges
        PortMatch::Range => String::new(),
    }
}

/// Replaces `$nr` with the rule's number.
pub fn number(rule: &mut Rule) {
    let number = rule.number;
    for text in names(rule) {
        *text = text.replace("$nr", &number.to_string());
    }
}

/// Returns the labels and tags of a rule, which may contain macros.
pub fn names(rule: &mut Rule) -> impl Iterator<Item = &mut String> {
    let tagged = rule.tagged.as_mut().map(|tagged| &mut tagged.value);
    rule.labels.iter_mut().chain(rule.tag.as_mut()).chain(tagged)
}
