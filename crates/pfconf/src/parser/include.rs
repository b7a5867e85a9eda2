//! Parses `include` (pf-features section 1).

use super::{Parse, Parser};
use crate::ast::StatementKind;
use crate::failsafe;

/// Greatest depth of included files.
const DEEPEST: usize = 64;
/// Most `include` statements that one text may execute.
const MOST_FILES: usize = 4096;
/// Most bytes of all included files together.
// Differs from OpenBSD: linux.md, "Files that a pf.conf names"
const MOST_TEXT: usize = 1 << 24;

impl Parser<'_> {
    /// Parses `include "file"`, and continues with the file. The end of the line is not checked,
    /// because it is read behind the file.
    pub(super) fn include(&mut self) -> Parse<StatementKind> {
        self.expect("include")?;
        let place = self.place();
        let name = self.string()?;
        if self.context.is_failsafe_list {
            return self.error_at(failsafe::NO_INCLUDE, place);
        }
        let refusal = if self.lexer.open_names().any(|open| open == name) {
            Some("the file includes itself".to_string())
        } else if self.lexer.open_names().len() > DEEPEST {
            Some(format!("files include each other more than {DEEPEST} deep"))
        } else if self.lexer.source_count() > MOST_FILES {
            Some(format!("more than {MOST_FILES} files are included"))
        } else {
            None
        };
        let text = match refusal {
            Some(reason) => Err(reason),
            None => (self.context.read_file)(&name).map_err(|error| crate::table::plain(&error)),
        };
        let text = text.and_then(|text| {
            self.included += text.len();
            if self.included > MOST_TEXT {
                return Err(format!("included files have more than {MOST_TEXT} bytes together"));
            }
            Ok(text)
        });
        match text {
            Ok(text) => {
                self.lexer.include(&name, &text);
                Ok(StatementKind::Include)
            }
            Err(reason) => {
                self.error_with_help(format!("failed to include file {name}"), place, Some(reason))
            }
        }
    }
}
