//! Parses `pass`, `block`, `match` and `antispoof`.

use skipstep_ruleset::rule::Log;
use skipstep_ruleset::{Action, BlockReturn, Direction, Family};

use super::{Parse, Parser};
use crate::ast::{Antispoof, FilterOptions, RuleStatement, StatementKind, Translation};
use crate::context::Dialect;
use crate::token::TokenKind;

/// Type and code of the ICMP error port unreachable.
pub const PORT_UNREACHABLE: (u8, u8) = (3, 3);
/// Type and code of the ICMPv6 error port unreachable.
pub const PORT_UNREACHABLE6: (u8, u8) = (1, 4);

impl Parser<'_> {
    /// Parses `action [in|out] [log] [quick] [on ...] [af] [proto ...] [hosts] [options]`.
    pub(super) fn rule(&mut self) -> Parse<StatementKind> {
        let (action, block_return) = self.action()?;
        let direction = self.direction();
        let (log, quick) = self.log_quick()?;
        let mut translation = Translation::NONE;
        let head = self.head(action, Some(&mut translation))?;
        let options = self.filter_options(translation)?;
        Ok(StatementKind::Rule(Box::new(RuleStatement {
            block_return,
            direction,
            log,
            quick,
            options,
            ..head
        })))
    }

    /// Parses `[on ...] [af] [proto ...] [hosts]`, which all rules have, including legacy rules and
    /// anchors. With `early_route`, a route may precede the family, as in the legacy syntax.
    pub(super) fn head(
        &mut self,
        action: Action,
        early_route: Option<&mut Translation>,
    ) -> Parse<RuleStatement> {
        let interfaces = self.interfaces()?;
        if let Some(translation) = early_route {
            self.early_route(translation)?;
        }
        let family = self.family();
        let protocols = self.protocols()?;
        let (source, systems, destination) = self.ends()?;
        Ok(RuleStatement {
            action,
            block_return: None,
            direction: None,
            log: None,
            quick: false,
            interfaces,
            family,
            protocols,
            source,
            destination,
            systems,
            options: FilterOptions::default(),
        })
    }

    fn action(&mut self) -> Parse<(Action, Option<BlockReturn>)> {
        if self.accept("pass") {
            return Ok((Action::Pass, None));
        }
        if self.accept("match") {
            return Ok((Action::Match, None));
        }
        self.expect("block")?;
        Ok((Action::Block, self.block_return()?))
    }

    fn block_return(&mut self) -> Parse<Option<BlockReturn>> {
        let block_return = if self.accept("drop") {
            BlockReturn::Drop
        } else if self.accept("return") {
            BlockReturn::Return
        } else if self.accept("return-rst") {
            let ttl = self.in_parentheses(Self::return_ttl)?.unwrap_or(0);
            BlockReturn::Rst { ttl }
        } else if self.accept("return-icmp") {
            let codes = self.in_parentheses(Self::return_codes)?;
            let (inet, inet6) = codes.unwrap_or((PORT_UNREACHABLE, PORT_UNREACHABLE6));
            BlockReturn::Icmp { inet, inet6 }
        } else if self.accept("return-icmp6") {
            let code = self.in_parentheses(|parser| parser.return_code(Family::Inet6))?;
            let inet6 = code.unwrap_or(PORT_UNREACHABLE6);
            BlockReturn::Icmp { inet: PORT_UNREACHABLE, inet6 }
        } else {
            return Ok(None);
        };
        Ok(Some(block_return))
    }

    /// Parses optional parentheses with their contents.
    fn in_parentheses<T>(
        &mut self,
        contents: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<Option<T>> {
        if !self.accept_sign('(') {
            return Ok(None);
        }
        let contents = contents(self)?;
        self.expect_sign(')')?;
        Ok(Some(contents))
    }

    /// Parses a code for IPv4 and an optional one for IPv6; returns them with their types. Without
    /// the second, pf sends ICMP's numbers in ICMPv6.
    fn return_codes(&mut self) -> Parse<((u8, u8), (u8, u8))> {
        let inet = self.return_code(Family::Inet)?;
        if self.at_sign(')') {
            return Ok((inet, PORT_UNREACHABLE));
        }
        self.accept_sign(',');
        Ok((inet, self.return_code(Family::Inet6)?))
    }

    fn return_ttl(&mut self) -> Parse<u8> {
        self.expect("ttl")?;
        let place = self.place();
        let ttl = self.number()?;
        u8::try_from(ttl).or_else(|_| self.error_at(format!("illegal ttl value {ttl}"), place))
    }

    pub(super) fn direction(&mut self) -> Option<Direction> {
        if self.accept("in") {
            Some(Direction::In)
        } else if self.accept("out") {
            Some(Direction::Out)
        } else {
            None
        }
    }

    /// Parses optional `log` and `quick` in either order.
    pub(super) fn log_quick(&mut self) -> Parse<(Option<Log>, bool)> {
        let mut log = self.log()?;
        let quick = self.accept("quick");
        if quick && log.is_none() {
            log = self.log()?;
        }
        Ok((log, quick))
    }

    pub(super) fn log(&mut self) -> Parse<Option<Log>> {
        if !self.accept("log") {
            return Ok(None);
        }
        let mut log = Log::default();
        if self.accept_sign('(') {
            self.until_parenthesis(|parser| parser.log_option(&mut log))?;
        }
        Ok(Some(log))
    }

    fn log_option(&mut self, log: &mut Log) -> Parse<()> {
        if self.accept("all") {
            log.all = true;
        } else if self.accept("matches") {
            log.matches = true;
        } else if self.accept("user") {
            log.user = true;
        } else if self.at_keyword("group") {
            // FreeBSD looks the socket up, as for `user`
            let place = self.place();
            self.note_foreign_form(place)?;
            self.skip();
            log.user = true;
        } else {
            self.expect("to")?;
            let place = self.place();
            let name = self.strings()?;
            let Some(number) = name.strip_prefix("pflog") else {
                return self.error_at(format!("{name}: should be a pflog interface"), place);
            };
            match number.parse::<i64>() {
                Ok(0) => {}
                Ok(number @ 1..=255) => log.to = number as u8,
                Ok(number) if number < 0 => {
                    return self.error_at(format!("{name}: too small"), place);
                }
                Ok(_) => return self.error_at(format!("{name}: too large"), place),
                Err(_) => return self.error_at(format!("{name}: invalid"), place),
            }
        }
        Ok(())
    }

    pub(super) fn protocols(&mut self) -> Parse<Vec<u8>> {
        if self.accept("proto") { self.list(Self::protocol) } else { Ok(Vec::new()) }
    }

    fn protocol(&mut self) -> Parse<u8> {
        let place = self.place();
        let number = match self.peek().kind {
            TokenKind::Number(number) => {
                self.skip();
                match u8::try_from(number) {
                    Ok(number) => number,
                    Err(_) => return self.error_at("protocol outside range", place),
                }
            }
            _ => {
                // a reserved word, and the name that pfctl prints
                let skip = self.context.dialect == Dialect::Any && self.accept("skip");
                let name = if skip { "skip".to_owned() } else { self.string()? };
                match self.context.names.protocol(&name) {
                    Some(number) => number,
                    None => {
                        let help = did_you_mean(&name, self.context.names.protocol_names());
                        return self.error_with_help(
                            format!("unknown protocol {name}"),
                            place,
                            help,
                        );
                    }
                }
            }
        };
        if number == 0 {
            return self.error_at("proto 0 cannot be used", place);
        }
        Ok(number)
    }

    /// Parses `antispoof [log] [quick] for ... [af] [label "l"] [rtable n] [ridentifier n]`.
    pub(super) fn antispoof(&mut self) -> Parse<StatementKind> {
        self.expect("antispoof")?;
        let (log, quick) = self.log_quick()?;
        self.expect("for")?;
        let interfaces = self.list(Self::antispoof_interface)?;
        let family = self.family();
        let (mut labels, mut rtable, mut ridentifier) = (Vec::new(), None, None);
        loop {
            let place = self.place();
            if self.accept("label") {
                let label = self.name()?;
                self.add_label(label, &mut labels, place)?;
            } else if let Some(number) = self.rtable()? {
                rtable = Some(number);
            } else if self.accept_word("ridentifier") {
                ridentifier = Some(self.ridentifier()?);
            } else {
                break;
            }
        }
        Ok(StatementKind::Antispoof(Antispoof {
            log,
            quick,
            interfaces,
            family,
            labels,
            rtable,
            ridentifier,
        }))
    }

    fn antispoof_interface(&mut self) -> Parse<(String, bool)> {
        let dynamic = self.accept_sign('(');
        let name = if self.accept("any") { "any".to_string() } else { self.interface_name()? };
        if dynamic {
            self.expect_sign(')')?;
        }
        Ok((name, dynamic))
    }
}

/// Returns advice that lists the words of which one is required.
pub(super) fn choices(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("write {} or {last}", others.join(", "))
        }
        _ => format!("write {}", quoted.concat()),
    }
}

/// Returns advice for a misspelt name.
pub(super) fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    crate::suggest::nearest(name, candidates).map(|near| format!("did you mean `{near}`?"))
}
