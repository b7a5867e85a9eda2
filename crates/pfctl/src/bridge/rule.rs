//! Bridge rules for frames, such as `block in on em0 src 0:0:5e:0:53:1 arp`.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use skipstep_kernel::bridge_port::{FrameRule, LinkAddress};
use skipstep_ruleset::Direction;

/// EtherTypes that have names, in host byte order.
const TYPES: &[(&str, u16)] = &[
    ("ip", 0x0800),
    ("arp", 0x0806),
    ("rarp", 0x8035),
    ("vlan", 0x8100),
    ("ip6", 0x86dd),
    ("pppoe", 0x8864),
    ("lldp", 0x88cc),
];

/// A rule and the port that it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub struct PortRule {
    pub port: String,
    pub rule: FrameRule,
}

/// Parses the words of a rule.
///
/// # Errors
/// Fails if a word is unknown, missing, given twice, or one of ifconfig's words that are not built.
pub fn parse(words: &[String]) -> Result<PortRule> {
    let mut words = words.iter().map(String::as_str);
    let pass = match words.next() {
        Some("pass") => true,
        Some("block") => false,
        other => bail!("{}: must be pass or block", other.unwrap_or("nothing")),
    };
    let direction = match words.next() {
        Some("in") => Some(Direction::In),
        Some("out") => Some(Direction::Out),
        Some("in/out") => None,
        other => bail!("{}: must be in, out or in/out", other.unwrap_or("nothing")),
    };
    let (Some("on"), Some(port)) = (words.next(), words.next()) else {
        bail!("no interface given: write `on em0`");
    };
    let mut rule = FrameRule { pass, direction, source: None, destination: None, ether_type: None };
    while let Some(word) = words.next() {
        let is_new = match word {
            "src" => rule.source.replace(address(words.next())?).is_none(),
            "dst" => rule.destination.replace(address(words.next())?).is_none(),
            "type" => rule.ether_type.replace(ether_type(words.next())?).is_none(),
            "arp" | "rarp" => rule.ether_type.replace(ether_type(Some(word))?).is_none(),
            // Differs from OpenBSD: linux.md, "Refused frame rules"
            "tag" => bail!("tag: not supported, because bridge rules apply after pf's rules"),
            "request" | "reply" | "sha" | "spa" | "tha" | "tpa" => {
                bail!("{word}: not supported, because bridge rules do not parse ARP")
            }
            _ => bail!("{word}: must be src, dst, type, arp or rarp"),
        };
        if !is_new {
            bail!("{word}: is given twice");
        }
    }
    Ok(PortRule { port: port.to_owned(), rule })
}

fn address(word: Option<&str>) -> Result<LinkAddress> {
    let word = word.context("no link address given")?;
    word.parse().map_err(|()| anyhow::anyhow!("{word}: not a link address"))
}

/// Parses the name or number of an EtherType. Numbers below 0x0600 are lengths, so they are
/// refused.
fn ether_type(word: Option<&str>) -> Result<u16> {
    let word = word.context("no type given")?;
    if let Some((_, number)) = TYPES.iter().find(|(name, _)| *name == word) {
        return Ok(*number);
    }
    let number = match word.strip_prefix("0x") {
        Some(hex) => u16::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    number.filter(|number| *number >= 0x0600).with_context(|| format!("{word}: not an EtherType"))
}

/// Prints the rule in the syntax that [`parse`] reads.
pub fn text(port: &str, rule: &FrameRule) -> String {
    let direction = match rule.direction {
        Some(Direction::In) => "in",
        Some(Direction::Out) => "out",
        None => "in/out",
    };
    let mut text = format!("{} {direction} on {port}", if rule.pass { "pass" } else { "block" });
    if let Some(source) = rule.source {
        let _ = write!(text, " src {source}");
    }
    if let Some(destination) = rule.destination {
        let _ = write!(text, " dst {destination}");
    }
    if let Some(number) = rule.ether_type {
        let _ = match TYPES.iter().find(|(_, known)| *known == number) {
            Some((name, _)) => write!(text, " type {name}"),
            None => write!(text, " type {number:#06x}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<PortRule> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        for line in [
            "block in on em0",
            "pass in/out on em1 src 00:00:5e:00:53:01 dst ff:ff:ff:ff:ff:ff type arp",
            "block out on em0 type 0x88a8",
            "pass out on em0 type ip6",
        ] {
            let PortRule { port, rule } = read(line).unwrap();
            assert_eq!(text(&port, &rule), line);
        }
        assert_eq!(
            read("block in on em0 arp").unwrap(),
            read("block in on em0 type 2054").unwrap()
        );
    }

    #[test]
    fn invalid_rules_are_refused_with_a_reason() {
        for (line, reason) in [
            ("", "nothing: must be pass or block"),
            ("block", "nothing: must be in, out or in/out"),
            ("block in em0", "no interface given: write `on em0`"),
            ("block in on em0 src", "no link address given"),
            ("block in on em0 src 10.0.0.1", "10.0.0.1: not a link address"),
            ("block in on em0 type 5", "5: not an EtherType"),
            ("block in on em0 arp type ip", "type: is given twice"),
            (
                "block in on em0 arp request",
                "request: not supported, because bridge rules do not parse ARP",
            ),
            (
                "pass in on em0 tag lan",
                "tag: not supported, because bridge rules apply after pf's rules",
            ),
            ("pass in on em0 from any", "from: must be src, dst, type, arp or rarp"),
        ] {
            assert_eq!(read(line).unwrap_err().to_string(), reason, "{line}");
        }
    }
}
