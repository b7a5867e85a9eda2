//! Who may go where, and what they may do there. The first rule that fits decides; if none does,
//! nobody goes anywhere.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use crate::gateway::verbs::Commands;

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Lets a session come to be.
    Allow,
    /// Refuses it.
    Deny,
}

/// A server, as rules name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// By its address.
    Network(IpNet),
    /// By the name that the client gave, in small letters.
    Name(String),
    /// By a name that ends so, from its dot on.
    Under(String),
}

impl Pattern {
    /// Reads a name; `None` if it is none.
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
}

/// A rule. What is not named fits everything.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What happens.
    pub action: Action,
    /// The clients it is about.
    pub from: Option<Vec<IpNet>>,
    /// Who has logged in at the gateway.
    pub accounts: Option<Vec<String>>,
    /// The servers.
    pub to: Option<Vec<Pattern>>,
    /// Their ports.
    pub ports: Vec<u16>,
    /// The names that may be used at the server.
    pub users: Option<Vec<String>>,
    /// The commands that may be sent there.
    pub commands: Commands,
}

impl Rule {
    fn fits(&self, request: &Request<'_>) -> bool {
        let Request { client, account, name, server } = *request;
        self.from.as_ref().is_none_or(|from| from.iter().any(|net| net.contains(&client)))
            && self.accounts.as_ref().is_none_or(|names| {
                account.is_some_and(|account| names.iter().any(|name| name == account))
            })
            && self.ports.contains(&server.port())
            && self.to.as_ref().is_none_or(|to| to.iter().any(|to| to.fits(name, server.ip())))
    }

    /// Whether the server may be told that name.
    pub fn may_be(&self, user: &[u8]) -> bool {
        self.users.as_ref().is_none_or(|users| users.iter().any(|name| name.as_bytes() == user))
    }
}

/// Somebody wants to go somewhere.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// From here.
    pub client: IpAddr,
    /// As whom the gateway knows them.
    pub account: Option<&'a str>,
    /// The name that they gave, if it was no address.
    pub name: Option<&'a str>,
    /// What it stands for.
    pub server: SocketAddr,
}

/// All rules.
#[derive(Debug, Clone, Default)]
pub struct Policy(Vec<Arc<Rule>>);

impl Policy {
    /// In this order.
    pub fn new(rules: Vec<Rule>) -> Policy {
        Policy(rules.into_iter().map(Arc::new).collect())
    }

    /// The rule that lets them; `None` if they may not.
    pub fn decide(&self, request: &Request<'_>) -> Option<Arc<Rule>> {
        let rule = self.0.iter().find(|rule| rule.fits(request))?;
        (rule.action == Action::Allow).then(|| rule.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::gateway::config::Config;

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
        assert!(rule.may_be(b"ftp") && !rule.may_be(b"alice"));
        assert!(decided(rules, "::1", Some("bob"), None, "192.0.2.2:21").is_none());
        assert!(decided(rules, "::1", None, None, "192.0.2.2:21").is_none());
    }
}
