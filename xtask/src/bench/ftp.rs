//! `xtask bench --ftp`: the cost of FTP through a gateway, for each front and for a router that
//! filters nothing.
//!
//! tests/netns/bench-ftp.sh starts the hosts and programs; this module evaluates its figures.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// The result of a round for one front: sessions a second, bytes a second, and CPU milliseconds for
/// 1 GB.
type Figures = (f64, f64, Option<f64>);

/// The results of all rounds.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    /// The fronts in the order of their first results.
    fronts: Vec<(String, Vec<Figures>)>,
    /// Bytes of memory of an idle session of ftp-gw.
    session: Option<f64>,
}

/// Measures and prints a table.
///
/// # Errors
/// Fails if the script fails, or if a line of its output is not as expected.
pub fn run(rounds: u32) -> anyhow::Result<()> {
    let folder = std::env::current_exe()?;
    let folder = folder.parent().context("where this program is")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/netns/bench-ftp.sh");
    let mut child = Command::new("bash")
        .arg(&script)
        .env("BIN", folder)
        .env("ROUNDS", rounds.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| script.display().to_string())?;
    let mut measured = Measured::default();
    for line in BufReader::new(child.stdout.take().context("its output")?).lines() {
        measured.take(&line?)?;
    }
    ensure!(child.wait()?.success(), "{} failed", script.display());
    print!("{}", measured.table(rounds)?);
    Ok(())
}

impl Measured {
    /// Parses a line of the script: `NAME: SESSIONS BYTES [CPU]`, or
    /// `memory: SESSIONS BEFORE AFTER` in kB.
    fn take(&mut self, line: &str) -> anyhow::Result<()> {
        let (name, numbers) = line.rsplit_once(": ").with_context(|| line.to_string())?;
        let numbers: Vec<f64> = numbers
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| line.to_string())?;
        match numbers[..] {
            [sessions, before, after] if name == "memory" => {
                self.session = Some((after - before) * 1024.0 / sessions);
            }
            [sessions, bytes, ref cpu @ ..] if cpu.len() <= 1 => {
                let place = self.fronts.iter().position(|(front, _)| front == name);
                let place = place.unwrap_or_else(|| {
                    self.fronts.push((name.to_string(), Vec::new()));
                    self.fronts.len() - 1
                });
                self.fronts[place].1.push((sessions, bytes, cpu.first().copied()));
            }
            _ => anyhow::bail!("{line}"),
        }
        Ok(())
    }

    /// Formats the medians, and their ratios to those of the first front.
    fn table(&self, rounds: u32) -> anyhow::Result<String> {
        let medians = self.fronts.iter().map(|(name, figures)| {
            let mut sessions: Vec<f64> = figures.iter().map(|figures| figures.0).collect();
            let mut bytes: Vec<f64> = figures.iter().map(|figures| figures.1).collect();
            let mut cpu: Vec<f64> = figures.iter().filter_map(|figures| figures.2).collect();
            let cpu = (!cpu.is_empty()).then(|| super::median(&mut cpu));
            (name, super::median(&mut sessions), super::median(&mut bytes) / 1e6, cpu)
        });
        let medians: Vec<_> = medians.collect();
        let (_, first_sessions, first_bytes, _) =
            *medians.first().context("nothing was measured")?;
        let mut text = format!(
            "FTP through a gateway: medians of {rounds} rounds, how much that is of the first, and ftp-gw's \
             time on a processor\n\n{:<20}{:>12}{:>7}{:>10}{:>7}{:>14}\n",
            "", "sessions/s", "", "MB/s", "", "ms for 1 GB"
        );
        for (name, sessions, bytes, cpu) in medians {
            let line = format!(
                "{name:<20}{sessions:>12.1}{:>7.2}{bytes:>10.0}{:>7.2}{:>14}",
                sessions / first_sessions,
                bytes / first_bytes,
                cpu.map_or_else(String::new, |cpu| format!("{cpu:.0}")),
            );
            text += line.trim_end();
            text.push('\n');
        }
        let session = self.session.context("no memory was measured")?;
        text += &format!("\nAn idle session of ftp-gw takes {:.1} kB.\n", session / 1024.0);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_beside_the_first() {
        let mut measured = Measured::default();
        for line in [
            "router: 100.0 2000000000",
            "ftp-gw, 64k: 50.0 1000000000 300",
            "router: 300.0 2000000000",
            "ftp-gw, 64k: 50.0 1000000000 200",
            "router: 200.0 2000000000",
            "ftp-gw, 64k: 60.0 3000000000 250",
            "memory: 100 1000 1300",
        ] {
            measured.take(line).unwrap();
        }
        let table = measured.table(3).unwrap();
        let line = "ftp-gw, 64k                 50.0   0.25      1000   0.50           250\n";
        assert!(table.contains(line), "{table}");
        assert!(table.ends_with("takes 3.0 kB.\n"), "{table}");
        assert!(measured.take("router: 1").is_err() && measured.take("what").is_err());
        assert!(Measured::default().table(3).is_err());
    }
}
