//! FreeBSD's cases. Its pfctl prints in another form, so the cases compare our own output with the
//! output for that text: printed rules must keep their meaning.

use super::case::{Case, CaseResult};
use super::lab::{Lab, ip};

const PRINT: [&str; 5] = ["-o", "none", "-nvf", "-", "-N"];

/// Words of another traffic shaper, or outside of packet filters. They are refused with a message.
const REFUSED: [&str; 6] = ["altq", "dnpipe", "dnqueue", "ether", "pipe", "queue"];

/// Runs a case that is accepted: the printed text prints as itself.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if a program cannot run.
pub fn accepted(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let text = case.read("in")?;
    // eight cases need the addresses of an interface with the case's number
    let interface = format!("vlan{}", case.number);
    if !text.contains(&interface) {
        return prints_itself(case, lab, &text);
    }
    ip(&format!("link add {interface} type bridge"))?;
    ip(&format!("address add 203.0.113.5/30 dev {interface}"))?;
    ip(&format!("address add 2001:db8::203.0.113.5/126 dev {interface} nodad"))?;
    let outcome = prints_itself(case, lab, &text);
    ip(&format!("link delete {interface}"))?;
    outcome
}

fn prints_itself(case: &Case, lab: &Lab, text: &str) -> anyhow::Result<CaseResult> {
    let pfctl = lab.pfctl(case)?;
    let first = pfctl.run(&PRINT, text)?;
    if !first.success {
        return Ok(if is_refused_kindly(&first.stderr) && says_one_of(text, &REFUSED) {
            CaseResult::Passed
        } else {
            CaseResult::Wrong(first.stderr)
        });
    }
    let second = pfctl.run(&PRINT, &first.stdout)?;
    Ok(if second.success {
        CaseResult::compare(first.stdout, second.stdout)
    } else {
        CaseResult::Wrong(format!("its own text is refused: {}", second.stderr))
    })
}

/// Returns true if the message names a feature that is not supported here.
pub fn is_refused_kindly(stderr: &str) -> bool {
    ["altq", "dummynet", "ether"].iter().any(|feature| stderr.contains(feature))
}

fn says_one_of(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word))
}

/// Runs a case that is refused with the messages of its file, regular expressions without special
/// characters.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn refused(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let output = lab.pfctl(case)?.run_together(&PRINT, &case.read("in")?)?;
    let expected = case.read("fail")?;
    let found = expected.lines().all(|line| output.stdout.contains(line));
    Ok(if found {
        CaseResult::Passed
    } else {
        CaseResult::Different { expected, actual: output.stdout }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert!(says_one_of("altq on em0", &REFUSED));
        assert!(!says_one_of("block on ethernet0", &REFUSED));
    }
}
