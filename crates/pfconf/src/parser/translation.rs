//! Parses the options that translate, route and divert packets: `nat-to`, `rdr-to`, `binat-to`,
//! `af-to`, `route-to`, `reply-to`, `dup-to` and the `divert` options (pf-features sections 6, 8
//! and 9).

use std::net::IpAddr;

use skipstep_ruleset::RouteKind;

use super::{Parse, Parser};
use crate::ast::{Address, Divert, Host, Pool, Translation};
use crate::diagnostics::Severity;
use crate::resolve;
use crate::token::{Place, TokenKind};

impl Parser<'_> {
    /// Parses the option that begins with `word`. Returns false if it is none of these.
    pub(super) fn translation_option(
        &mut self,
        word: &'static str,
        translation: &mut Translation,
    ) -> Parse<bool> {
        match word {
            "nat-to" | "binat-to" => self.nat_to(word == "binat-to", translation)?,
            "rdr-to" => self.rdr_to(translation)?,
            "af-to" => self.af_to(translation)?,
            "route-to" => self.route(RouteKind::RouteTo, translation)?,
            "reply-to" => self.route(RouteKind::ReplyTo, translation)?,
            "dup-to" => self.route(RouteKind::DupTo, translation)?,
            "divert-to" => self.divert(Self::divert_to, translation)?,
            "divert-reply" => self.divert(|_| Ok(Divert::Reply), translation)?,
            "divert-packet" => self.divert(Self::divert_packet, translation)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn nat_to(&mut self, binat: bool, translation: &mut Translation) -> Parse<()> {
        let place = self.place();
        self.skip();
        let mut pool = self.pool()?;
        if translation.nat.is_some() {
            return self.error_at("cannot respecify nat-to/binat-to", place);
        }
        pool.static_port |= binat;
        translation.nat = Some(pool);
        translation.binat = binat;
        Ok(())
    }

    fn rdr_to(&mut self, translation: &mut Translation) -> Parse<()> {
        let place = self.place();
        self.skip();
        let pool = self.pool()?;
        if translation.rdr.replace(pool).is_some() {
            return self.error_at("cannot respecify rdr-to", place);
        }
        Ok(())
    }

    /// Parses `af-to inet from pool [to pool]`.
    fn af_to(&mut self, translation: &mut Translation) -> Parse<()> {
        let place = self.place();
        self.skip();
        let family = self.family();
        self.expect("from")?;
        let source = self.pool()?;
        let destination = if self.accept("to") { Some(self.pool()?) } else { None };
        if translation.nat.is_some() {
            return self.error_at("cannot respecify af-to", place);
        }
        let Some(family) = family else {
            let text = match destination {
                None => "no target address family specified",
                Some(_) => "no address family specified",
            };
            let help = Some("write `af-to inet` or `af-to inet6`".to_string());
            return self.error_with_help(text, place, help);
        };
        let first = |hosts: &[Host]| hosts.first().and_then(Host::family);
        let foreign = |hosts: &[Host]| first(hosts).is_some_and(|known| known != family);
        if let Some(destination) = &destination
            && (foreign(&source.hosts) || foreign(&destination.hosts))
        {
            let text = "af-to addresses must be in the target address family";
            return self.error_at(text, place);
        }
        translation.af_to = Some(family);
        translation.nat = Some(source);
        translation.rdr = destination;
        Ok(())
    }

    fn route(&mut self, kind: RouteKind, translation: &mut Translation) -> Parse<()> {
        let place = self.place();
        self.skip();
        let pool = self.next_hops()?;
        self.set_route(kind, pool, place, translation)
    }

    pub(super) fn set_route(
        &mut self,
        kind: RouteKind,
        pool: Pool,
        place: Place,
        translation: &mut Translation,
    ) -> Parse<()> {
        if translation.route.replace((kind, pool)).is_some() {
            return self.error_at("cannot respecify route-to/reply-to/dup-to", place);
        }
        Ok(())
    }

    /// Parses a divert option, whose operands `operands` parses. A rule may have one.
    fn divert(
        &mut self,
        operands: impl FnOnce(&mut Self) -> Parse<Divert>,
        translation: &mut Translation,
    ) -> Parse<()> {
        let place = self.place();
        self.skip();
        let divert = operands(self)?;
        if translation.divert.replace(divert).is_some() {
            return self.error_at("more than one divert option", place);
        }
        Ok(())
    }

    /// Parses `host port n`. FreeBSD's syntax has only the number or service name of a divert
    /// socket.
    fn divert_to(&mut self) -> Parse<Divert> {
        let place = self.place();
        if matches!(self.peek().kind, TokenKind::Number(_)) {
            self.note_foreign_form(place)?;
            return self.divert_port().map(Divert::Packet);
        }
        let text = self.string()?;
        if let Some(port) = self.context.names.service(&text)
            && !self.at_keyword("port")
        {
            self.note_foreign_form(place)?;
            return Ok(Divert::Packet(port));
        }
        self.expect("port")?;
        let addresses = self.divert_addresses(&text, place)?;
        Ok(Divert::To(addresses, self.divert_port()?))
    }

    fn divert_addresses(&mut self, text: &str, place: Place) -> Parse<Vec<IpAddr>> {
        match resolve::host(text, self.context) {
            Ok(hosts) => Ok(hosts.iter().filter_map(address).collect()),
            Err(message) => {
                self.report_bare(Severity::Error, &message, place);
                self.error_at(format!("could not parse divert address: {text}"), place)
            }
        }
    }

    fn divert_packet(&mut self) -> Parse<Divert> {
        self.expect("port")?;
        self.divert_port().map(Divert::Packet)
    }

    fn divert_port(&mut self) -> Parse<u16> {
        let place = self.place();
        let text = self.word_or_number()?;
        if text.contains(':') {
            return self.error_at(format!("port is invalid: {text}"), place);
        }
        match self.port_number(&text, place)? {
            0 => self.error_at("invalid divert port: 0", place),
            port => Ok(port),
        }
    }
}

fn address(host: &Host) -> Option<IpAddr> {
    match host.address {
        Address::Net(address, _) => Some(address),
        _ => None,
    }
}
