//! Parses `user` and `group` (pf-features section 5).

use skipstep_ruleset::{Owner, PortMatch};

use super::rule::did_you_mean;
use super::{Parse, Parser};
use crate::token::TokenKind;

/// The id that means `unknown`.
const UNKNOWN: u32 = u32::MAX;

/// The kind of owner: user or group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnerKind {
    User,
    Group,
}

impl Parser<'_> {
    /// Parses `user` with one criterion or a list.
    pub(super) fn users(&mut self) -> Parse<Vec<Owner>> {
        self.expect("user")?;
        self.list(|parser| parser.owner(OwnerKind::User))
    }

    /// Parses `group` with one criterion or a list.
    pub(super) fn groups(&mut self) -> Parse<Vec<Owner>> {
        self.expect("group")?;
        self.list(|parser| parser.owner(OwnerKind::Group))
    }

    /// Parses `root`, `!= unknown` or `1000 >< 2000`.
    fn owner(&mut self, kind_of_owner: OwnerKind) -> Parse<Owner> {
        let place = self.place();
        if let Some(op) = self.unary_operator() {
            let low = self.owner_number(kind_of_owner)?;
            if low.is_none() && !matches!(op, PortMatch::Equal | PortMatch::NotEqual) {
                return self.error_at(unknown_needs_equality(kind_of_owner), place);
            }
            return Ok(Owner { op, low, high: low });
        }
        let low = self.owner_number(kind_of_owner)?;
        let op = match self.peek().kind {
            TokenKind::Inside => PortMatch::Inside,
            TokenKind::Outside => PortMatch::Outside,
            _ => return Ok(Owner { op: PortMatch::Equal, low, high: low }),
        };
        self.skip();
        let high = self.owner_number(kind_of_owner)?;
        if low.is_none() || high.is_none() {
            return self.error_at(unknown_needs_equality(kind_of_owner), place);
        }
        Ok(Owner { op, low, high })
    }

    /// Parses an id or a name; `None` for `unknown`.
    fn owner_number(&mut self, kind_of_owner: OwnerKind) -> Parse<Option<u32>> {
        let place = self.place();
        if let TokenKind::Number(number) = self.peek().kind {
            self.skip();
            let kind = if kind_of_owner == OwnerKind::User { "uid" } else { "gid" };
            return match u32::try_from(number) {
                Ok(number) if number != UNKNOWN => Ok(Some(number)),
                _ => self.error_at(format!("illegal {kind} value {number}"), place),
            };
        }
        let name = self.string()?;
        if name == "unknown" {
            return Ok(None);
        }
        let names = self.context.names;
        let (number, kind) = match kind_of_owner {
            OwnerKind::User => (names.user(&name), "user"),
            OwnerKind::Group => (names.group(&name), "group"),
        };
        if number.is_some() {
            return Ok(number);
        }
        let help = match kind_of_owner {
            OwnerKind::User => did_you_mean(&name, names.user_names()),
            OwnerKind::Group => did_you_mean(&name, names.group_names()),
        };
        self.error_with_help(format!("unknown {kind} {name}"), place, help)
    }
}

fn unknown_needs_equality(kind_of_owner: OwnerKind) -> String {
    let kind = if kind_of_owner == OwnerKind::User { "user" } else { "group" };
    format!("{kind} unknown requires operator = or !=")
}
