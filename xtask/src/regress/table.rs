//! OpenBSD's `pfr` cases: commands on the table `regress` of the anchor `regress`, one in a line,
//! each after `pass` or `fail`. This module writes the same output as the script of these tests.

use std::fmt::Write;

use super::case::{Case, CaseResult};
use super::lab::Lab;
use super::pfctl::{Output, Pfctl};

const ANCHOR: [&str; 2] = ["-a", "regress"];
const TABLE: [&str; 4] = ["-a", "regress", "-t", "regress"];
/// The start of the counters of the kernel's allocators, which have no counterpart here.
const LEAKS: &str = "ktable:";

/// An expected line that PF's own sources contradict.
pub struct Contradicted {
    pub case: &'static str,
    /// The command whose output has the line.
    command: &'static str,
    expected: &'static str,
    instead: &'static str,
    pub reason: &'static str,
}

pub const CONTRADICTED: [Contradicted; 1] = [Contradicted {
    case: "pfr13",
    command: "{ !127.0.0.1 } file",
    expected: "\n   127.0.0.1\n",
    instead: "\n  !127.0.0.1\n",
    reason: "of two entries for one address pfr_ina_define() takes the first, which is negated here, \
          and pfr_commit_ktable() turns the sign of the one that was there",
}];

/// Replaces the contradicted line by one that follows PF's sources.
fn corrected(case: &Case, expected: String) -> String {
    let name = case.to_string();
    let Some(line) = CONTRADICTED.iter().find(|line| line.case == name) else { return expected };
    match expected.split_once(line.command) {
        Some((before, after)) => {
            before.to_owned() + line.command + &after.replacen(line.expected, line.instead, 1)
        }
        None => expected,
    }
}

/// Runs the commands of a case, and compares their output.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn run(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let pfctl = lab.pfctl(case)?;
    let input = case.read("in")?.replace("DIR", &case.folder().display().to_string());
    let expected = case.read("ok")?.replace("DIR", &case.folder().display().to_string());
    let expected: String =
        expected.split_inclusive('\n').take_while(|line| !is_leak_line(line)).collect();
    let expected = corrected(case, expected);
    let mut script = Script { pfctl: &pfctl, text: "# create\n".into() };
    let created = script.load("table <regress> persist")?;
    script.text += &created.stdout;
    for line in input.lines() {
        if let Some(reason) = script.line(line)? {
            script.clean()?;
            return Ok(CaseResult::Wrong(format!("{line}: {reason}")));
        }
    }
    script.text += "# kill\n";
    script.clean()?;
    Ok(CaseResult::compare(expected, script.text))
}

fn is_leak_line(line: &str) -> bool {
    line.starts_with(LEAKS) || line.starts_with("pfrke_")
}

struct Script<'a> {
    pfctl: &'a Pfctl,
    text: String,
}

impl Script<'_> {
    /// Runs one line of the case. Returns a description if its exit status is wrong.
    fn line(&mut self, line: &str) -> anyhow::Result<Option<String>> {
        let mut words = line.split_whitespace();
        let (Some(result @ ("pass" | "fail")), Some(command)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let arguments: Vec<&str> = words.collect();
        if result == "pass" && ["add", "delete", "replace"].contains(&command) {
            self.dry(command, &arguments)?;
        }
        let joined = arguments.join(" ");
        writeln!(self.text, "# {result} {command} {joined}")?;
        let output = match command {
            "list" => {
                self.list()?;
                return Ok(None);
            }
            "load" | "rule" => self.load(&joined)?,
            "show" => self.show()?,
            _ => self.command("-T", command, &arguments)?,
        };
        self.text += &match (command, result) {
            ("show" | "load" | "rule", _) | (_, "fail") => output.stdout,
            _ => sorted(&output.stdout),
        };
        let must_say = result == "fail" || command == "load" || command == "rule";
        let wrong = must_say && output.success != (result == "pass");
        Ok(wrong.then(|| format!("exit status: success {}", output.success)))
    }

    /// Runs a command without effect, with four sets of flags.
    fn dry(&mut self, command: &str, arguments: &[&str]) -> anyhow::Result<()> {
        for (flag, shown) in [("-nT", "-n"), ("-nqvT", "-nqv"), ("-nqvvT", "-nqvv")] {
            writeln!(self.text, "# pass {command} {shown} {}", arguments.join(" "))?;
            let output = self.command(flag, command, arguments)?;
            self.text += &sorted(&output.stdout);
            if flag == "-nT" {
                writeln!(self.text, "# pass {command} -nf-")?;
                let input = format!("# test\n{}\n", arguments.join(" "));
                let mut line = TABLE.to_vec();
                line.extend(["-nT", command, "-f-"]);
                self.text += &sorted(&self.pfctl.run_together(&line, &input)?.stdout);
            }
        }
        Ok(())
    }

    fn command(&self, flag: &str, command: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut line = TABLE.to_vec();
        line.extend([flag, command]);
        line.extend(arguments);
        self.pfctl.run_together(&line, "")
    }

    fn load(&self, rules: &str) -> anyhow::Result<Output> {
        let mut line = ANCHOR.to_vec();
        line.extend(["-f", "-"]);
        self.pfctl.run_together(&line, &format!("{rules}\n"))
    }

    /// Shows addresses without the time when their counters were cleared.
    fn show(&self) -> anyhow::Result<Output> {
        let mut line = TABLE.to_vec();
        line.extend(["-vT", "show"]);
        let output = self.pfctl.run_together(&line, "")?;
        let lines = output.stdout.split_inclusive('\n');
        let stdout = lines.filter(|line| !line.contains("Cleared:")).collect();
        Ok(Output { stdout, ..output })
    }

    /// Lists tables as the cases expect. They are older than `name@anchor` of pfctl 7.8: they have
    /// no anchor, or a tab before it with `-v`.
    fn list(&mut self) -> anyhow::Result<()> {
        for (flags, shown, anchor) in [("-sT", "", ""), ("-gvsT", "# pass list -v\n", "\tregress")]
        {
            let mut line = ANCHOR.to_vec();
            line.push(flags);
            self.text += shown;
            let output = self.pfctl.run_together(&line, "")?;
            // tables that other cases have left in the anchor have other names
            let ours = |line: &&str| line.split('@').next().is_some_and(|n| n.contains("regress"));
            for line in output.stdout.lines().filter(ours) {
                writeln!(self.text, "{}", line.replace("@regress", anchor))?;
            }
        }
        Ok(())
    }

    /// Removes tables and rules, and adds the output of both commands.
    fn clean(&mut self) -> anyhow::Result<()> {
        for flag in ["-FT", "-Fr"] {
            let mut line = ANCHOR.to_vec();
            line.push(flag);
            self.text += &self.pfctl.run_together(&line, "")?.stdout;
        }
        Ok(())
    }
}

/// Sorts lines by their bytes, as sort(1) does in the C locale.
fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}
