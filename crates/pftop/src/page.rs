//! The contents of the screen, as lines with tones. Batch mode prints the same lines.

use chrono::Local;
use unicode_width::UnicodeWidthStr;

use crate::app::{App, Mode, Value};
use crate::glyphs::Glyphs;
use crate::keys::HELP;
use crate::order::Order;
use crate::table::{Line, Span, Tone, layout, line, row, titles};
use crate::view::Kind;

/// Least size of a terminal: columns and lines.
pub const LEAST_SIZE: (u16, u16) = (40, 8);

/// Lines beside the rows: two above the titles, the titles, two about the row with the cursor, and
/// the last line.
const OTHER_LINES: usize = 6;

/// The lines of a screen.
pub struct Page {
    /// Position in the rows, view and order; figures of the filter.
    pub head: [Line; 2],
    /// Titles of the columns.
    pub titles: Line,
    /// The rows, or a text that says why there is none.
    pub body: Vec<Line>,
    /// Place of the cursor in `body`.
    pub cursor: Option<usize>,
    /// Two lines about the row with the cursor.
    pub details: [Line; 2],
    /// Input, question, message, or the most important keys.
    pub last: Line,
}

impl Page {
    /// Returns the height of a screen with this number of rows.
    pub fn height_for(rows: usize) -> usize {
        rows.max(1) + OTHER_LINES
    }

    /// Makes the lines of a screen with this size in characters. Arranges the rows.
    pub fn new(app: &mut App, width: usize, height: usize, glyphs: Glyphs) -> Page {
        let room = height.saturating_sub(OTHER_LINES).max(1);
        let places = app.arranged(room);
        let head = [first_line(app, &places, width, glyphs), second_line(app, width, glyphs)];
        let (mut body, mut title_line, mut cursor) = (Vec::new(), Line::new(), None);
        let mut details = [Line::new(), Line::new()];
        if let Some(rows) = app.rows.as_deref() {
            let widths = layout(rows.columns(), width);
            title_line = titles(rows.columns(), &widths, glyphs);
            body = places.clone().map(|place| row(rows, place, &widths, glyphs)).collect();
            if places.contains(&app.cursor) {
                cursor = Some(app.cursor - places.start);
                details =
                    rows.details(app.cursor).map(|text| line(glyphs.clean(&text), Tone::Plain));
            }
        }
        if body.is_empty() {
            body = vec![line(glyphs.clean(&empty_text(app)), Tone::Plain)];
        }
        match (&app.mode, &app.message) {
            (Mode::Help, _) => {
                (body, cursor) = (help(room), None);
                details = [Line::new(), Line::new()];
            }
            // a wrong input stays on the last line, and its error is above
            (Mode::Prompt { .. }, Some(error)) => {
                details = [Line::new(), line(glyphs.clean(error), Tone::Block)];
            }
            _ => {}
        }
        Page {
            head,
            titles: title_line,
            body,
            cursor,
            details,
            last: last_line(app, width, glyphs),
        }
    }
}

/// Returns the line with the position in the rows, the view, the order and the time.
fn first_line(app: &App, places: &std::ops::Range<usize>, width: usize, glyphs: Glyphs) -> Line {
    let count = app.rows.as_ref().map_or(0, |rows| rows.len());
    let first = places.start + usize::from(count > 0);
    let reversed = if app.reverse { " reversed" } else { "" };
    let pace = match app.paused {
        true => "PAUSED".to_owned(),
        false => format!("every {} s", app.interval.as_secs()),
    };
    let left = format!(
        "pftop: {first}-{} of {count}, view {}, order {}{reversed}, {pace}",
        places.end,
        view_name(app),
        app.order.name(),
    );
    let clock = Local::now().format("%H:%M:%S").to_string();
    let room = width.saturating_sub(clock.len() + 1);
    let left = glyphs.cut(&glyphs.clean(&left), room);
    line(format!("{left:<room$} {clock}"), Tone::Title)
}

fn view_name(app: &App) -> String {
    match (app.view.kind(), app.logged_rule()) {
        (Kind::Log, Some(rule)) => format!("log of rule {rule}"),
        _ => app.view.name().to_owned(),
    }
}

/// Returns the line with the figures of the filter and with the words that choose rows.
fn second_line(app: &App, width: usize, glyphs: Glyphs) -> Line {
    let mut parts = app.status.parts();
    if !app.words().is_empty() {
        parts.insert(0, (format!("filter: {}", app.words()), Tone::Title));
    }
    let mut left = width;
    let mut spans = Line::new();
    for (text, tone) in parts {
        let text = glyphs.clean(&text);
        let between = if spans.is_empty() { "" } else { ", " };
        let room = left.saturating_sub(between.len());
        if room == 0 || (text.width() > room && !spans.is_empty()) {
            break;
        }
        let text = glyphs.cut(&text, room);
        left = room - text.width();
        spans.push(Span { text: between.into(), tone: Tone::Plain });
        spans.push(Span { text, tone });
    }
    spans
}

/// Returns the text for a view without rows.
fn empty_text(app: &App) -> String {
    if app.status.is_enabled.is_none() {
        return "No rules are loaded. Load rules and enable the filter: pfctl -ef /etc/pf.conf"
            .into();
    }
    let has_filter = !app.words().is_empty();
    let names_interface = app.words().split_whitespace().any(|word| word == "on");
    match (app.view.kind(), has_filter) {
        _ if app.rows.is_none() => "",
        (Kind::States, true) if names_interface => {
            "The filter has no state. Floating states are on no interface: set state-policy"
        }
        (Kind::States, true) => "The filter has no state. f changes the filter.",
        (Kind::States, false) => "There are no states.",
        (Kind::Rules, _) => "The rule set is empty.",
        (Kind::Queues, _) => "There are no queues.",
        (Kind::Interfaces, _) => "There are no interfaces.",
        (Kind::Tables, _) => "There are no tables.",
        (Kind::Drops, true) => "No packet of the filter was dropped since this view is open.",
        (Kind::Drops, false) => "No packet was dropped since this view is open.",
        (Kind::Log, _) => "The log has no packet of this rule.",
    }
    .into()
}

fn help(room: usize) -> Vec<Line> {
    let lines = HELP.iter().map(|(keys, text)| {
        vec![
            Span { text: format!("{keys:<15} "), tone: Tone::Title },
            Span { text: (*text).to_owned(), tone: Tone::Plain },
        ]
    });
    lines.take(room).collect()
}

fn last_line(app: &App, width: usize, glyphs: Glyphs) -> Line {
    match (&app.mode, &app.message) {
        (Mode::Help, _) => line("any key goes back", Tone::Title),
        (Mode::Kill { text, .. }, _) => {
            line(format!("Kill it? [y/N] {}", glyphs.clean(text)), Tone::Block)
        }
        (Mode::Prompt { value, text }, _) => {
            let question = match value {
                Value::Filter => "filter: ",
                Value::Seconds => "seconds between updates: ",
                Value::Rows => "number of rows (0 for all): ",
            };
            let mut spans = line(question, Tone::Title);
            let text = glyphs.clean(text) + "_";
            // the end of a long text is where the user types
            let hidden = text.chars().count().saturating_sub(width - question.len());
            let seen = text.chars().skip(hidden).collect();
            spans.push(Span { text: seen, tone: Tone::Plain });
            spans
        }
        (Mode::Command, Some(message)) => line(glyphs.clean(message), Tone::Block),
        (Mode::Command, None) => match &app.error {
            Some(error) => line(glyphs.clean(error), Tone::Block),
            None => line(hints(app), Tone::Plain),
        },
    }
}

/// Returns the keys that matter in the view.
fn hints(app: &App) -> String {
    let own = match app.view.kind() {
        Kind::States => "Enter rule  k kill  l log  f filter  ",
        Kind::Rules => "Enter states  l log  ",
        Kind::Interfaces => "Enter states  ",
        Kind::Drops => "Enter rule  l log  f filter  ",
        Kind::Log => "Esc back  ",
        Kind::Queues | Kind::Tables => "",
    };
    let order = if app.view.orders() == [Order::None] { "" } else { "o order  " };
    format!("{own}{order}0-9 t d views  h help  q quit")
}
