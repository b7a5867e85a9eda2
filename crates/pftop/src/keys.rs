//! The keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::{App, Mode, Value};
use crate::options::interval;
use crate::source::Source;
use crate::table::Subject;
use crate::view::{Kind, View};

/// The consequence of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The screen is drawn again.
    Draw,
    /// The filter is read again at once.
    Read,
    /// The whole screen is written again.
    Repaint,
    /// The program stops until the shell continues it.
    Suspend,
    /// The program ends.
    Quit,
}

/// Lines of the help: keys, and their meaning.
pub const HELP: [(&str, &str); 18] = [
    ("0-8", "default long state time size rules label speed queue"),
    ("9 t d", "interfaces, tables, drops"),
    ("left right v", "view before, next view"),
    ("up down ^P ^N", "move the cursor; PgUp PgDn ^V M-v Home End"),
    ("o r", "next order; reverse the order"),
    ("A B E P", "order by age (tables: addresses), bytes, expiry, packets"),
    ("F T S D", "source, destination, their ports (others: states, drops)"),
    ("R K N", "order by rate, by peak rate; no order"),
    ("f", "filter of states and drops: in on wan0 proto tcp port 22"),
    ("", "also: rule 3, label ssh (states), reason short (drops)"),
    ("Enter", "states of a rule or interface; rule of a state or drop"),
    ("l", "log of the rule"),
    ("k", "kill the state"),
    ("Esc", "back to the place before Enter or l"),
    ("s n", "seconds between updates; number of rows, 0 for all"),
    ("p space ^L", "pause; update now; paint the screen again"),
    ("h ? ^G", "this help; clear a message or an input"),
    ("q ^C ^Z", "quit; suspend"),
];

/// Does what a key commands. `source` is `None` if no rules are loaded.
pub fn press(app: &mut App, key: KeyEvent, source: Option<&mut dyn Source>) -> Effect {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    if let (KeyCode::Char(letter), true) = (key.code, is_control) {
        match letter {
            'c' | '\\' => return Effect::Quit,
            'z' => return Effect::Suspend,
            'l' => return Effect::Repaint,
            _ => {}
        }
    }
    match app.mode {
        Mode::Command => command(app, key, source),
        Mode::Help => {
            app.mode = Mode::Command;
            Effect::Draw
        }
        Mode::Prompt { .. } => prompt(app, key, source),
        Mode::Kill { .. } => answer(app, key, source),
    }
}

fn command(app: &mut App, key: KeyEvent, source: Option<&mut dyn Source>) -> Effect {
    app.message = None;
    let page = app.page.max(1) as isize;
    let is = |modifier| key.modifiers.contains(modifier);
    match key.code {
        KeyCode::Char(letter) if is(KeyModifiers::CONTROL) => match letter {
            'n' => app.move_cursor(1),
            'p' => app.move_cursor(-1),
            'v' => app.move_cursor(page),
            'f' => return show(app, app.view.step(1)),
            'b' => return show(app, app.view.step(-1)),
            _ => {}
        },
        KeyCode::Char(letter) if is(KeyModifiers::ALT) => match letter {
            'v' => app.move_cursor(-page),
            '<' => app.move_cursor(isize::MIN),
            '>' => app.move_cursor(isize::MAX),
            _ => {}
        },
        KeyCode::Down => app.move_cursor(1),
        KeyCode::Up => app.move_cursor(-1),
        KeyCode::PageDown => app.move_cursor(page),
        KeyCode::PageUp => app.move_cursor(-page),
        KeyCode::Home => app.move_cursor(isize::MIN),
        KeyCode::End => app.move_cursor(isize::MAX),
        KeyCode::Right => return show(app, app.view.step(1)),
        KeyCode::Left => return show(app, app.view.step(-1)),
        KeyCode::Enter => return read_if(app.enter()),
        KeyCode::Esc | KeyCode::Backspace => return read_if(app.go_back()),
        KeyCode::Char(letter) => return letter_command(app, letter, source),
        _ => {}
    }
    Effect::Draw
}

fn read_if(is_changed: bool) -> Effect {
    if is_changed { Effect::Read } else { Effect::Draw }
}

fn show(app: &mut App, view: View) -> Effect {
    app.show(view);
    Effect::Read
}

fn letter_command(app: &mut App, letter: char, source: Option<&mut dyn Source>) -> Effect {
    if let Some(view) = View::by_key(letter) {
        return show(app, view);
    }
    match letter {
        'q' => return Effect::Quit,
        'h' | '?' => app.mode = Mode::Help,
        'v' => return show(app, app.view.step(1)),
        'o' => next_order(app),
        'r' => app.reverse = !app.reverse,
        'p' => {
            app.paused = !app.paused;
            return read_if(!app.paused);
        }
        ' ' => return Effect::Read,
        's' => ask(app, Value::Seconds, String::new()),
        'n' => ask(app, Value::Rows, String::new()),
        'f' => match app.view.kind() {
            Kind::States | Kind::Drops => ask(app, Value::Filter, app.words().to_owned()),
            _ => app.message = Some("only states and drops have a filter".into()),
        },
        'k' => ask_to_kill(app, source.is_some()),
        'l' => return read_if(app.show_log()),
        upper if upper.is_ascii_uppercase() => set_order(app, upper),
        other => app.message = Some(format!("no command {other}: h shows the keys")),
    }
    Effect::Draw
}

fn next_order(app: &mut App) {
    let orders = app.view.orders();
    let place = orders.iter().position(|order| *order == app.order).unwrap_or(0);
    app.order = orders[(place + 1) % orders.len()];
}

fn set_order(app: &mut App, letter: char) {
    match app.view.orders().iter().find(|order| order.key() == letter) {
        Some(order) => app.order = *order,
        None => {
            app.message = Some(format!("the view {} has no order {letter}", app.view.name()));
        }
    }
}

fn ask(app: &mut App, value: Value, text: String) {
    app.mode = Mode::Prompt { value, text };
}

fn ask_to_kill(app: &mut App, has_source: bool) {
    match app.subject().filter(|_| has_source) {
        Some(Subject::State { id, text, .. }) => app.mode = Mode::Kill { id, text },
        _ => app.message = Some("put the cursor on a state, then k kills it".into()),
    }
}

/// Takes a key of an input line.
fn prompt(app: &mut App, key: KeyEvent, source: Option<&mut dyn Source>) -> Effect {
    let Mode::Prompt { value, text } = &mut app.mode else { return Effect::Draw };
    match key.code {
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char('g') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            app.mode = Mode::Command;
        }
        KeyCode::Char('h') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            text.pop();
        }
        KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
            text.push(letter);
        }
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Esc => app.mode = Mode::Command,
        KeyCode::Enter => {
            let (value, text) = (*value, text.clone());
            return accept(app, value, &text, source);
        }
        _ => {}
    }
    app.message = None;
    Effect::Draw
}

/// Takes a value that the user has typed. A wrong value stays on the line, with a message.
fn accept(app: &mut App, value: Value, text: &str, source: Option<&mut dyn Source>) -> Effect {
    let text = text.trim();
    let result = match value {
        Value::Filter => match source {
            Some(source) => app.set_words(text, source).map_err(|error| format!("{error:#}")),
            None => Err("no rules are loaded".to_owned()),
        },
        _ if text.is_empty() => Ok(()),
        Value::Seconds => interval(text)
            .map(|seconds| app.interval = std::time::Duration::from_secs(seconds.into()))
            .map_err(|refusal| refusal.message().to_owned()),
        Value::Rows => text
            .parse()
            .map(|rows: usize| app.most_rows = Some(rows).filter(|rows| *rows > 0))
            .map_err(|_| format!("number of rows {text}: invalid")),
    };
    match result {
        Ok(()) => {
            (app.mode, app.message) = (Mode::Command, None);
            Effect::Read
        }
        Err(message) => {
            app.message = Some(message);
            Effect::Draw
        }
    }
}

/// Takes the answer to the question if a state is to be killed.
fn answer(app: &mut App, key: KeyEvent, source: Option<&mut dyn Source>) -> Effect {
    let Mode::Kill { id, .. } = app.mode else { return Effect::Draw };
    app.mode = Mode::Command;
    let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
    let Some(source) = source.filter(|_| is_yes) else {
        app.message = Some("nothing was killed".into());
        return Effect::Draw;
    };
    app.message = Some(match source.kill(id) {
        Ok(true) => "killed the state".to_owned(),
        Ok(false) => "the state has ended by itself".to_owned(),
        Err(error) => format!("{error:#}"),
    });
    Effect::Read
}
