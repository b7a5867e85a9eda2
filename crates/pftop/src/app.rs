//! The state of the program: the view, its rows, the cursor and the input of the user.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pfctl::drops::filter::Filter as DropFilter;
use pfctl::drops::record::Dropped;
use pfctl::drops::rules::RulesInForce;
use pfctl::request::Args;
use pfctl::show::interfaces::InterfaceView;
use pfctl::views;
use skipstep_ruleset::RuleId;
use skipstep_ruleset::interface::Host;

use crate::filter::{StateFilter, message};
use crate::options::Options;
use crate::order::Order;
use crate::rows::drops::DropCounts;
use crate::rows::interfaces::{InterfaceSpeeds, Interfaces};
use crate::rows::log::RuleLog;
use crate::rows::queues::{Queue, QueueSpeeds, Queues};
use crate::rows::rules::{self, Rules};
use crate::rows::states::{self, States};
use crate::rows::tables::Tables;
use crate::source::Source;
use crate::speed::Speeds;
use crate::status::Status;
use crate::table::{Rows, Subject};
use crate::view::{Kind, View};

/// Most places that Esc goes back to.
const MOST_PLACES: usize = 50;

/// A question or an input at the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    /// Keys are commands.
    #[default]
    Command,
    /// The help is on the screen. Any key ends it.
    Help,
    /// The user types a value.
    Prompt {
        /// The value that the user types.
        value: Value,
        /// Text so far.
        text: String,
    },
    /// The user is asked if a state is to be killed.
    Kill {
        /// Id of the state.
        id: u64,
        /// The state as `pfctl -ss` prints it.
        text: String,
    },
}

/// A value that the user can type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Words of the filter of states, or of that of drops.
    Filter,
    /// Seconds between two updates.
    Seconds,
    /// Most rows to show.
    Rows,
}

/// A place that the user can go back to.
struct Place {
    view: View,
    state_words: String,
    cursor: usize,
}

/// The program.
pub struct App {
    /// Arguments of pfctl's functions, with the name of the instance.
    args: Args,
    log_file: String,
    pub(crate) view: View,
    pub(crate) order: Order,
    pub(crate) reverse: bool,
    /// The orders of the other kinds of rows, and whether they are reversed.
    orders: BTreeMap<Kind, (Order, bool)>,
    pub(crate) interval: Duration,
    pub(crate) paused: bool,
    /// Most rows to show; `None` for the rows that fit.
    pub(crate) most_rows: Option<usize>,
    pub(crate) mode: Mode,
    /// The result of the last command.
    pub(crate) message: Option<String>,
    /// The reason why the last reading failed.
    pub(crate) error: Option<String>,
    /// True if more rows can be read at once.
    is_behind: bool,
    /// The row with the cursor.
    pub(crate) cursor: usize,
    /// The first row on the screen.
    pub(crate) top: usize,
    /// Rows that fit on the screen.
    pub(crate) page: usize,
    pub(crate) rows: Option<Box<dyn Rows>>,
    pub(crate) status: Status,
    pub(crate) state_words: String,
    pub(crate) drop_words: String,
    state_filter: Option<StateFilter>,
    drop_filter: Option<DropFilter>,
    rules: Option<Rc<RulesInForce>>,
    speeds: AllSpeeds,
    drops: DropCounts,
    log: Option<RuleLog>,
    /// The rule that gets the cursor when its row is there.
    wanted: Option<RuleId>,
    back: Vec<Place>,
}

/// The rates of all kinds of rows.
#[derive(Default)]
struct AllSpeeds {
    states: Speeds<u64>,
    rules: Speeds<RuleId>,
    queues: QueueSpeeds,
    interfaces: InterfaceSpeeds,
    tables: Speeds<String>,
}

impl App {
    /// Makes the program with the options of its command line. Nothing is read yet.
    pub fn new(options: &Options) -> App {
        let words = |kind| match (kind, options.view.kind()) {
            (Kind::Drops, Kind::Drops) => options.filter.clone(),
            (Kind::States, kind) if kind != Kind::Drops => options.filter.clone(),
            _ => String::new(),
        };
        App {
            args: Args { instance: options.instance.clone(), ..Args::default() },
            log_file: options.log.clone(),
            view: options.view,
            order: options.order,
            reverse: options.reverse,
            orders: BTreeMap::new(),
            interval: Duration::from_secs(options.seconds.into()),
            paused: false,
            most_rows: options.rows,
            mode: Mode::default(),
            message: None,
            error: None,
            is_behind: false,
            cursor: 0,
            top: 0,
            page: 1,
            rows: None,
            status: Status::default(),
            state_words: words(Kind::States),
            drop_words: words(Kind::Drops),
            state_filter: None,
            drop_filter: None,
            rules: None,
            speeds: AllSpeeds::default(),
            drops: DropCounts::default(),
            log: None,
            wanted: None,
            back: Vec::new(),
        }
    }

    /// Forgets the contents of a filter, because another one takes its place or none.
    pub fn forget(&mut self) {
        self.rows = None;
        self.rules = None;
        self.status = Status::default();
        self.speeds = AllSpeeds::default();
        self.drops = DropCounts::default();
        (self.state_filter, self.drop_filter) = (None, None);
    }

    /// Reads the rows of the view and the status. An error is shown until a reading succeeds.
    /// Returns true if more rows can be read at once.
    pub fn read(&mut self, source: &mut dyn Source, now: Instant) -> bool {
        self.error = self.refresh(source, now).err().map(|error| format!("{error:#}"));
        self.error.is_none() && self.is_behind
    }

    /// Reads the rows of the view and the status.
    ///
    /// # Errors
    /// Fails if the filter cannot be read, or if the words of the filter are wrong.
    pub fn refresh(&mut self, source: &mut dyn Source, now: Instant) -> Result<()> {
        let rules = self.follow_rules(source)?;
        let status = source.filter().status()?;
        let trial = source.filter().trial()?;
        self.status.read(&status, trial.map(|trial| trial.seconds_left), now);
        source.watch_drops(self.view.kind() == Kind::Drops)?;
        self.is_behind = false;
        let rows: Box<dyn Rows> = match self.view.kind() {
            Kind::States => Box::new(self.read_states(source, &rules, now)?),
            Kind::Rules => Box::new(self.read_rules(source, &rules, now)?),
            Kind::Queues => {
                let queues = &rules.loaded.ruleset.queues;
                let host = if queues.is_empty() { Host::default() } else { source.host()? };
                let trees = views::queue_trees(Some(source.filter()), queues, &host, None)?;
                Box::new(Queues::new(Queue::of(&trees), &mut self.speeds.queues, now))
            }
            Kind::Interfaces => {
                let interfaces = read_interfaces(source, &rules)?;
                Box::new(Interfaces::new(interfaces, &mut self.speeds.interfaces, now))
            }
            Kind::Tables => {
                let tables = source.filter().tables()?.into_iter().map(views::table).collect();
                let tables = views::tables(tables, &rules.loaded.ruleset);
                Box::new(Tables::new(tables, &mut self.speeds.tables, now))
            }
            Kind::Drops => {
                self.take_drops(source)?;
                Box::new(self.drops.rows(now))
            }
            Kind::Log => {
                let log = self.log.as_mut().context("no rule")?;
                self.is_behind = log.follow()?;
                Box::new(log.rows())
            }
        };
        self.rows = Some(rows);
        self.place_cursor();
        Ok(())
    }

    /// Reads the rules again after a load.
    fn follow_rules(&mut self, source: &dyn Source) -> Result<Rc<RulesInForce>> {
        let generation = source.generation();
        if let Some(rules) = &self.rules
            && rules.loaded.generation == generation
        {
            return Ok(Rc::clone(rules));
        }
        let rules = Rc::new(source.rules()?);
        if self.view == View::Log && self.rules.is_some() {
            self.message = Some("rules were loaded: packets of the new rules are not shown".into());
        }
        self.rules = Some(Rc::clone(&rules));
        // the filters have entries of tables
        (self.state_filter, self.drop_filter) = (None, None);
        Ok(rules)
    }

    fn read_states(
        &mut self,
        source: &dyn Source,
        rules: &Rc<RulesInForce>,
        now: Instant,
    ) -> Result<States> {
        if self.state_filter.is_none() {
            self.state_filter = Some(self.parse_state_filter(&self.state_words, source)?);
        }
        let filter = self.state_filter.as_mut().context("no filter")?;
        let states = source.filter().states()?;
        let counters = states.iter().map(|state| (state.id, states::counted(state)));
        let speeds = self.speeds.states.update(now, counters);
        let chosen = filter.choose(&states, &rules.loaded.ruleset);
        let now = source.filter().now()?;
        Ok(States::new(self.view, states, speeds, Rc::clone(rules), now, chosen))
    }

    fn parse_state_filter(&self, words: &str, source: &dyn Source) -> Result<StateFilter> {
        StateFilter::parse(words, &self.args, source.host()?, &|table| source.entries(table))
    }

    fn parse_drop_filter(&self, words: &str, source: &dyn Source) -> Result<DropFilter> {
        let entries = |table: &str| source.entries(table);
        match DropFilter::parse(words, &self.args, source.host()?, &entries)? {
            Ok(filter) => Ok(filter),
            Err(diagnostics) => bail!("{}", message(&diagnostics)),
        }
    }

    fn read_rules(
        &mut self,
        source: &dyn Source,
        rules: &Rc<RulesInForce>,
        now: Instant,
    ) -> Result<Rules> {
        let counters = source.counters()?;
        let ids = rules::listed(&rules.loaded.ruleset);
        let counted =
            |id: &RuleId| (id.clone(), rules::counted(&rules::counters_of(&counters, id)));
        let speeds = self.speeds.rules.update(now, ids.iter().map(counted));
        Ok(Rules::new(self.view, Rc::clone(rules), ids, &counters, &speeds))
    }

    /// Counts the packets that were dropped since the last call, if the view shows them.
    ///
    /// # Errors
    /// Fails if the ring cannot be read, or if the words of the filter are wrong.
    pub fn take_drops(&mut self, source: &mut dyn Source) -> Result<()> {
        if self.view.kind() != Kind::Drops {
            return Ok(());
        }
        if self.drop_filter.is_none() {
            self.drop_filter = Some(self.parse_drop_filter(&self.drop_words, source)?);
        }
        let (Some(filter), Some(rules)) = (&mut self.drop_filter, &self.rules) else {
            return Ok(());
        };
        let drops = &mut self.drops;
        let unseen = source.take_drops(&mut |packet| {
            if let Some(dropped) = Dropped::new(packet, rules).filter(|d| filter.admits(d)) {
                drops.take(dropped);
            }
        })?;
        self.status.drops_without_row = (unseen.lost, self.drops.others());
        if unseen.was_silent {
            self.message = Some("drops were not counted while pftop was stopped".into());
        }
        Ok(())
    }

    /// Puts the cursor on the wanted rule, and not behind the last row.
    fn place_cursor(&mut self) {
        let Some(rows) = &self.rows else { return };
        if let Some(wanted) = self.wanted.take()
            && let Some(place) = rows.place_of(&wanted)
        {
            self.cursor = place;
        }
        self.cursor = self.cursor.min(rows.len().saturating_sub(1));
    }

    /// Returns the rows on the screen, arranged. `height` is the number of rows that fit.
    pub(crate) fn arranged(&mut self, height: usize) -> std::ops::Range<usize> {
        let page = self.most_rows.map_or(height, |most| most.min(height)).max(1);
        self.page = page;
        let Some(rows) = &mut self.rows else { return 0..0 };
        let most_top = rows.len().saturating_sub(page);
        self.top = self.top.min(most_top);
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(page), self.cursor);
        let end = (self.top + page).min(rows.len());
        rows.arrange(self.order, self.reverse, end);
        self.top..end
    }

    /// Returns the object of the row with the cursor.
    pub(crate) fn subject(&self) -> Option<Subject> {
        let rows = self.rows.as_ref().filter(|rows| self.cursor < rows.len())?;
        Some(rows.subject(self.cursor))
    }

    /// Moves the cursor by rows.
    pub(crate) fn move_cursor(&mut self, rows: isize) {
        let last = self.rows.as_ref().map_or(0, |rows| rows.len()).saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(rows).min(last);
    }

    /// Shows another view. The rows are read at the next refresh.
    pub(crate) fn show(&mut self, view: View) {
        if view == self.view {
            return;
        }
        if view.kind() != self.view.kind() {
            self.orders.insert(self.view.kind(), (self.order, self.reverse));
            (self.order, self.reverse) = self.orders.get(&view.kind()).copied().unwrap_or_default();
            (self.cursor, self.top) = (0, 0);
            self.rows = None;
            self.drops = DropCounts::default();
        }
        self.view = view;
    }

    /// Remembers the place that Esc goes back to.
    fn leave(&mut self) {
        if self.back.len() == MOST_PLACES {
            self.back.remove(0);
        }
        let state_words = self.state_words.clone();
        self.back.push(Place { view: self.view, state_words, cursor: self.cursor });
    }

    /// Goes back to the place before. Returns false if there is none.
    pub(crate) fn go_back(&mut self) -> bool {
        let Some(place) = self.back.pop() else { return false };
        self.set_state_words(place.state_words);
        self.show(place.view);
        self.cursor = place.cursor;
        true
    }

    fn set_state_words(&mut self, words: String) {
        if words != self.state_words {
            self.state_words = words;
            self.state_filter = None;
        }
    }

    /// Shows the states that a row leads to, or the rule that made the row. Returns false if the
    /// row leads nowhere.
    pub(crate) fn enter(&mut self) -> bool {
        match self.subject() {
            Some(Subject::Rule(rule)) => self.show_states(format!("rule {rule}")),
            Some(Subject::Interface(name)) => self.show_states(format!("on {name}")),
            Some(Subject::State { rule: Some(rule), .. } | Subject::Drop(Some(rule))) => {
                self.leave();
                self.show(View::Rules);
                (self.order, self.reverse) = (Order::None, false);
                self.wanted = Some(rule);
            }
            Some(Subject::State { rule: None, .. } | Subject::Drop(None)) => {
                self.message = Some("no rule in force belongs to this row".into());
                return false;
            }
            _ => return false,
        }
        true
    }

    fn show_states(&mut self, words: String) {
        self.leave();
        self.set_state_words(words);
        self.show(View::Default);
    }

    /// Shows the log of the rule that the row is about. Returns false if there is none, and says
    /// why.
    pub(crate) fn show_log(&mut self) -> bool {
        let rule = match self.subject() {
            Some(Subject::Rule(rule)) => Some(rule),
            Some(Subject::State { rule, .. } | Subject::Drop(rule)) => rule,
            _ => None,
        };
        let Some((id, rules)) = rule.zip(self.rules.as_ref()) else {
            self.message = Some("put the cursor on a rule, then l shows its log".into());
            return false;
        };
        let Some(log) = rules.loaded.ruleset.rule(&id).and_then(|rule| rule.log) else {
            self.message = Some(format!(
                "rule {id} does not log: add log to it, or look at the view drops (d)"
            ));
            return false;
        };
        let path = format!("{}{}", self.log_file, log.to).into();
        let log = RuleLog::new(id, rules.loaded.clone(), path);
        self.leave();
        self.log = Some(log);
        self.show(View::Log);
        true
    }

    /// Returns the rule of the log on the screen.
    pub(crate) fn logged_rule(&self) -> Option<&RuleId> {
        self.log.as_ref().map(RuleLog::rule)
    }

    /// Returns the words that choose the rows of the view.
    pub(crate) fn words(&self) -> &str {
        match self.view.kind() {
            Kind::States => &self.state_words,
            Kind::Drops => &self.drop_words,
            _ => "",
        }
    }

    /// Replaces the words that choose rows, if they are right.
    ///
    /// # Errors
    /// Fails with a message for the user if a word is wrong.
    pub fn set_words(&mut self, words: &str, source: &dyn Source) -> Result<()> {
        if self.view.kind() == Kind::Drops {
            self.drop_filter = Some(self.parse_drop_filter(words, source)?);
            self.drop_words = words.to_owned();
            self.drops = DropCounts::default();
        } else {
            self.state_filter = Some(self.parse_state_filter(words, source)?);
            self.state_words = words.to_owned();
        }
        (self.cursor, self.top) = (0, 0);
        Ok(())
    }
}

/// Reads the interfaces, with the number of states on each.
fn read_interfaces(source: &dyn Source, rules: &RulesInForce) -> Result<Vec<InterfaceView>> {
    let filter = source.filter();
    let known = filter.interfaces()?;
    let counters: BTreeMap<_, _> = known
        .into_iter()
        .map(|interface| (interface.name.clone(), views::counted(&interface)))
        .collect();
    let (host, states) = (source.host()?, filter.states()?);
    let loaded_at = views::seconds(rules.loaded.loaded_at);
    Ok(views::interfaces(&host, &rules.loaded.ruleset, &states, &counters, loaded_at))
}
