//! Batch mode: prints the rows to standard output.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use skipstep_kernel::Instance;

use crate::app::App;
use crate::glyphs::Glyphs;
use crate::options::Options;
use crate::page::Page;
use crate::run::Signals;
use crate::source::{Live, Source};
use crate::table::Line;
use crate::view::Kind;

/// Rows that are printed unless the user asks for another number.
const ROWS: usize = 20;
/// Longest wait before a signal is noticed.
const TICK: Duration = Duration::from_millis(100);

/// Prints the rows, `-d` times.
///
/// # Errors
/// Fails if no rules are loaded, if the filter cannot be read, or if standard output cannot be
/// written.
pub fn run(options: &Options, instance: Option<&Instance>, signals: &Signals) -> Result<()> {
    let Some(instance) = instance else {
        anyhow::bail!("no rules are loaded: pfctl -ef /etc/pf.conf loads rules");
    };
    let mut live = Live::new(instance);
    let count = options.count.unwrap_or(1);
    print(options, &mut live, count, signals, &mut io::stdout().lock())
}

/// Prints the rows `count` times.
fn print(
    options: &Options,
    source: &mut dyn Source,
    count: u32,
    signals: &Signals,
    out: &mut dyn Write,
) -> Result<()> {
    let mut app = App::new(options);
    if app.view.kind() == Kind::Drops {
        // the drops of the first interval
        app.refresh(source, Instant::now())?;
        wait(&mut app, source, signals)?;
    }
    for update in 0..count {
        if update > 0 {
            wait(&mut app, source, signals)?;
            writeln!(out)?;
        }
        if signals.is_end() {
            break;
        }
        app.refresh(source, Instant::now())?;
        out.write_all(text(&mut app, options).as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

/// Waits for the next update, and counts dropped packets meanwhile.
fn wait(app: &mut App, source: &mut dyn Source, signals: &Signals) -> Result<()> {
    let end = Instant::now() + app.interval;
    while !signals.is_end() && Instant::now() < end {
        std::thread::sleep(TICK.min(end.saturating_duration_since(Instant::now())));
        app.take_drops(source)?;
    }
    Ok(())
}

/// Returns the lines of the rows, without blanks at their ends.
pub fn text(app: &mut App, options: &Options) -> String {
    let all = app.rows.as_ref().map_or(0, |rows| rows.len());
    let rows = if options.all { all } else { options.rows.unwrap_or(ROWS) };
    app.most_rows = None;
    let page = Page::new(app, options.width.into(), Page::height_for(rows), Glyphs::of_locale());
    let lines = page.head.iter().chain([&page.titles]).chain(&page.body);
    lines.map(|line| plain(line) + "\n").collect()
}

fn plain(line: &Line) -> String {
    let text: String = line.iter().map(|span| span.text.as_str()).collect();
    text.trim_end().to_owned()
}
