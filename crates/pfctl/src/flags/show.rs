//! Flags that select the output and its form.

use super::flag::{Flag, Name, Value, names};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
#[cfg(test)]
use crate::refusal::Refusal;
use crate::words;

pub(super) const DEBUG: Flag = Flag {
    name: Name::Letter('g'),
    value: None,
    brief: "include output helpful for debugging, such as skip steps",
    text: "With\n\
           .Fl s Cm rules ,\n\
           also print the number, the skip steps and the queues of each rule.\n\
           With\n\
           .Fl s Cm Tables ,\n\
           also print tables that rules name, but that do not exist.",
    set: |args, _| {
        args.debug = true;
        Ok(())
    },
};

#[test]
fn debug() {
    assert!(tests::args(&["-g", "-sr"]).debug);
}

pub(super) const HELP: Flag = Flag {
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

pub(super) const LONG_HELP: Flag = Flag {
    name: Name::Long("help"),
    text: "Print a summary of the flags, as\n.Fl h\ndoes.",
    ..HELP
};

pub(super) const VERSION: Flag = Flag {
    name: Name::Long("version"),
    value: None,
    brief: "print the version",
    text: "Print the version of skipstep, and the number of its layout of maps.\n\
           A filter with another number must be removed before this program can change or show it.",
    set: |args, _| {
        args.version = true;
        Ok(())
    },
};

#[test]
fn version() {
    assert!(tests::args(&["--version"]).version);
    assert!(tests::args(&["--help"]).help);
}

pub(super) const PORT_NAMES: Flag = Flag {
    name: Name::Letter('P'),
    value: None,
    brief: "print ports by name",
    text: "Print ports by their names in\n.Xr services 5 .",
    set: |args, _| {
        args.port_names = true;
        Ok(())
    },
};

#[test]
fn port_names() {
    assert!(tests::args(&["-Psr"]).port_names);
}

pub(super) const QUIET: Flag = Flag {
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

pub(super) const HOST_NAMES: Flag = Flag {
    name: Name::Letter('r'),
    value: None,
    brief: "show host names instead of addresses",
    text: "Resolve addresses to host names when states and tables are shown.",
    set: |args, _| {
        args.host_names = true;
        Ok(())
    },
};

#[test]
fn host_names() {
    assert!(tests::args(&["-rss"]).host_names);
}

pub(super) const SHOW: Flag = Flag {
    name: Name::Letter('s'),
    value: Some(Value { name: "modifier", kind: Completion::Words(show_names) }),
    brief: "show queue, rules, nat, Anchors, Sources, states, info, Interfaces, labels, timeouts, \
            memory, Tables, osfp, LimiterStates, LimiterSrcs, confirm, metrics, \
            References or all",
    text: "Show the part of the filter that\n\
           .Ar modifier\n\
           (may be abbreviated) names:\n\
           .Bl -tag -width LimiterStates -compact\n\
           .It Cm queue\n\
           queues\n\
           .It Cm rules\n\
           filter rules, with\n\
           .Fl v\n\
           their counters, with\n\
           .Fl vv\n\
           their numbers\n\
           .It Cm nat\n\
           legacy translation rules\n\
           .It Cm Anchors\n\
           anchors, with\n\
           .Fl v\n\
           anchors without a name, too\n\
           .It Cm Sources\n\
           source tracking entries\n\
           .It Cm states\n\
           states\n\
           .It Cm info\n\
           status and counters\n\
           .It Cm Interfaces\n\
           interfaces and groups\n\
           .It Cm labels\n\
           a line for each rule with a label: label, evaluations, packets, bytes,\n\
           packets in, bytes in, packets out, bytes out, states created\n\
           .It Cm timeouts\n\
           timeouts\n\
           .It Cm memory\n\
           limits\n\
           .It Cm Tables\n\
           tables\n\
           .It Cm osfp\n\
           fingerprints of operating systems\n\
           .It Cm LimiterStates\n\
           state limiters\n\
           .It Cm LimiterSrcs\n\
           source limiters, with\n\
           .Fl v\n\
           their sources, too\n\
           .It Cm confirm\n\
           the load on trial, and its changes\n\
           .It Cm metrics\n\
           counters, sizes and limits in the text format of OpenMetrics, with all anchors\n\
           .It Cm References\n\
           references of\n\
           .Fl E\n\
           .It Cm all\n\
           all of these parts except anchors, interfaces, limiters,\n\
           .Cm confirm ,\n\
           .Cm metrics\n\
           and\n\
           .Cm References\n\
           .El",
    set: |args, value| {
        args.show = Some(words::show(value)?);
        Ok(())
    },
};

fn show_names() -> Vec<&'static str> {
    [names(words::SHOW), names(words::OWN_SHOW)].concat()
}

#[test]
fn show() {
    assert_eq!(tests::args(&["-sT"]).show, Some(words::Show::Tables));
    assert_eq!(tests::args(&["-s", "timeouts"]).show, Some(words::Show::Timeouts));
    assert_eq!(tests::args(&["-smetrics"]).show, Some(words::Show::Metrics));
    assert_eq!(tests::refusal(&["-sz"]), Refusal::Usage("Unknown show modifier 'z'".into()));
}

pub(super) const VERBOSE: Flag = Flag {
    name: Name::Letter('v'),
    value: None,
    brief: "more verbose output; -vv prints rule numbers and state ids, too",
    text: "Print more.\n\
           A second\n\
           .Fl v\n\
           adds rule numbers, statistics of tables and interfaces, and ids of states.",
    set: |args, _| {
        args.verbose = args.verbose.saturating_add(1);
        Ok(())
    },
};

#[test]
fn verbose() {
    assert_eq!(tests::args(&["-v", "-v", "-sr"]).verbose, 2);
}

pub(super) const JSON: Flag = Flag {
    name: Name::Long("json"),
    value: None,
    brief: "with -s, -T show, bridge show, diff, doctor, drops, explain and log: print JSON",
    text: "With\n.Fl s ,\n.Fl T Cm show , bridge show , diff , doctor , drops , explain\nor\n\
           .Cm log :\nprint JSON instead of text.",
    set: |args, _| {
        args.json = true;
        Ok(())
    },
};

#[test]
fn json() {
    assert!(tests::args(&["--json", "-ss"]).json);
}
