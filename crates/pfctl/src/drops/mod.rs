//! `pfctl drops`: prints dropped packets as they are dropped, each with its reason and rule.

pub mod filter;
pub mod limit;
pub mod record;
pub mod rules;
pub mod summary;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chrono::{Local, Utc};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use skipstep_kernel::{DroppedPacket, Drops, Instance, host};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Ruleset, TableEntry, TableName};

use crate::access;
use crate::explain::{self, Explanation};
use crate::load;
use crate::output::{print, without_controls};
use crate::request::Args;
use filter::Filter;
use limit::{Limiter, SECOND};
use record::{Dropped, Kind};
use rules::RulesInForce;
use summary::Summary;

/// Longest wait for packets, before other lines are printed and a signal is noticed.
const TICK: Duration = Duration::from_millis(200);

/// Prints dropped packets until a signal ends the process, and then their number by reason and
/// rule.
///
/// # Errors
/// Fails if the user is not root, if no rules are loaded, or if too many programs read already.
/// Also fails if an operand is wrong, or if standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let stop = stop_flag()?;
    let Some(instance) = access::open(args)? else {
        bail!("no rules are loaded, so nothing is dropped: load rules with pfctl -f");
    };
    let Some(mut printer) = Printer::new(args, &instance)? else {
        return Ok(ExitCode::FAILURE);
    };
    if !instance.running() {
        eprintln!("pfctl: the filter is disabled, so it drops nothing: pfctl -e enables it");
    }
    let mut drops = instance.read_drops()?;
    let mut packets: Vec<DroppedPacket> = Vec::new();
    while !stop.load(Ordering::Relaxed) && instance.is_current() {
        drops.poll(TICK, |packet| packets.push(packet.clone()))?;
        printer.follow_rules()?;
        for packet in packets.drain(..) {
            printer.take(&packet)?;
            // a terminal may have stopped the output
            drops.renew();
        }
        printer.end_seconds()?;
        printer.report_missing(&mut drops)?;
    }
    let lost = drops.lost()?;
    drop(drops);
    printer.summarize(lost)?;
    if !instance.is_current() {
        bail!("the filter was removed or made anew: run pfctl drops again");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a flag that signals set. A second signal ends the process, which may wait for a terminal
/// that has stopped the output.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let status = 128 + signal;
        flag::register_conditional_shutdown(signal, status, Arc::clone(&stop))
            .context("signals")?;
        flag::register(signal, Arc::clone(&stop)).context("signals")?;
    }
    Ok(stop)
}

/// Prints the packets that the filter words choose.
struct Printer<'a> {
    args: &'a Args,
    instance: &'a Instance,
    filter: Filter,
    rules: RulesInForce,
    /// The rules in force with the entries of their tables, for `--explain`.
    explained: Option<Ruleset>,
    /// The host, read once for the packets of a turn.
    host: Option<Host>,
    limiter: Limiter<Kind>,
    summary: Summary,
    missing: Missing,
}

/// The dropped packets that did not reach this program.
struct Missing {
    /// Number of packets that are reported already.
    reported: u64,
    looked: Instant,
}

impl<'a> Printer<'a> {
    /// Returns `None` after printing what is wrong with the filter words.
    fn new(args: &'a Args, instance: &'a Instance) -> Result<Option<Self>> {
        let entries = |table: &str| -> Result<Vec<TableEntry>> {
            Ok(instance.table_entries(&TableName::from(table))?)
        };
        let operands = args.operands.join(" ");
        let filter = match Filter::parse(&operands, args, host::read()?, &entries)? {
            Ok(filter) => filter,
            Err(diagnostics) => {
                load::report(&diagnostics);
                let example = filter::EXAMPLE;
                eprintln!("pfctl: a filter has the criteria of a rule, as in: {example}");
                return Ok(None);
            }
        };
        let rules = RulesInForce::read(instance)?;
        let mut printer = Printer {
            args,
            instance,
            filter,
            rules,
            explained: None,
            host: None,
            limiter: Limiter::default(),
            summary: Summary::default(),
            missing: Missing { reported: 0, looked: Instant::now() },
        };
        printer.read_explained()?;
        Ok(Some(printer))
    }

    fn read_explained(&mut self) -> Result<()> {
        if self.args.explain {
            self.explained = Some(explain::with_entries(self.instance)?);
        }
        Ok(())
    }

    /// Reads the rules again after a load.
    fn follow_rules(&mut self) -> Result<()> {
        if self.rules.loaded.generation == self.instance.generation() {
            return Ok(());
        }
        self.rules = RulesInForce::read(self.instance)?;
        self.read_explained()
    }

    fn take(&mut self, packet: &DroppedPacket) -> Result<()> {
        let Some(dropped) = Dropped::new(packet, &self.rules) else { return Ok(()) };
        if !self.filter.admits(&dropped) {
            return Ok(());
        }
        self.summary.count(&dropped);
        if !self.limiter.admits(&dropped.kind(), Instant::now()) {
            return Ok(());
        }
        let explanation = self.explain(&dropped)?;
        print(&match (self.args.json, &self.explained) {
            (true, rules) => {
                let rules = rules.as_ref();
                let explanation = explanation.zip(rules).map(|(found, rules)| found.json(rules));
                format!("{}\n", dropped.json(explanation))
            }
            (false, Some(rules)) => {
                let explanation = explanation.map(|found| details(&found, rules));
                format!("{}\n{}", dropped.line(&Local), explanation.unwrap_or_default())
            }
            (false, None) => format!("{}\n", dropped.line(&Local)),
        })
    }

    /// Lets the model judge a packet, with `--explain`.
    fn explain(&mut self, dropped: &Dropped) -> Result<Option<Explanation>> {
        let Some(rules) = self.explained.as_ref().filter(|_| dropped.is_ip) else {
            return Ok(None);
        };
        let host = match &mut self.host {
            Some(host) => host,
            host => host.insert(host::read()?),
        };
        explain::add_interface(host, &dropped.interface);
        Ok(Some(explain::explain(rules, host, &filter::model_packet(dropped))))
    }

    /// Prints how many packets got no line in the seconds that are over.
    fn end_seconds(&mut self) -> Result<()> {
        self.host = None;
        for (kind, more) in self.limiter.end_seconds(Instant::now()) {
            let now = Utc::now();
            print(&match self.args.json {
                true => format!("{}\n", kind.json(&now, more)),
                false => format!("{}\n", kind.line(&now, more, &Local)),
            })?;
        }
        Ok(())
    }

    /// Tells once a second how many dropped packets did not reach this program.
    fn report_missing(&mut self, drops: &mut Drops) -> Result<()> {
        if drops.was_silent() {
            eprintln!(
                "pfctl: packets may be missing: the filter reports none to a program that does not \
                 read for some seconds"
            );
        }
        if self.missing.looked.elapsed() >= SECOND {
            let lost = drops.lost()?;
            if lost > self.missing.reported {
                let more = lost - self.missing.reported;
                eprintln!("pfctl: {more} more packets were dropped, too fast to be read");
            }
            self.missing = Missing { reported: lost, looked: Instant::now() };
        }
        Ok(())
    }

    /// Prints the number of packets by reason and rule, and the number of packets that were lost.
    fn summarize(&self, lost: u64) -> Result<()> {
        if !self.args.json {
            print(&format!("\n{}", self.summary.text()))?;
        }
        if lost > 0 {
            eprintln!("pfctl: {lost} more packets were dropped in all, too fast to be read");
        }
        Ok(())
    }
}

/// Returns the stages and the verdict of an explanation. Its first line is the packet, which is
/// printed already.
fn details(explanation: &Explanation, rules: &Ruleset) -> String {
    let text = explanation.text(rules, &explain::place_in_force);
    let lines = text.lines().skip(1);
    lines.map(|line| format!("    {}\n", without_controls(line.trim_start()))).collect()
}
