//! The page on a terminal.

use std::env;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::app::App;
use crate::glyphs::Glyphs;
use crate::page::{LEAST_SIZE, Page};
use crate::table::{Line, Tone};

/// The appearance of texts. The colours are the terminal's own red and green, which its theme makes
/// readable on its background. No text has a background of its own.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// The characters of the terminal.
    pub glyphs: Glyphs,
    /// False if `NO_COLOR` is set.
    pub has_colours: bool,
}

impl Look {
    /// Returns the look for the environment of the process.
    pub fn of_environment() -> Look {
        let has_colours = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Look { glyphs: Glyphs::of_locale(), has_colours }
    }

    fn style(self, tone: Tone) -> Style {
        let coloured = |colour| match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Pass | Tone::Bar => coloured(Color::Green),
            Tone::Block => coloured(Color::Red),
            Tone::Title => Style::new().add_modifier(Modifier::BOLD),
        }
    }
}

/// Draws the program.
pub fn draw(frame: &mut Frame, app: &mut App, look: Look) {
    let area = frame.area();
    let (width, height) = (area.width, area.height);
    let buffer = frame.buffer_mut();
    if width < LEAST_SIZE.0 || height < LEAST_SIZE.1 {
        let (columns, lines) = LEAST_SIZE;
        let text = format!("{width}x{height} is too small: pftop needs {columns}x{lines}");
        for (y, piece) in (0..height).zip(pieces(&text, width)) {
            buffer.set_string(0, y, piece, Style::new());
        }
        return;
    }
    let page = Page::new(app, width.into(), height.into(), look.glyphs);
    put(buffer, 0, &page.head[0], look, Style::new());
    put(buffer, 1, &page.head[1], look, Style::new());
    put(buffer, 2, &page.titles, look, Style::new().add_modifier(Modifier::UNDERLINED));
    for (index, line) in page.body.iter().enumerate() {
        let has_cursor = page.cursor == Some(index);
        let style = Style::new();
        let style = if has_cursor { style.add_modifier(Modifier::REVERSED) } else { style };
        put(buffer, 3 + index as u16, line, look, style);
    }
    put(buffer, height - 3, &page.details[0], look, Style::new());
    put(buffer, height - 2, &page.details[1], look, Style::new());
    put(buffer, height - 1, &page.last, look, Style::new());
}

/// Returns a text in pieces that fit the width.
fn pieces(text: &str, width: u16) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(usize::from(width.max(1))).map(|piece| piece.iter().collect()).collect()
}

/// Writes a line. `style` is added to the styles of its parts, and fills the line to its end.
fn put(buffer: &mut Buffer, y: u16, line: &Line, look: Look, style: Style) {
    let width = buffer.area.width;
    let mut x = 0;
    for span in line {
        let room = usize::from(width.saturating_sub(x));
        let own = look.style(span.tone).patch(style);
        (x, _) = buffer.set_stringn(x, y, &span.text, room, own);
    }
    for column in x..width {
        buffer[(column, y)].set_style(style);
    }
}
