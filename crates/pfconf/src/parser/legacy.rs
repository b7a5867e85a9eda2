//! Parses the legacy translation statements of FreeBSD, and of OpenBSD before 4.7 (pf-features
//! section 12).

use std::net::IpAddr;

use skipstep_ruleset::{Action, LegacyKind, RouteKind};

use super::{Parse, Parser, Reported};
use crate::ast::{
    FilterOptions, Hop, Host, LegacyStatement, Pool, RuleStatement, StatementKind, Translation,
};
use crate::token::{Place, TokenKind};

impl Parser<'_> {
    /// Parses the legacy statement that begins with `word`, which has been read.
    pub(super) fn legacy_statement(&mut self, word: &str, place: Place) -> Parse<StatementKind> {
        match word {
            "nat" => self.legacy_translation(LegacyKind::Nat, false),
            "rdr" => self.legacy_translation(LegacyKind::Rdr, false),
            "binat" => self.legacy_translation(LegacyKind::Binat, false),
            "nat-anchor" => self.translation_anchor(LegacyKind::Nat),
            "rdr-anchor" => self.translation_anchor(LegacyKind::Rdr),
            "binat-anchor" => self.translation_anchor(LegacyKind::Binat),
            _ if self.is_unsupported(word, place) => Err(Reported),
            _ => self.unknown_statement(word, place),
        }
    }

    /// Parses `no nat`, `no rdr`, `no binat` and `no scrub`.
    pub(super) fn legacy_exception(&mut self) -> Parse<StatementKind> {
        self.skip();
        if self.at_keyword("scrub") {
            return self.legacy_scrub(true);
        }
        let kinds =
            [("nat", LegacyKind::Nat), ("rdr", LegacyKind::Rdr), ("binat", LegacyKind::Binat)];
        match kinds.into_iter().find(|(word, _)| self.accept_word(word)) {
            Some((_, kind)) => self.legacy_translation(kind, true),
            None => self.syntax_error(),
        }
    }

    /// Parses `[pass] [log] [on ...] [af] [proto ...] [hosts] [tag ...] [-> pool]`.
    fn legacy_translation(&mut self, kind: LegacyKind, no: bool) -> Parse<StatementKind> {
        let place = self.place();
        self.note_foreign_form(place)?;
        let pass = self.accept("pass");
        let log = self.log()?;
        if no && pass {
            return self.error_at("\"pass\" not valid with \"no\"", place);
        }
        let rule = RuleStatement { log, ..self.legacy_head()? };
        let place = self.place();
        let pool = if self.accept_arrow() { Some(self.pool()?) } else { None };
        let wrong = match (kind, no, pool.is_some()) {
            (LegacyKind::Binat, true, true) => Some("'no binat' rule does not need '->'"),
            (LegacyKind::Binat, false, false) => Some("'binat' rule requires '-> address'"),
            (_, true, true) => Some("translation rule with 'no' does not need '->'"),
            (_, false, false) => Some("translation rule requires '-> address'"),
            _ if pool.iter().flat_map(|pool| &pool.hosts).any(|host| host.weight != 0) => {
                Some("'weight' is for the pools of filter rules")
            }
            _ => None,
        };
        if let Some(text) = wrong {
            return self.error_at(text, place);
        }
        let statement = LegacyStatement { kind, no, pass, pool, ..LegacyStatement::new(rule) };
        Ok(StatementKind::Legacy(Box::new(statement)))
    }

    /// Parses `nat-anchor "name" [on ...] [af] [proto ...] [hosts]`.
    fn translation_anchor(&mut self, kind: LegacyKind) -> Parse<StatementKind> {
        let place = self.place();
        self.note_foreign_form(place)?;
        let anchor = Some(self.strings()?);
        let rule = self.legacy_head()?;
        let statement = LegacyStatement { kind, anchor, ..LegacyStatement::new(rule) };
        Ok(StatementKind::Legacy(Box::new(statement)))
    }

    /// Parses the criteria of a legacy rule.
    fn legacy_head(&mut self) -> Parse<RuleStatement> {
        let mut rule = self.head(Action::Match, None)?;
        while self.legacy_option(&mut rule.options)? {}
        Ok(rule)
    }

    /// Parses an optional `tag`, `tagged` or `rtable`. Returns false if there is none.
    pub(super) fn legacy_option(&mut self, options: &mut FilterOptions) -> Parse<bool> {
        match self.peek().kind {
            TokenKind::Keyword(word @ ("tag" | "tagged" | "rtable")) => {
                self.filter_option(word, options)
            }
            TokenKind::Sign('!') => {
                self.skip();
                self.negatable_option(true, options)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn accept_arrow(&mut self) -> bool {
        let found = self.peek().kind == TokenKind::Arrow;
        if found {
            self.skip();
        }
        found
    }

    /// Parses `route-to (em0 10.0.0.1)` and similar options in front of the family, where the
    /// legacy syntax has them. A next hop without interface is an option of the present syntax, and
    /// no criterion of the head may follow it. `fastroute` in this place has no effect.
    pub(super) fn early_route(&mut self, translation: &mut Translation) -> Parse<()> {
        if self.at_word("fastroute") {
            let place = self.place();
            self.skip();
            return self.note_foreign_form(place);
        }
        let kind = match self.peek().kind {
            TokenKind::Keyword("route-to") => RouteKind::RouteTo,
            TokenKind::Keyword("reply-to") => RouteKind::ReplyTo,
            TokenKind::Keyword("dup-to") => RouteKind::DupTo,
            _ => return Ok(()),
        };
        let place = self.place();
        self.skip();
        let hops_place = self.place();
        let hops = self.list(Self::early_hop)?;
        let mut pool = Pool::default();
        self.pool_options(&mut pool)?;
        let through = hops.iter().any(|hop| matches!(hop, EarlyHop::Through(_)));
        let legacy = match self.peek().kind {
            TokenKind::Keyword("inet" | "inet6" | "proto" | "from" | "to" | "all") => {
                hops.iter().all(EarlyHop::is_legacy)
            }
            _ => through,
        };
        if legacy {
            self.note_foreign_form(hops_place)?;
        }
        for hop in hops {
            match hop {
                EarlyHop::Name(name, ..) if legacy && is_interface(&name) => {
                    let interface = self.interface_called(name);
                    pool.through.push(Hop { interface, hosts: Vec::new() });
                }
                EarlyHop::Through(hop) => pool.through.push(hop),
                EarlyHop::Name(name, place, weight) => {
                    let hosts = self.resolve(&name, place)?;
                    pool.hosts.extend(hosts.into_iter().map(|host| Host { weight, ..host }));
                }
                EarlyHop::Hosts(hosts) => pool.hosts.extend(hosts),
            }
        }
        if !pool.through.is_empty() && !pool.hosts.is_empty() {
            let help = "write an interface for each next hop, `{ (em0 10.0.0.1), (em1 10.0.1.1) \
                        }`, or for none";
            return self.syntax_error_at(hops_place, |_| Some(help.to_string()));
        }
        self.set_route(kind, pool, place, translation)
    }

    /// Parses `(em0 10.0.0.1)`, `em0`, or a host as in other pools.
    fn early_hop(&mut self) -> Parse<EarlyHop> {
        let place = self.place();
        match self.peek().kind.clone() {
            TokenKind::Sign('(') => {
                self.skip();
                let place = self.place();
                let text = self.string()?;
                if self.at_sign(')') {
                    let host = Host::new(self.dynamic_address(&text, place)?);
                    let weight = self.weight()?;
                    return Ok(EarlyHop::Hosts(vec![Host { weight, ..host }]));
                }
                let hop = Hop { interface: self.interface_called(text), hosts: self.host()? };
                self.expect_sign(')')?;
                Ok(EarlyHop::Through(hop))
            }
            TokenKind::String(name) => {
                self.skip();
                if self.at_sign('/') || self.at_sign('-') {
                    return self.named_host(&name, place).map(EarlyHop::Hosts);
                }
                Ok(EarlyHop::Name(name, place, self.weight()?))
            }
            _ => self.weighted_host().map(EarlyHop::Hosts),
        }
    }
}

/// A next hop in front of the family, in legacy or present syntax.
enum EarlyHop {
    Through(Hop),
    /// Name, place and weight.
    Name(String, Place, u16),
    Hosts(Vec<Host>),
}

impl EarlyHop {
    /// True if the hop is valid in the legacy syntax, where a word is an interface.
    fn is_legacy(&self) -> bool {
        match self {
            EarlyHop::Through(_) => true,
            EarlyHop::Name(name, ..) => is_interface(name),
            EarlyHop::Hosts(_) => false,
        }
    }
}

/// True if a word in a pool of next hops may be an interface.
fn is_interface(word: &str) -> bool {
    word.parse::<IpAddr>().is_err()
}
