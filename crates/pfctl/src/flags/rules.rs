//! Flags that select a rule set and control how it is read.

use skipstep_kernel::trial::LONGEST_TRIAL;

use super::flag::{Flag, Name, Value, names, number};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::request::Anchor;
use crate::words;

pub(super) const ANCHOR: Flag = Flag {
    name: Name::Letter('a'),
    value: Some(Value { name: "anchor", kind: Completion::Anchor }),
    brief: "apply -f, -F, -s, -T and -z to this anchor; anchor/* and * include nested anchors",
    text: "Apply\n\
           .Fl F , f , s , T\n\
           and\n\
           .Fl z\n\
           to the rule set and the tables of the\n\
           .Ar anchor ,\n\
           a path such as\n\
           .Dq spam/white .\n\
           If the path ends in\n\
           .Sq /*\n\
           or is\n\
           .Sq * ,\n\
           .Fl F , s\n\
           and\n\
           .Fl z\n\
           also apply to all anchors below it.",
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

pub(super) const MACRO: Flag = Flag {
    name: Name::Letter('D'),
    value: Some(Value { name: "macro=value", kind: Completion::None }),
    brief: "define a macro, overriding the file's own definition",
    text: "Define\n\
           .Ar macro\n\
           as\n\
           .Ar value .\n\
           Lines of the rule set that define the same macro have no effect.\n\
           If\n\
           .Fl D\n\
           defines a macro twice, the first definition counts.",
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

pub(super) const FILE: Flag = Flag {
    name: Name::Letter('f'),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "load the rule set in the file (- for standard input)",
    text: "Replace the current rule set with the rule set in\n\
           .Ar file .\n\
           The load is atomic: each packet is evaluated by the old rules or by the new rules.\n\
           States are kept.\n\
           If there is a file\n\
           .Pa /etc/pf.failsafe ,\n\
           its rules come first:\n\
           .Sx FAILSAFE LIST .\n\
           If\n\
           .Ar file\n\
           is\n\
           .Sq - ,\n\
           standard input is read.\n\
           With\n\
           .Fl T ,\n\
           the file contains addresses.\n\
           With\n\
           .Fl T Cm load ,\n\
           it contains a rule set.",
    set: |args, value| {
        args.file = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn file() {
    assert_eq!(tests::args(&["-f", "-"]).file.as_deref(), Some("-"));
}

pub(super) const NO_DNS: Flag = Flag {
    name: Name::Letter('N'),
    value: None,
    brief: "do not look up host names",
    text: "Do not resolve host names in rules and tables.\n\
           A host name is an error.",
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

pub(super) const NO_ACTION: Flag = Flag {
    name: Name::Letter('n'),
    value: None,
    brief: "only parse, change nothing",
    text: "Do not change anything: only parse the rule set, or report the effect of a table \
           command.",
    set: |args, _| {
        args.no_action = true;
        Ok(())
    },
};

#[test]
fn no_action() {
    assert!(tests::args(&["-nf", "pf.conf"]).no_action);
}

pub(super) const OPENBSD: Flag = Flag {
    name: Name::Long("openbsd"),
    value: None,
    brief: "refuse syntax of FreeBSD and of old versions of OpenBSD",
    text: "Refuse the syntax of FreeBSD, and of OpenBSD before 4.7.\n\
           Without this flag,\n\
           .Fl f\n\
           accepts it.\n\
           These settings are still accepted, although OpenBSD lacks them:\n\
           .Cm evaluator , fast-forward , unattached\n\
           and\n\
           .Cm xdp .\n\
           If a file without these settings has no error with this flag and\n\
           .Fl n ,\n\
           current OpenBSD can read it.",
    set: |args, _| {
        args.openbsd = true;
        Ok(())
    },
};

#[test]
fn openbsd() {
    assert!(tests::args(&["--openbsd", "-nf", "pf.conf"]).openbsd);
}

pub(super) const OPTIMIZE: Flag = Flag {
    name: Name::Letter('o'),
    value: Some(Value { name: "level", kind: Completion::Words(|| names(words::OPTIMIZE)) }),
    brief: "optimization of the rule set: none, basic or profile",
    text: "Set the optimization of the rules for this load, instead of\n\
           .Cm set ruleset-optimization .\n\
           .Cm none\n\
           leaves the rules as they are written.\n\
           .Cm basic\n\
           removes rules that other rules cover, makes tables of rules that differ in one\n\
           address, and puts similar rules side by side.\n\
           .Cm profile\n\
           does the same, and also puts\n\
           .Cm quick\n\
           rules that match more often first, by the counters of the rules in force.",
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

pub(super) const RULE: Flag = Flag {
    name: Name::Letter('R'),
    value: Some(Value { name: "id", kind: Completion::None }),
    brief: "with -s rules, states or labels: only the rule with this number",
    text: "With\n\
           .Fl s Cm rules\n\
           or\n\
           .Cm labels :\n\
           show only the rule with this number.\n\
           With\n\
           .Fl s Cm states :\n\
           show only the states that this rule created.",
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

pub(super) const CONFIRM: Flag = Flag {
    name: Name::Long("confirm"),
    value: Some(Value { name: "seconds", kind: Completion::None }),
    brief: "put the load on trial: undo it unless `pfctl confirm` is run in time",
    text: "Put the rules or tables of\n\
           .Fl f ,\n\
           .Fl F\n\
           or\n\
           .Fl T Cm replace\n\
           on trial.\n\
           If\n\
           .Cm pfctl confirm\n\
           is not run in\n\
           .Ar seconds ,\n\
           the rules, tables and options before the load are in force again.\n\
           The kernel goes back by itself, even if all processes of skipstep are killed.\n\
           If the load enabled the filter, the filter is disabled again.\n\
           .Cm pfctl revert\n\
           goes back at once, and\n\
           .Fl s Cm confirm\n\
           shows the load on trial.\n\
           .Pp\n\
           During a trial, loads without\n\
           .Fl -confirm\n\
           are refused.\n\
           Another load with\n\
           .Fl -confirm\n\
           sets the time anew, and the filter still goes back to the rules before the first load.\n\
           .Pp\n\
           States of earlier rules stay.\n\
           When the filter goes back, it ends the states of rules that only the load on trial has.\n\
           Addresses that commands add or delete during the trial stay as they are then,\n\
           except in tables that the load replaces.\n\
           A reboot loads\n\
           .Pa /etc/pf.conf ,\n\
           as always.",
    set: |args, value| {
        match number(value, "confirm")? {
            seconds @ 1..=LONGEST_TRIAL => args.confirm = Some(seconds),
            0 => return Err(Refusal::Usage("confirm 0: too small".into())),
            _ => return Err(Refusal::Usage(format!("confirm {value}: too large"))),
        }
        Ok(())
    },
};

#[test]
fn confirm() {
    assert_eq!(tests::args(&["-f", "a", "--confirm", "60"]).confirm, Some(60));
    let wrong = |seconds, why: &str| {
        let refusal = tests::refusal(&["-f", "a", "--confirm", seconds]);
        assert_eq!(refusal, Refusal::Usage(format!("confirm {seconds}: {why}")));
    };
    wrong("0", "too small");
    wrong("604801", "too large");
    wrong("soon", "invalid");
}

pub(super) const KEEP_STATES: Flag = Flag {
    name: Name::Long("keep-states"),
    value: None,
    brief: "with --confirm: keep the states of new rules when the load is undone",
    text: "With\n\
           .Fl -confirm :\n\
           when the filter goes back, keep the states of rules that only the load on trial has.\n\
           If several loads are on trial, the last one decides.",
    set: |args, _| {
        args.keep_states = true;
        Ok(())
    },
};

#[test]
fn keep_states() {
    assert!(tests::args(&["-f", "a", "--confirm", "60", "--keep-states"]).keep_states);
}
