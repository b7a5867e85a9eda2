//! Prints rules as `pfctl -sr` does (pf-features section 14).

pub mod legacy;
mod pool;
mod word;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::rule::{InterfaceMatch, StateOptions};
use skipstep_ruleset::{
    Action, Address, Anchor, BlockReturn, Direction, Endpoint, Family, KeepKind, LimiterUse, Log,
    Not, Owner, PortMatch, Ports, Rule, Scrub, SourceTrack, Table, TablesMade,
};

use crate::ast;
use crate::lexer::belongs_to_word;
use crate::names::Names;
use crate::packet_names as packet;

pub(crate) use word::{quoted, word, words};

const TCP: u8 = 6;

/// Returns the number of addresses in a table; `None` if there is no such table.
pub type TableSizes<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// Returns the number of addresses of an interface specification in a rule of this family.
pub type DynamicSizes<'a> = &'a dyn Fn(&DynamicAddress, Option<Family>) -> usize;

/// The options of printing.
#[derive(Clone, Copy)]
pub struct PrintOptions<'a> {
    /// Print `@nr` before each rule (`-vv`).
    pub numbers: bool,
    /// Print ports by name (`-P`).
    pub port_names: bool,
    /// Returns the sizes of tables (`-vv`), printed as `<name:n>`, or `<name:*>` for a missing
    /// table.
    pub table_sizes: Option<TableSizes<'a>>,
    /// Returns the sizes of dynamic addresses (`-vv`), printed as `(em0:n)`, or `(em0:*)` for 0.
    pub dynamic_sizes: Option<DynamicSizes<'a>>,
    /// The names of protocols and services.
    pub names: &'a Names,
}

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        PrintOptions {
            numbers: false,
            port_names: false,
            table_sizes: None,
            dynamic_sizes: None,
            names: Names::builtin(),
        }
    }
}

/// Returns a rule as one line without line end.
///
/// ```
/// use skipstep_pfconf::{Context, PrintOptions, load, print};
/// use skipstep_ruleset::interface::Host;
///
/// let host = Host::default();
/// let loaded = load("pass in proto tcp to port ssh", &Context::new(&host)).unwrap();
/// let line = print::rule(&loaded.ruleset.rules[0], &PrintOptions::default());
/// assert_eq!(line, "pass in proto tcp from any to any port = 22 flags S/SA");
/// ```
pub fn rule(rule: &Rule, options: &PrintOptions) -> String {
    let mut text = String::new();
    if options.numbers {
        text += &format!("@{} ", rule.number);
    }
    text += &action(rule);
    text += &head(rule, options);
    if let Some(Not { negated, value }) = rule.received_on.as_deref() {
        text += &format!(" {}received-on {}", if *negated { "!" } else { "" }, interface(value));
    }
    text += &rule.user.map(|user| owner("user", user)).unwrap_or_default();
    text += &rule.group.map(|group| owner("group", group)).unwrap_or_default();
    text += &flags(rule);
    text += &icmp(rule);
    text += &rule.tos.map(|tos| format!(" tos 0x{tos:02x}")).unwrap_or_default();
    text += &rule.prio.map(|prio| format!(" prio {prio}")).unwrap_or_default();
    if let Some((packets, seconds)) = rule.max_pkt_rate {
        text += &format!(" max-pkt-rate {packets}/{seconds}");
    }
    text += &rule.max_pkt_size.map(|size| format!(" max-pkt-size {size}")).unwrap_or_default();
    text += &set(rule);
    text += &state(rule);
    text += &rule.state_limiter.map(|used| limiter("state", used)).unwrap_or_default();
    text += &rule.source_limiter.map(|used| limiter("source", used)).unwrap_or_default();
    text += if rule.fragment { " fragment" } else { "" };
    text += &scrub(&rule.scrub);
    text += if rule.allow_opts { " allow-opts" } else { "" };
    // before the labels, because several labels may follow it
    text += &rule.ridentifier.map(|number| format!(" ridentifier {number}")).unwrap_or_default();
    for label in &rule.labels {
        text += &format!(" label {}", quoted(label));
    }
    text += if rule.once { " once" } else { "" };
    text += &tags(rule);
    text += &rule.rtable.map(|number| format!(" rtable {number}")).unwrap_or_default();
    text + &pool::translation(rule, options)
}

/// Prints the part of a rule from the direction to the hosts.
fn head(rule: &Rule, options: &PrintOptions) -> String {
    let mut text = String::new();
    text += match rule.direction {
        Some(Direction::In) => " in",
        Some(Direction::Out) => " out",
        None => "",
    };
    text += &rule.log.map(log).unwrap_or_default();
    text += if rule.quick { " quick" } else { "" };
    if let Some(Not { negated, value }) = &rule.interface {
        text += &format!(" on {}{}", if *negated { "! " } else { "" }, interface(value));
    }
    text += &pool::early_route(rule, options);
    text += match rule.family {
        Some(Family::Inet) => " inet",
        Some(Family::Inet6) => " inet6",
        None => "",
    };
    if let Some(number) = rule.protocol {
        // `a/n` would need quotes
        let name = options.names.protocol_name(number);
        text += &match name.filter(|name| name.bytes().all(belongs_to_word)) {
            Some(name) => format!(" proto {name}"),
            None => format!(" proto {number}"),
        };
    }
    text + &from_to(rule, options)
}

/// Prints rule sets together with the anchors in braces.
pub struct Nested<'a> {
    /// Anchors that may have been written in braces, by path.
    pub anchors: &'a BTreeMap<String, Anchor>,
    /// Generated tables of each rule set, printed in front of the rules.
    pub made: &'a TablesMade,
    /// The options of printing a rule.
    pub options: &'a PrintOptions<'a>,
}

impl Nested<'_> {
    /// Prints the rule set `path`, one line a rule, indented by two blanks for each `depth`. A
    /// named anchor is printed at its first call, an unnamed one at each call.
    pub fn print(&self, path: &str, contents: &Anchor, depth: usize, text: &mut String) {
        for made in &contents.tables[self.made.get(path).cloned().unwrap_or(0..0)] {
            *text += &statement(made);
            text.push('\n');
        }
        let indentation = "  ".repeat(depth);
        let mut printed = HashSet::new();
        for one in &contents.rules {
            *text += &indentation;
            *text += &rule(one, self.options);
            let call = one.anchor.as_ref().filter(|call| {
                call.braces && (call.is_unnamed() || printed.insert(call.path.clone()))
            });
            let called = call.and_then(|call| Some((&call.path, self.anchors.get(&call.path)?)));
            match called.filter(|(_, anchor)| !anchor.rules.is_empty()) {
                None => text.push('\n'),
                Some((path, anchor)) => {
                    *text += " {\n";
                    self.print(path, anchor, depth + 1, text);
                    *text += &indentation;
                    *text += "}\n";
                }
            }
        }
    }
}

/// Prints a generated table as a statement.
fn statement(table: &Table) -> String {
    let mut text = format!("table <{}> const {{", word(&table.name));
    for entry in &table.entries {
        text.push(' ');
        text += &network(entry.net);
    }
    text + " }"
}

/// Returns `tag` and `tagged`.
fn tags(rule: &Rule) -> String {
    let mut text = String::new();
    if let Some(tag) = &rule.tag {
        text += &format!(" tag {}", words(tag));
    }
    if let Some(Not { negated, value }) = rule.tagged.as_deref() {
        text += &format!("{} tagged {}", if *negated { " !" } else { "" }, words(value));
    }
    text
}

fn action(rule: &Rule) -> String {
    if let Some(call) = &rule.anchor {
        let name = || format!("anchor {}", quoted(&call.name));
        return if call.is_unnamed() { "anchor".to_string() } else { name() };
    }
    match (rule.action, rule.block_return) {
        (Action::Pass, _) => "pass".to_string(),
        (Action::Match, _) => "match".to_string(),
        (Action::Block, BlockReturn::Drop) => "block drop".to_string(),
        (Action::Block, BlockReturn::Return) => "block return".to_string(),
        (Action::Block, BlockReturn::Rst { ttl: 0 }) => "block return-rst".to_string(),
        (Action::Block, BlockReturn::Rst { ttl }) => format!("block return-rst(ttl {ttl})"),
        (Action::Block, BlockReturn::Icmp { inet, inet6 }) => {
            let code = |(kind, code), family| {
                packet::code_name(kind, code, family)
                    .map_or_else(|| code.to_string(), str::to_string)
            };
            let (code, code6) = (code(inet, Family::Inet), code(inet6, Family::Inet6));
            match rule.family {
                Some(Family::Inet) => format!("block return-icmp({code})"),
                Some(Family::Inet6) => format!("block return-icmp6({code6})"),
                None => format!("block return-icmp({code}, {code6})"),
            }
        }
    }
}

fn log(log: Log) -> String {
    let mut options = Vec::new();
    options.extend(log.all.then(|| "all".to_string()));
    options.extend(log.matches.then(|| "matches".to_string()));
    options.extend(log.user.then(|| "user".to_string()));
    options.extend((log.to > 0).then(|| format!("to pflog{}", log.to)));
    if options.is_empty() { " log".to_string() } else { format!(" log ({})", options.join(", ")) }
}

/// Returns the operand of `on` or `received-on`.
pub fn interface(interface: &InterfaceMatch) -> Cow<'_, str> {
    match interface {
        InterfaceMatch::Any => "any".into(),
        InterfaceMatch::Named(name) => word(name),
        InterfaceMatch::Rdomain(number) => format!("rdomain {number}").into(),
    }
}

fn from_to(rule: &Rule, options: &PrintOptions) -> String {
    if anyone(&rule.source) && anyone(&rule.destination) && rule.os.is_none() {
        return " all".to_string();
    }
    let protocol = if rule.protocol == Some(TCP) { "tcp" } else { "udp" };
    let end = |end: &Endpoint| {
        let mut text = if end.host.negated { "! ".to_string() } else { String::new() };
        text += &address(&end.host.address, rule.family, options);
        text +=
            &end.ports.as_ref().map(|range| ports(range, protocol, options)).unwrap_or_default();
        text
    };
    let os = rule.os.as_ref().map(|os| format!(" os {}", quoted(os))).unwrap_or_default();
    format!(" from {}{os} to {}", end(&rule.source), end(&rule.destination))
}

/// True if a side has no criterion, also where it was written as `0/0`.
fn anyone(end: &Endpoint) -> bool {
    let everything = match &end.host.address {
        Address::Any => true,
        Address::Net(net) => is_everything(*net),
        _ => false,
    };
    everything && !end.host.negated && end.ports.is_none()
}

fn is_everything(net: IpNet) -> bool {
    net.prefix_len() == 0 && net.addr().is_unspecified()
}

fn address(address: &Address, family: Option<Family>, options: &PrintOptions) -> String {
    match address {
        Address::Any => "any".to_string(),
        Address::Net(net) => network(*net),
        Address::Masked(address, mask) => format!("{} & {}", single(*address), single(*mask)),
        Address::Range(low, high) => format!("{} - {}", single(*low), single(*high)),
        Address::Table(name) => table(name, options),
        Address::Dynamic(interface) => dynamic(interface, family, options),
        Address::NoRoute => "no-route".to_string(),
        Address::UrpfFailed => "urpf-failed".to_string(),
        Address::RouteLabel(label) => format!("route {}", quoted(label)),
    }
}

fn table(name: &str, options: &PrintOptions) -> String {
    match options.table_sizes.map(|size| size(name)) {
        None => format!("<{}>", word(name)),
        Some(None) => format!("<{}:*>", word(name)),
        Some(Some(size)) => format!("<{}:{size}>", word(name)),
    }
}

fn dynamic(interface: &DynamicAddress, family: Option<Family>, options: &PrintOptions) -> String {
    let mut text = format!("({}", interface.interface);
    for (is_set, word) in [
        (interface.network, ":network"),
        (interface.broadcast, ":broadcast"),
        (interface.peer, ":peer"),
        (interface.no_alias, ":0"),
    ] {
        text += if is_set { word } else { "" };
    }
    text += &match options.dynamic_sizes.map(|size| size(interface, family)) {
        None => String::new(),
        Some(0) => ":*".to_string(),
        Some(size) => format!(":{size}"),
    };
    text += ")";
    let whole = if family == Some(Family::Inet) { 32 } else { 128 };
    if let Some(prefix) = interface.prefix.filter(|prefix| *prefix < whole) {
        text += &format!("/{prefix}");
    }
    text
}

/// Prints a network: a single address without prefix length, and the network of all addresses as
/// `any`.
fn network(net: IpNet) -> String {
    if is_everything(net) {
        "any".to_string()
    } else if net.prefix_len() == net.max_prefix_len() {
        single(net.addr())
    } else {
        format!("{}/{}", single(net.addr()), net.prefix_len())
    }
}

/// Returns an address of a table as written.
pub(crate) fn host(host: &ast::Host) -> String {
    match host.address {
        ast::Address::Net(address, 0) if address.is_unspecified() => "any".to_string(),
        ast::Address::Net(address, length) if length < crate::resolve::full_length(address) => {
            format!("{}/{length}", single(address))
        }
        ast::Address::Net(address, _) => single(address),
        _ => String::new(),
    }
}

/// Returns an address as inet_ntop(3) writes it. An IPv6 address with an embedded IPv4 address has
/// dots.
pub(crate) fn single(address: IpAddr) -> String {
    match address {
        IpAddr::V6(v6) if embeds_ipv4(v6) => {
            let [.., a, b, c, d] = v6.octets();
            format!("::{a}.{b}.{c}.{d}")
        }
        address => address.to_string(),
    }
}

fn embeds_ipv4(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    segments[..6].iter().all(|segment| *segment == 0) && segments[6] != 0
}

fn ports(ports: &Ports, protocol: &str, options: &PrintOptions) -> String {
    let Ports { op, low, high } = *ports;
    let by_name = options.port_names.then(|| options.names.service_name(low, protocol)).flatten();
    let name = by_name.map_or_else(|| low.to_string(), str::to_string);
    match op {
        PortMatch::Equal => format!(" port = {name}"),
        PortMatch::NotEqual => format!(" port != {name}"),
        PortMatch::Less => format!(" port < {low}"),
        PortMatch::LessEqual => format!(" port <= {low}"),
        PortMatch::Greater => format!(" port > {low}"),
        PortMatch::GreaterEqual => format!(" port >= {low}"),
        PortMatch::Range => format!(" port {low}:{high}"),
        PortMatch::Inside => format!(" port {low} >< {high}"),
        PortMatch::Outside => format!(" port {low} <> {high}"),
    }
}

/// Prints `user` or `group`.
fn owner(word: &str, owner: Owner) -> String {
    let number = |number: Option<u32>| number.map_or("unknown".to_string(), |n| n.to_string());
    let (low, high) = (number(owner.low), number(owner.high));
    match owner.op {
        PortMatch::Equal => format!(" {word} = {low}"),
        PortMatch::NotEqual => format!(" {word} != {low}"),
        PortMatch::Less => format!(" {word} < {low}"),
        PortMatch::LessEqual => format!(" {word} <= {low}"),
        PortMatch::Greater => format!(" {word} > {low}"),
        PortMatch::GreaterEqual => format!(" {word} >= {low}"),
        PortMatch::Range => format!(" {word} {low}:{high}"),
        PortMatch::Inside => format!(" {word} {low} >< {high}"),
        PortMatch::Outside => format!(" {word} {low} <> {high}"),
    }
}

fn limiter(kind: &str, used: LimiterUse) -> String {
    format!(" {kind} limiter id {}{}", used.id, if used.no_match { " (no-match)" } else { "" })
}

fn flags(rule: &Rule) -> String {
    match rule.tcp_flags {
        Some(flags) => {
            let (set, mask) =
                (packet::tcp_flag_letters(flags.set), packet::tcp_flag_letters(flags.mask));
            format!(" flags {set}/{mask}")
        }
        None if rule.state.is_some()
            && rule.protocol.is_none_or(|p| p == TCP)
            && !rule.fragment =>
        {
            " flags any".to_string()
        }
        None => String::new(),
    }
}

fn icmp(rule: &Rule) -> String {
    let Some(icmp) = rule.icmp else {
        return String::new();
    };
    let family = rule.family.unwrap_or(Family::Inet);
    let keyword = if family == Family::Inet { "icmp-type" } else { "icmp6-type" };
    let mut text = match packet::type_name(icmp.kind, family) {
        Some(name) => format!(" {keyword} {name}"),
        None => format!(" {keyword} {}", icmp.kind),
    };
    if let Some(code) = icmp.code {
        text += &match packet::code_name(icmp.kind, code, family) {
            Some(name) => format!(" code {name}"),
            None => format!(" code {code}"),
        };
    }
    text
}

fn set(rule: &Rule) -> String {
    let mut options = Vec::new();
    options.extend(rule.set_prio.map(|(first, second)| {
        if first == second { format!("prio {first}") } else { format!("prio({first}, {second})") }
    }));
    options.extend(rule.set_queue.as_deref().map(|queues| match queues {
        (first, None) => format!("queue {}", word(first)),
        (first, Some(second)) => format!("queue({}, {})", word(first), word(second)),
    }));
    options.extend(rule.set_tos.map(|tos| format!("tos 0x{tos:02x}")));
    options.extend(rule.set_delay.map(|delay| format!("delay {delay}")));
    if options.is_empty() { String::new() } else { format!(" set ({})", options.join(", ")) }
}

/// Prints state and probability. pf prints the probability between the state keyword and its
/// options.
fn state(rule: &Rule) -> String {
    let options = rule.state.as_deref().map(state_options).unwrap_or_default();
    let mut text = String::new();
    if rule.state.is_none() && rule.action == Action::Pass && rule.anchor.is_none() {
        text += " no state";
    }
    text += match rule.state.as_ref().map(|state| state.kind) {
        Some(KeepKind::Modulate) => " modulate state",
        Some(KeepKind::Synproxy) => " synproxy state",
        Some(KeepKind::Keep) if !options.is_empty() => " keep state",
        _ => "",
    };
    if let Some(probability) = rule.probability {
        text += &format!(" probability {}%", percent(probability));
    }
    if !options.is_empty() {
        // writing to a string cannot fail
        let _ = write!(text, " ({})", options.join(", "));
    }
    text
}

/// Returns the state options in pf's order.
pub fn state_options(state: &StateOptions) -> Vec<String> {
    let mut options = Vec::new();
    options.extend(state.max.map(|max| format!("max {max}")));
    options.extend(state.no_sync.then(|| "no-sync".to_string()));
    options.extend(state.source_track.map(|track| match track {
        SourceTrack::Rule => "source-track rule".to_string(),
        SourceTrack::Global => "source-track global".to_string(),
    }));
    options.extend(state.max_src_states.map(|max| format!("max-src-states {max}")));
    options.extend(state.max_src_conn.map(|max| format!("max-src-conn {max}")));
    options.extend(
        state
            .max_src_conn_rate
            .map(|(connections, seconds)| format!("max-src-conn-rate {connections}/{seconds}")),
    );
    options.extend(state.max_src_nodes.map(|max| format!("max-src-nodes {max}")));
    options.extend(state.overload.as_ref().map(|overload| {
        let flush = match overload.flush {
            None => "",
            Some(SourceTrack::Rule) => " flush",
            Some(SourceTrack::Global) => " flush global",
        };
        format!("overload <{}>{flush}", word(&overload.table))
    }));
    options.extend(state.if_bound.then(|| "if-bound".to_string()));
    options.extend(state.sloppy.then(|| "sloppy".to_string()));
    options.extend(state.pflow.then(|| "pflow".to_string()));
    options.extend(
        state.timeouts.iter().map(|(timeout, value)| format!("{} {value}", timeout.name())),
    );
    options
}

fn percent(probability: u32) -> String {
    let text = format!("{:.6}", f64::from(probability) * 100.0 / (f64::from(u32::MAX) + 1.0));
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn scrub(scrub: &Scrub) -> String {
    let mut options = Vec::new();
    options.extend(scrub.no_df.then(|| "no-df".to_string()));
    options.extend(scrub.random_id.then(|| "random-id".to_string()));
    options.extend(scrub.min_ttl.map(|ttl| format!("min-ttl {ttl}")));
    options.extend(scrub.reassemble_tcp.then(|| "reassemble tcp".to_string()));
    options.extend(scrub.max_mss.map(|mss| format!("max-mss {mss}")));
    if options.is_empty() { String::new() } else { format!(" scrub ({})", options.join(" ")) }
}
