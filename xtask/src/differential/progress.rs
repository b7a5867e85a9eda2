//! How far a seed got: told now and then, kept in a file, gone on from there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::coverage::Coverage;

/// Between two words about it.
const PAUSE: Duration = Duration::from_secs(30);

/// The cases done and what they met.
pub struct Progress {
    seed: u64,
    /// The first case that nobody has begun.
    next: u64,
    /// Cases from the first that is not done on, with what those had that are done.
    open: BTreeMap<u64, Option<Played>>,
    /// What the cases before `open` had, those of earlier runs among them.
    settled: Settled,
    /// Where this run began.
    earlier: Settled,
    covered: Coverage,
    disagreements: usize,
    start: Instant,
    told: Instant,
    file: Option<PathBuf>,
}

/// What the first cases of a seed had, without a gap.
#[derive(Default, Clone, Copy)]
struct Settled {
    cases: u64,
    packets: u64,
    disagreements: usize,
}

/// What a case had that was played.
#[derive(Clone, Copy)]
struct Played {
    packets: u64,
    disagrees: bool,
}

impl Progress {
    /// A new one, or the one that `file` has of the same seed.
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

    /// Packets so far, those of earlier runs among them.
    pub fn packets(&self) -> u64 {
        self.earlier.packets + self.covered.packets
    }

    /// Disagreements so far, those of earlier runs among them.
    pub fn disagreements(&self) -> usize {
        self.disagreements
    }

    /// The number of a case for somebody to play.
    pub fn next_case(&mut self) -> u64 {
        self.open.insert(self.next, None);
        self.next += 1;
        self.next - 1
    }

    /// A case was played. One that disagrees is done with, too: it was written to a file of its
    /// own.
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

    /// Everything about this run; to be asked when all is done.
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
