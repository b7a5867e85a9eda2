//! Reads the words behind `=>`.

use std::net::IpAddr;

use skipstep_model::{Decision, Diverted, ForwardRoute, Forwarded, Verdict};
use skipstep_ruleset::{Action, Direction, Reason, RouteKind, RuleId, Timeout};
use skipstep_views::Peer;

use super::packet::{address_port, hex};
use crate::expect::{Expectation, LogWords, Out, PeerWords, Reply, StateUse, StateWords};
use crate::line::{Line, Parsed, number, pair};
use crate::look::OutFields;
use crate::names;
use crate::source::{SourceWords, kind_by_name};

/// Reads one `=>` line and adds it to `expectation`.
pub(crate) fn expectation(line: &mut Line, expectation: &mut Expectation) -> Parsed<()> {
    loop {
        while line.take(",") {}
        let Some(word) = line.next() else {
            return Ok(());
        };
        let stated_before = match word.text.as_str() {
            "pass" => expectation.verdict.replace(Verdict::Pass).is_some(),
            "consumed" => expectation.verdict.replace(Verdict::Consumed).is_some(),
            "block" => expectation.verdict.replace(Verdict::Drop).is_some(),
            "rule" => expectation.decision.replace(Decision::Rule(rule_id(line)?)).is_some(),
            "anchor-rule" => expectation
                .anchor_rule
                .replace(line.value("a rule number or `none`", number_or_none)?)
                .is_some(),
            "default" => expectation.decision.replace(Decision::Default).is_some(),
            "skipped" => expectation.decision.replace(Decision::None).is_some(),
            "orphan" => expectation.decision.replace(Decision::OrphanState).is_some(),
            "reason" => {
                expectation.reason.replace(line.value("a reason", Reason::by_name)?).is_some()
            }
            "counted" => {
                expectation.counted.replace(list(line, "a reason", Reason::by_name)?).is_some()
            }
            "new" => {
                line.expect("state")?;
                let number = optional_number(line)?;
                expectation.state.replace(StateUse::New(number, state_words(line)?)).is_some()
            }
            "state" => {
                let number = optional_number(line)?;
                expectation.state.replace(StateUse::Existing(number, state_words(line)?)).is_some()
            }
            "also" => {
                line.expect("state")?;
                let number = line.number("a state's number")?;
                expectation.others.push((number, state_words(line)?));
                false
            }
            "out" => expectation.out.replace(out(line)?).is_some(),
            "unchanged" => expectation.out.replace(Out::Unchanged).is_some(),
            "reply" => {
                expectation.replies.get_or_insert_default().push(reply(line)?);
                false
            }
            "forward" => {
                let bytes = onward(line)?;
                let forwarded = expectation.forwarded.get_or_insert_default();
                forwarded.push(Forwarded { route: ForwardRoute::Forward, bytes });
                false
            }
            "route" => {
                let interface = line.word("an interface")?.text.clone();
                let next_hop = line.value("the next hop", |text| text.parse().ok())?;
                let bytes = onward(line)?;
                let forwarded = expectation.forwarded.get_or_insert_default();
                forwarded
                    .push(Forwarded { route: ForwardRoute::Route { interface, next_hop }, bytes });
                false
            }
            "log" => {
                expectation.log.get_or_insert_default().push(log_words(line)?);
                false
            }
            "tag" => expectation.tag.replace(Some(line.word("a tag")?.text.clone())).is_some(),
            "queue" => {
                expectation.queue.replace(Some(line.word("a queue")?.text.clone())).is_some()
            }
            "delay" => expectation.delay.replace(Some(line.number("milliseconds")?)).is_some(),
            "prio" => expectation.prio.replace(line.number("a priority")?).is_some(),
            "divert-to" => expectation.diverted.replace(Some(Diverted::To)).is_some(),
            "divert-reply" => expectation.diverted.replace(Some(Diverted::Reply)).is_some(),
            "divert-packet" => {
                let port = Diverted::Packet(line.number("the port of a program")?);
                expectation.diverted.replace(Some(port)).is_some()
            }
            "rtable" => expectation.rtable.replace(line.number("a routing table")?).is_some(),
            "expired" => {
                expectation.expired.replace(list(line, "a state's number", number)?).is_some()
            }
            "removed" => {
                expectation.removed.replace(list(line, "a state's number", number)?).is_some()
            }
            "sources" => expectation.sources.replace(line.number("a number of sources")?).is_some(),
            "source" => {
                expectation.tracked.push(source_words(line)?);
                false
            }
            "states" => expectation.states.replace(line.number("a number of states")?).is_some(),
            "no" => no(line, expectation)?,
            other => {
                return Err(word.fault(format!("`{other}` is not an expectation about a packet")));
            }
        };
        if stated_before {
            return Err(word.fault("this is repeated"));
        }
    }
}

/// Reads the words `no state`, `no reply`, `no forward`, `no log`, `no tag`, `no queue`,
/// `no delay`, `no divert`. Returns true if the same property had an expectation before.
fn no(line: &mut Line, expectation: &mut Expectation) -> Parsed<bool> {
    let what = line.word("state, reply, forward, log, tag, queue, delay or divert")?;
    match what.text.as_str() {
        "state" => Ok(expectation.state.replace(StateUse::None).is_some()),
        "reply" => Ok(expectation.replies.replace(Vec::new()).is_some()),
        "forward" => Ok(expectation.forwarded.replace(Vec::new()).is_some()),
        "log" => Ok(expectation.log.replace(Vec::new()).is_some()),
        "tag" => Ok(expectation.tag.replace(None).is_some()),
        "queue" => Ok(expectation.queue.replace(None).is_some()),
        "delay" => Ok(expectation.delay.replace(None).is_some()),
        "divert" => Ok(expectation.diverted.replace(None).is_some()),
        _ => Err(what.fault("expected state, reply, forward, log, tag, queue, delay or divert")),
    }
}

/// Reads `hex` and the bytes of a forwarded packet.
fn onward(line: &mut Line) -> Parsed<Vec<u8>> {
    line.expect("hex")?;
    hex(line)
}

/// Reads `none`, or items up to the next comma.
pub(crate) fn list<T>(
    line: &mut Line,
    what: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Parsed<Vec<T>> {
    if line.take("none") {
        return Ok(Vec::new());
    }
    let mut items = vec![line.value(what, &read)?];
    while let Some(item) = line.peek().and_then(&read) {
        line.next();
        items.push(item);
    }
    Ok(items)
}

fn optional_number(line: &mut Line) -> Parsed<Option<u32>> {
    let number = line.peek().and_then(number);
    if number.is_some() {
        line.next();
    }
    Ok(number)
}

fn state_words(line: &mut Line) -> Parsed<StateWords> {
    let mut words = StateWords::default();
    while let Some(word) = line.peek() {
        match word {
            "proto" => words.protocol = Some(following(line, "a protocol", names::protocol)?),
            "in" | "out" if words.direction.is_none() => {
                line.next();
                words.direction = Some(if word == "in" { Direction::In } else { Direction::Out });
            }
            "on" => {
                words.interface = Some(following(line, "an interface", |text| {
                    Some((text != "all").then(|| text.into()))
                })?)
            }
            "rdomain" => words.rdomain = Some(following(line, "a number", number)?),
            "from-rule" => words.rule = Some(following(line, "a rule or `default`", rule)?),
            "anchor-rule" => {
                words.anchor_rule =
                    Some(following(line, "a rule number or `none`", number_or_none)?)
            }
            "wire" => words.wire = Some(key(line)?),
            "stack" => words.stack = Some(key(line)?),
            "src" => words.src = Some(following(line, "a peer", peer)?),
            "dst" => words.dst = Some(following(line, "a peer", peer)?),
            "timeout" => words.timeout = Some(following(line, "a timeout", Timeout::by_name)?),
            "expires" => words.expires = Some(following(line, "a second", number)?),
            "packets" => words.packets = Some(following(line, "two numbers as 1:2", pair)?),
            "bytes" => words.bytes = Some(following(line, "two numbers as 1:2", pair)?),
            "flags" => words.flags = Some(following(line, "a number", number)?),
            "min-ttl" => words.min_ttl = Some(following(line, "a TTL", number)?),
            "max-mss" => words.max_mss = Some(following(line, "an MSS", number)?),
            "tagging" => {
                words.tag = Some(following(line, "a tag", |text| {
                    Some((text != "none").then(|| text.into()))
                })?)
            }
            "routed" => {
                words.route = Some(following(line, "route-to, reply-to, dup-to or none", |text| {
                    if text == "none" { Some(None) } else { RouteKind::by_name(text).map(Some) }
                })?)
            }
            "next-hop" => {
                words.next_hop = Some(following(line, "a next hop", |text| Some(next_hop(text)))?)
            }
            _ => break,
        }
    }
    Ok(words)
}

/// Parses `10.0.0.1`, `10.0.0.1@em0` or `em0`, and returns it as [`skipstep_views::NextHop`] prints
/// it.
fn next_hop(text: &str) -> String {
    let (address, interface) = text.split_at(text.find('@').unwrap_or(text.len()));
    match address.parse::<IpAddr>() {
        Ok(address) => format!("{address}{interface}"),
        Err(_) => text.to_owned(),
    }
}

fn source_words(line: &mut Line) -> Parsed<SourceWords> {
    let kind = line.value("track, nat-to, rdr-to or route-to", kind_by_name)?;
    let source = line.value("an address", |text| text.parse().ok())?;
    let mut words = SourceWords::new(kind, source);
    while let Some(word) = line.peek() {
        match word {
            "from-rule" => words.rule = Some(following(line, "a rule or `default`", rule)?),
            "chosen" => {
                words.chosen = Some(following(line, "an address or `none`", |text| {
                    if text == "none" { Some(None) } else { text.parse().ok().map(Some) }
                })?)
            }
            "held-by" => words.states = Some(following(line, "a number of states", number)?),
            "connected" => words.connections = Some(following(line, "a number", number)?),
            "packets" => words.packets = Some(following(line, "two numbers as 1:2", pair)?),
            "bytes" => words.bytes = Some(following(line, "two numbers as 1:2", pair)?),
            _ => break,
        }
    }
    Ok(words)
}

/// Skips a word, and reads the value behind it.
fn following<T>(line: &mut Line, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
    line.next();
    line.value(what, read)
}

/// Reads a rule: `2`, `relayd/2`.
pub(crate) fn rule_id(line: &mut Line) -> Parsed<RuleId> {
    line.value("a rule, as 2 or relayd/2", |text| text.parse().ok())
}

fn rule(text: &str) -> Option<Option<RuleId>> {
    if text == "default" { Some(None) } else { Some(Some(text.parse().ok()?)) }
}

fn number_or_default(text: &str) -> Option<Option<u32>> {
    if text == "default" { Some(None) } else { Some(Some(number(text)?)) }
}

fn anchor(text: &str) -> Option<String> {
    Some(if text == "main" { String::new() } else { text.to_owned() })
}

fn number_or_none(text: &str) -> Option<Option<u32>> {
    if text == "none" { Some(None) } else { Some(Some(number(text)?)) }
}

fn key(line: &mut Line) -> Parsed<[(std::net::IpAddr, u16); 2]> {
    let first = following(line, "an address with a port", address_port)?;
    Ok([first, line.value("an address with a port", address_port)?])
}

fn peer(text: &str) -> Option<PeerWords> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [state] => Some(PeerWords::State(names::peer_state(state)?)),
        [state, seqlo, seqhi, seqdiff, max_win, wscale] => Some(PeerWords::Full(Peer {
            state: names::peer_state(state)?,
            seqlo: number(seqlo)?,
            seqhi: number(seqhi)?,
            seqdiff: number(seqdiff)?,
            max_win: number(max_win)?,
            wscale: number(wscale)?,
        })),
        _ => None,
    }
}

fn out(line: &mut Line) -> Parsed<Out> {
    if line.take("hex") {
        return Ok(Out::Bytes(hex(line)?));
    }
    let mut fields = OutFields::default();
    loop {
        match line.peek() {
            Some("ttl") => fields.ttl = Some(following(line, "a TTL", number)?),
            Some("tos") => fields.tos = Some(following(line, "a TOS byte", number)?),
            Some("ipid") => fields.id = Some(following(line, "an IP id", number)?),
            Some("seq") => fields.seq = Some(following(line, "a sequence number", number)?),
            Some("ack") => fields.ack = Some(following(line, "a sequence number", number)?),
            Some("mss") => fields.mss = Some(following(line, "an MSS", number)?),
            Some(word @ ("df" | "no-df")) => {
                line.next();
                fields.df = Some(word == "df");
            }
            _ if fields == OutFields::default() => {
                return Err(line
                    .fault_before("`out` needs hex, ttl, tos, ipid, mss, seq, ack, df or no-df"));
            }
            _ => return Ok(Out::Fields(fields)),
        }
    }
}

fn reply(line: &mut Line) -> Parsed<Reply> {
    let kind = line.word("hex, rst, tcp or icmp")?;
    match kind.text.as_str() {
        "hex" => Ok(Reply::Bytes(hex(line)?)),
        "rst" => tcp_reply(line, None),
        "tcp" => {
            let flags = line.value("TCP flags", names::flags)?;
            tcp_reply(line, Some(flags))
        }
        family @ ("icmp" | "icmp6") => {
            let ipv6 = family == "icmp6";
            let kind = line.value("an ICMP type", |text| names::icmp_type(ipv6, text))?;
            let code = match line.take("code") {
                true => Some(line.value("a code of this ICMP type", |text| {
                    names::icmp_code(ipv6, kind, text)
                })?),
                false => None,
            };
            Ok(Reply::Icmp { ipv6, kind, code })
        }
        _ => Err(kind.fault("expected hex, rst, tcp, icmp or icmp6")),
    }
}

/// Reads the words of a TCP reply. Without `flags` it is any segment with RST.
fn tcp_reply(line: &mut Line, flags: Option<u8>) -> Parsed<Reply> {
    let (mut seq, mut ack, mut ttl) = (None, None, None);
    loop {
        match line.peek() {
            Some("seq") => seq = Some(following(line, "a sequence number", number)?),
            Some("ack") => ack = Some(following(line, "a sequence number", number)?),
            Some("ttl") => ttl = Some(following(line, "a TTL", number)?),
            _ => {
                return Ok(Reply::Tcp { flags, seq, ack, ttl });
            }
        }
    }
}

fn log_words(line: &mut Line) -> Parsed<LogWords> {
    let mut words = LogWords::default();
    loop {
        match line.peek() {
            Some(word @ ("pass" | "block" | "match")) => {
                line.next();
                words.action = Some(match word {
                    "pass" => Action::Pass,
                    "block" => Action::Block,
                    _ => Action::Match,
                });
            }
            Some("by") => {
                words.rule = Some(following(line, "a rule number or `default`", number_or_default)?)
            }
            Some("in") => words.anchor = Some(following(line, "an anchor or `main`", anchor)?),
            Some("anchor-rule") => {
                words.anchor_rule =
                    Some(following(line, "a rule number or `none`", number_or_none)?)
            }
            Some("for") => words.reason = Some(following(line, "a reason", Reason::by_name)?),
            Some("to") => words.to = Some(following(line, "n of pflogN", number)?),
            Some("user") => words.uid = Some(following(line, "a user or `none`", number_or_none)?),
            _ => return Ok(words),
        }
    }
}
