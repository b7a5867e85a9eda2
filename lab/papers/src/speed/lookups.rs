//! The time to find the deciding rule among 100,000 rules. The data plane's lookup is compared with
//! a lookup in a hash map of the kernel with 1,000 keys of 16 bytes.

use std::cell::RefCell;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fwlab_lookups::{List, classbench};
use fwlab_method::rounds::{Measured, Subject};
use fwlab_net::placement::{self, Placement, Watch};
use fwlab_results::{Better, Quantity, Role, Series};
use nix::unistd::Pid;
use skipstep_abi::limits::MAX_RULES;
use skipstep_samples::ListShape;
use skipstep_testing::{Lookup, Lookups, PACKETS};

use crate::study::{Extent, Study};

/// Number of rules in a list; with `--smoke` the second number.
pub(super) const RULES: u32 = 100_000;
const SMOKE: u32 = 1000;

/// Estimated seconds of a round of one list, with its share of the preparation.
pub(super) const ROUND: f64 = 2.0;

/// ClassBench's lists, and the titles of their series.
pub(super) const CLASSBENCH: [(&str, &str); 3] = [
    ("acl1", "Lookups, ClassBench acl1"),
    ("fw1", "Lookups, ClassBench fw1"),
    ("ipc1", "Lookups, ClassBench ipc1"),
];

/// The names of the samples: the loop without a lookup, the hash map that is the unit, the deciding
/// rule over IPv4, and over IPv6.
pub(super) const NOTHING: &str = "no-lookup";
pub(super) const HASH: &str = "hash-map";
pub(super) const INET: &str = "lookup";
pub(super) const INET6: &str = "lookup-inet6";

/// Returns the title of the series of a sample of `skipstep_samples`.
pub(super) fn title(kind: ListShape) -> String {
    format!("Lookups, sample {}", kind.name())
}

/// One kind of lookup, as a subject of rounds.
struct Turn<'l> {
    id: &'static str,
    lookups: &'l RefCell<Lookups>,
    cpu: usize,
    duration: Duration,
}

impl Subject for Turn<'_> {
    fn id(&self) -> &str {
        self.id
    }

    /// Looks all packets up repeatedly until the time is over.
    fn trial(&mut self) -> anyhow::Result<Measured> {
        let what = match self.id {
            NOTHING => Lookup::Nothing,
            HASH => Lookup::Hash,
            _ => Lookup::Walk,
        };
        let mut lookups = self.lookups.borrow_mut();
        Placement { cpu: self.cpu, priority: 1 }.take()?;
        let (watch, since) = (Watch::begin(self.cpu)?, Instant::now());
        let (mut sum, mut passes) = (0.0, 0.0);
        while passes == 0.0 || since.elapsed() < self.duration {
            sum += lookups.run(what)?;
            passes += 1.0;
        }
        let why = watch.end()?.doubt_if_busy(since.elapsed());
        Placement { cpu: self.cpu, priority: 0 }.take()?;
        Ok(Measured { value: sum / passes, doubt: why, counts: None, latency: None })
    }
}

/// Two data planes, so that a list can be looked up in both families in the same rounds.
struct DataPlanes {
    inet: RefCell<Lookups>,
    inet6: RefCell<Lookups>,
    cpu: usize,
}

impl DataPlanes {
    /// Measures a list, and its counterpart in the other family if there is one.
    fn measure(
        &self,
        study: &mut Study,
        title: &str,
        list: &List,
        six: Option<&List>,
    ) -> anyhow::Result<()> {
        let duration = Duration::from_secs_f64(study.seconds);
        let mut turns: Vec<Box<dyn Subject + '_>> = Vec::new();
        let mut add = |id, lookups| {
            turns.push(Box::new(Turn { id, lookups, cpu: self.cpu, duration }));
        };
        for id in [NOTHING, HASH, INET] {
            add(id, &self.inet);
        }
        if six.is_some() {
            add(INET6, &self.inet6);
        }
        for (list, lookups) in [(Some(list), &self.inet), (six, &self.inet6)] {
            let Some(list) = list else { continue };
            study.interrupt().check()?;
            let mut lookups = lookups.borrow_mut();
            let loaded = list.load(&mut lookups)?;
            lookups.run(Lookup::Walk)?;
            // a lookup that finds a wrong rule is not measured
            let differ = list.differ(&loaded, &lookups.decided()?)?;
            if differ > 0 {
                study.leave_out(&format!("{title}: {differ} lookups differ from the model's"));
                return Ok(());
            }
        }
        study.measure_others(described(), &series(title, study.seconds), RULES, ROUND, &mut turns)
    }
}

/// Measures the samples, and ClassBench's lists if a folder is given.
///
/// # Errors
/// Fails if the kernel refuses a program or map, if a list cannot be read, or if a signal arrives.
pub(super) fn measure(study: &mut Study, folder: Option<&Path>) -> anyhow::Result<()> {
    let [_, at] = study.places()?;
    // a data plane moves its thread to a new network namespace
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            placement::pin(Pid::from_raw(0), &[at.cpu])?;
            measure_here(study, folder, at.cpu)
        });
        there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_here(study: &mut Study, folder: Option<&Path>, cpu: usize) -> anyhow::Result<()> {
    let lookups = || Lookups::new(MAX_RULES, 0).map(RefCell::new);
    let data_planes = DataPlanes { inet: lookups()?, inet6: lookups()?, cpu };
    let count = if study.extent == Extent::Smoke { SMOKE } else { RULES } as usize;
    for kind in ListShape::ALL {
        let [list, six] = [false, true].map(|six| List::sample(kind, count, six));
        data_planes.measure(study, &title(kind), &list, Some(&six))?;
    }
    let Some(folder) = folder else {
        for (_, title) in CLASSBENCH {
            study.leave_out(&format!("{title}: no rule lists: name their folder by --classbench"));
        }
        return Ok(());
    };
    let lists = classbench::lists(folder)?;
    for (family, title) in CLASSBENCH {
        let is_meant = |name: &str, rules: &[_]| {
            name.starts_with(family) && classbench::has_about(rules, count)
        };
        let found = lists.iter().find(|(name, rules)| is_meant(name, rules));
        let Some((name, rules)) = found else {
            study.leave_out(&format!("{title}: no such list of {count} rules in the folder"));
            continue;
        };
        let list = List::of_classbench(name, rules, classbench::trace(folder, name)?);
        data_planes.measure(study, title, &list, None)?;
    }
    Ok(())
}

/// Describes the lookups for results.
fn described() -> Vec<fwlab_results::System> {
    let what = [
        (NOTHING, "no lookup"),
        (HASH, "one lookup in a hash map"),
        (INET, "the rule that decides"),
        (INET6, "the rule that decides, IPv6"),
    ];
    let how = format!("{PACKETS} packets, one after the other, their headers in a list");
    what.map(|(id, label)| {
        fwlab_results::System::new(id, label, Role::Subject, "router", how.clone())
    })
    .into()
}

fn series(title: &str, seconds: f64) -> Series {
    Series {
        title: title.to_owned(),
        load: fwlab_results::Load {
            kind: "lookups".to_owned(),
            seconds,
            ..fwlab_results::Load::default()
        },
        quantity: Quantity {
            name: "time per lookup".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
            additive: false,
        },
        dimension: None,
        points: Vec::new(),
    }
}
