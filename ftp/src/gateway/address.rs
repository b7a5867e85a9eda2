//! Canonical notation of addresses, and special destinations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Special destinations, which a rule has to name by address: unspecified and "this network",
/// loopback, link-local, multicast, broadcast (RFC 6890, RFC 4291 section 2.4).
const SPECIAL: [IpNet; 9] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::BROADCAST, 32)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8)),
];

/// Converts an IPv4-mapped (`::ffff:a.b.c.d`) or IPv4-compatible (`::a.b.c.d`) address to IPv4.
/// Linux connects an IPv6 socket to the IPv4 host if the address is IPv4-mapped.
pub fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if !v6.is_unspecified() && !v6.is_loopback() => {
            v6.to_ipv4().map_or(address, IpAddr::V4)
        }
        _ => address,
    }
}

/// Converts the address of an endpoint as [`canonical`] does.
pub fn canonical_endpoint(endpoint: SocketAddr) -> SocketAddr {
    match canonical(endpoint.ip()) {
        // a link-local endpoint keeps its scope
        address if address == endpoint.ip() => endpoint,
        address => SocketAddr::new(address, endpoint.port()),
    }
}

/// Converts a network of IPv4-mapped or IPv4-compatible addresses to IPv4.
pub fn canonical_network(network: IpNet) -> IpNet {
    let length = network.prefix_len().checked_sub(96);
    match (canonical(network.network()), network, length) {
        (IpAddr::V4(v4), IpNet::V6(_), Some(length)) => {
            Ipv4Net::new(v4, length).map_or(network, IpNet::V4)
        }
        _ => network,
    }
}

/// Returns the IPv4 address inside an IPv6 address of the NAT64 well-known prefix (64:ff9b::/96,
/// RFC 6052) or of 6to4 (2002::/16, RFC 3056). A translator or a tunnel sends packets to that
/// address.
pub fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else { return None };
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d).into())
    };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => from(high, low),
        _ => None,
    }
}

/// Returns true for a special destination, and for an address that embeds one. Only a rule with a
/// network of special destinations allows it.
pub fn is_special(address: IpAddr) -> bool {
    let forms = [Some(address), embedded(address)];
    forms.iter().flatten().any(|form| SPECIAL.iter().any(|range| range.contains(form)))
}

/// Returns true for a network that contains special destinations only.
pub fn is_special_network(network: &IpNet) -> bool {
    SPECIAL.iter().any(|range| range.contains(network))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_host_has_one_notation() {
        for (text, wanted) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::192.0.2.1", "192.0.2.1"),
            ("::", "::"),
            ("::1", "::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("64:ff9b::192.0.2.1", "64:ff9b::c000:201"),
        ] {
            assert_eq!(canonical(text.parse().unwrap()).to_string(), wanted, "{text}");
        }
        let link_local = "[fe80::1%3]:21".parse().unwrap();
        assert_eq!(canonical_endpoint(link_local), link_local);
    }

    #[test]
    fn a_mapped_network_is_a_network_of_ipv4() {
        for (text, wanted) in [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
            ("::10.0.0.1/128", "10.0.0.1/32"),
            ("::1/128", "::1/128"),
            ("::/0", "::/0"),
            ("::/96", "::/96"),
            ("10.0.0.0/8", "10.0.0.0/8"),
        ] {
            assert_eq!(canonical_network(text.parse().unwrap()).to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn translators_and_tunnels_lead_to_ipv4() {
        let inside = |text: &str| embedded(text.parse().unwrap()).map(|ip| ip.to_string());
        assert_eq!(inside("64:ff9b::10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(inside("2002:a00:1:2::3").as_deref(), Some("10.0.0.1"));
        assert_eq!(inside("64:ff9b:1::10.0.0.1"), None, "its length is the operator's choice");
        assert_eq!(inside("2001:db8::1"), None);
        assert_eq!(inside("10.0.0.1"), None);
    }
}
