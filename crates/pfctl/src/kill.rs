//! `-k` removes states by host, label, id, key or next hop, and sources of limiters by address.
//! `-K` removes source nodes.

use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use ipnet::IpNet;
use skipstep_kernel::Instance;
use skipstep_kernel::state::Sides;
use skipstep_pfconf::Names;
use skipstep_scenario::kill::Target;
use skipstep_views::{SourceView, StateView};

use crate::load::addresses_of;
use crate::request::Args;

/// Parses the values of one or two `-k`.
///
/// # Errors
/// Fails if a value is missing, or is no valid network, id or key.
pub fn parse(keys: &[String]) -> Result<Target> {
    let second = |what: &str| match keys.get(1) {
        Some(key) if !key.is_empty() => Ok(key.as_str()),
        _ => bail!("no {what} specified"),
    };
    match keys.first().map(String::as_str) {
        Some("label") => Ok(Target::Label(second("label")?.to_string())),
        Some("id") => parse_id(second("id")?),
        Some("key") => parse_key(second("key")?),
        Some("gateway") => Ok(Target::Gateway(network(second("gateway")?)?)),
        Some(source) => {
            let destination = keys.get(1).map(|key| network(key)).transpose()?;
            Ok(Target::Hosts(network(source)?, destination))
        }
        None => bail!("nothing to kill"),
    }
}

/// Parses an address or network, or looks up a host name and takes its first address. Host bits of
/// a network are cleared.
fn network(text: &str) -> Result<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    if let Ok(net) = text.parse::<IpNet>() {
        return Ok(net.trunc());
    }
    match addresses_of(text).first() {
        Some(address) => Ok((*address).into()),
        None => bail!("{text} is not an address, network or host name"),
    }
}

/// Parses `id` or `id/creatorid`, both in hexadecimal.
fn parse_id(text: &str) -> Result<Target> {
    let (id, creator) = match text.split_once('/') {
        Some((id, creator)) => (id, Some(creator)),
        None => (text, None),
    };
    let wrong = "wrong id format specified";
    let id = u64::from_str_radix(id, 16).context(wrong)?;
    let creator =
        creator.map(|creator| u32::from_str_radix(creator, 16)).transpose().context(wrong)?;
    if id == 0 {
        bail!("cannot kill id 0");
    }
    Ok(Target::Id(id, creator))
}

/// Parses `protocol host1:port1 direction host2:port2`, as `-ss` prints it.
fn parse_key(text: &str) -> Result<Target> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [protocol, left, arrow, right] = words[..] else {
        bail!("key must be \"protocol host1:port1 direction host2:port2\" format");
    };
    let Some(protocol) = Names::builtin().protocol(protocol) else {
        bail!("invalid protocol: {protocol}");
    };
    let host = |text: &str| endpoint(text).with_context(|| format!("invalid host: {text}"));
    match arrow {
        "->" => Ok(Target::Key(protocol, host(left)?, host(right)?)),
        "<-" => Ok(Target::Key(protocol, host(right)?, host(left)?)),
        _ => bail!("invalid direction: {arrow}"),
    }
}

/// Parses `192.0.2.1:80` or `2001:db8::1[80]`.
fn endpoint(text: &str) -> Option<(IpAddr, u16)> {
    if let Some((address, port)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        return Some((IpAddr::V6(address.parse().ok()?), port.parse().ok()?));
    }
    let (address, port) = text.split_once(':')?;
    Some((IpAddr::V4(address.parse().ok()?), port.parse().ok()?))
}

/// Returns OpenBSD's message about the number of killed states.
fn message(target: &Target, killed: u64) -> String {
    match target {
        Target::Hosts(from, to) => {
            let same_family = |to: &IpNet| from.addr().is_ipv4() == to.addr().is_ipv4();
            let destinations = u32::from(to.as_ref().is_some_and(same_family));
            format!("killed {killed} states from 1 sources and {destinations} destinations")
        }
        _ => format!("killed {killed} states"),
    }
}

/// Removes a source from a source limiter, and returns the message.
fn limited(instance: Option<&Instance>, args: &Args) -> Result<String> {
    let Some(id) = args.limiter else {
        bail!("-k source needs the number of a source limiter (-I)");
    };
    let source = match args.kill.get(1) {
        Some(source) if !source.is_empty() => source,
        _ => bail!("no source specified"),
    };
    let Some(address) = addresses_of(source).first().copied() else {
        bail!("{source} is not an address or host name");
    };
    let rdomain = args.rdomain.unwrap_or(0);
    match instance.map_or(Ok(None), |instance| instance.forget_limited(id, rdomain, address))? {
        None => bail!("no source limiter has the id {id}"),
        Some(false) => bail!("source limiter {id} has no entry for {source}"),
        Some(true) => Ok(format!("killed source {source} of limiter {id}")),
    }
}

/// Returns the states of a forwarded connection that `-k` and `-F states` remove.
pub fn sides(args: &Args) -> Sides {
    if args.both_sides { Sides::Both } else { Sides::One }
}

/// Removes states, or a source of a limiter, and returns the message to print.
///
/// # Errors
/// Fails if the values of `-k` are wrong, if the limiter or its source is unknown, or if the kernel
/// part refuses the change.
pub fn run(instance: Option<&Instance>, args: &Args) -> Result<String> {
    if args.kill[0] == "source" {
        return limited(instance, args);
    }
    let target = parse(&args.kill)?;
    let Some(instance) = instance else {
        return Ok(message(&target, 0));
    };
    let hostid = instance.status()?.hostid;
    let (interface, rdomain) = (args.interface.as_deref(), args.rdomain.unwrap_or(0));
    let meant = |state: &StateView| {
        interface.is_none_or(|name| state.interface.as_deref() == Some(name))
            && target.matches(state, hostid)
            // an id is unique over all routing domains
            && (matches!(target, Target::Id(..)) || state.rdomain == rdomain)
    };
    let killed = match &target {
        Target::Label(label) => instance.kill_labelled(label, sides(args), meant)?,
        _ => instance.kill_states(sides(args), meant)?,
    };
    Ok(message(&target, killed))
}

/// Implements `-K`: removes the source nodes of the first network, and returns the message to
/// print. A second network restricts this to nodes whose pool chose an address in it.
///
/// # Errors
/// Fails if a key is no address, network or host name, or if the kernel part refuses the change.
pub fn sources(instance: Option<&Instance>, keys: &[String]) -> Result<String> {
    let nets = keys.iter().map(|key| network(key)).collect::<Result<Vec<_>>>()?;
    let meant = |source: &SourceView| {
        let chosen = |to: &IpNet| source.chosen.is_some_and(|chosen| to.contains(&chosen));
        nets.first().is_some_and(|from| from.contains(&source.source))
            && nets.get(1).is_none_or(chosen)
    };
    let killed = match instance {
        Some(instance) => instance.drop_sources(meant)?,
        None => 0,
    };
    let destinations = match nets[..] {
        [from, to] => u32::from(from.addr().is_ipv4() == to.addr().is_ipv4()),
        _ => 0,
    };
    Ok(format!("killed {killed} src nodes from 1 sources and {destinations} destinations"))
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::{Direction, Family, RouteKind, Timeout};
    use skipstep_views::{NextHop, Peer};

    use super::*;

    fn keys(line: &[&str]) -> Vec<String> {
        line.iter().map(|key| key.to_string()).collect()
    }

    /// Returns the state of 10.0.1.5:1025 -> 192.0.2.7:80 in the given direction.
    fn state(direction: Direction) -> StateView {
        let from = ("10.0.1.5".parse().unwrap(), 1025);
        let to = ("192.0.2.7".parse().unwrap(), 80);
        let key = if direction == Direction::In { [from, to] } else { [to, from] };
        StateView {
            id: 0x6555_77a0_0000_0001,
            protocol: 6,
            family: Family::Inet,
            direction,
            interface: None,
            rdomain: 0,
            rule: Some(0.into()),
            anchor_rule: None,
            wire: key,
            stack: key,
            src: Peer::default(),
            dst: Peer::default(),
            timeout: Timeout::TcpFirst,
            created_at: 0,
            expires_at: 120,
            packets: [1, 0],
            bytes: [60, 0],
            flags: 0,
            min_ttl: 0,
            max_mss: 0,
            tag: None,
            tracked: false,
            route: None,
        }
    }

    #[test]
    fn targets_find_the_state_both_ways() {
        for direction in [Direction::In, Direction::Out] {
            for (line, matches) in [
                (vec!["10.0.1.5"], true),
                (vec!["10.0.0.0/8"], true),
                (vec!["192.0.2.7"], false),
                (vec!["0.0.0.0/0", "192.0.2.0/24"], true),
                (vec!["10.0.1.5", "192.0.2.8"], false),
                (vec!["::/0"], false),
                (vec!["id", "655577a000000001"], true),
                (vec!["id", "655577a000000001/1f"], true),
                (vec!["id", "655577a000000001/20"], false),
                (vec!["key", "tcp 10.0.1.5:1025 -> 192.0.2.7:80"], true),
                (vec!["key", "tcp 192.0.2.7:80 <- 10.0.1.5:1025"], true),
                (vec!["key", "udp 10.0.1.5:1025 -> 192.0.2.7:80"], false),
            ] {
                let target = parse(&keys(&line)).unwrap();
                assert_eq!(target.matches(&state(direction), 0x1f), matches, "{line:?}");
            }
        }
    }

    #[test]
    fn routed_states_are_found_by_their_next_hop() {
        let address = "192.168.1.254".parse().unwrap();
        let hop = NextHop { kind: RouteKind::RouteTo, address, interface: None };
        let routed = StateView { route: Some(hop), ..state(Direction::In) };
        for (gateway, matches) in
            [("192.168.1.254", true), ("192.168.0.0/16", true), ("192.168.1.1", false)]
        {
            let target = parse(&keys(&["gateway", gateway])).unwrap();
            assert_eq!(target.matches(&routed, 1), matches, "{gateway}");
            assert!(!target.matches(&state(Direction::In), 1));
        }
        assert!(parse(&keys(&["gateway"])).is_err());
    }

    #[test]
    fn the_other_side_of_a_connection_is_found() {
        let [client, server]: [(IpAddr, u16); 2] =
            [("10.0.1.5".parse().unwrap(), 1025), ("192.0.2.7".parse().unwrap(), 80)];
        let outside = ("198.51.100.1".parse().unwrap(), 50001);
        let inbound = state(Direction::In);
        let nat = StateView { wire: [server, outside], ..state(Direction::Out) };
        assert_eq!((inbound.stack, nat.stack), ([client, server], [server, client]));
        let other = StateView { stack: [server, outside], ..nat.clone() };
        let elsewhere = StateView { rdomain: 1, ..nat.clone() };
        let states = [inbound, nat, other, elsewhere];
        let of = |chosen: [bool; 4]| skipstep_views::other_sides(&states, &chosen);
        assert_eq!(of([true, false, false, false]), [1]);
        assert_eq!(of([false, true, false, false]), [0]);
        assert!(of([false, false, true, true]).is_empty());
        // of two counterparts neither is certain, as in FreeBSD
        let twice = [states[0].clone(), states[1].clone(), states[1].clone()];
        assert!(skipstep_views::other_sides(&twice, &[true, false, false]).is_empty());
    }

    #[test]
    fn wrong_keys_are_refused() {
        for (line, message) in [
            (vec!["label"], "no label specified"),
            (vec!["id", "xyz"], "wrong id format specified"),
            (vec!["id", "0"], "cannot kill id 0"),
            (vec!["key", "tcp 10.0.0.1:1 -> 10.0.0.2"], "invalid host: 10.0.0.2"),
            (vec!["key", "tcp 10.0.0.1:1 to 10.0.0.2:2"], "invalid direction: to"),
        ] {
            assert_eq!(parse(&keys(&line)).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn messages_are_those_of_openbsd() {
        let message = |line: &[&str]| message(&parse(&keys(line)).unwrap(), 2);
        assert_eq!(message(&["10.0.0.1"]), "killed 2 states from 1 sources and 0 destinations");
        assert_eq!(
            message(&["10.0.0.1", "10.0.0.2"]),
            "killed 2 states from 1 sources and 1 destinations"
        );
        assert_eq!(message(&["label", "x"]), "killed 2 states");
    }

    #[test]
    fn source_nodes_are_counted_as_openbsd_does() {
        let message = |line: &[&str]| sources(None, &keys(line)).unwrap();
        assert_eq!(message(&["10.0.0.1"]), "killed 0 src nodes from 1 sources and 0 destinations");
        assert_eq!(
            message(&["10.0.0.0/8", "10.1.0.1"]),
            "killed 0 src nodes from 1 sources and 1 destinations"
        );
        assert!(sources(None, &keys(&["10.0.0.1/99"])).is_err());
    }
}
