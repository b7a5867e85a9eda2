//! Conversion of ICMP messages to ICMPv6 and back (pf-semantics section 11, RFC 7915 sections 4.2
//! and 5.2, as far as PF follows it).

/// Bytes by which an IPv6 header is longer than an IPv4 header.
const HEADER_DIFFERENCE: u32 = 20;

/// Error: the other family has no such message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untranslatable;

/// Converts the first 8 bytes of an ICMPv6 message to ICMP. The caller corrects the checksum.
pub(crate) fn to_inet(header: [u8; 8]) -> Result<[u8; 8], Untranslatable> {
    let [kind, code, _, _, rest @ ..] = header;
    let word = u32::from_be_bytes(rest);
    let (kind, code, word) = match (kind, code) {
        (128, _) => (8, code, word),
        (129, _) => (0, code, word),
        // no route, beyond the scope, no such address
        (1, 0 | 2 | 3) => (3, 1, word),
        (1, 1) => (3, 10, word), // administratively prohibited
        (1, 4) => (3, 3, word),  // port
        (2, _) => (3, 4, word.wrapping_sub(HEADER_DIFFERENCE)),
        (3, _) => (11, code, word),
        (4, 0) => (12, 0, u32::from(pointer_to_inet(word)?) << 24),
        (4, 1) => (3, 2, word), // next header
        _ => return Err(Untranslatable),
    };
    Ok(with(header, kind, code, word))
}

/// Converts the first 8 bytes of an ICMP message to ICMPv6. The caller corrects the checksum.
pub(crate) fn to_inet6(header: [u8; 8]) -> Result<[u8; 8], Untranslatable> {
    let [kind, code, _, _, rest @ ..] = header;
    let word = u32::from_be_bytes(rest);
    let (kind, code, word) = match (kind, code) {
        (8, _) => (128, code, word),
        (0, _) => (129, code, word),
        // net, host; both unknown; isolated; net and host for the type of service
        (3, 0 | 1 | 6 | 7 | 8 | 11 | 12) => (1, 0, word),
        (3, 3) => (1, 4, word),                // port
        (3, 9 | 10 | 13 | 15) => (1, 1, word), // prohibited
        (3, 2) => (4, 1, 6),                   // protocol: the next header field is wrong
        (3, 4) => {
            let mtu = (word as u16).wrapping_add(HEADER_DIFFERENCE as u16);
            (2, 0, word & 0xffff_0000 | u32::from(mtu))
        }
        (11, _) => (3, code, word),
        (12, 0 | 2) => (4, 0, pointer_to_inet6((word >> 24) as u8)?.into()),
        _ => return Err(Untranslatable),
    };
    Ok(with(header, kind, code, word))
}

fn with(header: [u8; 8], kind: u8, code: u8, word: u32) -> [u8; 8] {
    let [a, b, c, d] = word.to_be_bytes();
    [kind, code, header[2], header[3], a, b, c, d]
}

/// Returns the position in an IPv4 header of the field at `pointer` of an IPv6 header.
fn pointer_to_inet(pointer: u32) -> Result<u8, Untranslatable> {
    match pointer {
        0 => Ok(0),
        1 => Ok(1),
        4 | 5 => Ok(2),
        6 => Ok(9),
        7 => Ok(8),
        8..24 => Ok(12),
        24..40 => Ok(16),
        _ => Err(Untranslatable),
    }
}

fn pointer_to_inet6(pointer: u8) -> Result<u8, Untranslatable> {
    match pointer {
        0 => Ok(0),
        1 => Ok(1),
        2 | 3 => Ok(4),
        8 => Ok(7),
        9 => Ok(6),
        12..16 => Ok(8),
        16..20 => Ok(24),
        _ => Err(Untranslatable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_convert_both_ways() {
        for (v6, v4) in [
            ([128, 0, 1, 2, 3, 4, 5, 6], [8, 0, 1, 2, 3, 4, 5, 6]),
            ([129, 0, 1, 2, 3, 4, 5, 6], [0, 0, 1, 2, 3, 4, 5, 6]),
            ([1, 1, 0, 0, 0, 0, 0, 0], [3, 10, 0, 0, 0, 0, 0, 0]),
            ([1, 4, 0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0, 0, 0]),
            ([2, 0, 0, 0, 0, 0, 5, 0], [3, 4, 0, 0, 0, 0, 4, 236]),
            ([3, 1, 0, 0, 0, 0, 0, 0], [11, 1, 0, 0, 0, 0, 0, 0]),
            ([4, 0, 0, 0, 0, 0, 0, 7], [12, 0, 0, 0, 8, 0, 0, 0]),
            ([4, 0, 0, 0, 0, 0, 0, 24], [12, 0, 0, 0, 16, 0, 0, 0]),
        ] {
            assert_eq!(to_inet(v6), Ok(v4));
            assert_eq!(to_inet6(v4), Ok(v6));
        }
    }

    #[test]
    fn messages_without_equivalent_are_refused() {
        for v6 in [[133, 0], [135, 0], [1, 5], [4, 2], [100, 0]] {
            assert_eq!(to_inet([v6[0], v6[1], 0, 0, 0, 0, 0, 0]), Err(Untranslatable), "{v6:?}");
        }
        assert_eq!(to_inet([4, 0, 0, 0, 0, 0, 0, 40]), Err(Untranslatable), "behind the header");
        for v4 in [[13, 0], [5, 0], [3, 5], [3, 14], [4, 0], [12, 1]] {
            assert_eq!(to_inet6([v4[0], v4[1], 0, 0, 0, 0, 0, 0]), Err(Untranslatable), "{v4:?}");
        }
        assert_eq!(to_inet6([12, 0, 0, 0, 10, 0, 0, 0]), Err(Untranslatable), "checksum");
    }

    #[test]
    fn an_unknown_protocol_becomes_a_wrong_next_header() {
        assert_eq!(to_inet6([3, 2, 0, 0, 0, 0, 0, 0]), Ok([4, 1, 0, 0, 0, 0, 0, 6]));
        assert_eq!(to_inet([4, 1, 0, 0, 0, 0, 0, 6]), Ok([3, 2, 0, 0, 0, 0, 0, 6]));
    }
}
