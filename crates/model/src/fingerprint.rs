//! Recognition of the system that sent a SYN by the SYN's features (`os`, pf-semantics section 5).

use skipstep_ruleset::fingerprint::{Measure, Signature, Window, option_code};
use skipstep_ruleset::{Family, Ruleset};

use crate::packet::{Descriptor, Tcp};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMP: u8 = 8;

/// Maximum number of hops between the sender and this host.
const HOPS: u8 = 40;
/// The MSS in bytes that devices on the way often write into SYNs without changing the window.
const USUAL_MSS: u16 = 1460;
/// Bytes of IPv4 and TCP headers, which also count for IPv6.
const HEADERS: u16 = 40;
/// Don't fragment, in the first byte of the fragment field.
const DF: u8 = 0x40;

/// The features of a SYN.
struct Syn {
    window: u16,
    ttl: u8,
    df: bool,
    size: u16,
    options: u64,
    option_count: u8,
    zero_timestamp: bool,
    mss: u16,
    scale: u8,
}

/// Returns true if the packet comes from the system that rules call `name`.
pub(crate) fn is_from(ruleset: &Ruleset, name: &str, packet: &Descriptor) -> bool {
    let found = Syn::from_packet(packet)
        .and_then(|syn| ruleset.fingerprints.iter().find(|known| syn.fits(&known.signature)));
    ruleset.systems.get(name).is_some_and(|wanted| wanted.admits(found))
}

impl Syn {
    /// Reads the features of a SYN. Returns `None` for other packets, and for options that no
    /// fingerprint has. A SYN that was recreated from a syncookie is ours, so it also gives `None`.
    fn from_packet(packet: &Descriptor) -> Option<Syn> {
        let tcp = packet.tcp().filter(|tcp| Tcp::opens(tcp) && !packet.recreated)?;
        let mut syn = Syn {
            window: tcp.window,
            ttl: packet.ttl,
            df: packet.family == Family::Inet6 || packet.bytes[6] & DF != 0,
            size: packet.total_len as u16,
            options: 0,
            option_count: 0,
            zero_timestamp: false,
            mss: 0,
            scale: 0,
        };
        let mut options = packet.tcp_options();
        while let Some((kind, rest)) = options.split_first().filter(|(kind, _)| **kind != END) {
            let length = if *kind == NOP { 1 } else { usize::from(*rest.first()?) };
            let value = options.get(..length).filter(|_| *kind == NOP || length >= 2)?;
            syn.option(*kind, value)?;
            options = &options[length..];
        }
        Some(syn)
    }

    fn option(&mut self, kind: u8, option: &[u8]) -> Option<()> {
        let code = match kind {
            NOP => option_code::NOP,
            MSS => {
                // PF swaps the bytes of its stored MSS even if the option has no value
                self.mss = match option {
                    [_, _, high, low, ..] => u16::from_be_bytes([*high, *low]),
                    _ => self.mss.swap_bytes(),
                };
                option_code::MSS
            }
            WINDOW_SCALE => {
                self.scale = option.get(2).copied().unwrap_or(self.scale);
                option_code::WINDOW_SCALE
            }
            SACK_PERMITTED => option_code::SACK,
            TIMESTAMP => {
                self.zero_timestamp |= option.len() >= 10 && option[2..6] == [0; 4];
                option_code::TIMESTAMP
            }
            _ => return None,
        };
        self.options = self.options << option_code::BITS | code;
        self.option_count += 1;
        Some(())
    }

    fn fits(&self, known: &Signature) -> bool {
        known.options == self.options
            && known.option_count == self.option_count
            && known.ttl >= self.ttl
            && known.ttl - self.ttl <= HOPS
            && (known.df, known.zero_timestamp) == (self.df, self.zero_timestamp)
            && measures(known.size, self.size)
            && measures(known.mss, self.mss)
            && measures(known.scale, self.scale.into())
            && match known.window {
                Window::Measure(measure) => measures(measure, self.window),
                Window::Segments(count) => self.has_units(count, 0),
                Window::Packets(count) => self.has_units(count, HEADERS),
            }
    }

    /// Returns true if the window is `count` times MSS plus `headers`, for the SYN's MSS or the
    /// usual one.
    fn has_units(&self, count: u16, headers: u16) -> bool {
        let is_multiple = |mss: u16| {
            let unit = u32::from(mss) + u32::from(headers);
            u32::from(self.window) == unit * u32::from(count)
        };
        self.mss != 0 && (is_multiple(self.mss) || is_multiple(USUAL_MSS))
    }
}

fn measures(wanted: Measure, number: u16) -> bool {
    match wanted {
        Measure::Any => true,
        Measure::Exactly(wanted) => number == wanted,
        Measure::MultipleOf(unit) => number.is_multiple_of(unit),
    }
}
