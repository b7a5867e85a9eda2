//! The addresses of `route "label"`: the destinations of routes in the main routing table that have
//! the label.
//!
//! All routes become entries of one table, in which the longest match decides as it does for
//! routes. Routes with another label, or with none, become negated entries.

use std::collections::BTreeMap;

use ipnet::IpNet;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{TableEntry, TableName};

/// Returns the contents of the table of a label. The table is empty if no route has the label.
pub fn contents(label: &str, host: &Host) -> Vec<TableEntry> {
    let mut has_label: BTreeMap<IpNet, bool> = BTreeMap::new();
    let main =
        host.routes.iter().filter(|route| route.table == 0 && host.rdomain(&route.interface) == 0);
    for route in main {
        // Of several routes to one destination, the kernel lists the one in use first.
        has_label.entry(route.destination).or_insert(route.label.as_deref() == Some(label));
    }
    if !has_label.values().any(|has_label| *has_label) {
        return Vec::new();
    }
    let addresses = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    has_label.extend(addresses.map(|own| (IpNet::from(own.net.addr()), false)));
    let entry =
        |(net, has_label): (IpNet, bool)| TableEntry { negated: !has_label, net, weight: 0 };
    has_label.into_iter().map(entry).collect()
}

/// Returns the name of the label's table slot. The name has a quotation mark, so no table has it,
/// and no blank. It means the same in every anchor.
pub fn name(label: &str) -> TableName {
    let label = label.replace('\\', "\\\\").replace(' ', "\\s");
    format!("route\"{label}\"").as_str().into()
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::interface::{Interface, Route};

    use super::*;

    #[test]
    fn names_survive_as_keys_of_json() {
        for label in ["isp", "my isp", "my\\sisp"] {
            assert_eq!(TableName::from(String::from(name(label))), name(label));
        }
        assert_ne!(name("my isp"), name("my\\sisp"));
    }

    #[test]
    fn other_routes_and_own_addresses_are_negated() {
        let route = |destination: &str, label: Option<&str>| Route {
            label: label.map(str::to_owned),
            ..Route::new(destination, "em0", None)
        };
        let host = Host {
            routes: vec![
                route("10.0.0.0/8", Some("isp")),
                route("10.0.0.0/8", None),
                route("10.1.0.0/16", Some("isp")),
                route("10.1.2.0/24", Some("lan")),
            ],
            ..Host::with([Interface::new("em0", &["10.1.0.1/24"])])
        };
        let text = |label| -> Vec<String> {
            contents(label, &host)
                .iter()
                .map(|entry| format!("{}{}", if entry.negated { "!" } else { "" }, entry.net))
                .collect()
        };
        assert_eq!(text("isp"), ["10.0.0.0/8", "10.1.0.0/16", "!10.1.0.1/32", "!10.1.2.0/24"]);
        assert_eq!(text("nobody"), Vec::<String>::new());
    }
}
