//! `pfctl bridge`: joins interfaces to a transparent bridge, with the words of OpenBSD's
//! ifconfig(8).

mod rule;
pub mod show;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use skipstep_kernel::Instance;
use skipstep_kernel::bridge::BRIDGE_TIMEOUT_MAX;

use crate::access::{create, open};
use crate::output::print;
use crate::request::Args;

/// A parsed `pfctl bridge` command.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Add(&'a [String]),
    Delete(&'a [String]),
    Show,
    Flush,
    Timeout(&'a str, u32),
    BlockNonIp(&'a str, bool),
    AddRule(rule::PortRule),
    ShowRules(Option<&'a str>),
    FlushRules(&'a str),
}

/// Parses the words behind `bridge`.
fn parse(words: &[String]) -> Result<Command<'_>> {
    let Some((command, operands)) = words.split_first() else { bail!("bridge: no command given") };
    let one = |what: &str| match operands {
        [name] => Ok(name.as_str()),
        _ => bail!("bridge {command}: {what}"),
    };
    let none = || match operands {
        [] => Ok(()),
        _ => bail!("bridge {command}: too many operands: {}", operands.join(" ")),
    };
    Ok(match command.as_str() {
        "add" | "delete" | "del" if operands.is_empty() => {
            bail!("bridge {command}: no interface given")
        }
        "add" => Command::Add(operands),
        "delete" | "del" => Command::Delete(operands),
        "show" => none().map(|()| Command::Show)?,
        "flush" => none().map(|()| Command::Flush)?,
        "timeout" => match operands {
            [name, seconds] => Command::Timeout(name, parse_timeout(seconds)?),
            _ => bail!("bridge timeout: needs one interface of the bridge, and seconds"),
        },
        "blocknonip" => Command::BlockNonIp(one("needs one interface")?, true),
        "passnonip" => Command::BlockNonIp(one("needs one interface")?, false),
        "rule" => return parse_rule(operands),
        _ => bail!(
            "bridge: unknown command '{command}': use add, delete, show, flush, timeout, rule, \
             blocknonip or passnonip"
        ),
    })
}

fn parse_timeout(text: &str) -> Result<u32> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= BRIDGE_TIMEOUT_MAX);
    seconds.with_context(|| {
        format!("bridge timeout: {text}: must be 0 to {BRIDGE_TIMEOUT_MAX} seconds")
    })
}

fn parse_rule(words: &[String]) -> Result<Command<'_>> {
    let Some((command, operands)) = words.split_first() else {
        bail!("bridge rule: use add, show or flush")
    };
    Ok(match (command.as_str(), operands) {
        ("add", words) => {
            let rule =
                rule::parse(words).with_context(|| format!("bridge rule: {}", words.join(" ")))?;
            Command::AddRule(rule)
        }
        ("show", []) => Command::ShowRules(None),
        ("show", [name]) => Command::ShowRules(Some(name)),
        ("flush", [name]) => Command::FlushRules(name),
        ("show" | "flush", _) => bail!("bridge rule {command}: needs one interface"),
        _ => bail!("bridge rule: unknown command '{command}': use add, show or flush"),
    })
}

/// Runs the `bridge` command of the operands.
///
/// # Errors
/// Fails if the command is wrong, if the user is not root, or if there is no bridge to change. Also
/// fails if the kernel part refuses the change.
pub fn run(args: &Args) -> Result<ExitCode> {
    let command = parse(&args.operands)?;
    match command {
        Command::Add(names) => create(args)?.bridge_add(names)?,
        Command::Delete(names) => instance(args)?.bridge_delete(names)?,
        Command::Flush => instance(args)?.bridge_flush()?,
        Command::Timeout(name, seconds) => instance(args)?.bridge_timeout(name, seconds)?,
        Command::BlockNonIp(name, block) => instance(args)?.bridge_block_non_ip(name, block)?,
        Command::AddRule(rule) => instance(args)?.bridge_add_rule(&rule.port, rule.rule)?,
        Command::FlushRules(name) => instance(args)?.bridge_flush_rules(name)?,
        Command::Show | Command::ShowRules(_) => {
            let bridges = open(args)?.map_or_else(|| Ok(Vec::new()), |it| it.bridges())?;
            let text = match command {
                Command::ShowRules(port) => show::rules(&bridges, port),
                _ if args.json => serde_json::to_string_pretty(&show::json(&bridges))? + "\n",
                _ => show::text(&bridges, args.verbose > 0),
            };
            print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn instance(args: &Args) -> Result<Instance> {
    open(args)?.context("there is no bridge")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_read() {
        let em0 = words("em0");
        assert_eq!(parse(&words("delete em0")).unwrap(), Command::Delete(&em0));
        assert_eq!(parse(&words("add em0 em1")).unwrap(), Command::Add(&words("em0 em1")));
        assert_eq!(parse(&words("show")).unwrap(), Command::Show);
        assert_eq!(parse(&words("flush")).unwrap(), Command::Flush);
        assert_eq!(parse(&words("timeout em0 20")).unwrap(), Command::Timeout("em0", 20));
        assert_eq!(parse(&words("blocknonip em0")).unwrap(), Command::BlockNonIp("em0", true));
        assert_eq!(parse(&words("passnonip em0")).unwrap(), Command::BlockNonIp("em0", false));
        assert_eq!(parse(&words("rule show")).unwrap(), Command::ShowRules(None));
        assert_eq!(parse(&words("rule show em0")).unwrap(), Command::ShowRules(Some("em0")));
        assert_eq!(parse(&words("rule flush em0")).unwrap(), Command::FlushRules("em0"));
        assert!(matches!(parse(&words("rule add block in on em0")), Ok(Command::AddRule(_))));
    }

    #[test]
    fn invalid_commands_are_refused_with_a_reason() {
        for (line, reason) in [
            ("", "bridge: no command given"),
            ("add", "bridge add: no interface given"),
            ("show em0", "bridge show: too many operands: em0"),
            (
                "join em0",
                "bridge: unknown command 'join': use add, delete, show, flush, timeout, rule, \
                 blocknonip or passnonip",
            ),
            ("timeout em0", "bridge timeout: needs one interface of the bridge, and seconds"),
            ("timeout em0 -1", "bridge timeout: -1: must be 0 to 2147483647 seconds"),
            (
                "timeout em0 2147483648",
                "bridge timeout: 2147483648: must be 0 to 2147483647 seconds",
            ),
            ("blocknonip", "bridge blocknonip: needs one interface"),
            ("rule", "bridge rule: use add, show or flush"),
            ("rule flush", "bridge rule flush: needs one interface"),
            ("rule del em0", "bridge rule: unknown command 'del': use add, show or flush"),
        ] {
            assert_eq!(parse(&words(line)).unwrap_err().to_string(), reason, "{line}");
        }
    }
}
