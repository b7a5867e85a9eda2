//! OpenBSD's kinds of cases, run as the Makefile of its regression tests runs them.

use anyhow::bail;

use super::case::{Case, CaseResult};
use super::lab::Lab;
use super::pfctl::Output;

/// The anchor that cases load rules into.
const ANCHOR: &str = "regress";
/// Arguments to parse rules and print them.
const PRINT: [&str; 5] = ["-o", "none", "-nv", "-f", "-"];

/// Runs a case whose printed rules are as expected.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pf(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let output = lab.pfctl(case)?.run(&PRINT, &case.read("in")?)?;
    Ok(printed(case.read("ok")?, output))
}

/// Runs a case whose printed rules print as themselves.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn selfpf(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let text = case.read("ok")?;
    let output = lab.pfctl(case)?.run(&PRINT, &text)?;
    Ok(printed(text, output))
}

/// Compares the output. If an error has truncated the output, the result is the error.
fn printed(expected: String, output: Output) -> CaseResult {
    if expected != output.stdout && !output.stderr.is_empty() {
        return CaseResult::Wrong(output.stderr);
    }
    CaseResult::compare(expected, output.stdout)
}

/// Runs a case with errors, which prints messages and the valid lines.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfail(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let output = lab.pfctl(case)?.run_together(&PRINT, &case.read("in")?)?;
    Ok(CaseResult::compare(case.read("ok")?, output.stdout))
}

/// Runs a case with flags from a file.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfopt(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let options = case.read("opts")?;
    let mut arguments = PRINT.to_vec();
    arguments.extend(options.split_whitespace());
    let output = lab.pfctl(case)?.run(&arguments, &case.read("in")?)?;
    Ok(printed(case.read("ok")?, output))
}

/// Runs a case that is accepted.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfsimple(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let output = lab.pfctl(case)?.run(&["-o", "none", "-nf", "-"], &case.read("in")?)?;
    Ok(if output.success { CaseResult::Passed } else { CaseResult::Wrong(output.stderr) })
}

/// Runs a case with flags and a file of rules, which succeeds.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfcmd(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let options = case.read("opts")?;
    let input = case.path("in").display().to_string();
    let mut arguments: Vec<&str> = options.split_whitespace().collect();
    arguments.extend(["-f", &input]);
    let output = lab.pfctl(case)?.run(&arguments, "")?;
    Ok(if output.success { CaseResult::Passed } else { CaseResult::Wrong(output.stderr) })
}

/// Runs a case with flags, which fails with the expected messages.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfcmdfail(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let options = case.read("opts")?;
    let mut arguments: Vec<&str> = options.split_whitespace().collect();
    arguments.extend(["-f", "-"]);
    let output = lab.pfctl(case)?.run_together(&arguments, &case.read("in")?)?;
    if output.success {
        return Ok(CaseResult::Wrong("was accepted".into()));
    }
    Ok(CaseResult::compare(case.read("ok")?, output.stdout))
}

/// Runs a case that changes interfaces before and restores them afterwards.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if a program cannot run.
pub fn pfsetup(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    if case.number == SECOND_LOOPBACK {
        return each_loopback(case, lab);
    }
    lab.ifconfig(&case.read("setup")?)?;
    let outcome = pf(case, lab);
    lab.ifconfig(&case.read("clean")?)?;
    outcome
}

/// The number of the case of `pfsetup` with a second loopback interface.
const SECOND_LOOPBACK: u32 = 4;

/// Runs a case with two loopback interfaces. A network namespace has only one, so each interface is
/// the loopback of a namespace of its own. The rules about this interface are taken from the
/// output.
fn each_loopback(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let input = case.read("in")?;
    let mut printed = String::new();
    for (loopback, other, address) in
        [("lo0", "lo1000000", "127.0.0.1/8"), ("lo1000000", "lo0", "192.168.0.1/24")]
    {
        let interfaces = format!(
            "ip link set lo name {loopback} && ip link add {other} type bridge && \
             ip address add {address} dev {loopback}"
        );
        let output = lab.pfctl(case)?.run_elsewhere(&interfaces, &PRINT, &input)?;
        if !output.success {
            return Ok(CaseResult::Wrong(output.stderr));
        }
        let label = format!("label \"antispoof:{loopback}:");
        let about = output.stdout.split_inclusive('\n').filter(|rule| rule.contains(&label));
        printed.extend(about);
    }
    Ok(CaseResult::compare(case.read("ok")?, printed))
}

/// Loads rules, and shows them with skip steps and counters.
///
/// # Errors
/// Fails if a file of the case cannot be read, if pfctl cannot run, or if the anchor cannot be
/// flushed.
pub fn pfload(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let below = format!("{ANCHOR}/*");
    loaded(case, lab, "-onone", &below, "loaded")
}

/// Loads optimized rules, and shows them.
///
/// # Errors
/// Fails if a file of the case cannot be read, if pfctl cannot run, or if the anchor cannot be
/// flushed.
pub fn pfoptimize(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    loaded(case, lab, "-obasic", ANCHOR, "optimized")
}

fn loaded(
    case: &Case,
    lab: &Lab,
    optimizer: &str,
    shown: &str,
    ending: &str,
) -> anyhow::Result<CaseResult> {
    let pfctl = lab.pfctl(case)?;
    let load = pfctl.run(&[optimizer, "-a", ANCHOR, "-f", "-"], &case.read("in")?)?;
    if !load.success {
        return Ok(CaseResult::Wrong(load.stderr));
    }
    let show = pfctl.run(&["-a", shown, "-gvvsr"], "")?;
    let flush = pfctl.run(&["-a", ANCHOR, "-Fr"], "")?;
    if !flush.success {
        bail!("flush: {}", flush.stderr);
    }
    // persistent tables outlive their rules, and later cases count tables
    pfctl.run(&["-q", "-a", ANCHOR, "-FT"], "")?;
    Ok(printed(case.read(ending)?, with_stdout(show, without_random_names)))
}

fn with_stdout(output: Output, change: impl Fn(&str) -> String) -> Output {
    Output { stdout: change(&output.stdout), ..output }
}

/// Loads anchors from files, and shows their rules.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if pfctl cannot run.
pub fn pfloadanchors(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let pfctl = lab.pfctl(case)?;
    let load = pfctl.run(&["-a", ANCHOR, "-v", "-f", "-"], &case.read("in")?)?;
    if !load.success {
        return Ok(CaseResult::Wrong(load.stderr));
    }
    let show = pfctl.run(&["-a", &format!("{ANCHOR}/*"), "-sr"], "")?;
    pfctl.run(&["-a", &format!("{ANCHOR}/*"), "-Fr"], "")?;
    Ok(printed(case.read("ok")?, with_stdout(show, without_automatic_names)))
}

/// Removes the random middle of names like `__automatic_5eed_0`.
fn without_random_names(text: &str) -> String {
    without_automatic(text, |name| {
        let random = name.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        random.strip_prefix('_').unwrap_or(name)
    })
}

/// Removes random parts and numbers. If several files are loaded, the number depends on the tables
/// of earlier ones.
fn without_automatic_names(text: &str) -> String {
    without_automatic(text, |name| {
        name.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '_')
    })
}

/// Applies `cut` to the text after each `__automatic_`.
fn without_automatic(text: &str, cut: impl Fn(&str) -> &str) -> String {
    const BEGIN: &str = "__automatic_";
    let mut parts = text.split(BEGIN);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(BEGIN);
        result.push_str(cut(part));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_tables_have_no_random_names() {
        let text = "from <__automatic_5eed_0:6> to <__automatic_12>";
        assert_eq!(without_random_names(text), "from <__automatic_0:6> to <__automatic_12>");
        assert_eq!(without_automatic_names(text), "from <__automatic_:6> to <__automatic_>");
    }
}
