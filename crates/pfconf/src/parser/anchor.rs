//! Parses `anchor` and `load anchor` (pf-features section 11).

use skipstep_ruleset::Action;
use skipstep_ruleset::anchor::DEEPEST;

use super::freebsd::is_name;
use super::{Parse, Parser};
use crate::ast::{AnchorStatement, RuleStatement, StatementKind, Translation};
use crate::token::TokenKind;

/// Most bytes of a part of an anchor's path.
const LONGEST_NAME: usize = 63;

impl Parser<'_> {
    /// Parses `anchor ...`, up to the end of the line or the opening brace.
    pub(super) fn anchor(&mut self) -> Parse<StatementKind> {
        let place = self.place();
        self.expect("anchor")?;
        let name_place = self.place();
        let name = self.anchor_name()?;
        let rule = self.anchor_head()?;
        let braces = self.at_sign('{');
        let statement = AnchorStatement { name: name.clone(), braces, rule };
        if braces {
            self.skip();
            if self.anchors.len() + 1 >= DEEPEST {
                let result = self.error_at("pfa_anchor: anchors too deep", place);
                self.stop();
                return result;
            }
            if self.peek().kind != TokenKind::NewLine {
                return self.syntax_error();
            }
            self.anchors.push((place, statement));
            return Ok(StatementKind::BeginAnchor { name });
        }
        if self.peek().kind != TokenKind::NewLine {
            return self.syntax_error();
        }
        match name {
            None => self.error_at("anchors without explicit rules must specify a name", place),
            Some(name) if name.ends_with('/') => {
                self.error_at(format!("anchorrule: bad anchor name {name}"), name_place)
            }
            Some(_) => Ok(StatementKind::Anchor(Box::new(statement))),
        }
    }

    /// Parses the closing brace of an anchor.
    pub(super) fn end_anchor(&mut self) -> Parse<StatementKind> {
        self.skip();
        let Some((place, statement)) = self.anchors.pop() else {
            return self.syntax_error();
        };
        if statement.name.as_ref().is_some_and(|name| name.contains('/')) {
            let text = "anchor paths containing '/' cannot be used for inline anchors.";
            return self.error_at(text, place);
        }
        Ok(StatementKind::Anchor(Box::new(statement)))
    }

    /// Parses `load anchor "name" from "file"`.
    pub(super) fn load_anchor(&mut self) -> Parse<StatementKind> {
        self.expect("load")?;
        let place = self.place();
        self.expect("anchor")?;
        let name = self.anchor_name()?;
        self.expect("from")?;
        let file = self.strings()?;
        match name {
            None => self.error_at("anchor name is missing", place),
            Some(name) => Ok(StatementKind::LoadAnchor { name, file }),
        }
    }

    /// Parses an optional anchor name.
    fn anchor_name(&mut self) -> Parse<Option<String>> {
        let (place, dialect) = (self.place(), self.context.dialect);
        let name = match self.peek().kind {
            TokenKind::String(_) => self.string()?,
            TokenKind::Keyword(word) if is_name(word, dialect) => self.name()?,
            _ => return Ok(None),
        };
        if name.is_empty() {
            return self.error_at("anchor name must not be empty", place);
        }
        if name.starts_with('_') || name.contains("/_") {
            let text = "anchor names beginning with '_' are reserved for internal use";
            return self.error_at(text, place);
        }
        if let Some(part) = name.split('/').find(|part| part.len() > LONGEST_NAME) {
            let help = format!("each part of the path has at most {LONGEST_NAME} characters");
            let text = format!("anchor name '{part}' too long");
            return self.error_with_help(text, place, Some(help));
        }
        Ok(Some(name))
    }

    /// Parses the criteria and options between name and brace.
    fn anchor_head(&mut self) -> Parse<RuleStatement> {
        let direction = self.direction();
        let quick = self.accept("quick");
        let head = self.head(Action::Pass, None)?;
        let options = self.filter_options(Translation::NONE)?;
        Ok(RuleStatement { direction, quick, options, ..head })
    }
}
