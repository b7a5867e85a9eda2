//! The table of verbs. Like [`crate::flags`], it defines the command line, `-h`, the manual page
//! and the shell completions.

use crate::completion::Completion;

/// A subcommand of pfctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// explain the fate of a packet
    Explain,
    /// run scenario files
    Test,
    /// compare two pf.confs
    Diff,
    /// format pf.confs
    Fmt,
    /// convert another firewall's rules
    Import,
    /// follow a log
    Log,
    /// join interfaces by a bridge
    Bridge,
}

/// A verb: a row of the table.
pub struct Row {
    /// Verb of this row.
    pub verb: Verb,
    /// Word on the command line.
    pub name: &'static str,
    /// Flags and operands in the usage; optional ones are in brackets.
    pub usage: &'static str,
    /// Source of the completions of operands.
    pub operands: Completion,
    /// One line for `-h` and completions.
    pub brief: &'static str,
    /// The paragraphs of the manual page, in mdoc(7).
    pub text: &'static str,
    /// True if the first operand is a command, which flags may follow.
    pub has_commands: bool,
    /// Returns the message for a wrong number of operands, or `None` if the number is right.
    pub lacks: fn(usize) -> Option<&'static str>,
}

/// All verbs, in the order of the manual page.
pub const VERBS: &[Row] = &[EXPLAIN, TEST, DIFF, FMT, IMPORT, LOG, BRIDGE];

const EXPLAIN: Row = Row {
    verb: Verb::Explain,
    name: "explain",
    usage: "[--json] [-D macro=value] [-f file] [-p instance] packet",
    operands: Completion::None,
    brief: "what happens to a packet and why",
    text: "Say what would happen to a packet, and why: what each stage did, the verdict, the deciding \
           rule and\nthe line it was written on.\n\
           The packet is written as in scenario files, for instance\n\
           .Dl in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S\n\
           The rules are those of the\n.Ar file\ngiven with\n.Fl f ,\nor else those in force.\n\
           States do not take part; nothing is changed.",
    has_commands: false,
    lacks: |operands| (operands == 0).then_some("no packet given"),
};

const TEST: Row = Row {
    verb: Verb::Test,
    name: "test",
    usage: "[--junit file] file ...",
    operands: Completion::File,
    brief: "run scenario files on the model of the filter, without root",
    text: "Run scenario files: rules, packets and what is expected of them.\n\
           They run on a model of the filter, without privileges.\n\
           The exit status is 1 if an expectation is not met.",
    has_commands: false,
    lacks: |operands| (operands == 0).then_some("no scenario file given"),
};

const DIFF: Row = Row {
    verb: Verb::Diff,
    name: "diff",
    usage: "[--json] [--examples number] [-D macro=value] old new",
    operands: Completion::File,
    brief: "what changes from one rule set to another, for rules and for packets",
    text: "Compare two rule sets by what they mean.\n\
           Each rule, setting and table address that was removed\n.Pq \\- ,\nadded\n.Pq +\nor moved\n\
           .Pq >\nis printed with its line; then packets that would fare differently, as scenario files \
           write\nthem, each with both fates and the rules that decide.\n\
           The packets are looked for at the edges of what the rules ask for, on a model of the filter\n\
           without states, one for each pair of deciding rules.\n\
           The exit status is 0 if the rule sets mean the same, 1 if not, 2 if they cannot be compared.",
    has_commands: false,
    lacks: |operands| (operands != 2).then_some("two files are compared"),
};

const FMT: Row = Row {
    verb: Verb::Fmt,
    name: "fmt",
    usage: "[--check] [--write] [file ...]",
    operands: Completion::File,
    brief: "print rule sets, or standard input, in canonical spacing",
    text: "Print rule sets, or standard input, in canonical spacing: one blank between words, lists and \
           the\nrules of anchors indented, lines broken behind column 100, comments aligned.\n\
           Only what stands between words changes.\n\
           A file with a syntax error is left alone.",
    has_commands: false,
    lacks: |_| None,
};

const IMPORT: Row = Row {
    verb: Verb::Import,
    name: "import",
    usage: "language file",
    operands: Completion::File,
    brief: "convert rules in another language (iptables, pcf) to pf.conf",
    text: "Print a pf.conf that means the same as\n.Ar file\n.Po or, if it is\n.Sq - ,\nstandard input\n\
           .Pc ,\nwhich is in another language:\n.Bl -tag -width iptables\n.It Cm iptables\n\
           what iptables-save prints: the tables filter and nat\n.It Cm pcf\n\
           the filter language of an old packet filtering bridge\n.El\n.Pp\n\
           A comment says for each rule from which line it came.\n\
           What has no equivalent in pf is an error with its line, and nothing is printed then.",
    has_commands: false,
    lacks: |operands| (operands == 0).then_some("no language and file given"),
};

const LOG: Row = Row {
    verb: Verb::Log,
    name: "log",
    usage: "[--all] [--json] [file]",
    operands: Completion::File,
    brief: "print the packets that are logged, as they come",
    text: "Follow a\n.Ar file\nthat\n.Xr skipstepd 8\nwrites,\n.Pa /var/log/skipstep/pflog0\nif none is \
           named: each packet that is logged is printed as a line, with its time, the\nrule that it matched \
           with that of the anchor behind it, the reason, and what became of it.\n\
           A file that is rotated is followed to the next one.",
    has_commands: false,
    lacks: |_| None,
};

const BRIDGE: Row = Row {
    verb: Verb::Bridge,
    name: "bridge",
    usage: "[-p instance] [-v] [--json] command ...",
    operands: Completion::None,
    brief: "join interfaces by a transparent bridge, or show it",
    text: "Join interfaces by a bridge that is none of the kernel's.\n\
           What comes in by one port leaves by another, without any address or route; the filter sees it\n\
           on its way in and on its way out.\n\
           While the filter is disabled everything crosses.\n\
           The commands are those of\n.Xr ifconfig 8\non\n.Ox :\n\
           .Bl -tag -width Ds\n\
           .It Cm add Ar interface ...\n\
           Make interfaces ports of a bridge: of the one that some of them are on, or of a new one.\n\
           .It Cm delete Ar interface ...\n\
           Take them off it.\n\
           .It Cm show\n\
           Show bridges with their ports, and the stations that are known behind each, with the seconds\n\
           since the last frame from them; with\n.Fl v\ncounters and rules too.\n\
           .It Cm flush\n\
           Forget all stations.\n\
           .It Cm timeout Ar interface seconds\n\
           Have the bridge with this port forget stations that nothing has come from for so long, 240 seconds by\n\
           default, or, with 0, none.\n\
           .It Cm blocknonip Ar interface\n\
           Let nothing but IPv4, IPv6, ARP and reverse ARP through a port.\n\
           .It Cm passnonip Ar interface\n\
           Let everything through again, as by default.\n\
           .It Xo\n.Cm rule add Cm pass | block Cm in | out | in/out Cm on Ar interface\n\
           .Op Cm src Ar address\n.Op Cm dst Ar address\n.Op Cm type Ar type | Cm arp | rarp\n.Xc\n\
           Add a rule for frames behind those that the port has.\n\
           The first that matches decides; what none matches passes.\n\
           A type is a number, or\n.Cm ip , ip6 , arp , rarp , vlan , pppoe\nor\n.Cm lldp .\n\
           .It Cm rule show Op Ar interface\n\
           Show rules for frames.\n\
           .It Cm rule flush Ar interface\n\
           Remove the rules of a port.\n.El",
    has_commands: true,
    lacks: |operands| (operands == 0).then_some("no command given"),
};

/// Looks a verb up by its word.
pub fn find(name: &str) -> Option<&'static Row> {
    VERBS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_found_by_its_name() {
        assert_eq!(find("fmt").map(|row| row.verb), Some(Verb::Fmt));
        assert!(find("format").is_none());
    }

    #[test]
    fn operands_are_counted() {
        assert_eq!((DIFF.lacks)(1), Some("two files are compared"));
        assert_eq!((DIFF.lacks)(2), None);
        assert_eq!((FMT.lacks)(0), None);
    }
}
