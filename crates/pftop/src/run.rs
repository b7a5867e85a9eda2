//! The program: parses the command line, and shows the filter until the user quits.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pfctl::access;
use pfctl::output::{complain, is_broken_pipe};
use pfctl::refusal::Refusal;
use pfctl::request::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use skipstep_kernel::Instance;

use crate::app::App;
use crate::batch;
use crate::doc;
use crate::keys::{Effect, press};
use crate::options::{self, Options};
use crate::privileges;
use crate::screen::Look;
use crate::source::{Live, Source};
use crate::terminal::Terminal;

/// Longest wait for a key, before a signal or a dropped packet is noticed.
const TICK: Duration = Duration::from_millis(200);

/// Parses and executes the command line, prints errors, and returns the exit status.
pub fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let options = match options::parse(&words) {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("pftop: {}", refusal.message());
            if matches!(refusal, Refusal::Usage(_)) {
                eprint!("{}", doc::usage());
            }
            return ExitCode::FAILURE;
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain("pftop", &error);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if options.help || options.version {
        let text = if options.help { doc::help() } else { doc::version() };
        io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    }
    let args = Args { instance: options.instance.clone(), ..Args::default() };
    let instance = access::open(&args)?;
    privileges::drop_most()?;
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let is_screen = io::stdout().is_terminal() && !is_dumb;
    let signals = Signals::new()?;
    match options.batch || !(options.interactive || is_screen) {
        true => batch::run(options, instance.as_ref(), &signals),
        false => interactive(options, &args, instance, &signals),
    }
}

/// Flags that signals set.
pub struct Signals {
    end: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    fn new() -> Result<Signals> {
        let signals = Signals { end: Arc::default(), stop: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            flag::register(signal, Arc::clone(&signals.end)).context("signals")?;
        }
        flag::register(SIGTSTP, Arc::clone(&signals.stop)).context("signals")?;
        Ok(signals)
    }

    /// True if the process is to end.
    pub fn is_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// True once after a signal to suspend the process.
    fn is_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }
}

/// The reason why a filter is not watched any more.
enum Next {
    /// The filter was made, removed or made anew.
    Reopen,
    /// The user quits.
    Quit,
}

fn interactive(
    options: &Options,
    args: &Args,
    first: Option<Instance>,
    signals: &Signals,
) -> Result<()> {
    let mut terminal = Terminal::take(Look::of_environment())?;
    let mut app = App::new(options);
    let mut left = options.count;
    let mut instance = first;
    loop {
        app.forget();
        let source = instance.as_ref().map(Live::new);
        match watch(&mut terminal, &mut app, source, signals, &mut left)? {
            Next::Quit => return Ok(()),
            Next::Reopen => match access::open(args) {
                Ok(found) => instance = found,
                Err(error) => {
                    app.error = Some(format!("{error:#}"));
                    instance = None;
                }
            },
        }
    }
}

/// Shows a filter until the user quits or another filter takes its place. `left` is the number of
/// updates that are left.
fn watch(
    terminal: &mut Terminal,
    app: &mut App,
    mut live: Option<Live>,
    signals: &Signals,
    left: &mut Option<u32>,
) -> Result<Next> {
    let mut due = Instant::now();
    // true to read at once, also in a pause
    let mut is_asked = true;
    let mut is_first = true;
    while !signals.is_end() && *left != Some(0) {
        if signals.is_stop() {
            terminal.suspend()?;
        }
        if is_asked || (Instant::now() >= due && !app.paused) {
            let is_behind = match &mut live {
                Some(live) if live.is_current() => app.read(live, Instant::now()),
                None if is_first => false,
                _ => return Ok(Next::Reopen),
            };
            *left = left.map(|left| left - 1);
            (is_asked, is_first) = (false, false);
            terminal.draw(app)?;
            // a slow reading delays the next one, so it leaves time for other work
            due = Instant::now() + if is_behind { TICK } else { app.interval };
        }
        let until_due = due.saturating_duration_since(Instant::now());
        if event::poll(until_due.min(TICK)).context("terminal")? {
            match events(terminal, app, live.as_mut())? {
                Effect::Quit => return Ok(Next::Quit),
                effect => is_asked = effect == Effect::Read,
            }
            terminal.draw(app)?;
        }
        if let Some(live) = live.as_mut()
            && let Err(error) = app.take_drops(live)
        {
            app.error = Some(format!("{error:#}"));
        }
    }
    Ok(Next::Quit)
}

/// Does what all waiting keys command, up to a key for which the filter must be read.
fn events(terminal: &mut Terminal, app: &mut App, mut live: Option<&mut Live>) -> Result<Effect> {
    while event::poll(Duration::ZERO).context("terminal")? {
        let Event::Key(key) = event::read().context("terminal")? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let source = live.as_deref_mut().map(|live| live as &mut dyn Source);
        match press(app, key, source) {
            Effect::Repaint => terminal.repaint()?,
            Effect::Suspend => terminal.suspend()?,
            // the keys behind belong to the rows that are read next
            effect @ (Effect::Quit | Effect::Read) => return Ok(effect),
            Effect::Draw => {}
        }
    }
    Ok(Effect::Draw)
}
