//! `pfctl bridge show`: prints the bridges, their ports and the stations behind them.

use std::fmt::Write;

use serde_json::{Value, json};
use skipstep_kernel::bridge::{BRIDGE_ADDRESSES, bridge_drop as drop};
use skipstep_kernel::bridge::{BridgeView, PortView, Station};

use super::rule;

/// Names of the counters of dropped frames, with their indexes.
const DROPS: [(&str, usize); drop::MAX] = [
    ("rule", drop::RULE),
    ("non-ip", drop::NON_IP),
    ("too-big", drop::TOO_BIG),
    ("source", drop::SOURCE),
];

/// Prints bridges in the style of ifconfig(8); `verbose` adds the counters and rules of each port.
pub fn text(bridges: &[BridgeView], verbose: bool) -> String {
    let mut text = String::new();
    for bridge in bridges {
        let _ = writeln!(text, "bridge {}:", bridge.number);
        for port in &bridge.ports {
            text += &port_text(port, verbose);
        }
        let _ = writeln!(
            text,
            "\tAddresses (max cache: {BRIDGE_ADDRESSES}, timeout: {}):",
            bridge.timeout
        );
        for Station { port, vlan, address, age } in &bridge.stations {
            let vlan = if *vlan == 0 { String::new() } else { format!(" vlan {vlan}") };
            let _ = writeln!(text, "\t\t{address} {port}{vlan} {age}");
        }
    }
    text
}

fn port_text(port: &PortView, verbose: bool) -> String {
    let mut text = format!("\t{}", port.name);
    if port.block_non_ip {
        text += " blocknonip";
    }
    if !port.present {
        text += " (away)";
    }
    text.push('\n');
    if !verbose {
        return text;
    }
    let stats = &port.stats;
    for (way, name) in ["In:", "Out:"].iter().enumerate() {
        let _ = writeln!(
            text,
            "\t\t{name:<12} [ Packets: {:<18} Bytes: {:<18} ]",
            stats.packets[way], stats.bytes[way]
        );
    }
    let _ = writeln!(text, "\t\t{:<12} [ Packets: {:<18} ]", "Flooded:", stats.flooded);
    let _ = writeln!(text, "\t\t{:<12} [ Addresses: {:<16} ]", "Unlearned:", stats.unlearned);
    for (name, reason) in DROPS {
        let dropped = stats.dropped[reason];
        let _ = writeln!(text, "\t\t{:<12} [ Packets: {dropped:<18} ]", format!("Drop/{name}:"));
    }
    for one in &port.rules {
        let _ = writeln!(text, "\t\t{}", rule::text(&port.name, one));
    }
    text
}

/// Prints the rules for frames, in the syntax that `bridge rule add` reads. `port` selects one
/// port.
pub fn rules(bridges: &[BridgeView], port: Option<&str>) -> String {
    let ports = bridges.iter().flat_map(|bridge| &bridge.ports);
    ports
        .filter(|one| port.is_none_or(|name| name == one.name))
        .flat_map(|port| port.rules.iter().map(|one| rule::text(&port.name, one) + "\n"))
        .collect()
}

/// Returns a list with an object for each bridge.
pub fn json(bridges: &[BridgeView]) -> Value {
    let port = |port: &PortView| {
        let stats = &port.stats;
        let way = |way: usize| json!({ "packets": stats.packets[way], "bytes": stats.bytes[way] });
        let dropped: serde_json::Map<_, _> =
            DROPS.iter().map(|(name, at)| (name.to_string(), stats.dropped[*at].into())).collect();
        json!({
            "name": port.name,
            "present": port.present,
            "blocknonip": port.block_non_ip,
            "rules": port.rules.iter().map(|one| rule::text(&port.name, one)).collect::<Vec<_>>(),
            "in": way(0),
            "out": way(1),
            "flooded": stats.flooded,
            "unlearned": stats.unlearned,
            "dropped": dropped,
        })
    };
    let station = |station: &Station| {
        json!({
            "address": station.address.to_string(),
            "port": station.port,
            "vlan": station.vlan,
            "age": station.age,
        })
    };
    bridges
        .iter()
        .map(|bridge| {
            json!({
                "bridge": bridge.number,
                "timeout": bridge.timeout,
                "ports": bridge.ports.iter().map(port).collect::<Vec<_>>(),
                "addresses": bridge.stations.iter().map(station).collect::<Vec<_>>(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use skipstep_kernel::bridge_port::LinkAddress;

    use super::*;

    fn bridge() -> BridgeView {
        let port =
            |name: &str| PortView { name: name.into(), present: true, ..PortView::default() };
        let address = LinkAddress([0, 0, 0x5e, 0, 0x53, 1]);
        BridgeView {
            number: 1,
            timeout: 20,
            ports: vec![PortView { block_non_ip: true, ..port("em0") }, port("em1")],
            stations: vec![
                Station { port: "em0".into(), vlan: 0, address, age: 3 },
                Station { port: "em1".into(), vlan: 10, address, age: 0 },
            ],
        }
    }

    #[test]
    fn a_bridge_is_shown_as_by_ifconfig() {
        assert_eq!(
            text(&[bridge()], false),
            "bridge 1:\n\tem0 blocknonip\n\tem1\n\tAddresses (max cache: 4096, timeout: 20):\n\
             \t\t00:00:5e:00:53:01 em0 3\n\t\t00:00:5e:00:53:01 em1 vlan 10 0\n"
        );
        assert!(text(&[bridge()], true).contains("\t\tDrop/too-big: [ Packets: 0 "));
    }

    #[test]
    fn json_has_ports_stations_and_counters() {
        let json = json(&[bridge()]);
        assert_eq!(json[0]["timeout"], 20);
        assert_eq!(json[0]["ports"][0]["blocknonip"], true);
        assert_eq!(json[0]["addresses"][1]["vlan"], 10);
        assert_eq!(json[0]["ports"][1]["dropped"]["rule"], 0);
    }
}
