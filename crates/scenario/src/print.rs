//! Prints scenario files in the notation that [`parse`](crate::parse) reads.

mod host;

use std::fmt::{self, Display, Write};
use std::net::IpAddr;

use skipstep_model::{
    Decision, Diverted, Draw, ForwardRoute, Forwarded, Hiding, SocketOwner, TrialTime, Verdict,
};
use skipstep_ruleset::{Direction, RouteKind, TableEntry, TableName};
use skipstep_views::{Edit, Peer, TableEdit};

use self::host::write_host;
use crate::case::{Action, Arrival, Case, Check, File, RuleCheck, StatusCheck};
use crate::expect::{Expectation, LogWords, Out, PeerWords, Reply, StateUse, StateWords};
use crate::kill::Target;
use crate::look::hex;
use crate::names;
use crate::packet::{Body, Extension, Icmp, IcmpBody, Packet, Payload, Tcp, Words};
use crate::write::{pair, quoted, rule, word};

/// Width of a line of expectations, in characters.
const WIDTH: usize = 110;

impl Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write_host(f, host)?;
        }
        for (i, case) in self.cases.iter().enumerate() {
            if i > 0 || self.host.is_some() {
                writeln!(f)?;
            }
            write!(f, "{case}")?;
        }
        Ok(())
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(title) = &self.title {
            writeln!(f, "scenario \"{title}\"")?;
        }
        writeln!(f, "rules {{")?;
        for line in self.rules.text.lines() {
            writeln!(f, "    {}", line.trim())?;
        }
        writeln!(f, "}}")?;
        for (name, text) in &self.files {
            writeln!(f, "file \"{name}\" {{")?;
            text.lines().try_for_each(|line| writeln!(f, "    {}", line.trim()))?;
            writeln!(f, "}}")?;
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{}", step.action))
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Packet(arrival, expected) => write!(f, "{arrival}{expected}"),
            Action::Forward(interface, expected) => write!(f, "forward out {interface}{expected}"),
            Action::Wait { seconds, expired: None } => write!(f, "wait {seconds}"),
            Action::Wait { seconds, expired: Some(expired) } => {
                write!(f, "wait {seconds} => expired {}", list(expired))
            }
            Action::Kill(numbers) => write!(f, "kill {}", list(numbers)),
            Action::KillSelected(target) => write_target(f, target),
            Action::Table(edit) => write_table_edit(f, edit),
            Action::Load(path, rules) => {
                write!(f, "load ")?;
                if !path.is_empty() {
                    write!(f, "{} ", quoted(path))?;
                }
                writeln!(f, "{{")?;
                for line in rules.text.lines() {
                    writeln!(f, "    {}", line.trim())?;
                }
                write!(f, "}}")
            }
            Action::Trial(TrialTime { seconds, keeps_states: false }) => {
                write!(f, "trial {seconds}")
            }
            Action::Trial(TrialTime { seconds, keeps_states: true }) => {
                write!(f, "trial {seconds} keep-states")
            }
            Action::Confirm => write!(f, "confirm"),
            Action::Revert => write!(f, "revert"),
            Action::Flush(path) if path.is_empty() => write!(f, "flush"),
            Action::Flush(path) => write!(f, "flush {}", quoted(path)),
            Action::Random(Draw::Bounded(draw)) => write!(f, "random {draw}"),
            Action::Random(Draw::Sequence(number)) => write!(f, "random sequence {number}"),
            Action::Random(Draw::Timestamp(offset)) => write!(f, "random timestamp {offset}"),
            Action::Random(Draw::SyncookieKey(key)) => {
                let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                write!(f, "random syncookie-key {key}")
            }
            Action::Host(change) => write!(f, "{change}"),
            Action::Check(check) => write!(f, "check {check}"),
        }
    }
}

fn write_target(f: &mut fmt::Formatter<'_>, target: &Target) -> fmt::Result {
    match target {
        Target::Hosts(from, None) => write!(f, "kill from {from}"),
        Target::Hosts(from, Some(to)) => write!(f, "kill from {from} to {to}"),
        Target::Label(label) => write!(f, "kill label {}", quoted(label)),
        Target::Gateway(net) => write!(f, "kill gateway {net}"),
        Target::Key(protocol, from, to) => {
            let (from, to) = (address_port(from.0, from.1), address_port(to.0, to.1));
            write!(f, "kill key {protocol} {from} {to}")
        }
        // A scenario identifies states by its own numbers.
        Target::Id(id, _) => write!(f, "kill {id}"),
    }
}

fn write_table_edit(f: &mut fmt::Formatter<'_>, edit: &TableEdit) -> fmt::Result {
    let TableName { anchor, name } = &edit.table;
    let path = if anchor.is_empty() { name.clone() } else { format!("{anchor}/{name}") };
    let word = match edit.edit {
        Edit::Add => "add",
        Edit::Delete => "delete",
        Edit::Replace => "replace",
    };
    write!(f, "table {} {word}", quoted(&path))?;
    for TableEntry { negated, net, .. } in &edit.entries {
        write!(f, " {}{net}", if *negated { "!" } else { "" })?;
    }
    Ok(())
}

impl Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = if names::begins_packet(&self.interface) { "on " } else { "" };
        write!(f, "{} {on}{} ", direction(self.direction), self.interface)?;
        if let Some(interface) = &self.received_on {
            write!(f, "received-on {interface} ")?;
        }
        if let Some(tag) = &self.tag {
            write!(f, "tag {} ", quoted(tag))?;
        }
        if let Some(prio) = self.prio {
            write!(f, "prio {prio} ")?;
        }
        if let Some(queue) = &self.queue {
            write!(f, "queue {} ", quoted(queue))?;
        }
        if let Some(delay) = self.delay {
            write!(f, "delay {delay} ")?;
        }
        if let Some(SocketOwner { uid, gid }) = self.owner {
            write!(f, "owner {uid}:{gid} ")?;
        }
        for tag in &self.link.tags {
            write!(f, "{} {} ", names::name_of_tag(tag.ether_type), tag.id)?;
        }
        f.write_str(match self.link.hiding {
            Some(Hiding::Snap) => "snap ",
            Some(Hiding::Label) => "mpls ",
            None => "",
        })?;
        f.write_str(if self.link.for_other_station { "other-station " } else { "" })?;
        write!(f, "{}", self.packet)
    }
}

impl Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Packet::Hex(bytes) => write!(f, "hex {}", hex(bytes)),
            Packet::Words(words) => write!(f, "{words}"),
        }
    }
}

impl Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Words { source, destination, .. } = self;
        let ports = |source_port, destination_port| {
            format!(
                "{} > {}",
                address_port(*source, source_port),
                address_port(*destination, destination_port)
            )
        };
        let payload = match &self.body {
            Body::Tcp(tcp) => {
                write!(
                    f,
                    "tcp {} {}",
                    ports(tcp.source_port, tcp.destination_port),
                    names::flags_text(tcp.flags)
                )?;
                write_tcp(f, tcp)?;
                Some(&tcp.payload)
            }
            Body::Udp(udp) => {
                write!(f, "udp {}", ports(udp.source_port, udp.destination_port))?;
                Some(&udp.payload)
            }
            Body::Sctp(sctp) => {
                write!(f, "sctp {}", ports(sctp.source_port, sctp.destination_port))?;
                word(f, "vtag", sctp.tag)?;
                Some(&sctp.chunks)
            }
            Body::Icmp(icmp) => {
                let ipv6 = source.is_ipv6();
                write!(f, "{} {source} > {destination}", if ipv6 { "icmp6" } else { "icmp" })?;
                write_icmp(f, ipv6, icmp)?
            }
            Body::Other(protocol, payload) => {
                write!(f, "proto {protocol} {source} > {destination}")?;
                Some(payload)
            }
        };
        match payload {
            None | Some(Payload::Length(0)) => {}
            Some(Payload::Bytes(bytes)) if bytes.is_empty() => {}
            Some(Payload::Length(length)) => write!(f, " len {length}")?,
            Some(Payload::Bytes(bytes)) => write!(f, " data {}", hex(bytes))?,
        }
        self.write_ip(f)?;
        self.write_damage(f)
    }
}

fn write_tcp(f: &mut fmt::Formatter<'_>, tcp: &Tcp) -> fmt::Result {
    word(f, "seq", tcp.seq)?;
    word(f, "ack", tcp.ack)?;
    word(f, "win", tcp.window)?;
    word(f, "urg", tcp.urgent)?;
    word(f, "mss", tcp.mss)?;
    word(f, "wscale", tcp.scale)?;
    if tcp.options.is_empty() { Ok(()) } else { write!(f, " tcp-options {}", hex(&tcp.options)) }
}

/// Writes the fields of an ICMP message. Returns the payload, unless it is a quoted packet.
fn write_icmp<'a>(
    f: &mut fmt::Formatter<'_>,
    ipv6: bool,
    icmp: &'a Icmp,
) -> Result<Option<&'a Payload>, fmt::Error> {
    write!(f, " {}", names::icmp_type_name(ipv6, icmp.kind))?;
    if icmp.code != 0 {
        write!(f, " code {}", names::icmp_code_name(ipv6, icmp.kind, icmp.code))?;
    }
    word(f, "id", icmp.id)?;
    word(f, "seq", icmp.seq)?;
    match &icmp.body {
        IcmpBody::Payload(payload) => Ok(Some(payload)),
        IcmpBody::Quoted(packet, kept) => {
            write!(f, " quoting ")?;
            if let Some(kept) = kept {
                write!(f, "{kept} ")?;
            }
            write!(f, "({packet})")?;
            Ok(None)
        }
    }
}

impl Words {
    fn write_ip(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, "ttl", self.ip.ttl)?;
        word(f, "tos", self.ip.tos)?;
        word(f, "ipid", self.ip.id)?;
        if self.ip.df {
            write!(f, " df")?;
        }
        word(f, "ip-options", self.ip.options.as_deref().map(hex))?;
        for extension in &self.ip.extensions {
            match extension {
                Extension::HopByHop(options) => write!(f, " hop-by-hop {}", empty_or(options))?,
                Extension::Destination(options) => {
                    write!(f, " destination-options {}", empty_or(options))?
                }
                Extension::Routing(kind, data) => write!(f, " routing {kind} {}", empty_or(data))?,
            }
        }
        match self.ip.fragment {
            None => Ok(()),
            Some((offset, more)) => write!(f, " fragment {offset}{}", if more { "+" } else { "" }),
        }
    }

    fn write_damage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, "truncate", self.damage.truncate)?;
        word(f, "ip-len", self.damage.ip_length)?;
        word(f, "header-len", self.damage.header_length)?;
        word(f, "data-offset", self.damage.data_offset)?;
        word(f, "udp-len", self.damage.udp_length)?;
        if self.damage.bad_sum { write!(f, " bad-sum") } else { Ok(()) }
    }
}

/// Returns bytes in hexadecimal, or quotes if there are none, so that the word is not lost.
fn empty_or(bytes: &[u8]) -> String {
    if bytes.is_empty() { "\"\"".into() } else { hex(bytes) }
}

impl Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut width = 0;
        for item in self.items() {
            if width == 0 {
                write!(f, " => {item}")?;
                width = item.len();
            } else if width + item.len() < WIDTH {
                write!(f, ", {item}")?;
                width += item.len() + 2;
            } else {
                write!(f, "\n    => {item}")?;
                width = item.len();
            }
        }
        Ok(())
    }
}

impl Expectation {
    fn items(&self) -> Vec<String> {
        let mut items = Vec::new();
        let verdict = self.verdict.map(|verdict| match verdict {
            Verdict::Pass => "pass",
            Verdict::Drop => "block",
            Verdict::Consumed => "consumed",
        });
        let decision = self.decision.as_ref().map(|decision| match decision {
            Decision::None => "skipped".to_owned(),
            Decision::Default => "default".to_owned(),
            Decision::Rule(rule) => format!("rule {}", quoted(&rule.to_string())),
            Decision::OrphanState => "orphan".to_owned(),
        });
        let head: Vec<String> = verdict.map(String::from).into_iter().chain(decision).collect();
        if !head.is_empty() {
            items.push(head.join(" "));
        }
        items.extend(self.anchor_rule.map(anchor_rule));
        items.extend(self.reason.map(|reason| format!("reason {}", reason.name())));
        items.extend(self.counted.as_ref().map(|counted| {
            let names: Vec<&str> = counted.iter().map(|reason| reason.name()).collect();
            format!("counted {}", list(&names))
        }));
        items.extend(self.state.as_ref().map(|state| match state {
            StateUse::None => "no state".to_owned(),
            StateUse::New(number, words) => format!("new state{}{words}", optional(*number)),
            StateUse::Existing(number, words) => format!("state{}{words}", optional(*number)),
        }));
        items.extend(
            self.others.iter().map(|(number, words)| format!("also state {number}{words}")),
        );
        items.extend(self.out.as_ref().map(out));
        match &self.replies {
            Some(replies) if replies.is_empty() => items.push("no reply".into()),
            Some(replies) => items.extend(replies.iter().map(reply)),
            None => {}
        }
        match &self.forwarded {
            Some(forwarded) if forwarded.is_empty() => items.push("no forward".into()),
            Some(forwarded) => items.extend(forwarded.iter().map(onward)),
            None => {}
        }
        match &self.log {
            Some(log) if log.is_empty() => items.push("no log".into()),
            Some(log) => items.extend(log.iter().map(log_words)),
            None => {}
        }
        items.extend(self.tag.as_ref().map(|tag| match tag {
            None => "no tag".to_owned(),
            Some(tag) => format!("tag {}", quoted(tag)),
        }));
        items.extend(self.prio.map(|prio| format!("prio {prio}")));
        items.extend(self.queue.as_ref().map(|queue| match queue {
            None => "no queue".to_owned(),
            Some(queue) => format!("queue {}", quoted(queue)),
        }));
        items.extend(self.delay.map(|delay| match delay {
            None => "no delay".to_owned(),
            Some(delay) => format!("delay {delay}"),
        }));
        items.extend(self.rtable.map(|rtable| format!("rtable {rtable}")));
        items.extend(self.diverted.map(|diverted| match diverted {
            None => "no divert".into(),
            Some(Diverted::To) => "divert-to".into(),
            Some(Diverted::Reply) => "divert-reply".into(),
            Some(Diverted::Packet(port)) => format!("divert-packet {port}"),
        }));
        items.extend(self.expired.as_ref().map(|numbers| format!("expired {}", list(numbers))));
        items.extend(self.removed.as_ref().map(|numbers| format!("removed {}", list(numbers))));
        items.extend(self.states.map(|states| format!("states {states}")));
        items.extend(self.sources.map(|sources| format!("sources {sources}")));
        items.extend(self.tracked.iter().map(ToString::to_string));
        items
    }
}

/// Writes each word with a blank before it.
impl Display for StateWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, "proto", self.protocol)?;
        if let Some(way) = self.direction {
            write!(f, " {}", direction(way))?;
        }
        word(
            f,
            "on",
            self.interface.as_ref().map(|interface| interface.as_deref().unwrap_or("all")),
        )?;
        word(f, "rdomain", self.rdomain)?;
        word(f, "from-rule", self.rule.as_ref().map(rule))?;
        word(f, "anchor-rule", self.anchor_rule.map(number_or_none))?;
        let key = |key: [(IpAddr, u16); 2]| {
            format!("{} {}", address_port(key[0].0, key[0].1), address_port(key[1].0, key[1].1))
        };
        word(f, "wire", self.wire.map(key))?;
        word(f, "stack", self.stack.map(key))?;
        word(f, "src", self.src.map(peer))?;
        word(f, "dst", self.dst.map(peer))?;
        word(f, "timeout", self.timeout.map(|timeout| timeout.name()))?;
        word(f, "expires", self.expires)?;
        word(f, "packets", self.packets.map(pair))?;
        word(f, "bytes", self.bytes.map(pair))?;
        word(f, "flags", self.flags.map(|flags| format!("{flags:#x}")))?;
        word(f, "min-ttl", self.min_ttl)?;
        word(f, "max-mss", self.max_mss)?;
        word(f, "tagging", self.tag.as_ref().map(|tag| quoted(tag.as_deref().unwrap_or("none"))))?;
        word(f, "routed", self.route.map(|kind| kind.map_or("none", RouteKind::name)))?;
        word(f, "next-hop", self.next_hop.as_ref())
    }
}

fn peer(peer: PeerWords) -> String {
    match peer {
        PeerWords::State(state) => state.to_string(),
        PeerWords::Full(peer) => {
            let Peer { state, seqlo, seqhi, seqdiff, max_win, wscale } = peer;
            format!("{state}:{seqlo}:{seqhi}:{seqdiff}:{max_win}:{wscale}")
        }
    }
}

fn out(out: &Out) -> String {
    match out {
        Out::Unchanged => "unchanged".into(),
        Out::Bytes(bytes) => format!("out hex {}", hex(bytes)),
        Out::Fields(fields) => {
            let mut text = "out".to_owned();
            push(&mut text, "ttl", fields.ttl);
            push(&mut text, "tos", fields.tos);
            push(&mut text, "ipid", fields.id);
            push(&mut text, "mss", fields.mss);
            push(&mut text, "seq", fields.seq);
            push(&mut text, "ack", fields.ack);
            match fields.df {
                None => {}
                Some(true) => text += " df",
                Some(false) => text += " no-df",
            }
            text
        }
    }
}

fn onward(forwarded: &Forwarded) -> String {
    let bytes = hex(&forwarded.bytes);
    match &forwarded.route {
        ForwardRoute::Forward => format!("forward hex {bytes}"),
        ForwardRoute::Route { interface, next_hop } => {
            format!("route {interface} {next_hop} hex {bytes}")
        }
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Bytes(bytes) => format!("reply hex {}", hex(bytes)),
        Reply::Tcp { flags, seq, ack, ttl } => {
            let mut text = match flags {
                None => "reply rst".to_owned(),
                Some(flags) => format!("reply tcp {}", names::flags_text(*flags)),
            };
            push(&mut text, "seq", *seq);
            push(&mut text, "ack", *ack);
            push(&mut text, "ttl", *ttl);
            text
        }
        Reply::Icmp { ipv6, kind, code } => {
            let family = if *ipv6 { "icmp6" } else { "icmp" };
            let mut text = format!("reply {family} {}", names::icmp_type_name(*ipv6, *kind));
            push(&mut text, "code", code.map(|code| names::icmp_code_name(*ipv6, *kind, code)));
            text
        }
    }
}

fn log_words(words: &LogWords) -> String {
    let mut text = "log".to_owned();
    text += match words.action {
        None => "",
        Some(skipstep_ruleset::Action::Pass) => " pass",
        Some(skipstep_ruleset::Action::Block) => " block",
        Some(skipstep_ruleset::Action::Match) => " match",
    };
    push(&mut text, "by", words.rule.map(number_or_default));
    push(&mut text, "anchor-rule", words.anchor_rule.map(number_or_none));
    push(&mut text, "in", words.anchor.as_deref().map(anchor));
    push(&mut text, "for", words.reason.map(|reason| reason.name()));
    push(&mut text, "to", words.to);
    if let Some(uid) = words.uid {
        push(&mut text, "user", Some(number_or_none(uid)));
    }
    text
}

impl Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |pair: [u64; 2]| format!("{}:{}", pair[0], pair[1]);
        match self {
            Check::Rule(number, check) => {
                let RuleCheck { evaluations, packets, bytes, states, created } = check;
                match number {
                    None => write!(f, "default")?,
                    Some(id) => write!(f, "rule {}", quoted(&id.to_string()))?,
                }
                word(f, "evaluations", *evaluations)?;
                word(f, "packets", packets.map(pair))?;
                word(f, "bytes", bytes.map(pair))?;
                word(f, "states", *states)?;
                word(f, "created", *created)
            }
            Check::Limiter(check) => write!(f, "{check}"),
            Check::Traffic(check) => write!(f, "{check}"),
            Check::Status(StatusCheck { states, searches, inserts, removals, reasons }) => {
                write!(f, "status")?;
                word(f, "states", *states)?;
                word(f, "searches", *searches)?;
                word(f, "inserts", *inserts)?;
                word(f, "removals", *removals)?;
                reasons.iter().try_for_each(|(reason, count)| word(f, reason.name(), Some(count)))
            }
        }
    }
}

/// Appends ` name value` to a string if there is a value.
fn push<T: Display>(text: &mut String, name: &str, value: Option<T>) {
    if let Some(value) = value {
        let _ = write!(text, " {name} {value}");
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

fn address_port(address: IpAddr, port: u16) -> String {
    if address.is_ipv4() { format!("{address}:{port}") } else { format!("{address}[{port}]") }
}

fn number_or_default(number: Option<u32>) -> String {
    number.map_or_else(|| "default".into(), |number| number.to_string())
}

fn anchor(path: &str) -> String {
    if path.is_empty() { "main".into() } else { quoted(path) }
}

fn number_or_none(number: Option<u32>) -> String {
    number.map_or_else(|| "none".into(), |number| number.to_string())
}

fn anchor_rule(number: Option<u32>) -> String {
    format!("anchor-rule {}", number_or_none(number))
}

fn optional(number: Option<u32>) -> String {
    number.map_or_else(String::new, |number| format!(" {number}"))
}

fn list<T: Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".into();
    }
    items.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}
