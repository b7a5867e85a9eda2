//! The table of flags. The parser of the command line uses it; `-h`, the manual page and the shell
//! completions are made from it. Each flag's test is below the flag, in the file of its subject.

pub mod flag;

mod filter;
mod rules;
mod show;
mod states;
mod tables;
mod verbs;

use flag::Flag;

/// All flags, in the order of the manual page.
pub const FLAGS: &[&Flag] = &[
    &rules::ANCHOR,
    &rules::MACRO,
    &filter::DISABLE,
    &filter::TAKE_REFERENCE,
    &filter::ENABLE,
    &filter::FLUSH,
    &rules::FILE,
    &rules::CONFIRM,
    &rules::KEEP_STATES,
    &show::DEBUG,
    &show::HELP,
    &states::LIMITER,
    &states::INTERFACE,
    &states::KILL_SOURCES,
    &states::KILL,
    &states::LOAD_STATES,
    &states::BOTH_SIDES,
    &rules::NO_DNS,
    &rules::NO_ACTION,
    &rules::OPTIMIZE,
    &show::PORT_NAMES,
    &filter::INSTANCE,
    &show::QUIET,
    &rules::RULE,
    &show::HOST_NAMES,
    &states::STORE_STATES,
    &show::SHOW,
    &tables::COMMAND,
    &tables::TABLE,
    &filter::RDOMAIN,
    &show::VERBOSE,
    &verbs::PCAP,
    &filter::RELEASE_REFERENCE,
    &filter::DEBUG_LEVEL,
    &filter::ZERO,
    &show::JSON,
    &rules::OPENBSD,
    &show::LONG_HELP,
    &show::VERSION,
    &verbs::JUNIT,
    &verbs::CHECK,
    &verbs::WRITE,
    &verbs::EXAMPLES,
    &verbs::ALL,
    &verbs::EXPLAIN,
    &filter::REMOVE,
    &filter::ROOM_FOR,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::flag::Name;
    use super::*;
    use crate::args::parse;
    use crate::refusal::Refusal;
    use crate::request::Args;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    pub fn args(line: &[&str]) -> Args {
        parse(&words(line)).unwrap_or_else(|refusal| panic!("{line:?}: {refusal:?}"))
    }

    pub fn refusal(line: &[&str]) -> Refusal {
        parse(&words(line)).expect_err("should have been refused")
    }

    #[test]
    fn no_two_flags_have_the_same_name() {
        let mut seen = HashSet::new();
        for flag in FLAGS {
            assert!(seen.insert(format!("{:?}", flag.name)), "{:?}", flag.name);
        }
    }

    #[test]
    fn every_letter_of_openbsd_is_known() {
        for letter in "adDeqfFghiKkLNnoPpRrSstTvVxz".chars() {
            assert!(FLAGS.iter().any(|flag| flag.name == Name::Letter(letter)), "-{letter}");
        }
    }
}
