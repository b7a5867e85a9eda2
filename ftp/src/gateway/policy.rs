//! Rules on the servers and commands that a client may use. The first matching rule decides. If no
//! rule matches, access is denied.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::gateway::address::{embedded, is_special, is_special_network};
use crate::gateway::verbs::Commands;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Allows a session.
    Allow,
    /// Refuses a session.
    Deny,
}

/// A pattern for servers in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Matches addresses in this network.
    Network(IpNet),
    /// Matches this name, in lower case, if the client named the server by it.
    Name(String),
    /// Matches names that end in this text, which begins with a dot.
    Under(String),
}

impl Pattern {
    /// Parses a name or `*.name`; `None` if the text is not a name.
    pub fn name(text: &str) -> Option<Pattern> {
        let (name, under) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        if !name.split('.').all(is_label) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        Some(if under { Pattern::Under(format!(".{name}")) } else { Pattern::Name(name) })
    }

    fn fits(&self, name: Option<&str>, address: IpAddr) -> bool {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        match self {
            Pattern::Network(network) => network.contains(&address),
            Pattern::Name(wanted) => name.is_some_and(|name| name == *wanted),
            Pattern::Under(end) => name.is_some_and(|name| name.ends_with(end)),
        }
    }

    /// Returns true for a network of special destinations.
    fn is_special(&self) -> bool {
        matches!(self, Pattern::Network(network) if is_special_network(network))
    }
}

/// A rule. A field that is `None` matches everything, special destinations apart.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The decision.
    pub action: Action,
    /// Networks of clients.
    pub from: Option<Vec<IpNet>>,
    /// Accounts at the gateway.
    pub accounts: Option<Vec<String>>,
    /// Patterns of servers.
    pub to: Option<Vec<Pattern>>,
    /// Ports of servers; `None` matches all ports.
    pub ports: Option<Vec<u16>>,
    /// User names that are allowed at the server.
    pub users: Option<Vec<String>>,
    /// Commands that are allowed at the server.
    pub commands: Commands,
}

impl Rule {
    fn fits(&self, request: &Request<'_>) -> bool {
        let Request { client, account, name, server } = *request;
        self.from.as_ref().is_none_or(|from| from.iter().any(|net| net.contains(&client)))
            && self.accounts.as_ref().is_none_or(|names| {
                account.is_some_and(|account| names.iter().any(|name| name == account))
            })
            && self.ports.as_ref().is_none_or(|ports| ports.contains(&server.port()))
            && match self.action {
                Action::Allow => self.allows_server(name, server.ip()),
                Action::Deny => self.denies_server(name, server.ip()),
            }
    }

    /// Returns true if a rule that allows matches the server. A special destination needs a network
    /// of special destinations: a wider network, a name or a missing list does not allow it.
    fn allows_server(&self, name: Option<&str>, address: IpAddr) -> bool {
        let is_special = is_special(address);
        match &self.to {
            None => !is_special,
            Some(to) => {
                to.iter().any(|to| to.fits(name, address) && (!is_special || to.is_special()))
            }
        }
    }

    /// Returns true if a rule that denies matches the server, or the IPv4 address that its IPv6
    /// address embeds.
    fn denies_server(&self, name: Option<&str>, address: IpAddr) -> bool {
        let forms = [Some(address), embedded(address)];
        let names = |to: &Pattern| forms.iter().flatten().any(|form| to.fits(name, *form));
        self.to.as_ref().is_none_or(|to| to.iter().any(names))
    }

    /// Returns true if the client may log in at the server as `user`.
    pub fn allows_user(&self, user: &[u8]) -> bool {
        self.users.as_ref().is_none_or(|users| users.iter().any(|name| name.as_bytes() == user))
    }
}

/// A client's request for a server.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The account at the gateway, if the client has logged in.
    pub account: Option<&'a str>,
    /// The server's name; `None` if the client gave an address.
    pub name: Option<&'a str>,
    /// The server's address and port.
    pub server: SocketAddr,
}

/// All rules in order.
#[derive(Debug, Clone, Default)]
pub struct Policy(Vec<Arc<Rule>>);

impl Policy {
    /// Takes rules in the order of evaluation.
    pub fn new(rules: Vec<Rule>) -> Policy {
        Policy(rules.into_iter().map(Arc::new).collect())
    }

    /// Returns the rule that allows the request; `None` if the request is denied.
    pub fn decide(&self, request: &Request<'_>) -> Option<Arc<Rule>> {
        let rule = self.0.iter().find(|rule| rule.fits(request))?;
        (rule.action == Action::Allow).then(|| rule.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::gateway::config::Config;
    use crate::gateway::destination::{Destination, Host};

    use super::*;

    fn decided(
        rules: &str,
        from: &str,
        account: Option<&str>,
        name: Option<&str>,
        to: &str,
    ) -> Option<Arc<Rule>> {
        let text = format!("listen = [\"[::1]:21\"]\naccounts = \"/a\"\n{rules}");
        let policy = Config::parse("gw", &text).unwrap().policy;
        policy.decide(&Request {
            client: from.parse().unwrap(),
            account,
            name,
            server: to.parse().unwrap(),
        })
    }

    #[test]
    fn without_a_rule_nobody_goes_anywhere() {
        assert!(decided("", "10.0.0.1", None, None, "192.0.2.1:21").is_none());
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = "[[rule]]\naction = \"deny\"\nto = [\"192.0.2.1\"]\n\
                     [[rule]]\naction = \"allow\"\nfrom = [\"10.0.0.0/8\"]\n";
        let to = |address| decided(rules, "10.0.0.1", None, None, address).is_some();
        assert!(!to("192.0.2.1:21"));
        assert!(to("192.0.2.2:21"));
        assert!(!to("192.0.2.2:22"));
        assert!(decided(rules, "11.0.0.1", None, None, "192.0.2.2:21").is_none());
    }

    #[test]
    fn a_name_is_one_that_was_given() {
        let rules = "[[rule]]\naction = \"allow\"\nto = [\"ftp.example.org\", \"*.example.net\"]\n";
        let name = |name| decided(rules, "::1", None, name, "192.0.2.2:21").is_some();
        assert!(name(Some("FTP.example.org.")) && name(Some("a.b.example.net")));
        assert!(!name(Some("example.net")) && !name(Some("xexample.net")) && !name(None));
    }

    #[test]
    fn a_denied_address_has_no_name_that_helps() {
        let rules = "[[rule]]\naction = \"deny\"\nto = [\"127.0.0.0/8\"]\n\
                     [[rule]]\naction = \"allow\"\nto = [\"*.example.org\"]\n";
        let to = |address| decided(rules, "::1", None, Some("a.example.org"), address).is_some();
        assert!(to("192.0.2.1:21") && !to("127.0.0.1:21"));
    }

    #[test]
    fn accounts_and_users_are_two_things() {
        let rules = "[[rule]]\naction = \"allow\"\naccounts = [\"alice\"]\nusers = [\"ftp\"]\n";
        let rule = decided(rules, "::1", Some("alice"), None, "192.0.2.2:21").unwrap();
        assert!(rule.allows_user(b"ftp") && !rule.allows_user(b"alice"));
        assert!(decided(rules, "::1", Some("bob"), None, "192.0.2.2:21").is_none());
        assert!(decided(rules, "::1", None, None, "192.0.2.2:21").is_none());
    }

    #[test]
    fn the_shipped_deny_list_holds_in_every_notation() {
        let example = include_str!("../../../examples/ftp-gw.conf");
        let policy = Config::parse("ftp-gw.conf", example).unwrap().policy;
        let reaches = |host: &str| {
            let (_, destination) = Destination::split_user(&format!("anonymous@{host}")).unwrap();
            let Host::Address(address) = destination.host else { panic!("{host} is a name") };
            let server = SocketAddr::new(address, destination.port);
            let client = "192.168.100.2".parse().unwrap();
            policy.decide(&Request { client, account: None, name: None, server }).is_some()
        };
        assert!(reaches("192.0.2.1") && reaches("2001:db8:10::2"), "other servers are allowed");
        for host in [
            "127.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "::ffff:10.1.2.3",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::c0a8:101]",
            "[2002:7f00:1::1]",
            "[2002:a01:203::1]",
            "0.0.0.0",
            "0.1.2.3",
            "[::]",
            "[::ffff:0.0.0.0]",
            "[64:ff9b::]",
            "169.254.169.254",
            "[::ffff:169.254.169.254]",
            "fe80::1",
            "224.0.0.1",
            "[ff02::1]",
            "255.255.255.255",
        ] {
            assert!(!reaches(host), "{host}");
        }
    }

    #[test]
    fn special_destinations_need_a_rule_that_names_them() {
        let to = |rule: &str, address: &str| {
            let rule = format!("[[rule]]\naction = \"allow\"\n{rule}");
            decided(&rule, "10.0.0.1", None, Some("localhost"), address).is_some()
        };
        for rule in ["", "to = [\"0.0.0.0/0\", \"::/0\"]", "to = [\"localhost\"]"] {
            assert!(!to(rule, "127.0.0.1:21"), "{rule}");
            assert!(!to(rule, "[::1]:21"), "{rule}");
            assert!(!to(rule, "169.254.0.1:21"), "{rule}");
        }
        assert!(to("to = [\"127.0.0.1\"]", "127.0.0.1:21"));
        assert!(to("to = [\"127.0.0.0/8\"]", "127.0.0.1:21"));
        assert!(to("to = [\"::1\"]", "[::1]:21"));
        assert!(!to("to = [\"127.0.0.1\"]", "127.0.0.2:21"));
        assert!(to("to = [\"::ffff:127.0.0.0/104\"]", "127.0.0.1:21"), "a network is mapped, too");
    }

    #[test]
    fn an_allowed_ipv4_network_allows_no_tunnel_to_it() {
        let rules = "[[rule]]\naction = \"allow\"\nto = [\"192.0.2.0/24\"]\n";
        let to = |address| decided(rules, "::1", None, None, address).is_some();
        assert!(to("192.0.2.1:21"));
        assert!(!to("[64:ff9b::192.0.2.1]:21") && !to("[2002:c000:201::1]:21"));
    }

    #[test]
    fn a_deny_without_ports_denies_all_ports() {
        let rules = "[[rule]]\naction = \"deny\"\nto = [\"192.0.2.1\"]\n\
                     [[rule]]\naction = \"deny\"\nto = [\"192.0.2.2\"]\nports = [21]\n\
                     [[rule]]\naction = \"allow\"\nports = [21, 2121]\n";
        let to = |address| decided(rules, "10.0.0.1", None, None, address).is_some();
        assert!(!to("192.0.2.1:21") && !to("192.0.2.1:2121"));
        assert!(!to("192.0.2.2:21") && to("192.0.2.2:2121"));
        assert!(to("192.0.2.3:21") && to("192.0.2.3:2121") && !to("192.0.2.3:22"));
    }
}
