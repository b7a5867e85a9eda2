//! Reading and writing of result files. A write is atomic, and a read checks consistency.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use chrono::{SecondsFormat, Utc};
use flate2::read::GzDecoder;
use serde::Deserialize;
use thiserror::Error;

use crate::layout::lay_out;
use crate::{Environment, Mode, Role, Run, SCHEMA_VERSION, sha256};

/// The first bytes of a gzip file (RFC 1952 section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The largest result in bytes, so that a compressed file cannot fill the memory.
const LARGEST: u64 = 1 << 30;

/// The reason for which a result file cannot be used.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no JSON, or no result.
    #[error("not a result file of fwlab")]
    Format(#[from] serde_json::Error),
    /// A newer version of the program wrote the file.
    #[error("format {0} is newer than this program, which reads up to format {SCHEMA_VERSION}")]
    Newer(u32),
    /// The values contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

/// Returns the current time as results have it: RFC 3339, UTC.
pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl Run {
    /// Makes an empty run that begins now. Its caller marks it as complete at the end.
    pub fn begin(mode: Mode, environment: Environment) -> Run {
        Run {
            schema: SCHEMA_VERSION,
            fwlab: env!("CARGO_PKG_VERSION").to_string(),
            command: std::env::args().collect(),
            started: now(),
            seconds: 0.0,
            complete: false,
            incomplete_because: None,
            environment,
            agents: Vec::new(),
            mode,
            topologies: Vec::new(),
            systems: Vec::new(),
            series: Vec::new(),
            findings: Vec::new(),
            paper: None,
        }
    }

    /// Writes the run to a file. A concurrent reader finds the old content or all of the new.
    ///
    /// # Errors
    /// Fails if the file cannot be written; then the old content remains.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let text = lay_out(&serde_json::to_string(self)?);
        let written = fs::File::create(&partial)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&partial, path));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// Reads a result file, also one that gzip compressed.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has another format or a newer version, or is inconsistent.
    pub fn read(path: &Path) -> Result<Run, ReadError> {
        let bytes = fs::read(path)?;
        let text = match bytes.starts_with(&GZIP) {
            true => io::read_to_string(GzDecoder::new(&bytes[..]).take(LARGEST))?,
            false => String::from_utf8(bytes).map_err(io::Error::other)?,
        };
        Run::parse(&text)
    }

    /// Parses the text of a result file.
    ///
    /// # Errors
    /// Fails if the text has another format or a newer version, or is inconsistent.
    pub fn parse(text: &str) -> Result<Run, ReadError> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema > SCHEMA_VERSION {
            return Err(ReadError::Newer(schema));
        }
        let run: Run = serde_json::from_str(text)?;
        run.check().map_err(ReadError::Inconsistent)?;
        Ok(run)
    }

    /// Checks the consistency of a run.
    fn check(&self) -> Result<(), String> {
        if !self.complete && self.incomplete_because.is_none() {
            return Err("the run is incomplete, but incomplete_because is missing".to_string());
        }
        let topologies: HashSet<_> = self.topologies.iter().map(|t| t.name.as_str()).collect();
        let mut systems = HashSet::new();
        for system in &self.systems {
            let id = &system.id;
            if !systems.insert(id.as_str()) {
                return Err(format!("two systems have the id {id}"));
            }
            if !topologies.contains(system.topology.as_str()) {
                return Err(format!("{id} refers to the missing topology {}", system.topology));
            }
            if sha256(&system.configuration) != system.sha256 {
                return Err(format!("the configuration of {id} does not match its SHA-256"));
            }
        }
        for system in self.systems.iter().filter(|system| system.role == Role::Placebo) {
            if !system.repeats.as_deref().is_some_and(|other| systems.contains(other)) {
                return Err(format!("placebo {} repeats a system that is missing", system.id));
            }
        }
        for table in self.paper.iter().flat_map(|paper| &paper.tables) {
            if table.rows.iter().any(|row| row.len() != table.columns.len()) {
                return Err(format!(
                    "a row of the table '{}' has another number of columns",
                    table.title
                ));
            }
        }
        for series in &self.series {
            for point in &series.points {
                let mut seen = HashSet::new();
                for sample in &point.samples {
                    let id = sample.system.as_str();
                    if !systems.contains(id) {
                        return Err(format!("a sample refers to the missing system {id}"));
                    }
                    if !seen.insert((sample.round, id)) {
                        return Err(format!("{id} has two samples in round {}", sample.round));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::example;

    #[test]
    fn a_written_file_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let run = example::run();
        run.write(&path).unwrap();
        assert_eq!(Run::read(&path).unwrap(), run);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&fs::read(&path).unwrap()).unwrap();
        fs::write(&path, packed.finish().unwrap()).unwrap();
        assert_eq!(Run::read(&path).unwrap(), run);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("run.json")).unwrap();
        assert!(example::run().write(&folder.path().join("run.json")).is_err());
        assert!(example::run().write(&folder.path().join("none/run.json")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Run), why: &str) {
        let mut run = example::run();
        change(&mut run);
        let error = Run::parse(&serde_json::to_string(&run).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn inconsistent_runs_are_refused() {
        refused(
            |run| run.schema = 2,
            "format 2 is newer than this program, which reads up to format 1",
        );
        refused(
            |run| run.complete = false,
            "the run is incomplete, but incomplete_because is missing",
        );
        refused(|run| run.systems[1].id = "null".to_string(), "two systems have the id null");
        refused(|run| run.topologies.clear(), "null refers to the missing topology router");
        refused(
            |run| run.systems[0].configuration.push('x'),
            "the configuration of null does not match its SHA-256",
        );
        refused(
            |run| run.systems[2].repeats = None,
            "placebo placebo repeats a system that is missing",
        );
        refused(
            |run| run.series[0].points[0].samples[0].system = "x".to_string(),
            "a sample refers to the missing system x",
        );
        refused(
            |run| run.series[0].points[0].samples[1] = run.series[0].points[0].samples[0].clone(),
            "null has two samples in round 0",
        );
        refused(
            |run| run.paper.as_mut().unwrap().tables[0].rows[0].truncate(1),
            "a row of the table 'Transactions a second' has another number of columns",
        );
    }

    #[test]
    fn text_that_is_no_result_is_refused() {
        let refused =
            |text: &str| format!("{:#}", anyhow::Error::from(Run::parse(text).unwrap_err()));
        assert!(refused("").starts_with("not a result file of fwlab: EOF"));
        assert!(refused("{}").contains("schema"));
        assert!(refused("{\"schema\": 1}").contains("missing field"));
        // JSON has no NaN: it is written as null, which is no value.
        let mut run = example::run();
        run.series[0].points[0].samples[0].value = f64::NAN;
        assert!(Run::parse(&serde_json::to_string(&run).unwrap()).is_err());
    }
}
