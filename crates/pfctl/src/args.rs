//! The parser of the command line. It follows OpenBSD's getopt(3): flags may form clusters, and a
//! value is the rest of its word or the next word. Words behind the first operand are operands.

use std::ffi::OsString;

use lexopt::{Arg, Parser};

use crate::flags::FLAGS;
use crate::flags::flag::{Flag, Name};
use crate::refusal::Refusal;
use crate::request::Args;
use crate::verbs::{self, Verb};
use crate::words::{Flush, TableCommand};

/// Parses the words behind the program's name.
///
/// # Errors
/// Fails with the usage if the words are empty, or if a flag, verb or operand is wrong. Fails with
/// a message if flags exclude each other, or if the anchor is reserved.
pub fn parse(words: &[String]) -> Result<Args, Refusal> {
    if words.is_empty() {
        return Err(Refusal::Usage(String::new()));
    }
    let mut args = Args::default();
    let mut operands = parse_flags(FLAGS, words, &mut args)?;
    if args.help || args.version {
        return Ok(args);
    }
    check_together(&args)?;
    if args.command.is_none()
        && let Some((first, rest)) = operands.split_first()
    {
        let Some(row) = verbs::find(first) else {
            return Err(Refusal::Usage(format!("unknown command line argument: {first} ...")));
        };
        args.verb = Some(row.verb);
        operands = parse_flags(FLAGS, rest, &mut args)?;
        if let Some((command, rest)) = operands.split_first().filter(|_| row.has_commands) {
            // flags of a command may follow the command
            args.operands.push(command.clone());
            operands = parse_flags(FLAGS, rest, &mut args)?;
        }
        let given = args.operands.len() + operands.len();
        if let Some(what) = (row.lacks)(given).filter(|_| !args.help) {
            return Err(Refusal::Usage(format!("{first}: {what}")));
        }
    }
    args.operands.extend_from_slice(operands);
    check_pcap(&args)?;
    Ok(args)
}

/// Refuses `-w` where it has no meaning.
fn check_pcap(args: &Args) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::Usage(message.into()));
    match &args.pcap {
        Some(_) if args.verb != Some(Verb::Log) => refuse("-w applies to log only"),
        Some(_) if args.json => refuse("-w and --json are mutually exclusive"),
        _ => Ok(()),
    }
}

/// Refuses flags that exclude each other.
fn check_together(args: &Args) -> Result<(), Refusal> {
    if args.no_dns && args.host_names {
        return Err(Refusal::Failure("-N and -r are mutually exclusive".into()));
    }
    if args.confirm.is_some() && !takes_confirm(args) {
        return Err(Refusal::Usage("--confirm applies to -f, -F and -T replace only".into()));
    }
    if args.confirm.is_none() && args.keep_states {
        return Err(Refusal::Usage("--keep-states needs --confirm".into()));
    }
    if args.write && args.confirm.is_some() && (args.file.is_none() || args.anchor.is_some()) {
        return Err(Refusal::Usage("--write --confirm needs -f, and no -a".into()));
    }
    let without_table = args.command == Some(TableCommand::Load);
    if args.command.is_some() != args.table.is_some() && !without_table {
        return Err(Refusal::Usage(String::new()));
    }
    if args.flush == Some(Flush::All) && args.interface.is_some() {
        return Err(Refusal::Usage("don't specify an interface with -Fall".into()));
    }
    if args.both_sides && !kills_states(args) {
        return Err(Refusal::Usage("-M applies to states of -k and -F only".into()));
    }
    let Some(anchor) = &args.anchor else { return Ok(()) };
    let changes = args.file.is_some() || args.flush.is_some() || args.zero;
    if !changes && args.show.is_none() && args.command.is_none() {
        let message = "anchors apply to -f, -F, -s, and -T only";
        return Err(Refusal::Usage(message.into()));
    }
    if changes && args.command.is_none() && anchor.is_reserved() {
        let message = "anchor names beginning with '_' cannot be modified from the command line";
        return Err(Refusal::Failure(message.into()));
    }
    Ok(())
}

/// True if `--confirm` has a meaning for the other flags.
fn takes_confirm(args: &Args) -> bool {
    match args.command {
        Some(command) => matches!(command, TableCommand::Replace | TableCommand::Load),
        None => args.file.is_some() || args.flush.is_some(),
    }
}

/// True if the flags kill states, and not the source of a limiter.
fn kills_states(args: &Args) -> bool {
    args.kill.first().is_some_and(|key| key != "source")
        || matches!(args.flush, Some(Flush::States | Flush::All))
}

/// Parses the flags at the beginning of `words`, and returns the operands behind them. `flags` is
/// the program's table of flags.
///
/// # Errors
/// Fails if a flag is unknown, or if its value is missing or wrong.
pub fn parse_flags<'a, A>(
    flags: &[&Flag<A>],
    words: &'a [String],
    args: &mut A,
) -> Result<&'a [String], Refusal> {
    let mut parser = Parser::from_args(words);
    parser.set_short_equals(false); // as for getopt, `-f=x` names the file `=x`
    let wrong = |error| match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            Refusal::Usage(format!("{option} takes no argument"))
        }
        other => Refusal::Usage(other.to_string()),
    };
    while let Some(word) = parser.next().map_err(wrong)? {
        let (flag, written) = match word {
            Arg::Short(letter) => (
                flags.iter().find(|flag| flag.name == Name::Letter(letter)),
                format!("-- {letter}"),
            ),
            Arg::Long(name) => (
                flags.iter().find(|flag| matches!(flag.name, Name::Long(long) if long == name)),
                format!("--{name}"),
            ),
            Arg::Value(_) => {
                let behind = parser.try_raw_args().map_or(0, Iterator::count);
                return Ok(&words[words.len() - 1 - behind..]);
            }
        };
        let Some(flag) = flag else {
            return Err(Refusal::Usage(format!("unknown option {written}")));
        };
        let value = match flag.value {
            None => OsString::new(),
            Some(_) => parser
                .value()
                .map_err(|_| Refusal::Usage(format!("option requires an argument {written}")))?,
        };
        (flag.set)(args, &value.to_string_lossy())?;
    }
    Ok(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Show;

    fn args(line: &str) -> Result<Args, Refusal> {
        parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn flags_cluster_and_the_last_takes_the_next_word() {
        let args = args("-ef /etc/pf.conf").unwrap();
        assert!(args.enable);
        assert_eq!(args.file.as_deref(), Some("/etc/pf.conf"));
    }

    #[test]
    fn a_value_may_be_attached() {
        let args = args("-vvsr").unwrap();
        assert_eq!((args.verbose, args.show), (2, Some(Show::Rules)));
    }

    #[test]
    fn a_dash_is_a_value() {
        let args = args("-nvf -").unwrap();
        assert!(args.no_action);
        assert_eq!(args.file.as_deref(), Some("-"));
    }

    #[test]
    fn nothing_behind_the_first_operand_is_a_flag() {
        let args = args("-t bad -T add 10.0.0.1 -q").unwrap();
        assert_eq!(args.operands, ["10.0.0.1", "-q"]);
        assert!(!args.quiet);
    }

    #[test]
    fn invalid_command_lines_return_the_usage() {
        for (line, message) in [
            ("", ""),
            ("-y", "unknown option -- y"),
            ("-f", "option requires an argument -- f"),
            ("-e extra", "unknown command line argument: extra ..."),
            ("-t name", ""),
            ("-T show", ""),
            ("--yaml", "unknown option --yaml"),
            ("--json=1", "--json takes no argument"),
            ("--junit", "option requires an argument --junit"),
            ("test", "test: no scenario file given"),
            ("diff old.conf", "diff: two files needed, the old one and the new one"),
        ] {
            assert_eq!(args(line), Err(Refusal::Usage(message.into())), "{line}");
        }
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        for (line, refusal) in [
            ("-N -r -sr", Refusal::Failure("-N and -r are mutually exclusive".into())),
            ("-Fa -i em0", Refusal::Usage("don't specify an interface with -Fall".into())),
            ("-a spam -e", Refusal::Usage("anchors apply to -f, -F, -s, and -T only".into())),
            (
                "-a spam/_1 -Fr",
                Refusal::Failure(
                    "anchor names beginning with '_' cannot be modified from the command line"
                        .into(),
                ),
            ),
        ] {
            assert_eq!(args(line), Err(refusal), "{line}");
        }
        assert!(args("-a spam/_1 -sr").is_ok());
        assert!(args("-Tload -f pf.conf").is_ok());
    }

    #[test]
    fn a_command_of_a_verb_has_flags_too() {
        let args = args("bridge --json show -v em0 -q").unwrap();
        assert_eq!((args.verb, args.verbose, args.json), (Some(Verb::Bridge), 1, true));
        assert_eq!(args.operands, ["show", "em0", "-q"]);
    }

    #[test]
    fn a_verb_has_flags_of_its_own() {
        let args = args("-p lab explain -f pf.conf packet").unwrap();
        assert_eq!(args.verb, Some(Verb::Explain));
        assert_eq!(args.instance.as_deref(), Some("lab"));
        assert_eq!(args.file.as_deref(), Some("pf.conf"));
        assert_eq!(args.operands, ["packet"]);
    }
}
