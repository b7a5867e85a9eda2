//! Flags that select a rule set and control how it is read.

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

pub(super) const MACRO: Flag = Flag {
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

pub(super) const FILE: Flag = Flag {
    name: Name::Letter('f'),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "load the rule set in the file (- for standard input)",
    text: "Replace the current rule set with the rule set in\n.Ar file .\nThe load is atomic: \
           each packet is evaluated by either the old or the new rules. States are kept.\nIf\n.Ar \
           file\nis\n.Sq - ,\nstandard input is read. With\n.Fl T ,\nthe file contains addresses.",
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
    text: "Do not resolve host names in rules and tables. A host name is an error.",
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
    text: "Refuse syntax that\n.Fl f\naccepts and the pfctl of current OpenBSD does not: \
           statements of FreeBSD, and of OpenBSD\nbefore 4.7. Settings that only this pfctl has \
           are accepted.\nWith\n.Fl n ,\ncheck whether OpenBSD can load the file.",
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
    text: "Set the optimization of rules at load:\n.Cm none ,\n.Cm basic\n(duplicate rules are \
           removed, rules that differ in one address are combined into a table, and\nrules are \
           reordered for faster evaluation) or\n.Cm profile\n(as basic, with an order by the \
           counters of the current rules). Overrides\n.Cm set ruleset-optimization .",
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
    text: "With\n.Fl s Cm rules , labels\nor\n.Cm states :\nshow only the rule with this number, \
           or the states that it created.",
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
