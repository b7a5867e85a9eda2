//! Pools of addresses: `{ 10.0.0.1 weight 2, 10.0.0.2 } port 80 round-robin sticky-address`
//! (pf-features section 8).

use md5::{Digest, Md5};
use skipstep_ruleset::PoolKind;

use super::{Parse, Parser};
use crate::ast::{Address, Host, Pool, PoolPorts};
use crate::token::{Kind, Place};

/// Digits of a key in hexadecimal, behind `0x`.
const KEY_DIGITS: usize = 32;

impl Parser<'_> {
    /// Addresses, `port` and options.
    pub(super) fn pool(&mut self) -> Parse<Pool> {
        let mut pool = Pool { hosts: self.pool_hosts()?, ..Pool::default() };
        if self.accept("port") {
            pool.ports = Some(self.pool_ports()?);
        }
        self.pool_options(&mut pool)?;
        Ok(pool)
    }

    /// Addresses and options: next hops have no ports.
    pub(super) fn next_hops(&mut self) -> Parse<Pool> {
        let mut pool = Pool { hosts: self.pool_hosts()?, ..Pool::default() };
        self.pool_options(&mut pool)?;
        Ok(pool)
    }

    /// A host, or a list that begins with an address.
    fn pool_hosts(&mut self) -> Parse<Vec<Host>> {
        if !self.at_sign('{') {
            return self.weighted_host();
        }
        let mut first = true;
        let hosts = self.list(|parser| {
            let place = parser.place();
            let hosts = parser.weighted_host()?;
            let plain = hosts.iter().all(|host| matches!(host.address, Address::Net(..)));
            if std::mem::take(&mut first) && !plain {
                let text = "only addresses can be listed for redirection pools ";
                return parser.error_at(text, place);
            }
            Ok(hosts)
        })?;
        Ok(hosts.concat())
    }

    /// A host, but none that only a comparison can use, and its weight.
    fn weighted_host(&mut self) -> Parse<Vec<Host>> {
        if matches!(self.peek().kind, Kind::Keyword("no-route" | "urpf-failed" | "route")) {
            return self.syntax_error();
        }
        let mut hosts = self.host()?;
        let weight = self.weight()?;
        for host in &mut hosts {
            host.weight = weight;
        }
        Ok(hosts)
    }

    /// `weight n`, 0 if it is not there.
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

    /// `80`, `80:90`, `80:*`
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

    fn pool_options(&mut self, pool: &mut Pool) -> Parse<()> {
        loop {
            let place = self.place();
            let Kind::Keyword(word) = self.peek().kind else {
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

    fn set_pool_kind(&mut self, pool: &mut Pool, kind: PoolKind, place: Place) -> Parse<()> {
        if pool.kind.replace(kind).is_some() {
            return self.error_at("pool type cannot be redefined", place);
        }
        Ok(())
    }

    /// The key of `source-hash`: hexadecimal digits, the checksum of a text, or a random one.
    fn hash_key(&mut self) -> Parse<u128> {
        let place = self.place();
        if !matches!(self.peek().kind, Kind::String(_)) {
            let words = [(); 4].map(|()| (self.context.random)());
            return Ok(words.into_iter().fold(0, |key, word| key << 32 | u128::from(word)));
        }
        let text = self.strings()?;
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
