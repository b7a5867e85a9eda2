//! `fwlab ratio`: compares two settings of one system that were measured in interleaved rounds. It
//! prints a median only if the rounds agree. On a busy machine the median of a few rounds is noise.

use std::io;

use anyhow::{Context, bail};

use crate::report::{Table, number};
use crate::stats::{Interval, median_interval, ratio_interval};

/// The seed of intervals. It is constant, so that the same rounds always have the same result.
const SEED: u64 = 1;

/// Stands for a missing figure.
const NONE: &str = "-";

/// Smallest number of rounds with a result. The median of fewer rounds is outside of their range
/// too often for a 95 % interval.
const FEWEST: usize = 5;

/// The flags of `fwlab ratio`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the first setting
    #[arg(long, value_name = "NAME", default_value = "before")]
    before: String,
    /// Name of the second setting
    #[arg(long, value_name = "NAME", default_value = "after")]
    after: String,
    /// Width of a 95 % interval, in percent of its median, above which the median is noise
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    widest: f64,
}

/// The figures of one measurement.
#[derive(Debug, Default, PartialEq)]
struct Measurement {
    title: String,
    /// Figures of the first and the second setting, for each round that has both.
    rounds: Vec<(f64, f64)>,
    /// Number of rounds in which a figure is missing.
    incomplete: usize,
}

/// Reads measurements from standard input, and prints a table.
///
/// # Errors
/// Fails if standard input cannot be read, or if a line is neither a title nor a round.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let text = io::read_to_string(io::stdin()).context("standard input")?;
    print!("{}", table(&read(&text)?, arguments).text());
    Ok(())
}

/// Reads measurements: a title in brackets, and a line for each round with the figures of both
/// settings, or [`NONE`].
fn read(text: &str) -> anyhow::Result<Vec<Measurement>> {
    let mut all: Vec<Measurement> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let title = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        match (title, all.last_mut(), line.split_once(' ')) {
            _ if line.is_empty() => {}
            (Some(title), ..) => {
                all.push(Measurement { title: title.to_owned(), ..Measurement::default() });
            }
            (None, Some(last), Some((first, second))) => {
                let round = round(first, second.trim()).with_context(|| {
                    format!("standard input:{number}: '{line}' is not two figures")
                })?;
                last.incomplete += usize::from(round.is_none());
                last.rounds.extend(round);
            }
            _ => bail!("standard input:{number}: '{line}' is neither [TITLE] nor two figures"),
        }
    }
    Ok(all)
}

/// Parses the figures of a round; `None` if one is missing.
fn round(first: &str, second: &str) -> anyhow::Result<Option<(f64, f64)>> {
    if [first, second].contains(&NONE) {
        return Ok(None);
    }
    Ok(Some((first.parse()?, second.parse()?)))
}

/// Returns a table with rows for both settings and for the ratio of each measurement.
fn table(measurements: &[Measurement], arguments: &Arguments) -> Table {
    let Arguments { before, after, widest } = arguments;
    let mut table = Table::new(&["measurement", "setting", "median#", "95 % interval"]);
    for Measurement { title, rounds, incomplete } in measurements {
        let side = |side: fn(&(f64, f64)) -> f64| {
            median_interval(&rounds.iter().map(side).collect::<Vec<f64>>(), SEED)
        };
        let swapped: Vec<(f64, f64)> =
            rounds.iter().map(|(before, after)| (*after, *before)).collect();
        let mut add = |title: &str, name: &str, [median, interval]: [String; 2]| {
            table.rows.push(vec![title.to_owned(), name.to_owned(), median, interval]);
        };
        if rounds.len() < FEWEST {
            let found = format!("of {}", rounds.len() + incomplete);
            add(title, "complete rounds", [rounds.len().to_string(), found]);
            continue;
        }
        let shown =
            |interval, text: fn(f64) -> String, noise| cells(interval, *widest, text, noise);
        add(title, before, shown(side(|round| round.0), number::short, "noise"));
        add("", after, shown(side(|round| round.1), number::short, "noise"));
        let noise = "not measurable now";
        add("", "ratio", shown(ratio_interval(&swapped, SEED), percent, noise));
    }
    table
}

/// Returns the median, or the word for noise, and the interval.
fn cells(
    interval: Option<Interval>,
    widest: f64,
    text: fn(f64) -> String,
    noise: &str,
) -> [String; 2] {
    let Some(interval) = interval else { return ["no figure".to_owned(), String::new()] };
    let [low, high] = [interval.low, interval.high].map(text);
    let median = if is_noise(&interval, widest) { noise.to_owned() } else { text(interval.middle) };
    [median, format!("{low} – {high}")]
}

/// True if the interval is too wide for a result.
fn is_noise(interval: &Interval, widest: f64) -> bool {
    interval.high - interval.low > interval.middle.abs() * widest / 100.0
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(input: &str) -> String {
        let arguments =
            Arguments { before: "off".to_owned(), after: "on".to_owned(), widest: 20.0 };
        table(&read(input).unwrap(), &arguments).text()
    }

    #[test]
    fn rounds_that_agree_have_a_ratio() {
        let rounds = "1000 970\n1010 980\n\n990 960\n1005 975\n1000 970\n1000 970\n";
        let expected = "measurement  setting  median  95 % interval\n\
                        TCP/s        off       1\u{202f}000  995.0 – 1\u{202f}008\n             \
                        on        970.0  965.0 – 977.5\n             \
                        ratio      97 %  97 % – 97 %\n";
        assert_eq!(text(&format!("[TCP/s]\n{rounds}")), expected);
    }

    /// The rounds of a demonstration on a busy machine: the scheduler had two places for the
    /// server.
    #[test]
    fn rounds_that_contradict_each_other_are_noise() {
        let text =
            text("[TCP]\n150613 20020\n173348 57293\n172901 148338\n131327 155926\n150613 20020\n");
        let row = |number: usize| text.lines().nth(number).unwrap();
        assert!(row(1).contains("  noise  131"), "{text}");
        assert!(row(3).contains("not measurable now  13 % – "), "{text}");
        assert!(!text.contains("38 %"), "the median of the ratio is no result: {text}");
    }

    #[test]
    fn few_rounds_have_no_result() {
        let text = text("[iperf3]\n13.7 13.5\n- 13.9\n13.6 13.4\n13.5 -\n[UDP]\n- -\n");
        let row = |number: usize| text.lines().nth(number).unwrap();
        assert!(row(1).ends_with("complete rounds       2  of 4"), "{text}");
        assert!(row(2).ends_with("complete rounds       0  of 1"), "{text}");
        assert!(!text.contains("ratio"), "{text}");
    }

    #[test]
    fn an_interval_is_noise_above_the_limit() {
        let interval = |low, high| Interval { low, middle: 1.0, high };
        assert!(!is_noise(&interval(0.9, 1.1), 20.5));
        assert!(is_noise(&interval(0.8, 1.1), 20.0));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (input, message) in [
            ("12 13", "standard input:1: '12 13' is neither [TITLE] nor two figures"),
            ("[a]\n12", "standard input:2: '12' is neither [TITLE] nor two figures"),
            ("[a]\n12 x", "standard input:2: '12 x' is not two figures"),
        ] {
            assert_eq!(read(input).unwrap_err().to_string(), message);
        }
    }
}
