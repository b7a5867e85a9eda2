//! The characters that a terminal can show.

use std::env;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Characters for the terminal's character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    is_unicode: bool,
}

/// Parts of a cell, from one eighth to the whole.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

impl Glyphs {
    /// The characters of ASCII.
    pub const ASCII: Glyphs = Glyphs { is_unicode: false };
    /// All characters of Unicode.
    pub const UNICODE: Glyphs = Glyphs { is_unicode: true };

    /// Returns the characters of the locale.
    pub fn of_locale() -> Glyphs {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let locale = locale.unwrap_or_default().to_lowercase();
        Glyphs { is_unicode: locale.contains("utf-8") || locale.contains("utf8") }
    }

    /// Replaces characters that would command the terminal, that are invisible, or that change the
    /// direction of the text. Names and labels may contain such characters.
    pub fn clean(self, text: &str) -> String {
        let mut cleaned = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                ' '..='~' => cleaned.push(character),
                _ if self.is_unicode && is_visible(character) => cleaned.push(character),
                _ => cleaned.extend(character.escape_unicode()),
            }
        }
        cleaned
    }

    /// Returns the beginning of a text that fits in `width` cells. If the text is longer, the last
    /// character shows that more follows.
    pub fn cut(self, text: &str, width: usize) -> String {
        if text.width() <= width {
            return text.to_owned();
        }
        let more = if self.is_unicode { '…' } else { '~' };
        let mut left = width.saturating_sub(1);
        let fits = |character: &char| {
            let cells = character.width().unwrap_or(0);
            let fits = cells <= left;
            left = left.saturating_sub(cells);
            fits
        };
        let kept = text.chars().take_while(fits);
        kept.chain((width > 0).then_some(more)).collect()
    }

    /// Returns a bar for a share between 0 and 1. Only a share of 0 has an empty bar.
    pub fn bar(self, share: f64, width: usize) -> String {
        let most = width * EIGHTHS.len();
        let least = usize::from(share > 0.0);
        let eighths = ((share * most as f64).round() as usize).clamp(least, most);
        let (whole, rest) = (eighths / EIGHTHS.len(), eighths % EIGHTHS.len());
        if !self.is_unicode {
            return "#".repeat(whole.max(least));
        }
        let last = rest.checked_sub(1).map(|index| EIGHTHS[index]);
        std::iter::repeat_n(EIGHTHS[7], whole).chain(last).collect()
    }
}

/// True for characters beyond ASCII that show themselves, and nothing else.
fn is_visible(character: char) -> bool {
    let changes_direction = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_invisible = matches!(character,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !character.is_control() && !changes_direction && !is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        let (unicode, ascii) = (Glyphs::UNICODE, Glyphs::ASCII);
        assert_eq!(unicode.clean("web\u{1b}[2J"), "web\\u{1b}[2J");
        assert_eq!(unicode.clean("a\u{9b}31m\u{202e}b\n"), "a\\u{9b}31m\\u{202e}b\\u{a}");
        assert_eq!(unicode.clean("Büro"), "Büro");
        assert_eq!(ascii.clean("Büro"), "B\\u{fc}ro");
    }

    #[test]
    fn a_cut_is_seen() {
        assert_eq!(Glyphs::UNICODE.cut("interface", 5), "inte…");
        assert_eq!(Glyphs::ASCII.cut("interface", 5), "inte~");
        assert_eq!(Glyphs::ASCII.cut("em0", 3), "em0");
        assert_eq!(Glyphs::ASCII.cut("em0", 0), "");
        assert_eq!(Glyphs::UNICODE.cut("日本語", 5), "日本…", "wide characters");
        assert_eq!(Glyphs::UNICODE.cut("日本語", 6), "日本語");
    }

    #[test]
    fn bars_have_eighths() {
        let bar = |share| Glyphs::UNICODE.bar(share, 4);
        assert_eq!([bar(0.0), bar(0.0001), bar(0.5), bar(1.0)], ["", "▏", "██", "████"]);
        assert_eq!(bar(0.55), "██▎");
        assert_eq!(Glyphs::ASCII.bar(0.0001, 4), "#");
        assert_eq!(Glyphs::ASCII.bar(1.0, 4), "####");
    }
}
