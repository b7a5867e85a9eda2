//! Plays a case on an evaluator and reports the differences from its expectations.

use skipstep_model::{Carried, Fate, LinkHeader, Packet, TrialTime, Verdict};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Reason, RuleId, RulesChange, Ruleset};
use skipstep_views::{RuleCounters, Status};

use crate::case::{Action, Arrival, Case, Check, File, RuleCheck, StatusCheck, Step};
use crate::differences::Differences;
use crate::engine::Engine;
use crate::expect::Expectation;
use crate::host;
use crate::limiter::LimiterCheck;
use crate::observe::{Observation, Observer};
use crate::resolve::resolve;
use crate::traffic::{Counting, TrafficCheck};

/// A step with differences from its expectations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Index of the step in its case, from 0.
    pub step: usize,
    /// Line of the scenario file.
    pub line: u32,
    /// Differences, one line each.
    pub differences: Vec<String>,
}

/// The point at which a case ends after a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Play to the end, for a reader of all findings.
    AtEnd,
    /// Stop at the first finding, because later ones are consequences.
    AtFirst,
}

/// The result of a case on one evaluator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// Title of the case, or the line of its rules.
    pub title: String,
    /// Name of the evaluator.
    pub engine: String,
    /// Reason why the case could not be played: its rules have errors, or the evaluator refused
    /// them.
    pub error: Option<String>,
    /// Steps that differ from their expectations.
    pub findings: Vec<Finding>,
}

impl CaseResult {
    /// True if the case was played and met all expectations.
    pub fn passed(&self) -> bool {
        self.error.is_none() && self.findings.is_empty()
    }
}

/// Plays all cases of a file. `file_name` is its name in messages.
///
/// ```
/// use skipstep_scenario::{Model, parse, run};
///
/// let text = "
/// rules { block all; pass in on em0 proto tcp to port 22 }
/// in em0 tcp 10.0.1.5:4000 > 10.0.2.10:22 S         => pass rule 1, new state
/// out em0 tcp 10.0.2.10:22 > 10.0.1.5:4000 SA ack 1 => pass state
/// in em0 udp 10.0.1.5:53 > 10.0.2.10:53             => pass
/// ";
/// let file = parse::file(text, "ssh.scn").unwrap();
/// let results = run::file(&file, "ssh.scn", &mut Model::new());
/// assert!(!results[0].passed());
/// assert_eq!(results[0].findings[0].line, 5); // rule 0 blocks this packet
/// ```
pub fn file(file: &File, file_name: &str, engine: &mut dyn Engine) -> Vec<CaseResult> {
    let standard = host::standard();
    let host = file.host.as_ref().unwrap_or(&standard);
    file.cases
        .iter()
        .map(|case| {
            let played = ruleset(case, host, file_name)
                .and_then(|ruleset| play(case, &ruleset, host, engine, Stop::AtEnd));
            let (error, findings) = match played {
                Ok(findings) => (None, findings),
                Err(error) => (Some(error), Vec::new()),
            };
            CaseResult { title: title(case), engine: engine.name().to_owned(), error, findings }
        })
        .collect()
}

/// Returns the errors and findings of a case as text, `file:line: …` each; empty if it passed.
pub fn report(outcome: &CaseResult, file_name: &str) -> String {
    let mut text = String::new();
    if outcome.passed() {
        return text;
    }
    text += &format!("{}: {}\n", outcome.engine, outcome.title);
    if let Some(error) = &outcome.error {
        text += &format!("  {}\n", error.trim_end().replace('\n', "\n  "));
    }
    for finding in &outcome.findings {
        for difference in &finding.differences {
            text += &format!("  {file_name}:{}: {difference}\n", finding.line);
        }
    }
    text
}

/// Returns the title of a case, or one made of the line of its rules.
pub fn title(case: &Case) -> String {
    let line = case.rules.lines.first().copied().unwrap_or(0);
    case.title.clone().unwrap_or_else(|| format!("rules at line {line}"))
}

/// Returns the rule set of a case.
///
/// # Errors
/// Fails if the rules have errors. The messages name the lines of the scenario file.
pub fn ruleset(case: &Case, host: &Host, file_name: &str) -> Result<Ruleset, String> {
    resolve(&case.rules, "", &case.files, host, file_name)
}

/// Plays a case whose rule set is already resolved, and returns its findings.
///
/// # Errors
/// Fails if the evaluator refuses the rule set. A step that cannot be played is a finding.
pub fn play(
    case: &Case,
    ruleset: &Ruleset,
    host: &Host,
    engine: &mut dyn Engine,
    stop: Stop,
) -> Result<Vec<Finding>, String> {
    let walks_as_pf = engine.name().ends_with("skip-steps");
    let mut player = Player::load(engine, &case.files, ruleset, host)?;
    let mut findings = Vec::new();
    for (step, here) in case.steps.iter().enumerate() {
        let differences = match (&here.action, player.act(&here.action)) {
            (_, Err(reason)) => vec![reason],
            (
                Action::Packet(_, expected) | Action::Forward(_, expected),
                Ok(Event::Packet(observation)),
            ) => expected.compare(&observation),
            (Action::Wait { expired, .. }, Ok(Event::Time(found))) => {
                let mut differences = Differences::default();
                differences.compare("expired", expired, found);
                differences.0
            }
            (Action::Check(check), _) => {
                compare_counters(check, player.observer.engine(), walks_as_pf)
            }
            _ => Vec::new(),
        };
        if !differences.is_empty() {
            findings.push(Finding { step, line: here.line, differences });
            if stop == Stop::AtFirst {
                break;
            }
        }
    }
    Ok(findings)
}

/// Returns `case` with all results of `engine` as expectations, and checks of all counters at its
/// end.
///
/// # Errors
/// Fails if the evaluator refuses the rule set, or if a step cannot be played.
pub fn record(
    case: &Case,
    ruleset: &Ruleset,
    host: &Host,
    engine: &mut dyn Engine,
) -> Result<Case, String> {
    let mut player = Player::load(engine, &case.files, ruleset, host)?;
    let mut recorder = Recorder::default();
    for step in &case.steps {
        let event = player.act(&step.action)?;
        if !matches!(step.action, Action::Check(_)) {
            recorder.note(step, &event);
        }
    }
    Ok(Case { steps: recorder.finish(&mut player), ..case.clone() })
}

/// The converter of an engine's results to expectations of others.
pub struct Recorder {
    steps: Vec<Step>,
    /// True if no state waits for its removal because it has expired or was replaced. Evaluators
    /// remove such states at different times, so until then expiry is not compared.
    settled: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { steps: Vec::new(), settled: true }
    }
}

impl Recorder {
    /// Records a step and its result.
    pub fn note(&mut self, step: &Step, event: &Event) {
        let mut action = step.action.clone();
        match (event, &mut action) {
            (
                Event::Packet(observation),
                Action::Packet(_, expected) | Action::Forward(_, expected),
            ) => {
                *expected = Expectation::complete(observation);
                if !self.settled {
                    expected.expired = None;
                }
                self.settled = !observation.has_ended_states() && observation.removed.is_empty();
            }
            (Event::Time(found), Action::Wait { expired, .. }) => {
                *expired = self.settled.then(|| found.clone());
            }
            _ => {}
        }
        self.steps.push(Step { action, line: step.line });
    }

    /// Returns the steps so far.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Returns the steps so far, and checks of all counters.
    pub fn finish(mut self, player: &mut Player) -> Vec<Step> {
        let (ruleset, host) = (&player.ruleset, &player.host);
        let engine = player.observer.engine();
        let mut check = |check| self.steps.push(Step { line: 0, action: Action::Check(check) });
        let rules = ruleset.all_rules();
        let rules = rules.map(|(anchor, rule)| Some(RuleId::new(anchor, rule.number)));
        let old = ruleset.all_legacy_rules().map(|(anchor, old)| Some(old.id(anchor)));
        for rule in std::iter::once(None).chain(rules).chain(old) {
            let mut counters = rule_check(engine.rule_counters(rule.as_ref()));
            counters.states = counters.states.filter(|_| self.settled);
            check(Check::Rule(rule, counters));
        }
        let mut status = status_check(engine.status());
        if !self.settled {
            (status.states, status.removals) = (None, None);
        }
        check(Check::Status(status));
        let interfaces = host.interfaces.iter().map(|one| Counting::Interface(one.name.clone()));
        let tables = ruleset.tables.iter().flat_map(|table| {
            let entries = table.entries.iter().filter(|_| table.counters);
            let entries = entries.map(|entry| Counting::Entry(table.name.clone(), entry.net));
            std::iter::once(Counting::Table(table.name.clone())).chain(entries)
        });
        for of in interfaces.chain(tables) {
            check(Check::Traffic(TrafficCheck::complete(of, engine)));
        }
        for view in engine.limiters() {
            let mut limiter = LimiterCheck::complete(&view);
            // A state that waits for its removal may still count.
            limiter.states = limiter.states.filter(|_| self.settled);
            check(Check::Limiter(limiter));
        }
        self.steps
    }
}

/// An engine that plays the steps of a case.
pub struct Player<'e> {
    /// The engine and the numbers of its states.
    pub observer: Observer<'e>,
    /// Time since the start, in seconds.
    pub now: u32,
    /// Current rules, with all anchors.
    pub ruleset: Ruleset,
    /// Current host.
    pub host: Host,
    files: &'e [(String, String)],
    previous: Option<Passed>,
    /// The wish that the next load is on trial.
    trial_time: Option<TrialTime>,
    /// During a trial: the second when it ends, and the rules before it.
    before_trial: Option<(u32, Ruleset)>,
}

/// The last packet, as far as `forward` needs it.
struct Passed {
    packet: Packet,
    verdict: Verdict,
    out: Option<Vec<u8>>,
    carried: Carried,
}

/// The result of a step.
pub enum Event {
    /// A packet was filtered.
    Packet(Box<Observation>),
    /// Time passed, and these states expired.
    Time(Vec<u32>),
    /// The step has no visible result.
    None,
}

impl<'e> Player<'e> {
    /// Loads the rules into `engine`. Rules that steps load later may name `files`.
    ///
    /// # Errors
    /// Fails if the engine refuses the rules.
    pub fn load(
        engine: &'e mut dyn Engine,
        files: &'e [(String, String)],
        ruleset: &Ruleset,
        host: &Host,
    ) -> Result<Self, String> {
        let observer = Observer::load(engine, ruleset, host)?;
        let (ruleset, host) = (ruleset.clone(), host.clone());
        Ok(Player {
            observer,
            now: 0,
            ruleset,
            host,
            files,
            previous: None,
            trial_time: None,
            before_trial: None,
        })
    }

    /// Plays a step.
    ///
    /// # Errors
    /// Fails if the step is not possible: its rules have errors, its interface is unknown or down,
    /// or the engine cannot run its packet.
    pub fn act(&mut self, action: &Action) -> Result<Event, String> {
        let packet = match action {
            Action::Wait { seconds, .. } => {
                self.now += seconds;
                if self.before_trial.as_ref().is_some_and(|(until, _)| *until <= self.now) {
                    self.note_end_of_trial(false);
                }
                return Ok(Event::Time(self.observer.set_time(self.now)));
            }
            Action::Random(draw) => {
                self.observer.set_random(*draw);
                return Ok(Event::None);
            }
            Action::Kill(numbers) => {
                self.observer.kill(numbers);
                return Ok(Event::None);
            }
            Action::KillSelected(target) => {
                self.observer.kill_selected(target);
                return Ok(Event::None);
            }
            Action::Table(edit) => {
                let done = self.observer.engine().edit_table(edit);
                return match done {
                    true => Ok(Event::None),
                    false => Err("the table cannot be changed so".into()),
                };
            }
            Action::Load(path, rules) => {
                let new = resolve(rules, path, self.files, &self.host, "load")?;
                return self.change_rules(&RulesChange::Load(path.clone(), Box::new(new)));
            }
            Action::Flush(path) => return self.change_rules(&RulesChange::Flush(path.clone())),
            Action::Trial(time) => {
                self.trial_time = Some(*time);
                return Ok(Event::None);
            }
            Action::Confirm | Action::Revert => {
                let confirm = *action == Action::Confirm;
                if !self.observer.engine().end_trial(confirm) {
                    return Err("no rules are on trial".into());
                }
                self.note_end_of_trial(confirm);
                return Ok(Event::None);
            }
            Action::Host(change) => {
                let host = change.applied(&self.host)?;
                self.observer.engine().change_host(&host)?;
                self.host = host;
                return Ok(Event::None);
            }
            Action::Check(_) => return Ok(Event::None),
            Action::Packet(arrival, _) => test_packet(arrival),
            Action::Forward(interface, _) => forwarded(self.previous.take(), interface)?,
        };
        for name in std::iter::once(&packet.interface).chain(&packet.received_on) {
            match self.host.interface(name) {
                None => return Err(format!("the host has no interface {name}")),
                Some(interface) if interface.down => return Err(format!("{name} is down")),
                Some(_) => {}
            }
        }
        if !self.observer.engine().accepts(&packet) {
            return Err("the evaluator cannot be given this packet".into());
        }
        // A state may also expire without a change of the clock, by adaptive timeouts.
        self.observer.set_time(self.now);
        let observation = self.observer.packet(&packet);
        let Fate { verdict, out, carried, .. } = &observation.fate;
        let (out, carried) = (out.clone(), carried.clone());
        self.previous = Some(Passed { packet, verdict: *verdict, out, carried });
        Ok(Event::Packet(Box::new(observation)))
    }

    fn change_rules(&mut self, change: &RulesChange) -> Result<Event, String> {
        let next = change.next(&self.ruleset).ruleset;
        match self.trial_time.take() {
            None if self.before_trial.is_some() => {
                return Err("rules are on trial: confirm or revert them first".into());
            }
            None => self.observer.engine().change_rules(change)?,
            Some(time) => {
                self.observer.engine().try_rules(change, time)?;
                let before = self.before_trial.take();
                let before = before.map_or_else(|| self.ruleset.clone(), |(_, before)| before);
                self.before_trial = Some((self.now + time.seconds, before));
            }
        }
        self.ruleset = next;
        Ok(Event::None)
    }

    /// True if rules are on trial.
    pub fn is_on_trial(&self) -> bool {
        self.before_trial.is_some()
    }

    /// Notes which rules are in force after a trial.
    fn note_end_of_trial(&mut self, confirmed: bool) {
        if let Some((_, before)) = self.before_trial.take().filter(|_| !confirmed) {
            self.ruleset = before;
        }
    }
}

/// Returns an arrival as the packet that engines take.
pub fn test_packet(arrival: &Arrival) -> Packet {
    Packet {
        direction: arrival.direction,
        interface: arrival.interface.clone(),
        bytes: arrival.packet.bytes(),
        link: arrival.link.clone(),
        received_on: arrival.received_on.clone(),
        carried: Carried {
            tag: arrival.tag.clone(),
            prio: arrival.prio.unwrap_or(Carried::default().prio),
            queue: arrival.queue.clone(),
            delay: arrival.delay.unwrap_or(0),
            ..Carried::default()
        },
        owner: arrival.owner,
    }
}

/// Returns the packet that `previous` becomes when it leaves by `interface`.
fn forwarded(previous: Option<Passed>, interface: &str) -> Result<Packet, &'static str> {
    let Passed { packet, verdict, out, carried } =
        previous.ok_or("forward: there is no packet before it")?;
    if packet.direction != Direction::In {
        return Err("forward: the packet before it did not come in");
    }
    if verdict != Verdict::Pass {
        return Err("forward: the packet before it did not pass");
    }
    Ok(Packet {
        direction: Direction::Out,
        interface: interface.to_owned(),
        bytes: out.unwrap_or(packet.bytes),
        link: LinkHeader::default(),
        received_on: Some(packet.interface),
        carried,
        owner: None,
    })
}

fn rule_check(counters: RuleCounters) -> RuleCheck {
    RuleCheck {
        evaluations: None,
        packets: Some(counters.packets),
        bytes: Some(counters.bytes),
        states: Some(counters.states),
        created: Some(counters.states_created),
    }
}

fn status_check(status: Status) -> StatusCheck {
    StatusCheck {
        states: Some(status.states),
        searches: Some(status.searches),
        inserts: Some(status.inserts),
        removals: Some(status.removals),
        reasons: Reason::ALL
            .into_iter()
            .map(|reason| (reason, status.reasons[reason as usize]))
            .collect(),
    }
}

fn compare_counters(check: &Check, engine: &mut dyn Engine, walks_as_pf: bool) -> Vec<String> {
    let mut differences = Differences::default();
    match check {
        Check::Rule(rule, expected) => {
            let found = engine.rule_counters(rule.as_ref());
            let RuleCheck { evaluations, packets, bytes, states, created } = expected;
            if walks_as_pf {
                differences.compare("evaluations", evaluations, found.evaluations);
            }
            differences.compare("packets", packets, found.packets);
            differences.compare("bytes", bytes, found.bytes);
            differences.compare("states", states, found.states);
            differences.compare("states created", created, found.states_created);
        }
        Check::Limiter(expected) => expected.compare(&engine.limiters(), &mut differences),
        Check::Traffic(expected) => expected.compare(engine, &mut differences),
        Check::Status(StatusCheck { states, searches, inserts, removals, reasons }) => {
            let found = engine.status();
            differences.compare("states", states, found.states);
            differences.compare("searches", searches, found.searches);
            differences.compare("inserts", inserts, found.inserts);
            differences.compare("removals", removals, found.removals);
            for (reason, count) in reasons {
                differences.compare(
                    Reason::name(*reason),
                    &Some(*count),
                    found.reasons[*reason as usize],
                );
            }
        }
    }
    differences.0
}
