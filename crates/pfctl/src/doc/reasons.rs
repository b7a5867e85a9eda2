//! The section of pfctl(8) about reasons: for each reason its meaning, the usual cause, and what to
//! do. docs/reference/reasons.md has the same facts in short.

use skipstep_ruleset::Reason;

use crate::drops::record::Cause;

const HEAD: &str = "\
.Sh REASONS
Each dropped packet has a reason.
.Nm
.Fl s Cm info
counts the packets by reason, a log record has the reason of its packet, and
.Nm
.Cm drops
prints the reason as the packet is dropped.
.Bl -tag -width Ds
";

/// Returns the section with a paragraph for each reason.
pub fn section() -> String {
    let mut section = HEAD.to_string();
    for cause in Cause::all() {
        section += &format!(".It Cm {}\n{}\n", cause.name(), paragraph(cause));
    }
    section + ".El\n"
}

/// Returns the paragraph about a reason, in mdoc(7).
fn paragraph(cause: Cause) -> &'static str {
    let Cause::Reason(reason) = cause else {
        return UNDELIVERED;
    };
    match reason {
        Reason::Match => MATCH,
        Reason::BadOffset => BAD_OFFSET,
        Reason::Fragment => FRAGMENT,
        Reason::Short => SHORT,
        Reason::Normalize => NORMALIZE,
        Reason::Memory => MEMORY,
        Reason::BadTimestamp => BAD_TIMESTAMP,
        Reason::Congestion => CONGESTION,
        Reason::IpOption => IP_OPTION,
        Reason::ProtoCksum => PROTO_CKSUM,
        Reason::StateMismatch => STATE_MISMATCH,
        Reason::StateInsert => STATE_INSERT,
        Reason::StateLimit => STATE_LIMIT,
        Reason::SrcLimit => SRC_LIMIT,
        Reason::Synproxy => SYNPROXY,
        Reason::Translate => TRANSLATE,
        Reason::NoRoute => NO_ROUTE,
        Reason::LinkHeader => LINK_HEADER,
        Reason::Unattached => UNATTACHED,
    }
}

const MATCH: &str = "\
A
.Cm block
rule matched last, or first with
.Cm quick .
The usual cause is that no
.Cm pass
rule is meant for the packet, or that the packet is no SYN and its connection is older than the
filter.
If the packet is wanted, write a
.Cm pass
rule behind the rule that is named.
.Nm
.Cm explain
names the criterion by which each other rule does not match.
The counter of
.Fl s Cm info
also counts packets that pass after the rules were evaluated.";

const BAD_OFFSET: &str = "\
No packet has this reason.
.Ox
has the counter, too, and never raises it.";

const FRAGMENT: &str = "\
A fragment cannot be part of a datagram, or the filter cannot reassemble it.
Or a datagram is too long for the link where it leaves, and the filter cannot fragment it again.
The usual causes are that
.Xr skipstepd 8
does not run, that the other fragments of the datagram do not arrive, or that fragments overlap or
have the bit that forbids fragments.
Start skipstepd.
.Cm set reassemble yes no-df
accepts fragments with that bit.
With
.Cm set reassemble no ,
each fragment needs a
.Cm pass
rule.";

const SHORT: &str = "\
A header is incomplete, or a field has a length or port that cannot be.
The usual causes are scans, and hosts or links that damage packets.
Find the sender, and compare with a capture at the sender.
Each IPv6 neighbour advertisement without a state has this reason, too, if a rule blocks it.";

const NORMALIZE: &str = "\
Fields of the packet contradict each other, such as SYN and RST, or the packet is longer than
.Cm max-pkt-size .
The usual causes are scans and faulty software.
Nothing need be done, unless a rule has a
.Cm max-pkt-size
that is too small.";

const MEMORY: &str = "\
A table of the filter is full, the packet reached another limit, or skipstepd cannot delay it.
The usual causes are many connections, a flood, or
.Cm set delay
while skipstepd does not run.
.Fl s Cm memory
shows the limits, and
.Fl s Cm info
the entries in use.
Raise the limit that is reached with
.Cm set limit ,
or shorten timeouts.";

const BAD_TIMESTAMP: &str = "\
The TCP timestamp of a segment does not fit the connection, whose rule has
.Cm reassemble tcp .
The usual cause is a connection that moved to another host behind the same address, or an attack.
Pass such connections by a rule without
.Cm reassemble tcp .";

const CONGESTION: &str = "\
No packet has this reason.
On
.Ox ,
the filter drops packets if the input queues are full.
On Linux, the kernel drops such packets before the filter sees them.";

const IP_OPTION: &str = "\
The packet has IP options or IPv6 extension headers, and its rule does not allow them.
The usual causes are multicast (IGMP, MLD) and scans.
If the packet is wanted, write
.Cm allow-opts
in the rule.";

const PROTO_CKSUM: &str = "\
The header checksum of an inbound IPv4 packet is wrong.
The usual causes are a damaged link and a device that changes headers.
Look for errors of the link and of the device before this host.";

const STATE_MISMATCH: &str = "\
A state has the addresses and ports of the packet, but the packet does not fit the state: its
sequence number, its direction, or the packet that an ICMP error quotes.
The usual causes are that the replies of a connection take another route, that a host reuses ports
early or was restarted, or that packets arrive after the connection was closed.
If the route is asymmetric, pass the connection with
.Cm keep state (sloppy) .
Otherwise nothing need be done: the hosts begin a new connection.";

const STATE_INSERT: &str = "\
The packet needs a state, but another state has the same key.
The usual causes are two translations that give two connections the same addresses and ports, and
a host that reuses ports early.
Use a pool with more addresses, or another range of ports.";

const STATE_LIMIT: &str = "\
The rule of the packet has as many states as
.Cm max
allows, or a state limiter does not allow more.
The usual causes are an attack, and a limit that is too low.
.Fl s Cm rules Fl v
and
.Fl s Cm StateLimiters
show the states in use.";

const SRC_LIMIT: &str = "\
The source of the packet has reached a limit:
.Cm max-src-states , max-src-nodes , max-src-conn ,
that of a source limiter, or
.Cm set limit src-nodes .
The usual causes are an attack, many clients behind one address, and a limit that is too low.
.Fl s Cm Sources
and
.Fl s Cm SourceLimiters
list the sources.";

const SYNPROXY: &str = "\
The packet belongs to a handshake that the filter makes for a server, and does not fit it.
The usual cause is a client that does not complete its handshakes, as in a SYN flood.
Nothing need be done.
The counter of
.Fl s Cm info
also counts the SYNs that the filter answers.";

const TRANSLATE: &str = "\
The translation of a rule has no free port or address left, or
.Cm af-to
cannot convert the packet: joined UDP segments, or a frame with a VLAN tag among its bytes.
Add addresses to the pool, shorten timeouts, or turn off UDP GRO on the interface where the packets
come in.";

const NO_ROUTE: &str = "\
There is no route to the destination, or to the next hop of a rule with
.Cm route-to , reply-to
or
.Cm rtable .
The usual causes are an interface that is down, a routing table without the route, and a pool that
is empty.
.Dq ip route get ADDRESS
shows the kernel's route.";

const LINK_HEADER: &str = "\
The IP packet is behind link headers that the filter does not read: more than three VLAN tags,
LLC/SNAP, or an MPLS label.
The usual causes are a trunk with many tags, and an attack that wants to hide the packet.
Take tags off before this host, or skip the interface with
.Cm set skip
if other hosts filter its packets.";

const UNATTACHED: &str = "\
No program of the filter has judged the packet where it came in or leaves, or the kernel would
unwrap another packet from it behind the last hook of the filter.
The usual causes are an interface that has just appeared, a skipstepd that does not run, and another
program on the hooks of the interface.
Start skipstepd, or run
.Nm
.Fl e
again, which attaches the filter to all interfaces.
.Dq bpftool net show
lists the programs.
.Cm set unattached pass
lets such packets pass.";

const UNDELIVERED: &str = "\
A rule or a state passes the packet, but the filter cannot send it on.
The usual causes are that the packet is longer than the next link allows and must not be fragmented,
that its time to live is over, and that no program listens at the port of a
.Cm divert-to
or
.Cm divert-packet .
The filter tells the sender by an ICMP error or a RST.
Lower the MTU or
.Cm max-mss ,
or start the program.
Only
.Nm
.Cm drops
has this reason, and no counter counts it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_paragraph_here_and_a_row_in_the_documentation() {
        let page = include_str!("../../../../docs/reference/reasons.md");
        for cause in Cause::all() {
            assert!(section().contains(&format!(".It Cm {}\n", cause.name())), "{}", cause.name());
            assert!(page.contains(&format!("\n| `{}` |", cause.name())), "{}", cause.name());
        }
    }

    #[test]
    fn paragraphs_are_mdoc() {
        for cause in Cause::all() {
            for line in paragraph(cause).lines() {
                assert!(!line.is_empty() && !line.starts_with('\''), "{line}");
            }
        }
    }
}
