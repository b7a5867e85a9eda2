//! Checks of translation, routing and diversion that concern a whole statement, and the choice of
//! the diversion's address.

use skipstep_ruleset::{Direction, Divert, Family, RouteKind, Rule};

use super::{Expansion, Refused};
use crate::ast::{self, RuleStatement, Translation};

impl Expansion<'_> {
    /// Checks that `af-to` is allowed in the rule.
    pub(super) fn check_af_to(&mut self, statement: &RuleStatement) -> Result<(), Refused> {
        let translation = &statement.options.translation;
        if translation.af_to.is_some() && statement.direction != Some(Direction::In) {
            return self.refuse("af-to can only be used with direction in");
        }
        let refused = translation.route.as_ref().filter(|(kind, pool)| {
            pool.through.is_empty() || *kind == RouteKind::DupTo || pool.sticky
        });
        if translation.af_to.is_some() && refused.is_some() {
            return self.refuse("af-to cannot be used together with route-to, reply-to, dup-to");
        }
        Ok(())
    }

    /// Refuses translation in an anchor call. pf accepts it, except for routes, and ignores it.
    pub(super) fn check_anchor(&mut self, translation: &Translation) -> Result<(), Refused> {
        if translation.route.is_some() {
            return self.refuse("cannot specify route handling on anchors");
        }
        if *translation != Translation::NONE {
            return self.refuse("cannot specify translation or divert options on anchors");
        }
        Ok(())
    }

    /// Checks routing and diversion. The address of `divert-to` sets the family of the rule if
    /// nothing else did.
    pub(super) fn route_and_divert(
        &mut self,
        rule: &mut Rule,
        translation: &Translation,
    ) -> Result<(), Refused> {
        let kind = translation.route.as_ref().map(|(kind, _)| *kind);
        if kind.is_some_and(|kind| kind != RouteKind::DupTo) && rule.direction.is_none() {
            return self.refuse("direction must be explicit with rules that specify routing");
        }
        rule.divert = match &translation.divert {
            None => None,
            Some(ast::Divert::To(..)) if rule.direction == Some(Direction::Out) => {
                return self.refuse("divert-to used with outgoing rule");
            }
            Some(ast::Divert::To(addresses, port)) => {
                let mut fitting = addresses.iter().copied();
                let fits = |family| rule.family.is_none_or(|own| own == family);
                let Some(address) = fitting.find(|address| fits(Family::from_address(*address)))
                else {
                    return self.refuse("divert-to address family mismatch");
                };
                rule.family = Some(Family::from_address(address));
                Some(Divert::To { address, port: *port })
            }
            Some(ast::Divert::Reply) if rule.direction == Some(Direction::In) => {
                return self.refuse("divert-reply used with incoming rule");
            }
            Some(ast::Divert::Reply) => Some(Divert::Reply),
            Some(ast::Divert::Packet(port)) => {
                // so that the reader of the divert socket sees whole streams
                rule.scrub.reassemble_tcp |= self.options.reassemble;
                Some(Divert::Packet { port: *port })
            }
        };
        Ok(())
    }
}
