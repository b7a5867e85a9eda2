//! Flags of verbs, such as `test` and `fmt`.

use super::flag::{Flag, Name, Value};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
use crate::refusal::Refusal;

pub(super) const JUNIT: Flag = Flag {
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

pub(super) const CHECK: Flag = Flag {
    name: Name::Long("check"),
    value: None,
    brief: "with fmt: print the names of files that are not in canonical form",
    text: "With\n\
           .Cm fmt :\n\
           change nothing, but print the names of the files that are not in canonical form.\n\
           The exit status is 1 if there are any.",
    set: |args, _| {
        args.check = true;
        Ok(())
    },
};

#[test]
fn check() {
    assert!(tests::args(&["fmt", "--check", "pf.conf"]).check);
}

pub(super) const WRITE: Flag = Flag {
    name: Name::Long("write"),
    value: None,
    brief: "with fmt: write the files; with --confirm: copy the rules to /etc/pf.conf later",
    text: "With\n\
           .Cm fmt :\n\
           write each file back in canonical form instead of printing it.\n\
           With\n\
           .Fl -confirm :\n\
           when the load is confirmed, replace\n\
           .Pa /etc/pf.conf\n\
           by the loaded file.",
    set: |args, _| {
        args.write = true;
        Ok(())
    },
};

#[test]
fn write() {
    assert!(tests::args(&["fmt", "--write", "pf.conf"]).write);
}

pub(super) const EXAMPLES: Flag = Flag {
    name: Name::Long("examples"),
    value: Some(Value { name: "number", kind: Completion::None }),
    brief: "with diff: maximum number of packets to print (20)",
    text: "With\n\
           .Cm diff :\n\
           the largest number of packets with different verdicts to print.\n\
           The default is 20.",
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

pub(super) const ALL: Flag = Flag {
    name: Name::Long("all"),
    value: None,
    brief: "with log: print the existing records, too",
    text: "With\n\
           .Cm log :\n\
           print or write the existing records of the file first.",
    set: |args, _| {
        args.all = true;
        Ok(())
    },
};

pub(super) const PCAP: Flag = Flag {
    name: Name::Letter('w'),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "with log: write a pcap file instead of lines; - is standard output",
    text: "With\n\
           .Cm log :\n\
           write the packets to\n\
           .Ar file\n\
           in pcap format instead of printing lines.\n\
           If\n\
           .Ar file\n\
           is\n\
           .Sq - ,\n\
           standard output is written.\n\
           The link type is PFLOG, and each packet is written at once.",
    set: |args, value| {
        args.pcap = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn pcap() {
    assert_eq!(tests::args(&["log", "-w", "-"]).pcap.as_deref(), Some("-"));
    let refused = |line: &[&str], message: &str| {
        assert_eq!(tests::refusal(line), Refusal::Usage(message.into()), "{line:?}");
    };
    refused(&["-w", "x", "-sr"], "-w applies to log only");
    refused(&["test", "-w", "x", "a.scn"], "-w applies to log only");
    refused(&["log", "-w", "x", "--json"], "-w and --json are mutually exclusive");
}

#[test]
fn all() {
    assert!(tests::args(&["log", "--all"]).all);
}

pub(super) const EXPLAIN: Flag = Flag {
    name: Name::Long("explain"),
    value: None,
    brief: "with drops: explain the fate of each packet",
    text: "With\n\
           .Cm drops :\n\
           below each packet, print its way through the rules in force, as\n\
           .Cm explain\n\
           does.",
    set: |args, _| {
        args.explain = true;
        Ok(())
    },
};

#[test]
fn explain() {
    assert!(tests::args(&["drops", "--explain"]).explain);
}
