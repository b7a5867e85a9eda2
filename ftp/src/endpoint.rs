//! Address and port of a data connection, in the four notations of FTP.
//!
//! ```text
//! PORT 10,0,0,1,200,13                              RFC 959
//! 227 Entering Passive Mode (10,0,0,1,200,13)       RFC 959
//! EPRT |2|2001:db8::1|51213|                        RFC 2428
//! 229 Entering Extended Passive Mode (|||51213|)    RFC 2428
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address and port of one side of a data connection.
pub type Endpoint = SocketAddr;

/// Lowest port of a data connection. Lower ports belong to services.
pub const LOWEST_PORT: u16 = 1024;

/// Parses `h1,h2,h3,h4,p1,p2`, the notation of `PORT`.
pub fn parse_numbers(text: &str) -> Option<Endpoint> {
    let mut numbers = [0; 6];
    let mut words = text.split(',');
    for number in &mut numbers {
        *number = decimal(words.next()?)?;
    }
    let [a, b, c, d, high, low] = numbers;
    let end = words.next().is_none();
    end.then(|| (Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into())
}

/// Parses a number that consists of digits only. Rust's parser would accept `+1`, too.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Formats an endpoint as `h1,h2,h3,h4,p1,p2`; `None` for IPv6, which has no such notation.
pub fn to_numbers(endpoint: Endpoint) -> Option<String> {
    let IpAddr::V4(address) = endpoint.ip() else { return None };
    let ([a, b, c, d], [high, low]) = (address.octets(), endpoint.port().to_be_bytes());
    Some(format!("{a},{b},{c},{d},{high},{low}"))
}

/// Parses the text after `227`: six numbers, in parentheses or not (RFC 1123 section 4.1.2.6).
pub fn parse_passive(text: &str) -> Option<Endpoint> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let inside = &text[start..];
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(inside.len());
    parse_numbers(&inside[..end])
}

/// Parses `|1|10.0.0.1|port|`, the notation of `EPRT`. Any printable ASCII character except digits
/// and space can stand for `|`.
pub fn parse_extended(text: &str) -> Option<Endpoint> {
    let [family, address, port] = fields(text)?;
    let address: IpAddr = address.parse().ok()?;
    let named = match address {
        IpAddr::V4(_) => "1",
        IpAddr::V6(_) => "2",
    };
    (family == named).then_some(())?;
    Some((address, decimal(port)?).into())
}

/// Formats an endpoint as `|1|10.0.0.1|port|`; the family is 2 for IPv6.
pub fn to_extended(endpoint: Endpoint) -> String {
    let family = if endpoint.is_ipv4() { 1 } else { 2 };
    format!("|{family}|{}|{}|", endpoint.ip(), endpoint.port())
}

/// Parses the port in the text after `229`: `(|||port|)`. The address is the server's.
pub fn parse_extended_passive(text: &str) -> Option<u16> {
    let (_, inside) = text.split_once('(')?;
    let (inside, _) = inside.rsplit_once(')')?;
    let [_, _, port] = fields(inside)?;
    decimal(port)
}

/// Splits off the three fields between four equal delimiters.
fn fields(text: &str) -> Option<[&str; 3]> {
    let delimiter =
        text.chars().next().filter(|c| matches!(c, '!'..='~') && !c.is_ascii_digit())?;
    let mut words = text.split(delimiter);
    let (before, fields) = (words.next()?, [words.next()?, words.next()?, words.next()?]);
    let closed = words.next()?.is_empty() && words.next().is_none();
    (before.is_empty() && closed).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoint(text: &str) -> Option<Endpoint> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn six_numbers_are_an_address_and_a_port() {
        assert_eq!(parse_numbers("10,0,0,1,200,13"), endpoint("10.0.0.1:51213"));
        for wrong in ["10,0,0,1,200", "10,0,0,1,200,13,1", "10,0,0,256,0,1", "10,0,0,+1,0,1", ""] {
            assert_eq!(parse_numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_passive_answer_needs_no_parentheses() {
        let wanted = endpoint("10.0.0.1:51213");
        assert_eq!(parse_passive("Entering Passive Mode (10,0,0,1,200,13)."), wanted);
        assert_eq!(parse_passive("Entering Passive Mode 10,0,0,1,200,13"), wanted);
        assert_eq!(parse_passive("=10,0,0,1,200,13"), wanted);
        assert_eq!(parse_passive("Entering Passive Mode (10,0,0,1,200)"), None);
    }

    #[test]
    fn the_family_is_that_of_the_address() {
        assert_eq!(parse_extended("|1|10.0.0.1|51213|"), endpoint("10.0.0.1:51213"));
        assert_eq!(parse_extended("!2!2001:db8::1!51213!"), endpoint("[2001:db8::1]:51213"));
        for wrong in ["|2|10.0.0.1|1|", "|1|::1|1|", "|3|10.0.0.1|1|", "|1|10.0.0.1|1", "|1|a|1|"] {
            assert_eq!(parse_extended(wrong), None, "{wrong}");
        }
        assert_eq!(parse_extended("|1|10.0.0.1|65536|"), None);
        assert_eq!(parse_extended("11110.0.0.1111"), None);
    }

    #[test]
    fn an_extended_passive_answer_names_the_port_only() {
        assert_eq!(
            parse_extended_passive("Entering Extended Passive Mode (|||51213|)"),
            Some(51213)
        );
        // RFC 2428 leaves address and family empty; a server that fills them in names itself
        assert_eq!(parse_extended_passive("ok (|1|10.0.0.1|51213|)."), Some(51213));
        assert_eq!(parse_extended_passive("ok |||51213|"), None);
        assert_eq!(parse_extended_passive("ok (||51213|)"), None);
    }

    proptest! {
        #[test]
        fn formatted_endpoints_parse(address: [u8; 16], four: bool, port: u16) {
            let ip = match four {
                true => IpAddr::from([address[0], address[1], address[2], address[3]]),
                false => IpAddr::from(address),
            };
            let endpoint = Endpoint::new(ip, port);
            prop_assert_eq!(parse_extended(&to_extended(endpoint)), Some(endpoint));
            if let Some(text) = to_numbers(endpoint) {
                prop_assert_eq!(parse_numbers(&text), Some(endpoint));
            }
        }

        #[test]
        fn no_text_makes_a_parser_panic(text: String) {
            let _ = (parse_numbers(&text), parse_passive(&text), parse_extended(&text), parse_extended_passive(&text));
        }
    }
}
