//! Parses pools of addresses: `{ 10.0.0.1 weight 2, 10.0.0.2 } port 80 round-robin sticky-address`
//! (pf-features section 8).

use md5::{Digest, Md5};
use skipstep_ruleset::PoolKind;

use super::address::unsigned_number;
use super::{Parse, Parser};
use crate::ast::{Address, Host, Pool, PoolPorts};
use crate::token::{Place, TokenKind};

/// Options of pools that are not reserved words.
const OPTIONS: [&str; 3] = ["endpoint-independent", "map-e-portset", "prefer-ipv6-nexthop"];

/// Number of hexadecimal digits of a key, behind `0x`.
const KEY_DIGITS: usize = 32;

impl Parser<'_> {
    /// Parses addresses, `port` and options.
    pub(super) fn pool(&mut self) -> Parse<Pool> {
        let mut pool = Pool { hosts: self.pool_hosts()?, ..Pool::default() };
        if self.accept("port") {
            pool.ports = Some(self.pool_ports()?);
        }
        self.pool_options(&mut pool)?;
        Ok(pool)
    }

    /// Parses addresses and options of next hops, which have no ports.
    pub(super) fn next_hops(&mut self) -> Parse<Pool> {
        let mut pool = Pool { hosts: self.pool_hosts()?, ..Pool::default() };
        self.pool_options(&mut pool)?;
        Ok(pool)
    }

    /// Parses a host, or a list whose first item is an address. In the legacy syntax any host may
    /// come first.
    fn pool_hosts(&mut self) -> Parse<Vec<Host>> {
        if !self.at_sign('{') {
            return self.weighted_host();
        }
        let mut first = true;
        let hosts = self.list(|parser| {
            let place = parser.place();
            let hosts = parser.weighted_host()?;
            let plain = hosts.iter().all(|host| matches!(host.address, Address::Net(..)));
            if std::mem::take(&mut first) && !plain && !parser.legacy {
                let text = "only addresses can be listed for redirection pools ";
                return parser.error_at(text, place);
            }
            Ok(hosts)
        })?;
        Ok(hosts.concat())
    }

    /// Parses a host that is valid in a pool, and its weight.
    pub(super) fn weighted_host(&mut self) -> Parse<Vec<Host>> {
        if matches!(self.peek().kind, TokenKind::Keyword("no-route" | "urpf-failed" | "route")) {
            return self.syntax_error();
        }
        let mut hosts = self.host()?;
        let weight = self.weight()?;
        for host in &mut hosts {
            host.weight = weight;
        }
        Ok(hosts)
    }

    /// Parses an optional `weight n`. Returns 0 if there is none.
    pub(super) fn weight(&mut self) -> Parse<u16> {
        if !self.accept("weight") {
            return Ok(0);
        }
        let place = self.place();
        match u16::try_from(self.number()?) {
            Ok(weight) if weight > 0 => Ok(weight),
            _ => {
                let help = Some("a weight is 1 to 65535".to_string());
                self.error_with_help("weight out of range", place, help)
            }
        }
    }

    /// Parses `80`, `80:90` or `80:*`.
    fn pool_ports(&mut self) -> Parse<PoolPorts> {
        let place = self.place();
        let text = self.word_or_number()?;
        let (low, high) = text.split_once(':').unwrap_or((&text, &text));
        let low = self.port_number(low, place)?;
        if high == "*" {
            return Ok(PoolPorts::From(low));
        }
        match self.port_number(high, place)? {
            0 if low != 0 => Ok(PoolPorts::From(low)),
            high => Ok(PoolPorts::Range(low, high)),
        }
    }

    pub(super) fn pool_options(&mut self, pool: &mut Pool) -> Parse<()> {
        loop {
            let place = self.place();
            if OPTIONS.into_iter().any(|option| self.at_word(option)) {
                self.note_foreign_form(place)?;
            }
            if self.accept_word("endpoint-independent") {
                pool.endpoint_independent = true;
                continue;
            }
            if self.accept_word("prefer-ipv6-nexthop") {
                if std::mem::replace(&mut pool.prefer_ipv6, true) {
                    return self.error_at("prefer-ipv6-nexthop cannot be redefined", place);
                }
                continue;
            }
            if self.accept_word("map-e-portset") {
                let ports = self.map_e()?;
                if pool.map_e.replace(ports).is_some() {
                    return self.error_at("map-e-portset cannot be redefined", place);
                }
                // addresses of an interface have `round-robin`, and pfctl prints that
                if pool.kind.as_ref().is_some_and(|kind| *kind != PoolKind::RoundRobin) {
                    let text = "map-e-portset cannot be used with address pools";
                    return self.error_at(text, place);
                }
                continue;
            }
            let TokenKind::Keyword(word) = self.peek().kind else {
                return Ok(());
            };
            let kind = match word {
                "bitmask" => PoolKind::Bitmask,
                "random" => PoolKind::Random,
                "round-robin" => PoolKind::RoundRobin,
                "least-states" => PoolKind::LeastStates,
                "source-hash" => {
                    self.skip();
                    let kind = PoolKind::SourceHash(self.hash_key()?);
                    self.set_pool_kind(pool, kind, place)?;
                    continue;
                }
                "static-port" => {
                    self.skip();
                    if std::mem::replace(&mut pool.static_port, true) {
                        return self.error_at("static-port cannot be redefined", place);
                    }
                    continue;
                }
                "sticky-address" => {
                    self.skip();
                    if std::mem::replace(&mut pool.sticky, true) {
                        return self.error_at("sticky-address cannot be redefined", place);
                    }
                    continue;
                }
                _ => return Ok(()),
            };
            self.skip();
            self.set_pool_kind(pool, kind, place)?;
        }
    }

    /// Parses `offset/length/id` of FreeBSD's `map-e-portset`.
    fn map_e(&mut self) -> Parse<(u8, u8, u16)> {
        let place = self.place();
        let offset = self.map_e_number()?;
        self.expect_sign('/')?;
        let length = self.map_e_number()?;
        self.expect_sign('/')?;
        let id = self.map_e_number()?;
        let text = match (offset, length, u16::try_from(id)) {
            (0 | 16.., ..) => "MAP-E PSID offset must be 1-15",
            (_, 0, _) => "PSID Length = 0: this means you do not need MAP-E",
            _ if length > 15 || offset + length > 16 => "Invalid MAP-E PSID length",
            (.., Err(_)) => "Invalid MAP-E PSID",
            (.., Ok(id)) => return Ok((offset as u8, length as u8, id)),
        };
        self.error_at(text, place)
    }

    fn map_e_number(&mut self) -> Parse<u64> {
        let place = self.place();
        let text = self.word_or_number()?;
        match unsigned_number(&text) {
            Some(number) => Ok(number.min(u64::from(u32::MAX))),
            None => self.error_at(format!("{text} is not a number"), place),
        }
    }

    fn set_pool_kind(&mut self, pool: &mut Pool, kind: PoolKind, place: Place) -> Parse<()> {
        if pool.kind.replace(kind).is_some() {
            return self.error_at("pool type cannot be redefined", place);
        }
        Ok(())
    }

    /// True if the next word belongs to a key and is no pool option.
    fn at_key_word(&mut self) -> bool {
        matches!(&self.peek().kind, TokenKind::String(word) if !OPTIONS.contains(&word.as_str()))
    }

    /// Parses the key of `source-hash`: hexadecimal digits, or a text whose MD5 sum is the key.
    /// Returns a random key if there is none.
    fn hash_key(&mut self) -> Parse<u128> {
        let place = self.place();
        if !self.at_key_word() {
            let words = [(); 4].map(|()| (self.context.random)());
            return Ok(words.into_iter().fold(0, |key, word| key << 32 | u128::from(word)));
        }
        let mut words = vec![self.string()?];
        while self.at_key_word() {
            words.push(self.string()?);
        }
        let text = words.join(" ");
        let Some(digits) = text.strip_prefix("0x") else {
            let digest: [u8; 16] = Md5::digest(&text).into();
            return Ok(u128::from_be_bytes(digest));
        };
        if digits.len() != KEY_DIGITS {
            return self.error_at("hex key must be 128 bits (32 hex digits) long", place);
        }
        u128::from_str_radix(digits, 16).or_else(|_| self.error_at("invalid hex key", place))
    }
}
