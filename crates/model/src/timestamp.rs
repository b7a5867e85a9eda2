//! `scrub (reassemble tcp)`: memory of each side's TTL and TCP timestamps (RFC 7323), and checks of
//! segments (pf-semantics section 13).
//!
//! Timestamps get a random offset, because they would show how long a host has been up, or how many
//! hosts share an address. A timestamp that does not continue the earlier ones comes from another
//! sender.

use skipstep_ruleset::Family;
use skipstep_views::Peer;
use skipstep_wire::tcp_flag::{RST, SYN};

use crate::packet::Descriptor;
use crate::side::tcp_state::ESTABLISHED;
use crate::world::World;
use crate::{normalize, patch, tcp_option};

/// OpenBSD's flags of a side's timestamps.
pub mod flag {
    /// The side's SYN had a timestamp, so its timestamps are modulated.
    pub const TIMESTAMP: u16 = 0x01;
    /// A timestamp of the side echoed one of the other side, so timestamps are checked.
    pub const PAWS: u16 = 0x10;
    /// The side was silent for too long, so its timestamps are no longer checked.
    pub const PAWS_IDLED: u16 = 0x20;
    /// The side's first data had a timestamp.
    pub const DATA_TS: u16 = 0x40;
    /// The side's first data had no timestamp.
    pub const DATA_NO_TS: u16 = 0x80;
}

/// Maximum ticks a second of a timestamp clock: 1000 (RFC 7323 section 5.4) and 10% more.
const TICKS_A_SECOND: u32 = 1100;

/// Seconds after which the fastest clock wraps around.
const MAX_IDLE: u32 = 24 * 24 * 60 * 60;

/// Seconds after which an echo may look like a future timestamp.
const MAX_CONNECTION: u32 = 12 * 24 * 60 * 60;

/// The timestamps and the TTL of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scrub {
    /// Bits of [`flag`].
    pub flags: u16,
    /// Highest TTL of the side's packets, which all of them get.
    pub ttl: u8,
    /// Number added to the side's timestamps.
    pub offset: u32,
    /// Latest timestamp of the side.
    pub value: u32,
    /// First timestamp of the side.
    pub first: u32,
    /// Latest timestamp that the side echoed.
    pub echo: u32,
    /// Second of the latest timestamp.
    pub last: u32,
}

impl Scrub {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Reads the first packet of a side. Timestamps count only if the side's SYN has one.
    pub(crate) fn from_first_packet(packet: &Descriptor, world: &World) -> Self {
        let mut scrub = Scrub { ttl: ttl(packet), ..Scrub::default() };
        if !packet.tcp().is_some_and(|tcp| tcp.has(SYN)) {
            return scrub;
        }
        let options = packet.tcp_options();
        if let Some(option) = tcp_option::timestamps(options).last() {
            let number =
                |at| u32::from_be_bytes(options[at..at + 4].try_into().unwrap_or_default());
            scrub.flags = flag::TIMESTAMP;
            scrub.offset = world.timestamp;
            scrub.value = number(option.start);
            scrub.first = scrub.value;
            scrub.echo = number(option.start + 4);
            scrub.last = world.now;
        }
        scrub
    }
}

/// Error: a segment has a timestamp that its connection cannot have sent, or lacks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadTimestamp;

/// The sides of a connection as a segment sees them.
pub(crate) struct Sides<'a> {
    pub from: &'a Peer,
    pub to: &'a Peer,
    pub from_scrub: &'a mut Option<Scrub>,
    pub to_scrub: &'a mut Option<Scrub>,
    /// Second of the state's creation.
    pub created_at: u32,
    /// `tcp.tsdiff`: seconds that a segment may arrive later than its successor.
    pub slack: u32,
}

/// Checks the timestamp of a segment that fits otherwise, and writes the new timestamp and TTL.
pub(crate) fn track(packet: &mut Descriptor, sides: Sides, now: u32) -> Result<(), BadTimestamp> {
    let Sides { from, to, from_scrub, to_scrub, created_at, slack } = sides;
    if let Some(scrub) = from_scrub {
        scrub.ttl = scrub.ttl.max(ttl(packet));
        set_ttl(packet, scrub.ttl);
    }
    let stamp = modulate(packet, from_scrub.as_ref(), to_scrub.as_ref())?;

    let idle = |scrub: &Scrub| now.wrapping_sub(scrub.last) > MAX_IDLE;
    let too_old = now.wrapping_sub(created_at) > MAX_CONNECTION;
    for (scrub, over) in [(&mut *from_scrub, too_old), (&mut *to_scrub, false)] {
        if let Some(scrub) = scrub
            && scrub.has(flag::PAWS)
            && (over || idle(scrub))
        {
            scrub.flags = scrub.flags & !flag::PAWS | flag::PAWS_IDLED;
        }
    }

    let Some(tcp) = packet.tcp() else { return Ok(()) };
    let has_data = tcp.payload_len > 0;
    if let (Some(sender), Some(receiver)) = (&from_scrub, &to_scrub)
        && sender.has(flag::PAWS)
        && receiver.has(flag::PAWS)
    {
        let open = from.state >= ESTABLISHED && to.state >= ESTABLISHED;
        match stamp {
            Some(stamp) if open && !stamp.fits(sender, receiver, now, slack) => {
                return Err(BadTimestamp);
            }
            None if !tcp.has(RST) && has_data && sender.has(flag::DATA_TS) => {
                return Err(BadTimestamp);
            }
            _ => {}
        }
    }

    let Some(sender) = from_scrub else { return Ok(()) };
    let known = flag::TIMESTAMP | flag::DATA_TS | flag::DATA_NO_TS;
    if has_data && sender.flags & known == flag::TIMESTAMP {
        sender.flags |= if stamp.is_some() { flag::DATA_TS } else { flag::DATA_NO_TS };
    }
    if let Some(stamp) = stamp
        && sender.flags & (flag::PAWS_IDLED | flag::TIMESTAMP) == flag::TIMESTAMP
    {
        remember(sender, stamp, now);
    }
    Ok(())
}

/// The two numbers of a timestamp option, without offsets.
#[derive(Clone, Copy)]
struct Stamp {
    value: u32,
    echo: u32,
}

impl Stamp {
    /// Returns true if the timestamp continues the earlier ones. It must not be before the other
    /// side's echo, nor faster than a clock can run. Its echo must be a timestamp that the other
    /// side sent.
    fn fits(&self, sender: &Scrub, receiver: &Scrub, now: u32, slack: u32) -> bool {
        let seconds = now.wrapping_sub(sender.last).wrapping_add(slack);
        let latest = sender.value.wrapping_add(seconds.wrapping_mul(TICKS_A_SECOND));
        !before(self.value, receiver.echo)
            && !before(latest, self.value)
            && (self.echo == 0
                || !before(receiver.value, self.echo) && !before(self.echo, receiver.first))
    }
}

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Adds the sender's offset to the timestamp, and subtracts the receiver's from the echo. Fails if
/// there are two timestamps.
fn modulate(
    packet: &mut Descriptor,
    sender: Option<&Scrub>,
    receiver: Option<&Scrub>,
) -> Result<Option<Stamp>, BadTimestamp> {
    let offset = |scrub: Option<&Scrub>| {
        scrub.filter(|scrub| scrub.has(flag::TIMESTAMP)).map(|scrub| scrub.offset)
    };
    let (ours, theirs) = (offset(sender), offset(receiver));
    if ours.is_none() && theirs.is_none() {
        return Ok(None);
    }
    let stamps = tcp_option::timestamps(packet.tcp_options());
    let option = match stamps[..] {
        [] => return Ok(None),
        [ref option] => option.start,
        _ => return Err(BadTimestamp),
    };
    let at = packet.offset + 20 + option;
    let bytes = |at: usize| {
        [packet.bytes[at], packet.bytes[at + 1], packet.bytes[at + 2], packet.bytes[at + 3]]
    };
    let (value, echo) = (bytes(at), bytes(at + 4));
    // OpenBSD leaves a number that it does not modulate in network byte order, and continues with
    // that
    let mut stamp = Stamp { value: u32::from_le_bytes(value), echo: u32::from_le_bytes(echo) };
    let (start, checksum) = (packet.offset, packet.offset + 16);
    if let Some(offset) = ours.filter(|_| value != [0; 4]) {
        stamp.value = u32::from_be_bytes(value);
        patch::long(&mut packet.bytes, checksum, start, at, stamp.value.wrapping_add(offset));
    }
    if let Some(offset) = theirs.filter(|_| echo != [0; 4]) {
        stamp.echo = u32::from_be_bytes(echo).wrapping_sub(offset);
        patch::long(&mut packet.bytes, checksum, start, at + 4, stamp.echo);
    }
    Ok(Some(stamp))
}

/// Updates the sender's timestamps. They are checked from the first one with an echo.
fn remember(sender: &mut Scrub, stamp: Stamp, now: u32) {
    let checked = sender.has(flag::PAWS);
    sender.last = now;
    if !checked || !before(stamp.value, sender.value) {
        sender.value = stamp.value;
    }
    if stamp.echo == 0 {
        return;
    }
    if !checked || !before(stamp.echo, sender.echo) {
        sender.echo = stamp.echo;
    }
    if !checked && (before(stamp.value, sender.first) || sender.first == 0) {
        sender.first = stamp.value;
    }
    sender.flags |= flag::PAWS;
}

fn ttl(packet: &Descriptor) -> u8 {
    packet.bytes[ttl_at(packet.family)]
}

fn set_ttl(packet: &mut Descriptor, ttl: u8) {
    match packet.family {
        Family::Inet => patch::byte(&mut packet.bytes, normalize::IP_CHECKSUM, 0, 8, ttl),
        Family::Inet6 => packet.bytes[ttl_at(Family::Inet6)] = ttl,
    }
}

fn ttl_at(family: Family) -> usize {
    match family {
        Family::Inet => 8,
        Family::Inet6 => 7,
    }
}
