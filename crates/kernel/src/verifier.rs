//! Messages of libbpf during a load, stored so that an error can quote the verifier and a report
//! can show the cost of verification.

use std::cell::RefCell;
use std::time::Duration;

use libbpf_rs::PrintLevel;

/// Environment variable that makes libbpf print to standard error, whatever its value.
const TALK: &str = "SKIPSTEP_LIBBPF_DEBUG";

/// Lines of the verifier's log that an error quotes: the last lines have the reason.
const QUOTED: usize = 3;

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Log level at which the verifier prints statistics of accepted programs (`BPF_LOG_STATS`).
pub(crate) const STATISTICS: u32 = 4;

/// The cost of verifying a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Name of the program.
    pub program: String,
    /// Number of instructions that the verifier processed, counted on each path. The kernel refuses
    /// a program at a million.
    pub instructions: u32,
    /// Duration of the verification.
    pub duration: Duration,
    /// Bytes of stack of the program and of each function that is verified on its own.
    pub stack: Vec<u32>,
}

/// Stores libbpf's warnings in this thread from now on.
pub(crate) fn capture_warnings() {
    SAID.take();
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

/// Stores all of libbpf's messages in this thread from now on.
pub(crate) fn capture_all() {
    SAID.take();
    libbpf_rs::set_print(Some((PrintLevel::Debug, keep)));
}

/// Returns the statistics of the accepted programs.
pub(crate) fn accepted() -> Vec<Verified> {
    SAID.take().iter().filter_map(|message| statistics(message)).collect()
}

fn statistics(message: &str) -> Option<Verified> {
    let (head, log) = message.split_once("-- BEGIN PROG LOAD LOG --")?;
    let after = |start: &str| log.lines().find_map(|line| line.trim().strip_prefix(start));
    let number = |text: &str| text.split_whitespace().next()?.parse::<u32>().ok();
    Some(Verified {
        program: head.split('\'').nth(1)?.to_owned(),
        instructions: number(after("processed ")?)?,
        duration: Duration::from_micros(number(after("verification time ")?)?.into()),
        stack: after("stack depth ")?.split('+').filter_map(number).collect(),
    })
}

fn keep(_: PrintLevel, message: String) {
    if std::env::var_os(TALK).is_some() {
        eprint!("{message}");
    }
    SAID.with_borrow_mut(|said| said.push(message));
}

/// Returns the program that the verifier refused and the end of its log; `None` if the verifier
/// refused none.
pub(crate) fn refusal() -> Option<(String, String)> {
    SAID.take().iter().find_map(|message| parse(message))
}

fn parse(message: &str) -> Option<(String, String)> {
    let (head, rest) = message.split_once("-- BEGIN PROG LOAD LOG --")?;
    let log = rest.split_once("-- END PROG LOAD LOG --").map_or(rest, |(log, _)| log);
    let program = head.split('\'').nth(1).unwrap_or("?").to_owned();
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| is_telling(line)).collect();
    let start = lines.len().saturating_sub(QUOTED);
    Some((program, lines[start..].join("; ")))
}

/// True if a line of the log has a reason: not empty, and none of the statistics at the end.
fn is_telling(line: &str) -> bool {
    let statistics = ["processed ", "verification time", "stack depth"];
    !line.is_empty() && !statistics.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read() {
        let message = "libbpf: prog 'pf_ingress': -- BEGIN PROG LOAD LOG --\n\
            verification time 1234 usec\nstack depth 96+0+32\n\
            processed 56789 insns (limit 1000000) max_states_per_insn 4\n\
            -- END PROG LOAD LOG --\n";
        let verified = Verified {
            program: "pf_ingress".to_owned(),
            instructions: 56_789,
            duration: Duration::from_micros(1234),
            stack: vec![96, 0, 32],
        };
        assert_eq!(statistics(message), Some(verified));
        assert_eq!(statistics("libbpf: map 'x': created successfully"), None);
    }

    #[test]
    fn the_end_of_the_log_is_quoted() {
        let message = "libbpf: prog 'pf_ingress': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\n\
            5: (61) r2 = *(u32 *)(r1 +0)\nR2 invalid mem access 'scalar'\n\
            processed 6 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";
        let (program, log) = parse(message).unwrap();
        assert_eq!(program, "pf_ingress");
        assert_eq!(
            log,
            "0: R1=ctx(); 5: (61) r2 = *(u32 *)(r1 +0); R2 invalid mem access 'scalar'"
        );
        assert_eq!(parse("libbpf: map 'x': created successfully"), None);
    }
}
