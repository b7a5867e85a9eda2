//! Ports of bridges, as an instance's memory stores them by name, and their frame rules.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::bridge::bridge_match;
use skipstep_abi::verdict::action;
use skipstep_ruleset::Direction;

/// Link address of a station (6 bytes, in the order of the frame).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkAddress(pub [u8; 6]);

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for LinkAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = |part: &&str| !part.starts_with('+') && (1..=2).contains(&part.len());
        let parts: Vec<&str> = text.split(':').filter(is_hex).collect();
        let mut bytes = [0; 6];
        if parts.len() != 6 || text.split(':').count() != 6 {
            return Err(());
        }
        for (byte, part) in bytes.iter_mut().zip(parts) {
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        Ok(LinkAddress(bytes))
    }
}

/// A rule for frames, of one port. The first matching rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRule {
    /// True to pass the frame, false to drop it.
    pub pass: bool,
    /// Direction of the frame, seen from the port; `None` matches both.
    pub direction: Option<Direction>,
    /// Link address of the sender; `None` matches all.
    pub source: Option<LinkAddress>,
    /// Link address of the receiver; `None` matches all.
    pub destination: Option<LinkAddress>,
    /// EtherType in host byte order; `None` matches all.
    pub ether_type: Option<u16>,
}

impl FrameRule {
    fn applies_to(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }

    /// Returns the rule in the layout of the maps.
    pub(crate) fn image(&self) -> abi::BridgeRule {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        abi::BridgeRule {
            action: if self.pass { action::PASS } else { action::BLOCK },
            r#match: bit(self.source.is_some(), bridge_match::SOURCE)
                | bit(self.destination.is_some(), bridge_match::DESTINATION)
                | bit(self.ether_type.is_some(), bridge_match::TYPE),
            r#type: self.ether_type.unwrap_or(0).to_be_bytes(),
            source: self.source.map_or([0; 6], |address| address.0),
            destination: self.destination.map_or([0; 6], |address| address.0),
        }
    }
}

/// A port, as the instance's memory stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Number of its bridge, from 1.
    pub(crate) bridge: u32,
    /// Seconds until the bridge forgets a silent station; 0 for never. The same in all ports of a
    /// bridge.
    pub(crate) timeout: u32,
    /// Number of the port, from 1.
    pub(crate) number: u32,
    /// Index of the interface, 0 while the interface is absent.
    pub(crate) index: u32,
    /// True if skipstep has made the interface promiscuous.
    pub(crate) promiscuous: bool,
    /// True if skipstep has turned off the joining of packets (LRO).
    pub(crate) kept_apart: bool,
    /// True if the port drops all frames but IPv4, IPv6, ARP and reverse ARP.
    pub(crate) block_non_ip: bool,
    /// Frame rules in the order of evaluation.
    pub(crate) rules: Vec<FrameRule>,
}

impl Port {
    /// Returns the port's rules for frames in a direction, in their order.
    pub(crate) fn rules_of(&self, way: Direction) -> impl Iterator<Item = &FrameRule> {
        self.rules.iter().filter(move |rule| rule.applies_to(way))
    }
}

/// All ports, by the names of their interfaces.
pub type Ports = BTreeMap<String, Port>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_addresses_are_read_as_they_are_written() {
        for text in ["00:00:5e:00:53:01", "fe:e1:ba:d0:0f:ff"] {
            assert_eq!(text.parse::<LinkAddress>().unwrap().to_string(), text);
        }
        assert_eq!("0:0:5e:0:53:1".parse(), Ok(LinkAddress([0, 0, 0x5e, 0, 0x53, 1])));
        for text in [
            "",
            "00:00:5e:00:53",
            "00:00:5e:00:53:01:02",
            "00:00:5e:00:53:100",
            "0:0:5e::53:1",
            "+0:0:5e:0:53:1",
        ] {
            assert!(text.parse::<LinkAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_for_both_directions_is_one_of_each() {
        let rule = FrameRule {
            pass: false,
            direction: None,
            source: None,
            destination: Some(LinkAddress([1, 2, 3, 4, 5, 6])),
            ether_type: Some(0x0806),
        };
        assert!(rule.applies_to(Direction::In) && rule.applies_to(Direction::Out));
        let image = rule.image();
        assert_eq!(image.r#match, bridge_match::DESTINATION | bridge_match::TYPE);
        assert_eq!((image.action, image.r#type), (action::BLOCK, [8, 6]));
    }
}
