//! `set syncookies`: a SYN creates no state. It is answered with a number that the client must
//! return, and from which the SYN is recreated (pf-semantics section 14; RFC 4987, and
//! <http://cr.yp.to/syncookies.html> for the idea).
//!
//! The number has 24 bits of a keyed hash of the connection, and 8 bits of contents of the SYN:
//!
//! ```text
//!  31                    8 7   5 4   2   1      0
//! +-----------------------+-----+-----+------+------+
//! |         hash          | MSS |scale| SACK | key  |   the low byte xor the high one
//! +-----------------------+-----+-----+------+------+
//! ```

use std::net::IpAddr;

use siphasher::sip::SipHasher24;
use skipstep_ruleset::{Direction, Reason, Syncookies};
use skipstep_views::{LimitCounter, WSCALE_OFFERED};
use skipstep_wire::tcp_flag::{ACK, RST, SYN};

use crate::fate::{Carried, Packet, Verdict};
use crate::firewall::Firewall;
use crate::journal::Journal;
use crate::lookup::Lookup;
use crate::packet::{Descriptor, Tcp};
use crate::reply::{self, Segment};
use crate::side::tcp_state::{CLOSED, ESTABLISHED, PROXY_DST};
use crate::synproxy::{DEFAULT_MSS, offered_mss};
use crate::tcp_option;
use crate::trace::Stage;

/// Seconds that a key is used for new cookies.
const KEY_LIFETIME: u32 = 15;

/// The values of MSS and window scale that a cookie can store; the next lower one is stored.
const MSS: [u16; 8] = [216, 536, 1200, 1360, 1400, 1440, 1452, 1460];
const SCALE: [u8; 8] = [0, 0, 1, 2, 4, 6, 7, 8];

/// The result for a packet that may return a cookie.
pub(crate) enum Redeemed {
    /// The packet has no valid cookie.
    No,
    /// The rules refused the recreated SYN, so they are evaluated for the packet itself.
    Refused,
    /// The firewall has taken the packet, which is not counted.
    Taken(Lookup),
}

impl Firewall {
    /// Answers a SYN with a cookie while syncookies are active. Returns true if it did: then the
    /// SYN goes no further.
    pub(crate) fn send_cookie(&mut self, packet: &Descriptor, journal: &mut Journal) -> bool {
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.opens()) else {
            return false;
        };
        if packet.direction != Direction::In
            || packet.recreated
            || packet.stays_on_bridge
            || !self.cookies_are_sent()
        {
            return false;
        }
        let mss = offered_mss(packet).max(DEFAULT_MSS);
        let scale =
            tcp_option::window_scale(packet.tcp_options()).map_or(0, |s| s | WSCALE_OFFERED);
        let key = self.cookies.current();
        let cookie = largest_below(&MSS, mss) << 5 | largest_below(&SCALE, scale) << 2 | key as u8;
        let hash = hash(packet, tcp, cookie, tcp.seq, self.cookies.keys[key]);
        journal.tracer.record(|| Stage::CookieSent);
        let answer = Segment {
            source: (packet.destination, tcp.destination_port),
            destination: (packet.source, tcp.source_port),
            seq: hash & !0xff | u32::from(cookie) ^ hash >> 24,
            ack: tcp.seq.wrapping_add(1),
            flags: SYN | ACK,
            window: 0,
            mss,
        };
        journal.reply(reply::proxied(answer, packet.rdomain, &self.world));
        self.cookies.in_flight[key] = self.cookies.in_flight[key].wrapping_add(1);
        self.counters.status.limits[LimitCounter::SyncookiesSent as usize] += 1;
        true
    }

    /// Returns true if SYNs are to be answered with cookies. Activates syncookies if too many
    /// states are half-open.
    fn cookies_are_sent(&mut self) -> bool {
        let options = &self.ruleset.options;
        match options.syncookies {
            Syncookies::Never => return false,
            _ if self.cookies.active => return true,
            Syncookies::Always => {}
            Syncookies::Adaptive { .. } => {
                if self.half_open() <= options.syncookie_marks().start {
                    return false;
                }
                self.counters.status.limits[LimitCounter::Synfloods as usize] += 1;
            }
        }
        self.new_cookie_key();
        self.cookies.active = true;
        true
    }

    fn half_open(&self) -> u32 {
        let is_half_open = |state: u8| state > CLOSED && state < ESTABLISHED;
        let tcp =
            self.states.iter().filter(|state| state.protocol() == skipstep_wire::protocol::TCP);
        tcp.filter(|state| is_half_open(state.src.state)).count() as u32
    }

    /// Makes the next key. Cookies of the key that it replaces become invalid.
    fn new_cookie_key(&mut self) {
        self.cookies.keys_made = self.cookies.keys_made.wrapping_add(1);
        let (made, current) = (self.cookies.keys_made, self.cookies.current());
        self.cookies.keys[current] = self.world.cookie_key.unwrap_or_else(|| drawn_key(made));
        self.cookies.in_flight[current] = 0;
        self.cookies.next_key_at = Some(self.world.now.saturating_add(KEY_LIFETIME));
    }

    /// Renews or forgets keys that are due, and ends syncookies when the flood is over. A key that
    /// a test has set stays.
    pub(crate) fn turn_cookie_keys(&mut self) {
        let due = self.cookies.next_key_at.is_some_and(|at| self.world.now >= at);
        if !due || self.world.cookie_key.is_some() {
            return;
        }
        let in_flight = self.cookies.in_flight.iter().map(|count| u64::from(*count)).sum::<u64>();
        let options = &self.ruleset.options;
        let over = match options.syncookies {
            Syncookies::Never => true,
            Syncookies::Always => false,
            Syncookies::Adaptive { .. } => {
                u64::from(self.half_open()) + in_flight < options.syncookie_marks().end.into()
            }
        };
        self.cookies.active &= !over;
        if self.cookies.active || in_flight != 0 {
            self.new_cookie_key();
        } else {
            self.cookies.keys = Default::default();
            self.cookies.next_key_at = None;
        }
    }

    /// Checks a packet without a state for a cookie. Recreates the SYN; if that creates a state,
    /// the client's handshake is complete.
    pub(crate) fn redeem_cookie(
        &mut self,
        input: &Packet,
        packet: &Descriptor,
        journal: &mut Journal,
    ) -> Redeemed {
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.flags & (SYN | ACK | RST) == ACK).cloned()
        else {
            return Redeemed::No;
        };
        let Some(cookie) = self.valid_cookie(packet, &tcp) else {
            return Redeemed::No;
        };
        journal.tracer.record(|| Stage::CookieValid);
        if self.replay_syn(input, packet, &tcp, cookie, journal) == Verdict::Drop {
            return Redeemed::Refused;
        }
        let (source, destination) =
            ((packet.source, tcp.source_port), (packet.destination, tcp.destination_port));
        let key = packet.key(packet.protocol, Direction::In, source, destination);
        let Some(id) = self.search(packet, key, journal) else {
            return Redeemed::Taken(Lookup::None);
        };
        let state = self.states.get_mut(id);
        state.src.seqlo = tcp.seq.wrapping_sub(1);
        state.src.seqhi = tcp.ack.wrapping_sub(1);
        state.dst.seqhi = tcp.ack.wrapping_sub(1);
        state.src.state = PROXY_DST;
        Redeemed::Taken(self.proxy(packet, &tcp, id, journal).unwrap_or(Lookup::None))
    }

    /// Returns the cookie of a segment if it is valid, and if cookies of its key are still
    /// outstanding.
    fn valid_cookie(&mut self, packet: &Descriptor, tcp: &Tcp) -> Option<u8> {
        if packet.direction != Direction::In {
            return None;
        }
        let (seq, ack) = (tcp.seq.wrapping_sub(1), tcp.ack.wrapping_sub(1));
        let cookie = ack as u8 ^ (ack >> 24) as u8;
        let key = usize::from(cookie & 1);
        if self.cookies.in_flight[key] == 0 {
            return None;
        }
        if hash(packet, tcp, cookie, seq, self.cookies.keys[key]) & !0xff != ack & !0xff {
            return None;
        }
        self.cookies.in_flight[key] -= 1;
        self.counters.status.limits[LimitCounter::SyncookiesValid as usize] += 1;
        Some(cookie)
    }

    /// Filters the client's recreated SYN, as if it came now.
    fn replay_syn(
        &mut self,
        input: &Packet,
        packet: &Descriptor,
        tcp: &Tcp,
        cookie: u8,
        journal: &mut Journal,
    ) -> Verdict {
        let bytes = reply::written(
            &Segment {
                source: (packet.source, tcp.source_port),
                destination: (packet.destination, tcp.destination_port),
                seq: tcp.seq.wrapping_sub(1),
                ack: 0,
                flags: SYN,
                // OpenBSD puts the window scale here, which should be an option
                window: SCALE[usize::from(cookie >> 2 & 7)].into(),
                mss: MSS[usize::from(cookie >> 5)],
            },
            packet.ttl,
        );
        let syn = Packet { bytes, carried: Carried::default(), ..input.clone() };
        let Ok(mut descriptor) = self.describe(&syn) else {
            return Verdict::Drop;
        };
        descriptor.recreated = true;
        let reason = std::mem::replace(&mut journal.reason, Reason::Match);
        let sent = std::mem::take(&mut journal.replies);
        let log = std::mem::take(&mut journal.log);
        // Differs from OpenBSD: linux.md, "Cookies and next hops"
        // only judged, because the recreated SYN must not be sent
        let fate = self.judge(&syn, descriptor, journal);
        journal.reason = reason;
        // Differs from OpenBSD: linux.md, "Refused cookies"
        // the sender of a refused SYN gets the answer to its segment instead
        let answers = if fate.verdict == Verdict::Drop { Vec::new() } else { fate.replies };
        journal.replies = [sent, answers].concat();
        journal.log = [log, fate.log].concat();
        fate.verdict
    }
}

/// Returns a keyed hash of the connection; its upper 24 bits go into the number.
fn hash(packet: &Descriptor, tcp: &Tcp, cookie: u8, seq: u32, key: [u8; 16]) -> u32 {
    let mut message = Vec::new();
    for address in [packet.source, packet.destination] {
        match address {
            IpAddr::V4(address) => message.extend(address.octets()),
            IpAddr::V6(address) => message.extend(address.octets()),
        }
    }
    message.extend(tcp.source_port.to_be_bytes());
    message.extend(tcp.destination_port.to_be_bytes());
    message.extend(seq.to_le_bytes());
    message.push(cookie);
    let hash = SipHasher24::new_with_key(&key).hash(&message);
    hash as u32 ^ (hash >> 32) as u32
}

/// Returns a key that depends on its number only, because a model needs no secret.
fn drawn_key(number: u32) -> [u8; 16] {
    let hasher = SipHasher24::new_with_key(&[0; 16]);
    let half = |which: u64| hasher.hash(&(u64::from(number) << 1 | which).to_le_bytes());
    let mut key = [0; 16];
    key[..8].copy_from_slice(&half(0).to_le_bytes());
    key[8..].copy_from_slice(&half(1).to_le_bytes());
    key
}

/// Returns the index of the last entry of an ascending table that is not above `value`, or 0.
fn largest_below<T: PartialOrd>(table: &[T; 8], value: T) -> u8 {
    table.iter().rposition(|entry| *entry <= value).unwrap_or(0) as u8
}
