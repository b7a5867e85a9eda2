//! The map of interfaces: the id, flags, groups and addresses of each interface of the host.

use std::collections::BTreeSet;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_flags as flags;
use skipstep_abi::limits::{COPIES, IFNAMSIZ};
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{InterfaceMatch, Not, Ruleset};

use crate::{Error, Names};

/// Groups that always exist, even without members.
pub(crate) const STANDING_GROUPS: [&str; 2] = ["all", "egress"];

/// The operands of `set skip on` for each copy of the rules.
pub type SkipLists<'a> = [&'a [String]; COPIES as usize];

/// Compiles every interface of `host` to a value of the map of interfaces. Each value comes with
/// the interface index.
///
/// # Errors
/// Fails if a name is longer than 15 bytes, or if a registry has no number left for an interface or
/// group.
pub fn interfaces(
    host: &Host,
    skip: SkipLists,
    names: &mut Names,
) -> Result<Vec<(u32, abi::Interface)>, Error> {
    host.interfaces.iter().map(|i| Ok((i.index, interface(i, skip, names)?))).collect()
}

fn interface(
    interface: &Interface,
    skip: SkipLists,
    names: &mut Names,
) -> Result<abi::Interface, Error> {
    let is_skipped = |list: &[String]| list.iter().any(|name| interface.has_name_or_group(name));
    let skip_flags = (0..).zip(skip).filter(|(_, list)| is_skipped(list));
    let mut groups = 0;
    for group in &interface.groups {
        groups |= 1 << names.groups.number(group)?;
    }
    Ok(abi::Interface {
        id: names.interfaces.number(&interface.name)?,
        flags: if_set(interface.loopback, flags::LOOPBACK)
            | if_set(interface.no_link_header, flags::NO_LINK)
            | if_set(interface.port, flags::PORT)
            | skip_flags.fold(0, |flags, (copy, _)| flags | flags::SKIP << copy),
        groups,
        name: name_bytes(&interface.name)?,
        rdomain: interface.rdomain,
        pad: 0,
        link_address: interface.link_local().map_or([0; 16], |address| address.octets()),
    })
}

/// Returns the names in rules that mean a group of the host, except those that always exist. A name
/// that is neither an interface nor a group counts as an interface that may appear. If a group of
/// that name appears, the rules have to be compiled again.
pub fn groups(ruleset: &Ruleset, host: &Host) -> BTreeSet<String> {
    let operands = ruleset
        .every_rule()
        .flat_map(|(_, rule)| [rule.interface.as_ref(), rule.received_on.as_deref()]);
    let names = operands.filter_map(|operand| match operand {
        Some(Not { value: InterfaceMatch::Named(name), .. }) => Some(name),
        _ => None,
    });
    let is_group = |name: &&String| {
        let stands = STANDING_GROUPS.contains(&name.as_str());
        !stands
            && host.interface(name).is_none()
            && host.interfaces.iter().any(|one| one.has_name_or_group(name))
    };
    names.filter(is_group).cloned().collect()
}

/// Returns an interface name as the kernel stores it: NUL-terminated and padded with zeros.
///
/// # Errors
/// Fails if the name has more than 15 bytes.
pub fn name_bytes(name: &str) -> Result<[u8; IFNAMSIZ], Error> {
    let mut bytes = [0; IFNAMSIZ];
    if name.len() >= IFNAMSIZ {
        return Err(Error::InterfaceName { line: 0, name: name.to_owned() });
    }
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Ok(bytes)
}

fn if_set(condition: bool, flag: u32) -> u32 {
    if condition { flag } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_is_kept_for_each_copy() {
        let host = Host::with([Interface::new("lo", &[]).in_group("lo")]);
        let mut names = Names::default();
        let old = ["lo".to_owned()];
        let seen = interfaces(&host, [&[], &old, &[], &[]], &mut names).unwrap();
        let (index, lo) = seen[0];
        assert_eq!((index, lo.id, lo.groups), (1, 1, 0b11));
        assert_eq!(lo.flags, flags::LOOPBACK | flags::SKIP << 1);
        assert_eq!(&lo.name[..3], b"lo\0");
    }
}
