//! The server that a client names, in three forms.
//!
//! ```text
//! USER name@host[:port]     SITE host[:port]     OPEN host [port]
//! ```

use std::net::{IpAddr, SocketAddr};

use crate::gateway::address::{canonical, canonical_endpoint};
use crate::gateway::network::Network;

/// Port of FTP servers.
pub const FTP_PORT: u16 = 21;

/// Number of bytes of a host name at most (RFC 1035).
const LONGEST: usize = 255;

/// A server as the client named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host name or address.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

/// A host name or address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name to be looked up.
    Name(String),
    /// An address in its canonical notation.
    Address(IpAddr),
}

impl Destination {
    /// Parses `host`, `host:port` or `host port`. An IPv6 address may be in brackets.
    pub fn parse(text: &str) -> Option<Destination> {
        let text = text.trim();
        if let Ok(address) = text.parse::<IpAddr>() {
            let host = Host::Address(canonical(address));
            return Some(Destination { host, port: FTP_PORT });
        }
        let (host, port) = match text.rsplit_once([':', ' ']) {
            // the last colon of a bracketed address belongs to the address
            Some((host, port)) if !port.ends_with(']') => (host.trim_end(), decimal(port)?),
            _ => (text, FTP_PORT),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = match bare.parse() {
            Ok(address) => Host::Address(canonical(address)),
            Err(_) if is_name(host) => Host::Name(host.to_string()),
            Err(_) => return None,
        };
        Some(Destination { host, port })
    }

    /// Splits `name@host`. The host begins after the last `@`.
    pub fn split_user(text: &str) -> Option<(&str, Destination)> {
        let (user, host) = text.rsplit_once('@')?;
        Some((user, Destination::parse(host)?))
    }

    /// Returns the host name; `None` for an address.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        }
    }

    /// Returns all addresses in canonical notation. `network` resolves a name, which may take long.
    ///
    /// # Errors
    /// Fails if the name cannot be resolved.
    pub async fn addresses(&self, network: &dyn Network) -> std::io::Result<Vec<SocketAddr>> {
        match &self.host {
            Host::Address(address) => Ok(vec![(*address, self.port).into()]),
            Host::Name(name) => {
                let found = network.resolve(name, self.port).await?;
                Ok(found.into_iter().map(canonical_endpoint).collect())
            }
        }
    }
}

fn decimal(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
}

fn is_name(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_sign) && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let Destination { host, port } = Destination::parse(text)?;
        Some(match host {
            Host::Name(name) => format!("name {name} {port}"),
            Host::Address(address) => format!("{address} {port}"),
        })
    }

    #[test]
    fn a_host_may_have_a_port() {
        for (text, wanted) in [
            ("ftp.example.org", "name ftp.example.org 21"),
            ("ftp.example.org:2121", "name ftp.example.org 2121"),
            ("ftp.example.org 2121", "name ftp.example.org 2121"),
            ("192.0.2.1", "192.0.2.1 21"),
            ("192.0.2.1:2121", "192.0.2.1 2121"),
            ("2001:db8::1", "2001:db8::1 21"),
            ("[2001:db8::1]", "2001:db8::1 21"),
            ("[2001:db8::1]:2121", "2001:db8::1 2121"),
            ("::ffff:192.0.2.1", "192.0.2.1 21"),
            ("[::ffff:192.0.2.1]:2121", "192.0.2.1 2121"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted));
        }
        for wrong in ["", "a:b", "a:0", "a:65536", "a:+1", "a b c", "a/b", "[::1", "-x", "::g"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_user_may_have_an_at_sign() {
        let (user, destination) =
            Destination::split_user("me@example.com@ftp.example.org").unwrap();
        assert_eq!((user, destination.name()), ("me@example.com", Some("ftp.example.org")));
        assert_eq!(Destination::split_user("me"), None);
    }
}
