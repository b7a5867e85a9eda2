//! The guardian's own list of sessions. The guardian accepts the clients, so it knows their
//! addresses from the kernel, and checks every request of the worker against them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, bail, ensure};

use crate::endpoint::LOWEST_PORT;
use crate::guardian::Order;
use crate::proxy::gate::Request;
use crate::proxy::options::Options;
use crate::proxy::rules::{self, Expected, Hosts, TOLD_PORTS};

/// The sessions that the guardian has started and the worker has not ended.
#[derive(Debug, Default)]
pub struct Sessions {
    last: u32,
    all: HashMap<u32, Session>,
}

/// A session as the guardian knows it.
#[derive(Debug)]
struct Session {
    client: IpAddr,
    original: IpAddr,
    server: IpAddr,
    /// True if the session's anchor has rules.
    is_open: bool,
}

impl Sessions {
    /// Adds a session of `client`, which connected to `original`, and returns its number. Returns
    /// `None` if the limit of the options is reached.
    pub fn begin(
        &mut self,
        client: SocketAddr,
        original: SocketAddr,
        options: &Options,
    ) -> Option<u32> {
        if self.all.len() >= options.sessions as usize {
            return None;
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.all.contains_key(&self.last) {
                break;
            }
        }
        let (client, original) = (client.ip(), original.ip());
        let server = options.server.unwrap_or(original);
        let session = Session { client, original, server, is_open: false };
        self.all.insert(self.last, session);
        Some(self.last)
    }

    /// Ends a session. Returns true if its anchor has rules.
    pub fn end(&mut self, id: u32) -> bool {
        self.all.remove(&id).is_some_and(|session| session.is_open)
    }

    /// Returns the order for a request of the worker; `None` if nothing has to change. `is_own`
    /// returns true if this host has the address.
    ///
    /// # Errors
    /// Fails if the request does not match a session, or if `is_own` fails.
    pub fn order(
        &mut self,
        request: &Request,
        options: &Options,
        is_own: impl FnOnce(IpAddr) -> Result<bool>,
    ) -> Result<Option<Order>> {
        match request {
            Request::Open(id, proxy, expected) => {
                let session = self.all.get_mut(id);
                let session = session.with_context(|| format!("there is no session #{id}"))?;
                let hosts = session.hosts(*proxy, options)?;
                ensure!(is_own(*proxy)?, "{proxy} is not an address of this host");
                check(&hosts, expected)?;
                session.is_open = true;
                Ok(Some(Order::Open(*id, rules::rules(&hosts, expected, options))))
            }
            Request::Close(id) => Ok(self.end(*id).then_some(Order::Close(*id))),
        }
    }
}

impl Session {
    /// Returns the addresses of the session. The worker chooses only its own address, and only
    /// without `-a`.
    fn hosts(&self, proxy: IpAddr, options: &Options) -> Result<Hosts> {
        if let Some(source) = options.source {
            ensure!(proxy == source, "{proxy} is not the address of -a, {source}");
        }
        let &Session { client, original, server, .. } = self;
        Ok(Hosts { client, original, server, proxy })
    }
}

/// Checks the ports of a data connection, and that all addresses have one family.
fn check(hosts: &Hosts, expected: &Expected) -> Result<()> {
    let Hosts { client, original, server, proxy } = *hosts;
    let is_ipv4 = client.is_ipv4();
    if [original, server, proxy].iter().any(|host| host.is_ipv4() != is_ipv4) {
        bail!("client {client}, server {server} and proxy {proxy} are of two families");
    }
    let Expected { port, told, extended, .. } = *expected;
    ensure!(port >= LOWEST_PORT, "no data connection goes to port {port}");
    ensure!(TOLD_PORTS.contains(&told), "port {told} is outside the proxy's range of ports");
    ensure!(is_ipv4 || extended, "PORT and PASV are not for IPv6");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::dialogue::Mode;

    const EXPECTED: Expected =
        Expected { mode: Mode::Passive, port: 4000, told: 50_000, extended: true };
    const PROXY: &str = "198.51.100.1";

    /// A guardian with one session, #1, and a worker that is under an attacker's control.
    struct Evil {
        sessions: Sessions,
        options: Options,
    }

    impl Evil {
        fn new(arguments: &[&str]) -> Evil {
            let options = Options::parse_from([&["ftp-proxy"], arguments].concat());
            let mut evil = Evil { sessions: Sessions::default(), options };
            assert_eq!(evil.begin("10.0.0.5:40000", "192.0.2.1:21"), Some(1));
            evil
        }

        fn begin(&mut self, client: &str, original: &str) -> Option<u32> {
            let [client, original] = [client, original].map(|end| end.parse().unwrap());
            self.sessions.begin(client, original, &self.options)
        }

        fn asks(&mut self, request: &Request) -> Result<Option<Order>> {
            let own: IpAddr = PROXY.parse().unwrap();
            self.sessions.order(request, &self.options, |address| Ok(address == own))
        }

        fn opens(&mut self, id: u32, proxy: &str, expected: Expected) -> Result<String> {
            match self.asks(&Request::Open(id, proxy.parse().unwrap(), expected))? {
                Some(Order::Open(opened, rules)) if opened == id => Ok(rules),
                other => panic!("{other:?}"),
            }
        }

        fn is_refused(&mut self, id: u32, proxy: &str, expected: Expected, reason: &str) {
            let problem = self.opens(id, proxy, expected).unwrap_err().to_string();
            assert!(problem.contains(reason), "{problem}");
        }
    }

    #[test]
    fn rules_have_the_addresses_of_the_session() {
        let mut evil = Evil::new(&[]);
        let rules = evil.opens(1, PROXY, EXPECTED).unwrap();
        assert!(rules.contains("from 10.0.0.5 to 192.0.2.1 port 50000 "), "{rules}");
        let active = Expected { mode: Mode::Active, ..EXPECTED };
        let rules = evil.opens(1, PROXY, active).unwrap();
        assert!(rules.contains("from 192.0.2.1 to 198.51.100.1 port 50000 "), "{rules}");
        let mut evil = Evil::new(&["-R", "192.0.2.9"]);
        let rules = evil.opens(1, PROXY, EXPECTED).unwrap();
        assert!(rules.contains("rdr-to 192.0.2.9 port 4000"), "{rules}");
    }

    #[test]
    fn a_request_names_no_other_hosts() {
        for evil in [
            r#"{"Open":[1,{"client":"10.0.0.9","original":"10.0.0.8","server":"10.0.0.8","proxy":"198.51.100.1"},
                {"mode":"Passive","port":4000,"told":50000,"extended":true}]}"#,
            r#"{"Open":[1,"198.51.100.1",
                {"mode":"Passive","port":4000,"told":50000,"extended":true,"client":"10.0.0.9"}]}"#,
        ] {
            assert!(serde_json::from_str::<Request>(evil).is_err(), "{evil}");
        }
    }

    #[test]
    fn only_its_own_sessions_have_anchors() {
        let mut evil = Evil::new(&[]);
        for id in [0, 2, u32::MAX] {
            evil.is_refused(id, PROXY, EXPECTED, "there is no session");
            assert_eq!(evil.asks(&Request::Close(id)).unwrap(), None);
        }
        evil.opens(1, PROXY, EXPECTED).unwrap();
        assert_eq!(evil.asks(&Request::Close(1)).unwrap(), Some(Order::Close(1)));
        assert_eq!(evil.asks(&Request::Close(1)).unwrap(), None, "it is over");
        evil.is_refused(1, PROXY, EXPECTED, "there is no session #1");
    }

    #[test]
    fn a_strangers_address_is_not_the_proxys() {
        let mut evil = Evil::new(&[]);
        evil.is_refused(1, "10.0.0.9", EXPECTED, "not an address of this host");
        evil.is_refused(1, "192.0.2.1", EXPECTED, "not an address of this host");
        let mut evil = Evil::new(&["-a", "198.51.100.7"]);
        evil.is_refused(1, PROXY, EXPECTED, "not the address of -a");
    }

    #[test]
    fn ports_of_services_stay_closed() {
        let mut evil = Evil::new(&[]);
        for port in [0, 22, LOWEST_PORT - 1] {
            let expected = Expected { port, ..EXPECTED };
            evil.is_refused(1, PROXY, expected, "no data connection goes to port");
        }
        for told in [0, 22, 8021, TOLD_PORTS.start() - 1] {
            evil.is_refused(
                1,
                PROXY,
                Expected { told, ..EXPECTED },
                "is outside the proxy's range",
            );
        }
    }

    #[test]
    fn a_session_has_one_family() {
        let mut evil = Evil::new(&["-6"]);
        let own = |_| Ok(true);
        let asks = |evil: &mut Evil, id, proxy: &str, extended| {
            let request =
                Request::Open(id, proxy.parse().unwrap(), Expected { extended, ..EXPECTED });
            evil.sessions.order(&request, &evil.options, own).is_ok()
        };
        assert!(asks(&mut evil, 1, PROXY, true) && !asks(&mut evil, 1, "2001:db8::1", true));
        assert_eq!(evil.begin("[2001:db8::5]:40000", "[2001:db8:1::1]:21"), Some(2));
        assert!(asks(&mut evil, 2, "2001:db8::1", true) && !asks(&mut evil, 2, PROXY, true));
        assert!(!asks(&mut evil, 2, "2001:db8::1", false), "PASV is for IPv4");
    }

    #[test]
    fn a_worker_that_ends_nothing_gets_no_more() {
        let mut evil = Evil::new(&["-m", "2"]);
        assert_eq!(evil.begin("10.0.0.6:40000", "192.0.2.1:21"), Some(2));
        assert_eq!(evil.begin("10.0.0.7:40000", "192.0.2.1:21"), None);
        assert_eq!(evil.asks(&Request::Close(1)).unwrap(), None, "it had no rules");
        assert_eq!(evil.begin("10.0.0.7:40000", "192.0.2.1:21"), Some(3));
    }
}
