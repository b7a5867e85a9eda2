//! Parses ICMP types and codes, by number or name (pf-features sections 3 and 5).

use skipstep_ruleset::Family;
use skipstep_ruleset::rule::IcmpMatch;

use super::rule::{PORT_UNREACHABLE, PORT_UNREACHABLE6, did_you_mean};
use super::{Parse, Parser};
use crate::packet_names as names;
use crate::token::TokenKind;

/// Messages for a wrong code, which depend on whether it is a number or a name.
struct Wording {
    number: &'static str,
    name: &'static str,
}

impl Parser<'_> {
    /// Parses `type [code code]`. Returns the IP protocol number, too.
    pub(super) fn icmp(&mut self, family: Family) -> Parse<(u8, IcmpMatch)> {
        let (protocol, wording) = match family {
            Family::Inet => {
                (names::ICMP, Wording { number: "illegal icmp-code", name: "unknown icmp-code" })
            }
            Family::Inet6 => {
                (names::ICMP6, Wording { number: "illegal icmp-code", name: "unknown icmp6-code" })
            }
        };
        let kind = self.icmp_type(family)?;
        let code =
            if self.accept("code") { Some(self.icmp_code(kind, family, wording)?) } else { None };
        Ok((protocol, IcmpMatch { kind, code }))
    }

    fn icmp_type(&mut self, family: Family) -> Parse<u8> {
        let keyword = if family == Family::Inet { "icmp-type" } else { "icmp6-type" };
        let place = self.place();
        if let TokenKind::Number(number) = self.peek().kind {
            self.skip();
            return u8::try_from(number)
                .or_else(|_| self.error_at(format!("illegal {keyword} {number}"), place));
        }
        // a reserved word, and the name that OpenBSD's pfctl prints
        let skip = family == Family::Inet && self.accept("skip");
        let name = if skip { "skip".to_owned() } else { self.string()? };
        match names::type_by_name(&name, family) {
            Some(kind) => Ok(kind),
            None => {
                let help = did_you_mean(&name, names::type_names(family));
                self.error_with_help(format!("unknown {keyword} {name}"), place, help)
            }
        }
    }

    /// Parses a code of the ICMP error `unreachable` for `return-icmp`. Returns type and code.
    pub(super) fn return_code(&mut self, family: Family) -> Parse<(u8, u8)> {
        let (kind, _) = match family {
            Family::Inet => PORT_UNREACHABLE,
            Family::Inet6 => PORT_UNREACHABLE6,
        };
        let wording = Wording { number: "invalid icmp code", name: "unknown icmp code" };
        Ok((kind, self.icmp_code(kind, family, wording)?))
    }

    fn icmp_code(&mut self, kind: u8, family: Family, wording: Wording) -> Parse<u8> {
        let place = self.place();
        if let TokenKind::Number(number) = self.peek().kind {
            self.skip();
            return u8::try_from(number)
                .or_else(|_| self.error_at(format!("{} {number}", wording.number), place));
        }
        let name = self.string()?;
        match names::code_by_name(&name, kind, family) {
            Some(code) => Ok(code),
            None => {
                let help = did_you_mean(&name, names::code_names(kind, family));
                self.error_with_help(format!("{} {name}", wording.name), place, help)
            }
        }
    }
}
