//! The one table of flags. The command line is read by it, and `-h`, the manual page and the shell
//! completions are made of it; each row's test stands below it.

use crate::args::{Args, Refusal};
use crate::words;

/// A flag: one row of the table.
pub struct Flag {
    /// How it is written.
    pub name: Name,
    /// What its value is, if it takes one.
    pub value: Option<Value>,
    /// One line, for `-h` and completions.
    pub brief: &'static str,
    /// The paragraph of the manual page, in mdoc(7).
    pub text: &'static str,
    /// Notes it down. Only looks at the value, does nothing else.
    pub set: fn(&mut Args, &str) -> Result<(), Refusal>,
}

/// How a flag is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `-x`
    Letter(char),
    /// `--name`
    Long(&'static str),
}

/// A flag's value: its name in the usage, and what a shell can complete it with.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// Name in the usage.
    pub name: &'static str,
    /// What completes it.
    pub kind: Completion,
}

/// What a shell completes a value with.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// nothing
    None,
    /// file names
    File,
    /// names of network interfaces
    Interface,
    /// words of a list
    Words(fn() -> Vec<&'static str>),
}

/// All flags, in the order of the manual page.
pub const FLAGS: &[&Flag] = &[
    &MACRO,
    &DISABLE,
    &ENABLE,
    &FLUSH,
    &FILE,
    &DEBUG,
    &HELP,
    &INTERFACE,
    &KILL,
    &NO_DNS,
    &NO_ACTION,
    &OPTIMIZE,
    &INSTANCE,
    &QUIET,
    &SHOW,
    &COMMAND,
    &TABLE,
    &VERBOSE,
    &DEBUG_LEVEL,
    &ZERO,
    &JSON,
    &JUNIT,
    &REMOVE,
];

/// Flags of OpenBSD that belong to features which are not built yet, with the features.
pub const NOT_BUILT: &[(char, &str)] = &[
    ('a', "anchors are"),
    ('K', "source tracking is"),
    ('L', "loading states is"),
    ('P', "printing ports by name is"),
    ('R', "showing a single rule is"),
    ('r', "looking up host names is"),
    ('S', "storing states is"),
    ('V', "routing domains are"),
];

/// The names of a word list that are built.
fn built<T>(list: &[words::Word<T>]) -> Vec<&'static str> {
    list.iter().filter(|(_, meaning)| meaning.is_some()).map(|(name, _)| *name).collect()
}

const MACRO: Flag = Flag {
    name: Name::Letter('D'),
    value: Some(Value { name: "macro=value", kind: Completion::None }),
    brief: "define a macro, overriding the file's own definition",
    text: "Define\n.Ar macro\nto be\n.Ar value .\nOverrides the definition of the macro in the rule \
           set.",
    set: |args, value| {
        let Some((name, value)) = value.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Refusal::Failure(format!("could not parse macro definition {value}")));
        };
        args.macros.push((name.to_string(), value.to_string()));
        Ok(())
    },
};

#[test]
fn macros() {
    let args = tests::args(&["-D", "ext=em0", "-D", "nets=a=b"]);
    assert_eq!(
        args.macros,
        [("ext".to_string(), "em0".to_string()), ("nets".to_string(), "a=b".to_string())]
    );
    assert_eq!(
        tests::refusal(&["-D", "ext"]),
        Refusal::Failure("could not parse macro definition ext".into())
    );
}

const DISABLE: Flag = Flag {
    name: Name::Letter('d'),
    value: None,
    brief: "disable the packet filter",
    text: "Disable the packet filter: detach it from every interface. Rules, tables and states stay \
           loaded.",
    set: |args, _| {
        args.disable = true;
        Ok(())
    },
};

#[test]
fn disable() {
    assert!(tests::args(&["-d"]).disable);
}

const ENABLE: Flag = Flag {
    name: Name::Letter('e'),
    value: None,
    brief: "enable the packet filter",
    text: "Enable the packet filter: attach it to every interface.",
    set: |args, _| {
        args.enable = true;
        Ok(())
    },
};

#[test]
fn enable() {
    assert!(tests::args(&["-e"]).enable);
}

const FLUSH: Flag = Flag {
    name: Name::Letter('F'),
    value: Some(Value { name: "modifier", kind: Completion::Words(|| built(words::FLUSH)) }),
    brief: "flush rules, states, info (counters), Tables or all of them",
    text: "Flush the filter parameters specified by\n.Ar modifier\n(may be abbreviated):\n\
           .Cm rules , states , info\n(statistics that are not bound to rules),\n.Cm Tables\nor\n\
           .Cm all\nof them. With\n.Fl i\nonly states or statistics of that interface.",
    set: |args, value| {
        args.flush = Some(words::lookup(words::FLUSH, value, 'F', "flush modifier")?);
        Ok(())
    },
};

#[test]
fn flush() {
    assert_eq!(tests::args(&["-Fs"]).flush, Some(words::Flush::States));
    assert_eq!(tests::args(&["-F", "all"]).flush, Some(words::Flush::All));
    assert_eq!(tests::refusal(&["-Fx"]), Refusal::Usage("Unknown flush modifier 'x'".into()));
}

const FILE: Flag = Flag {
    name: Name::Letter('f'),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "load the rule set in the file (- for standard input)",
    text: "Replace the current rule set with the one in\n.Ar file ,\nin one step: no packet sees a \
           part of it. States stay. If\n.Ar file\nis\n.Sq - ,\nstandard input is read. With\n\
           .Fl T ,\nthe file holds addresses.",
    set: |args, value| {
        args.file = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn file() {
    assert_eq!(tests::args(&["-f", "-"]).file.as_deref(), Some("-"));
}

const DEBUG: Flag = Flag {
    name: Name::Letter('g'),
    value: None,
    brief: "include output helpful for debugging, such as skip steps",
    text: "Include output helpful for debugging: the skip steps of rules, tables that are only \
           referenced.",
    set: |args, _| {
        args.debug = true;
        Ok(())
    },
};

#[test]
fn debug() {
    assert!(tests::args(&["-g", "-sr"]).debug);
}

const HELP: Flag = Flag {
    name: Name::Letter('h'),
    value: None,
    brief: "print this help",
    text: "Print a summary of the flags.",
    set: |args, _| {
        args.help = true;
        Ok(())
    },
};

#[test]
fn help() {
    assert!(tests::args(&["-h"]).help);
    assert!(tests::args(&["test", "-h"]).help);
}

const INTERFACE: Flag = Flag {
    name: Name::Letter('i'),
    value: Some(Value { name: "interface", kind: Completion::Interface }),
    brief: "restrict -s states, -s Interfaces, -F states, -F info and -k to an interface",
    text: "Restrict the operation to the given\n.Ar interface ,\nas far as\n.Fl F , k\nand\n.Fl s\n\
           are about interfaces or states.",
    set: |args, value| {
        args.interface = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn interface() {
    assert_eq!(tests::args(&["-i", "em0", "-ss"]).interface.as_deref(), Some("em0"));
}

const KILL: Flag = Flag {
    name: Name::Letter('k'),
    value: Some(Value { name: "key", kind: Completion::None }),
    brief: "kill states by source, by source and destination, by label or by id",
    text: "Kill the states that come from the given host or network. A second\n.Fl k\ngives the \
           host or network they go to. If the first\n.Ar key\nis the word\n.Cm label\nor\n.Cm id ,\n\
           the second one is the label of the rule that made the states, or the id of a state as\n\
           .Fl vvss\nprints it, with the creator's behind a slash if wished; if it is\n.Cm key ,\n\
           the second is\n.Dq protocol host1:port1 direction host2:port2\nas\n.Fl ss\nprints it.",
    set: |args, value| {
        if args.kill.len() == 2 {
            return Err(Refusal::Usage("can only specify -k twice".into()));
        }
        args.kill.push(value.to_string());
        Ok(())
    },
};

#[test]
fn kill() {
    assert_eq!(tests::args(&["-k", "10.0.0.1", "-k", "0.0.0.0/0"]).kill, ["10.0.0.1", "0.0.0.0/0"]);
    assert_eq!(
        tests::refusal(&["-ka", "-kb", "-kc"]),
        Refusal::Usage("can only specify -k twice".into())
    );
}

const NO_DNS: Flag = Flag {
    name: Name::Letter('N'),
    value: None,
    brief: "do not look up host names (they never are)",
    text: "Do not ask the name service for host names in rules; only localhost is known. This is \
           always so.",
    set: |_, _| Ok(()),
};

#[test]
fn no_dns() {
    assert_eq!(tests::args(&["-N"]), Args::default());
}

const NO_ACTION: Flag = Flag {
    name: Name::Letter('n'),
    value: None,
    brief: "only parse, change nothing",
    text: "Do not change anything: only parse the rule set, or say what a table command would do.",
    set: |args, _| {
        args.no_action = true;
        Ok(())
    },
};

#[test]
fn no_action() {
    assert!(tests::args(&["-nf", "pf.conf"]).no_action);
}

const OPTIMIZE: Flag = Flag {
    name: Name::Letter('o'),
    value: Some(Value { name: "level", kind: Completion::Words(|| built(words::OPTIMIZE)) }),
    brief: "how to optimize the rule set; only none is built",
    text: "Choose the level of rule set optimization. Only\n.Cm none\nis built, and is what happens \
           without this flag.",
    set: |_, value| words::lookup(words::OPTIMIZE, value, 'o', "optimization"),
};

#[test]
fn optimize() {
    assert_eq!(tests::args(&["-o", "none"]), Args::default());
    assert_eq!(
        tests::refusal(&["-o", "basic"]),
        Refusal::Failure("-o basic is not built yet".into())
    );
}

const INSTANCE: Flag = Flag {
    name: Name::Letter('p'),
    value: Some(Value { name: "instance", kind: Completion::None }),
    brief: "work on this instance of the filter",
    text: "Work on the filter of this name instead of the default one. Every network namespace can \
           have its own.",
    set: |args, value| {
        args.instance = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn instance() {
    assert_eq!(tests::args(&["-plab", "-e"]).instance.as_deref(), Some("lab"));
}

const QUIET: Flag = Flag {
    name: Name::Letter('q'),
    value: None,
    brief: "print errors and warnings only",
    text: "Only print errors and warnings.",
    set: |args, _| {
        args.quiet = true;
        Ok(())
    },
};

#[test]
fn quiet() {
    assert!(tests::args(&["-qe"]).quiet);
}

const SHOW: Flag = Flag {
    name: Name::Letter('s'),
    value: Some(Value { name: "modifier", kind: Completion::Words(|| built(words::SHOW)) }),
    brief: "show rules, states, info, Interfaces, labels, timeouts, memory, Tables or all",
    text: "Show the filter parameters specified by\n.Ar modifier\n(may be abbreviated):\n\
           .Cm rules\n(with\n.Fl v\ntheir counters, with\n.Fl vv\ntheir numbers),\n.Cm states ,\n\
           .Cm info\n(status and counters),\n.Cm Interfaces ,\n.Cm labels\n(one line for each \
           labelled rule: label, evaluations, packets, bytes, packets in, bytes in, packets out, \
           bytes out, states made),\n.Cm timeouts , memory\n(limits),\n.Cm Tables\nor\n.Cm all .",
    set: |args, value| {
        args.show = Some(words::lookup(words::SHOW, value, 's', "show modifier")?);
        Ok(())
    },
};

#[test]
fn show() {
    assert_eq!(tests::args(&["-sT"]).show, Some(words::Show::Tables));
    assert_eq!(tests::args(&["-s", "timeouts"]).show, Some(words::Show::Timeouts));
    assert_eq!(tests::refusal(&["-sz"]), Refusal::Usage("Unknown show modifier 'z'".into()));
}

const COMMAND: Flag = Flag {
    name: Name::Letter('T'),
    value: Some(Value { name: "command", kind: Completion::Words(|| built(words::TABLE_COMMAND)) }),
    brief: "with -t: add, delete, replace, show, test, flush or zero",
    text: "Do\n.Ar command\n(may be abbreviated) on the table given with\n.Fl t :\n.Cm add , delete\n\
           or\n.Cm replace\naddresses,\n.Cm show\nthem,\n.Cm test\nwhether addresses match (exit \
           status 2 if not all do),\n.Cm flush\nall of them or\n.Cm zero\nthe counters. Addresses \
           are operands, or come from the file given with\n.Fl f .",
    set: |args, value| {
        args.command = Some(words::lookup(words::TABLE_COMMAND, value, 'T', "table command")?);
        Ok(())
    },
};

#[test]
fn command() {
    let args = tests::args(&["-t", "bad", "-Tadd", "10.0.0.1"]);
    assert_eq!(args.command, Some(words::TableCommand::Add));
    assert_eq!(args.operands, ["10.0.0.1"]);
    assert_eq!(
        tests::refusal(&["-t", "bad", "-T", "make"]),
        Refusal::Usage("Unknown table command 'make'".into())
    );
}

const TABLE: Flag = Flag {
    name: Name::Letter('t'),
    value: Some(Value { name: "table", kind: Completion::None }),
    brief: "the table that -T is about",
    text: "The table that\n.Fl T\nis about.",
    set: |args, value| {
        // 31 bytes and a zero in OpenBSD's structures
        if value.is_empty() || value.len() > 31 {
            return Err(Refusal::Usage(format!("table name '{value}' must have 1 to 31 bytes")));
        }
        args.table = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn table() {
    assert_eq!(tests::args(&["-Ts", "-t", "bad"]).table.as_deref(), Some("bad"));
    assert!(matches!(tests::refusal(&["-Ts", "-t", &"x".repeat(32)]), Refusal::Usage(_)));
}

const VERBOSE: Flag = Flag {
    name: Name::Letter('v'),
    value: None,
    brief: "more output; twice: still more",
    text: "Produce more verbose output. A second\n.Fl v\nadds rule numbers, statistics of tables \
           and interfaces, and ids of states.",
    set: |args, _| {
        args.verbose = args.verbose.saturating_add(1);
        Ok(())
    },
};

#[test]
fn verbose() {
    assert_eq!(tests::args(&["-v", "-v", "-sr"]).verbose, 2);
}

const DEBUG_LEVEL: Flag = Flag {
    name: Name::Letter('x'),
    value: Some(Value { name: "level", kind: Completion::Words(|| built(words::DEBUG_LEVEL)) }),
    brief: "set the debug level",
    text: "Set the debug\n.Ar level\n(may be abbreviated) to\n\
           .Cm emerg , alert , crit , error , warning , notice , info\nor\n.Cm debug .",
    set: |args, value| {
        args.debug_level = Some(words::lookup(words::DEBUG_LEVEL, value, 'x', "debug level")?);
        Ok(())
    },
};

#[test]
fn debug_level() {
    assert_eq!(tests::args(&["-x", "err"]).debug_level, Some(3));
    assert_eq!(
        tests::refusal(&["-x", "loud"]),
        Refusal::Usage("Unknown debug level 'loud'".into())
    );
}

const ZERO: Flag = Flag {
    name: Name::Letter('z'),
    value: None,
    brief: "clear the counters of rules",
    text: "Clear the counters of all rules; with\n.Fl s Cm rules\nor\n.Fl s Cm labels ,\nafter \
           showing them.",
    set: |args, _| {
        args.zero = true;
        Ok(())
    },
};

#[test]
fn zero() {
    assert!(tests::args(&["-z"]).zero);
}

const JSON: Flag = Flag {
    name: Name::Long("json"),
    value: None,
    brief: "with -s and -T show: print JSON",
    text: "With\n.Fl s ,\n.Fl T Cm show\nor\n.Cm explain :\nprint JSON instead of OpenBSD's text.",
    set: |args, _| {
        args.json = true;
        Ok(())
    },
};

#[test]
fn json() {
    assert!(tests::args(&["--json", "-ss"]).json);
}

const JUNIT: Flag = Flag {
    name: Name::Long("junit"),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "with test: write a JUnit report",
    text: "With\n.Cm test :\nwrite the results to\n.Ar file\nas JUnit XML, too.",
    set: |args, value| {
        args.junit = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn junit() {
    let args = tests::args(&["test", "--junit=out.xml", "a.scenario"]);
    assert_eq!(args.junit.as_deref(), Some("out.xml"));
}

const REMOVE: Flag = Flag {
    name: Name::Long("remove"),
    value: None,
    brief: "disable the filter and remove all of it from the kernel",
    text: "Disable the filter and remove all of it from the kernel: programs, rules, tables, states \
           and counters. The machine is as it was before the first rule set was loaded.",
    set: |args, _| {
        args.remove = true;
        Ok(())
    },
};

#[test]
fn remove() {
    assert!(tests::args(&["-p", "lab", "--remove"]).remove);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::args::parse;

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
        for (letter, _) in NOT_BUILT {
            assert!(seen.insert(format!("{:?}", Name::Letter(*letter))), "{letter}");
        }
    }

    #[test]
    fn every_letter_of_openbsd_is_known() {
        for letter in "adDeqfFghiKkLNnoPpRrSstTvVxz".chars() {
            let built = FLAGS.iter().any(|flag| flag.name == Name::Letter(letter));
            let refused = NOT_BUILT.iter().any(|(name, _)| *name == letter);
            assert!(built || refused, "-{letter}");
        }
    }
}
