//! The one table of flags. The command line is read by it, and `-h`, the manual page and the shell
//! completions are made of it; each row's test stands below it.

use crate::args::{Anchor, Args, Refusal};
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
    /// names of tables
    Table,
    /// paths of anchors
    Anchor,
    /// words of a list
    Words(fn() -> Vec<&'static str>),
}

/// All flags, in the order of the manual page.
pub const FLAGS: &[&Flag] = &[
    &ANCHOR,
    &MACRO,
    &DISABLE,
    &ENABLE,
    &FLUSH,
    &FILE,
    &DEBUG,
    &HELP,
    &INTERFACE,
    &KILL_SOURCES,
    &KILL,
    &LOAD_STATES,
    &NO_DNS,
    &NO_ACTION,
    &OPTIMIZE,
    &PORT_NAMES,
    &INSTANCE,
    &QUIET,
    &RULE,
    &HOST_NAMES,
    &STORE_STATES,
    &SHOW,
    &COMMAND,
    &TABLE,
    &RDOMAIN,
    &VERBOSE,
    &DEBUG_LEVEL,
    &ZERO,
    &JSON,
    &JUNIT,
    &CHECK,
    &WRITE,
    &EXAMPLES,
    &REMOVE,
];

/// The names in a word list.
fn names<T>(list: &[words::Word<T>]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).collect()
}

const ANCHOR: Flag = Flag {
    name: Name::Letter('a'),
    value: Some(Value { name: "anchor", kind: Completion::Anchor }),
    brief: "work on this anchor (-f, -F, -s, -T, -z); anchor/* and * go into those below",
    text: "Apply\n.Fl f , F , s , T\nand\n.Fl z\nto the rule set and the tables of the\n.Ar anchor ,\n\
           a path such as\n.Dq spam/white .\nIf it ends in\n.Sq /* ,\nor is\n.Sq * ,\n.Fl F\nand\n\
           .Fl s\ndescend into all anchors below it.",
    set: |args, value| {
        args.anchor = Some(Anchor::parse(value)?);
        Ok(())
    },
};

#[test]
fn anchor() {
    let anchor = |path: &str, recursive| Some(Anchor { path: path.into(), recursive });
    assert_eq!(tests::args(&["-a", "spam", "-sr"]).anchor, anchor("spam", false));
    assert_eq!(tests::args(&["-a", "/spam/white/*", "-sr"]).anchor, anchor("spam/white", true));
    assert_eq!(tests::args(&["-a", "*", "-sr"]).anchor, anchor("", true));
    assert_eq!(
        tests::refusal(&["-a", "", "-sr"]),
        Refusal::Failure("anchor name must not be empty".into())
    );
    let long = "x".repeat(1024);
    assert_eq!(
        tests::refusal(&["-sr", "-a", &long]),
        Refusal::Failure(format!("anchor name '{long}' too long"))
    );
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
    value: Some(Value { name: "modifier", kind: Completion::Words(|| names(words::FLUSH)) }),
    brief: "flush rules, states, Sources, info, Tables, osfp, all of them, or Reset",
    text: "Flush the filter parameters specified by\n.Ar modifier\n(may be abbreviated):\n\
           .Cm rules , states , Sources\n(source tracking),\n.Cm info\n(statistics that are not \
           bound to rules),\n.Cm Tables , osfp\n(fingerprints) or\n.Cm all\nof them;\n.Cm Reset\n\
           puts limits, timeouts and other options back to what they are by default. With\n.Fl i\n\
           only states or statistics of that interface, with\n.Fl a\nonly rules and tables of \
           that anchor.",
    set: |args, value| {
        args.flush = Some(words::lookup(words::FLUSH, value, "flush modifier")?);
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

const KILL_SOURCES: Flag = Flag {
    name: Name::Letter('K'),
    value: Some(Value { name: "key", kind: Completion::None }),
    brief: "kill source tracking entries by source, or by source and destination",
    text: "Kill the source tracking entries of the given host or network. A second\n.Fl K\ngives \
           the host or network that they are sent to.",
    set: |args, value| {
        if args.kill_sources.len() == 2 {
            return Err(Refusal::Usage("can only specify -K twice".into()));
        }
        args.kill_sources.push(value.to_string());
        Ok(())
    },
};

#[test]
fn kill_sources() {
    assert_eq!(tests::args(&["-K", "10.0.0.1"]).kill_sources, ["10.0.0.1"]);
    assert_eq!(
        tests::refusal(&["-Ka", "-Kb", "-Kc"]),
        Refusal::Usage("can only specify -K twice".into())
    );
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

const LOAD_STATES: Flag = Flag {
    name: Name::Letter('L'),
    value: Some(Value { name: "statefile", kind: Completion::File }),
    brief: "load states from a file that -S wrote",
    text: "Load the states in\n.Ar statefile ,\nwhich\n.Fl S\nhas written. They go on where they \
           were; those that are there already are left alone.",
    set: |args, value| {
        args.load_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn load_states() {
    assert_eq!(tests::args(&["-L", "states"]).load_states.as_deref(), Some("states"));
}

const NO_DNS: Flag = Flag {
    name: Name::Letter('N'),
    value: None,
    brief: "do not look up host names",
    text: "Do not ask the name service for host names in rules and tables: they are errors.",
    set: |args, _| {
        args.no_dns = true;
        Ok(())
    },
};

#[test]
fn no_dns() {
    assert!(tests::args(&["-N"]).no_dns);
    assert_eq!(
        tests::refusal(&["-N", "-r"]),
        Refusal::Failure("-N and -r are mutually exclusive".into())
    );
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
    value: Some(Value { name: "level", kind: Completion::Words(|| names(words::OPTIMIZE)) }),
    brief: "how to optimize the rule set: none, basic or profile",
    text: "Choose how rules are optimized when they are loaded:\n.Cm none ,\n.Cm basic\n(rules that \
           say the same go, those that differ in one address become a table, and the order makes \
           evaluation faster) or\n.Cm profile\n(as basic, and the order follows the counters of the \
           rules in force). Overrides\n.Cm set ruleset-optimization .",
    set: |args, value| {
        let level = words::lookup(words::OPTIMIZE, value, "optimization")?;
        args.optimization = Some(level);
        Ok(())
    },
};

#[test]
fn optimize() {
    use skipstep_ruleset::Optimization;
    assert_eq!(tests::args(&["-o", "none"]).optimization, Some(Optimization::None));
    assert_eq!(tests::args(&["-obasic"]).optimization, Some(Optimization::Basic));
    assert_eq!(tests::refusal(&["-o", "x"]), Refusal::Usage("Unknown optimization 'x'".into()));
}

const PORT_NAMES: Flag = Flag {
    name: Name::Letter('P'),
    value: None,
    brief: "print ports by name",
    text: "Print ports by the names that\n.Xr services 5\nhas for them.",
    set: |args, _| {
        args.port_names = true;
        Ok(())
    },
};

#[test]
fn port_names() {
    assert!(tests::args(&["-Psr"]).port_names);
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

const RULE: Flag = Flag {
    name: Name::Letter('R'),
    value: Some(Value { name: "id", kind: Completion::None }),
    brief: "with -s rules, states or labels: only the rule with this number",
    text: "With\n.Fl s Cm rules , labels\nor\n.Cm states :\nshow only the rule with this number, \
           or the states that it made.",
    set: |args, value| {
        args.rule = Some(number(value, "rule id")?);
        Ok(())
    },
};

#[test]
fn rule() {
    assert_eq!(tests::args(&["-R", "12", "-sr"]).rule, Some(12));
    assert_eq!(tests::refusal(&["-R", "x"]), Refusal::Usage("rule id x: invalid".into()));
    assert_eq!(
        tests::refusal(&["-R", "4294967296"]),
        Refusal::Usage("rule id 4294967296: too large".into())
    );
}

const HOST_NAMES: Flag = Flag {
    name: Name::Letter('r'),
    value: None,
    brief: "show host names instead of addresses",
    text: "Ask the name service for the names of addresses when states and tables are shown.",
    set: |args, _| {
        args.host_names = true;
        Ok(())
    },
};

#[test]
fn host_names() {
    assert!(tests::args(&["-rss"]).host_names);
}

const STORE_STATES: Flag = Flag {
    name: Name::Letter('S'),
    value: Some(Value { name: "statefile", kind: Completion::File }),
    brief: "store all states in a file, for -L",
    text: "Store the states in\n.Ar statefile ,\na JSON object a line: first one about the filter, \
           then each state. It is replaced in one piece, and only root may read it.",
    set: |args, value| {
        args.store_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn store_states() {
    assert_eq!(tests::args(&["-S", "states"]).store_states.as_deref(), Some("states"));
}

const SHOW: Flag = Flag {
    name: Name::Letter('s'),
    value: Some(Value { name: "modifier", kind: Completion::Words(|| names(words::SHOW)) }),
    brief: "show queue, rules, Anchors, Sources, states, info, Interfaces, labels, timeouts, \
            memory, Tables, osfp or all",
    text: "Show the filter parameters specified by\n.Ar modifier\n(may be abbreviated):\n\
           .Cm queue ,\n.Cm rules\n(with\n.Fl v\ntheir counters, with\n.Fl vv\ntheir numbers),\n\
           .Cm Anchors\n(with\n.Fl v\nthose below, too),\n.Cm Sources\n(source tracking),\n\
           .Cm states ,\n.Cm info\n(status and counters),\n.Cm Interfaces ,\n.Cm labels\n(one line \
           for each labelled rule: label, evaluations, packets, bytes, packets in, bytes in, packets \
           out, bytes out, states made),\n.Cm timeouts , memory\n(limits),\n.Cm Tables ,\n.Cm osfp\n\
           (operating systems that are known by their fingerprints) or\n.Cm all .",
    set: |args, value| {
        args.show = Some(words::lookup(words::SHOW, value, "show modifier")?);
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
    value: Some(Value { name: "command", kind: Completion::Words(|| names(words::TABLE_COMMAND)) }),
    brief: "with -t: add, delete, expire, flush, kill, replace, show, test or zero; or load",
    text: "Do\n.Ar command\n(may be abbreviated) on the table given with\n.Fl t :\n.Cm add , delete\n\
           or\n.Cm replace\naddresses,\n.Cm expire Ar seconds\nthose whose statistics were not \
           cleared for so long,\n.Cm show\nthem,\n.Cm test\nwhether addresses match (exit status 2 \
           if not all do),\n.Cm flush\nall of them,\n.Cm zero\nthe counters, or\n.Cm kill\nthe \
           table. Addresses are operands, or come from the file given with\n.Fl f .\nWith\n.Fl v\n\
           the addresses that something happens to are listed, with\n.Fl vv\nall of them, after a \
           letter:\n.Cm A\nis added,\n.Cm D\ndeleted,\n.Cm C\nchanged,\n.Cm M\nmatches,\n\
           .Cm X\nis given twice,\n.Cm Y\nis there with the opposite negation,\n.Cm Z\ncleared. \
           Without\n.Fl t , Cm load\nloads only the tables of the rule set given with\n.Fl f .",
    set: |args, value| {
        args.command = Some(words::lookup(words::TABLE_COMMAND, value, "table command")?);
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
    value: Some(Value { name: "table", kind: Completion::Table }),
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

const RDOMAIN: Flag = Flag {
    name: Name::Letter('V'),
    value: Some(Value { name: "rdomain", kind: Completion::None }),
    brief: "with -k: only states of this routing domain",
    text: "With\n.Fl k :\nkill only states of this routing domain; without it those of domain 0.",
    set: |args, value| {
        args.rdomain = Some(number(value, "rdomain")?);
        Ok(())
    },
};

#[test]
fn rdomain() {
    assert_eq!(tests::args(&["-V", "3", "-k", "10.0.0.1"]).rdomain, Some(3));
    assert_eq!(tests::refusal(&["-V", "-1"]), Refusal::Usage("rdomain -1: too small".into()));
}

/// A number as strtonum(3) reads it; `what` names it in messages.
fn number(text: &str, what: &str) -> Result<u32, Refusal> {
    let number: Result<i128, _> = text.trim_start().parse();
    let wrong = match number.map(|number| (number, u32::try_from(number))) {
        Ok((_, Ok(number))) => return Ok(number),
        Ok((number, _)) if number < 0 => "too small",
        Ok(_) => "too large",
        Err(_) => "invalid",
    };
    Err(Refusal::Usage(format!("{what} {text}: {wrong}")))
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
    value: Some(Value { name: "level", kind: Completion::Words(|| names(words::DEBUG_LEVEL)) }),
    brief: "set the debug level",
    text: "Set the debug\n.Ar level\n(may be abbreviated) to\n\
           .Cm emerg , alert , crit , error , warning , notice , info\nor\n.Cm debug .",
    set: |args, value| {
        args.debug_level = Some(words::lookup(words::DEBUG_LEVEL, value, "debug level")?);
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

const CHECK: Flag = Flag {
    name: Name::Long("check"),
    value: None,
    brief: "with fmt: only name the files that it would change",
    text: "With\n.Cm fmt :\nchange nothing, but print the names of the files that are not in canonical \
           form. The exit status is 1 if there are any.",
    set: |args, _| {
        args.check = true;
        Ok(())
    },
};

#[test]
fn check() {
    assert!(tests::args(&["fmt", "--check", "pf.conf"]).check);
}

const WRITE: Flag = Flag {
    name: Name::Long("write"),
    value: None,
    brief: "with fmt: write the files instead of printing them",
    text: "With\n.Cm fmt :\nwrite each file back in canonical form instead of printing it.",
    set: |args, _| {
        args.write = true;
        Ok(())
    },
};

#[test]
fn write() {
    assert!(tests::args(&["fmt", "--write", "pf.conf"]).write);
}

const EXAMPLES: Flag = Flag {
    name: Name::Long("examples"),
    value: Some(Value { name: "number", kind: Completion::None }),
    brief: "with diff: print at most so many packets (20)",
    text: "With\n.Cm diff :\nprint at most\n.Ar number\npackets that fare differently, instead of 20.",
    set: |args, value| {
        let Ok(number) = value.parse() else {
            return Err(Refusal::Usage(format!("--examples: '{value}' is not a number")));
        };
        args.examples = Some(number);
        Ok(())
    },
};

#[test]
fn examples() {
    assert_eq!(tests::args(&["diff", "--examples=3", "a", "b"]).examples, Some(3));
    assert!(matches!(tests::refusal(&["diff", "--examples", "x", "a", "b"]), Refusal::Usage(_)));
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
    }

    #[test]
    fn every_letter_of_openbsd_is_known() {
        for letter in "adDeqfFghiKkLNnoPpRrSstTvVxz".chars() {
            assert!(FLAGS.iter().any(|flag| flag.name == Name::Letter(letter)), "-{letter}");
        }
    }
}
