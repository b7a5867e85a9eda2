//! The progress of a seed: printed at intervals, stored in a file, and continued from there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::coverage::Coverage;

/// Time between two messages.
const PAUSE: Duration = Duration::from_secs(30);

/// The finished cases and their counts.
pub struct Progress {
    seed: u64,
    /// The first case that no thread has begun.
    next: u64,
    /// Cases from the first unfinished one on, with the counts of finished ones.
    open: BTreeMap<u64, Option<Played>>,
    /// Counts of the cases before `open`, with those of earlier runs.
    settled: Settled,
    /// Counts of earlier runs.
    earlier: Settled,
    covered: Coverage,
    disagreements: usize,
    start: Instant,
    told: Instant,
    file: Option<PathBuf>,
}

/// Counts of the first cases of a seed, without a gap.
#[derive(Default, Clone, Copy)]
struct Settled {
    cases: u64,
    packets: u64,
    disagreements: usize,
}

/// Counts of a finished case.
#[derive(Clone, Copy)]
struct Played {
    packets: u64,
    disagrees: bool,
}

impl Progress {
    /// Starts at the first case, or continues the progress that `file` has of the same seed.
    ///
    /// # Errors
    /// Fails if the file cannot be read or belongs to another seed.
    pub fn begin(seed: u64, file: Option<&Path>) -> anyhow::Result<Self> {
        let earlier = match file {
            Some(path) if path.exists() => {
                read(path, seed).with_context(|| path.display().to_string())?
            }
            _ => Settled::default(),
        };
        let now = Instant::now();
        Ok(Progress {
            seed,
            next: earlier.cases,
            open: BTreeMap::new(),
            settled: earlier,
            earlier,
            covered: Coverage::default(),
            disagreements: earlier.disagreements,
            start: now,
            told: now,
            file: file.map(Path::to_owned),
        })
    }

    /// Returns the number of packets so far, with those of earlier runs.
    pub fn packets(&self) -> u64 {
        self.earlier.packets + self.covered.packets
    }

    /// Returns the number of disagreements so far, with those of earlier runs.
    pub fn disagreements(&self) -> usize {
        self.disagreements
    }

    /// Returns the number of the next case to play.
    pub fn next_case(&mut self) -> u64 {
        self.open.insert(self.next, None);
        self.next += 1;
        self.next - 1
    }

    /// Records a finished case. A case with a disagreement counts as finished, because it has a
    /// file of its own.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn done(&mut self, number: u64, met: &Coverage, disagrees: bool) -> anyhow::Result<()> {
        self.covered.add(met);
        self.disagreements += usize::from(disagrees);
        self.open.insert(number, Some(Played { packets: met.packets, disagrees }));
        while let Some(first) = self.open.first_entry()
            && let Some(Played { packets, disagrees }) = *first.get()
        {
            first.remove();
            self.settled.cases += 1;
            self.settled.packets += packets;
            self.settled.disagreements += usize::from(disagrees);
        }
        if self.told.elapsed() >= PAUSE {
            self.told = Instant::now();
            println!("differential: seed {}, {}", self.seed, self.so_far());
            self.keep()?;
        }
        Ok(())
    }

    /// Stores the progress and returns the summary of this run. Call this when all cases have
    /// finished.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn total(&self, engines: &str) -> anyhow::Result<String> {
        self.keep()?;
        Ok(format!(
            "differential: {}\ndifferential: seed {}, {} on {engines}",
            self.covered,
            self.seed,
            self.so_far(),
        ))
    }

    fn so_far(&self) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let mut text = format!(
            "{} cases, {} packets, {:.0} a second, {} disagreements",
            self.next,
            self.packets(),
            self.covered.packets as f64 / seconds.max(1e-3),
            self.disagreements
        );
        if self.earlier.cases > 0 {
            let _ = write!(text, " since case {}", self.earlier.cases);
        }
        text
    }

    fn keep(&self) -> anyhow::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let Settled { cases, packets, disagreements } = self.settled;
        let text = format!(
            "seed {} cases {cases} packets {packets} disagreements {disagreements}\n",
            self.seed
        );
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }
}

fn read(path: &Path, seed: u64) -> anyhow::Result<Settled> {
    let text = std::fs::read_to_string(path)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["seed", of, "cases", cases, "packets", packets, "disagreements", disagreements] =
        words[..]
    else {
        anyhow::bail!("not a file of this command");
    };
    ensure!(of.parse() == Ok(seed), "belongs to seed {of}");
    Ok(Settled {
        cases: cases.parse()?,
        packets: packets.parse()?,
        disagreements: disagreements.parse()?,
    })
}
