//! Reads the target of a rule, behind `-j` or `-g`.

use super::line::{Word, Words, Wrong};
use crate::messages::Place;

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The rule only counts packets.
    Nothing,
    /// `ACCEPT`
    Accept,
    /// `DROP`
    Drop,
    /// `REJECT`: pf's name of the ICMP unreachable code
    Unreachable(&'static str),
    /// `REJECT --reject-with tcp-reset`
    Reset,
    /// `RETURN`
    Return,
    /// `LOG` or `NFLOG`: options of pf's `log`, and the prefix
    Log(String, Option<String>),
    /// `TCPMSS --set-mss`
    MaxMss(u16),
    /// `-j CHAIN`
    Jump(Place, String),
    /// `-g CHAIN`
    Goto(Place, String),
    /// `DNAT`: new destination in the notation of `rdr-to`
    Destination(String),
    /// `REDIRECT`: new ports in the notation of `rdr-to`, or nothing
    Redirect(String),
    /// `SNAT`: new source in the notation of `nat-to`
    Source(String),
    /// `MASQUERADE`: new ports in the notation of `nat-to`, or nothing
    Masquerade(String),
}

/// Reads the words behind `-j` or `-g`.
///
/// # Errors
/// Fails, with a message, if the target has no equivalent or its options are wrong.
pub fn parse(option: &Word, words: &mut Words) -> Result<Target, Wrong> {
    let name = words.value()?;
    if option.text == "-g" {
        return Ok(Target::Goto(name.place, name.text.clone()));
    }
    Ok(match name.text.as_str() {
        "ACCEPT" => Target::Accept,
        "DROP" => Target::Drop,
        "RETURN" => Target::Return,
        "REJECT" => reject(words)?,
        "LOG" => log(words)?,
        "NFLOG" => nflog(words)?,
        "TCPMSS" => max_mss(name, words)?,
        "DNAT" => Target::Destination(pool("--to-destination", words)?),
        "REDIRECT" => Target::Redirect(to_ports(words)?),
        "SNAT" => Target::Source(pool("--to-source", words)?),
        "MASQUERADE" => Target::Masquerade(to_ports(words)?),
        other if NO_EQUIVALENT.contains(&other) => {
            return words.wrong(name.place, &format!("-j {other} has no equivalent"), None);
        }
        _ => Target::Jump(name.place, name.text.clone()),
    })
}

/// Targets of iptables without an equivalent; all other names are chains.
#[rustfmt::skip]
const NO_EQUIVALENT: [&str; 36] = [
    "AUDIT", "CHECKSUM", "CLASSIFY", "CLUSTERIP", "CONNMARK", "CONNSECMARK", "CT", "DSCP", "ECN", "HL",
    "HMARK", "IDLETIMER", "LED", "MARK", "NETMAP", "NFQUEUE", "NOTRACK", "QUEUE", "RATEEST", "SECMARK",
    "SET", "SYNPROXY", "TCPOPTSTRIP", "TEE", "TOS", "TPROXY", "TRACE", "TTL", "ULOG", "MIRROR", "SAME",
    "DNPT", "SNPT", "FLOWOFFLOAD", "ACCOUNT", "DELUDE",
];

fn reject(words: &mut Words) -> Result<Target, Wrong> {
    if words.peek() != Some("--reject-with") {
        return Ok(Target::Unreachable("port-unr"));
    }
    words.next();
    let with = words.value()?;
    Ok(Target::Unreachable(match with.text.as_str() {
        "tcp-reset" => return Ok(Target::Reset),
        "icmp-port-unreachable" => "port-unr",
        "icmp-host-unreachable" => "host-unr",
        "icmp-net-unreachable" => "net-unr",
        "icmp-proto-unreachable" => "proto-unr",
        "icmp-net-prohibited" => "net-prohib",
        "icmp-host-prohibited" => "host-prohib",
        "icmp-admin-prohibited" => "filter-prohib",
        _ => return words.wrong(with.place, "this answer has no equivalent", None),
    }))
}

/// Reads the options of LOG. pf logs the whole packet, and has no log levels.
fn log(words: &mut Words) -> Result<Target, Wrong> {
    let (mut options, mut prefix) = ("", None);
    while let Some(option) = words.peek() {
        match option {
            "--log-prefix" => prefix = Some(log_prefix(words)?),
            "--log-level" => {
                words.next();
                words.value()?;
            }
            "--log-tcp-sequence" | "--log-tcp-options" | "--log-ip-options" => _ = words.next(),
            "--log-uid" => {
                words.next();
                options = " (user)";
            }
            _ => break,
        }
    }
    Ok(Target::Log(options.to_string(), prefix))
}

fn nflog(words: &mut Words) -> Result<Target, Wrong> {
    let (mut options, mut prefix) = (String::new(), None);
    while let Some(option) = words.peek() {
        match option {
            "--nflog-prefix" => prefix = Some(log_prefix(words)?),
            "--nflog-group" => {
                words.next();
                let group = words.value()?;
                match group.text.parse::<u8>() {
                    Ok(0) => {}
                    Ok(number @ 1..=15) => options = format!(" (to pflog{number})"),
                    _ => {
                        return words.wrong(group.place, "pf has 16 logs, 0 to 15", None);
                    }
                }
            }
            _ => break,
        }
    }
    Ok(Target::Log(options, prefix))
}

/// Reads a log prefix, which becomes a label. pf expands labels and prints them in quotes.
fn log_prefix(words: &mut Words) -> Result<String, Wrong> {
    words.next();
    let prefix = words.value()?;
    let text = prefix.text.trim();
    let special = |c: char| c.is_control() || "\"\\$".contains(c);
    if text.len() > 63 || text.contains(special) {
        let help = Some("a label has at most 63 bytes, and none of \" \\ $");
        return words.wrong(prefix.place, "this prefix cannot be a label", help);
    }
    Ok(text.to_string())
}

fn max_mss(name: &Word, words: &mut Words) -> Result<Target, Wrong> {
    if words.peek() != Some("--set-mss") {
        let help = Some("give the size: --set-mss N is `scrub (max-mss N)`");
        return words.wrong(name.place, "--clamp-mss-to-pmtu has no equivalent", help);
    }
    words.next();
    let size = words.value()?;
    match size.text.parse() {
        Ok(size) if size > 0 => Ok(Target::MaxMss(size)),
        _ => words.wrong(size.place, "a number up to 65535 is expected", None),
    }
}

/// Reads `--to-ports` if it is there.
fn to_ports(words: &mut Words) -> Result<String, Wrong> {
    if words.peek() != Some("--to-ports") {
        return Ok(String::new());
    }
    words.next();
    let ports = words.value()?;
    match pool_ports(&ports.text) {
        Some(text) => Ok(text),
        None => words.wrong(ports.place, "a port or a range of ports is expected", None),
    }
}

/// Reads `ADDRESS[:PORT[-PORT]]` behind `option`.
fn pool(option: &str, words: &mut Words) -> Result<String, Wrong> {
    let word = words.value()?;
    if word.text != option {
        return words.wrong(word.place, &format!("{option} is expected"), None);
    }
    let word = words.value()?;
    let (address, ports) = match word.text.split_once(':') {
        Some((address, ports)) => (address, pool_ports(ports)),
        None => (word.text.as_str(), Some(String::new())),
    };
    match (address.parse::<std::net::Ipv4Addr>(), ports) {
        (Ok(address), Some(ports)) => Ok(format!("{address}{ports}")),
        _ => {
            let help = Some("use one address, with an optional port or range of ports");
            words.wrong(word.place, "this has no equivalent", help)
        }
    }
}

fn pool_ports(text: &str) -> Option<String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (low.parse::<u16>().ok()?, high.parse::<u16>().ok()?);
    match low {
        _ if low == high && low > 0 => Some(format!(" port {low}")),
        _ if low < high && low > 0 => Some(format!(" port {low}:{high}")),
        _ => None,
    }
}
