//! A warning before a load that would cut off the ssh session that pfctl runs in.
//!
//! A connection that is older than the filter has no state, and its next packet has no SYN. So
//! rules that pass new connections only (`flags S/SA`, the default) block it.

use std::io::IsTerminal;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use skipstep_model::{Carried, Decision, Firewall, LinkHeader, Packet, Verdict};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, RuleId, Ruleset};
use skipstep_views::StateView;
use skipstep_wire::build::{self, Tcp};

use crate::access::open;
use crate::request::Args;

const TCP: u8 = 6;

/// An ssh connection, seen from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Address and port of the client, in host byte order.
    pub client: (IpAddr, u16),
    /// Address and port of sshd on this host.
    pub server: (IpAddr, u16),
}

impl Session {
    /// Parses the environment variable `SSH_CONNECTION` of sshd: both addresses, each with its
    /// port.
    pub fn parse(text: &str) -> Option<Session> {
        let mut words = text.split_whitespace();
        let mut endpoint = || Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?));
        let (client, server) = (endpoint()?, endpoint()?);
        Some(Session { client, server })
    }

    /// True if `state` is the inbound state of this session.
    fn owns(&self, state: &StateView) -> bool {
        state.protocol == TCP
            && state.direction == Direction::In
            && state.wire == [self.client, self.server]
    }

    /// Makes the session's next packet from the client: an ACK without SYN.
    fn next_packet(&self, interface: &str) -> Packet {
        let segment = Tcp::new(self.client.1, self.server.1).flags("A").seq(1).ack(1).window(512);
        Packet {
            direction: Direction::In,
            interface: interface.to_string(),
            bytes: build::ip(self.client.0, self.server.0).tcp(&segment),
            link: LinkHeader::default(),
            received_on: None,
            carried: Carried::default(),
            owner: None,
        }
    }

    /// Evaluates `ruleset` for the session's next packet, without a state. Returns `None` if the
    /// packet passes, the deciding rule if a rule blocks it, and `Some(None)` if another reason
    /// does.
    pub fn blocked_by(&self, ruleset: Arc<Ruleset>, host: &Host) -> Option<Option<RuleId>> {
        let interface = &host.route(self.client.0, 0)?.interface;
        let mut firewall = Firewall::new(ruleset, host.clone());
        let fate = firewall.packet(&self.next_packet(interface));
        match (fate.verdict, fate.decision) {
            (Verdict::Pass | Verdict::Consumed, _) => None,
            (Verdict::Drop, Decision::Rule(id)) => Some(Some(id)),
            (Verdict::Drop, _) => Some(None),
        }
    }
}

/// Warns if `ruleset` would block the ssh session of this process. Without `--confirm`, asks on a
/// terminal if the rules are to be loaded all the same. Returns false if they are not.
///
/// # Errors
/// Fails if the user is not root, or if the instance cannot be opened or its states read. Without
/// an ssh session it always succeeds.
pub fn may_load(args: &Args, ruleset: &Arc<Ruleset>, host: &Host) -> Result<bool> {
    let is_main = args.anchor.as_ref().is_none_or(|anchor| anchor.path.is_empty());
    let Some(warning) = warning(args, ruleset, host)?.filter(|_| is_main) else { return Ok(true) };
    eprintln!("pfctl: warning: {warning}");
    if let Some(seconds) = args.confirm {
        eprintln!("pfctl: the rules before come back in {seconds} s if you do not confirm");
        return Ok(true);
    }
    eprintln!("pfctl: with --confirm 60, the rules before come back if you are locked out");
    let input = std::io::stdin();
    // rules from standard input leave nobody to answer
    if !input.is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(true);
    }
    eprint!("Load these rules all the same? [y/N] ");
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Returns a warning if `ruleset` would block the ssh session of this process. There is none if the
/// filter is and stays disabled, or if the session has a state.
fn warning(args: &Args, ruleset: &Arc<Ruleset>, host: &Host) -> Result<Option<String>> {
    let text = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let Some(session) = Session::parse(&text) else {
        return Ok(None);
    };
    let instance = open(args)?;
    let running = instance.as_ref().is_some_and(|instance| instance.running());
    if !running && !args.enables() {
        return Ok(None);
    }
    if let Some(instance) = &instance
        && instance.states()?.iter().any(|state| session.owns(state))
    {
        return Ok(None);
    }
    let Some(rule) = session.blocked_by(Arc::clone(ruleset), host) else {
        return Ok(None);
    };
    let rule = rule.and_then(|id| ruleset.rule(&id));
    let place = rule.map_or(String::new(), |rule| match &rule.file {
        Some(file) => format!(" by the rule in {file}:{}", rule.line),
        None => format!(" by the rule in line {}", rule.line),
    });
    let (client, server) = (session.client, session.server);
    Ok(Some(format!(
        "your ssh session from {} will be blocked{place}; it would pass with\n\
         \tpass in proto tcp from {} to {} port {} flags any",
        client.0, client.0, server.0, server.1
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(rules: &str) -> Option<Option<RuleId>> {
        let host = skipstep_scenario::host::standard();
        let context = skipstep_pfconf::Context::new(&host);
        let ruleset = skipstep_pfconf::load(rules, &context).unwrap().ruleset;
        let session = Session::parse("10.0.1.5 50000 10.0.1.1 22").unwrap();
        session.blocked_by(Arc::new(ruleset), &host)
    }

    #[test]
    fn a_rule_for_new_connections_does_not_pass_an_old_one() {
        assert_eq!(blocked("block\npass in proto tcp to port 22"), Some(Some(0.into())));
    }

    #[test]
    fn rules_that_pass_it_are_not_warned_about() {
        assert_eq!(blocked("block\npass in proto tcp to port 22 flags any"), None);
        assert_eq!(blocked("block in on em1"), None);
        assert_eq!(blocked(""), None);
    }

    #[test]
    fn only_what_sshd_writes_is_a_session() {
        for text in ["", "10.0.1.5", "10.0.1.5 x 10.0.1.1 22", "client 1 server 2"] {
            assert_eq!(Session::parse(text), None, "{text}");
        }
    }
}
