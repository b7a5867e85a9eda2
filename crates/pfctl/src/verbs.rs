//! The table of verbs. Like [`crate::flags`], it defines the command line, `-h`, the manual page
//! and the shell completions.

use crate::completion::Completion;

/// A subcommand of pfctl.
// Differs from OpenBSD: linux.md, "Further commands"
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
    /// print dropped packets
    Drops,
    /// join interfaces by a bridge
    Bridge,
    /// keep the load on trial
    Confirm,
    /// undo the load on trial
    Revert,
    /// check the host and the filter
    Doctor,
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
pub const VERBS: &[Row] =
    &[EXPLAIN, TEST, DIFF, FMT, IMPORT, LOG, DROPS, BRIDGE, CONFIRM, REVERT, DOCTOR];

const EXPLAIN: Row = Row {
    verb: Verb::Explain,
    name: "explain",
    usage: "[--json] [-D macro=value] [-f file] [-p instance] packet",
    operands: Completion::None,
    brief: "print the verdict on a packet, and the rules that decide",
    text: "Print the verdict on a packet, the result of each stage, and the deciding rule with\n\
           its line.\n\
           The packet is written in the words of\n\
           .Xr pf.conf 5 :\n\
           .Dl in on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port ssh\n\
           A segment of TCP without\n\
           .Cm flags\n\
           is a SYN, and a packet of ICMP needs\n\
           .Cm icmp-type\n\
           or\n\
           .Cm icmp6-type .\n\
           The notation of scenario files is read, too:\n\
           .Dl in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S\n\
           Without a packet, print the grammar of packets.\n\
           .Pp\n\
           The rules are read from the\n\
           .Ar file\n\
           given with\n\
           .Fl f ,\n\
           or else from the kernel.\n\
           States are ignored, and nothing is changed.",
    has_commands: false,
    lacks: |_| None,
};

const TEST: Row = Row {
    verb: Verb::Test,
    name: "test",
    usage: "[--junit file] file ...",
    operands: Completion::File,
    brief: "run scenario files on the model of the filter, without root",
    text: "Run scenario files, which contain rules, packets and expected results.\n\
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
    brief: "compare two rule sets, by their rules and by their verdicts on packets",
    text: "Compare two rule sets by meaning.\n\
           Each rule, setting and table address that was removed\n\
           .Pq \\- ,\n\
           added\n\
           .Pq +\n\
           or moved\n\
           .Pq >\n\
           is printed with its line.\n\
           .Pp\n\
           Then\n\
           .Nm\n\
           prints packets on which the verdicts differ, with both verdicts and the\n\
           deciding rules.\n\
           A packet is written as in scenario files.\n\
           Packets are chosen at the boundaries of the rules' criteria, one for each pair of\n\
           deciding rules.\n\
           The verdicts are those of a model of the filter without states.\n\
           .Pp\n\
           The exit status is 0 if the rule sets are equivalent, 1 if they differ, and 2 if they\n\
           cannot be compared.",
    has_commands: false,
    lacks: |operands| (operands != 2).then_some("two files needed, the old one and the new one"),
};

const FMT: Row = Row {
    verb: Verb::Fmt,
    name: "fmt",
    usage: "[--check] [--write] [file ...]",
    operands: Completion::File,
    brief: "print rule sets, or standard input, in canonical spacing",
    text: "Print files with rules, or standard input, in canonical form.\n\
           There is one blank between words, and comments are aligned.\n\
           Tabs indent lists and the rules of anchors.\n\
           A line with more than 100 columns is broken.\n\
           Only white space and the backslashes at line ends change.\n\
           A file with a syntax error is neither printed nor changed.",
    has_commands: false,
    lacks: |_| None,
};

const IMPORT: Row = Row {
    verb: Verb::Import,
    name: "import",
    usage: "language file",
    operands: Completion::File,
    brief: "convert rules in another language (iptables, pcf) to pf.conf",
    text: "Print a pf.conf with the meaning of\n\
           .Ar file ,\n\
           which is in another language.\n\
           If\n\
           .Ar file\n\
           is\n\
           .Sq - ,\n\
           standard input is read.\n\
           The languages are:\n\
           .Bl -tag -width iptables\n\
           .It Cm iptables\n\
           output of iptables-save: the tables filter and nat\n\
           .It Cm pcf\n\
           the filter language of an old packet filtering bridge\n\
           .El\n\
           .Pp\n\
           A comment gives the line of each original rule.\n\
           If a rule has no equivalent in pf, its line is reported, and no pf.conf is printed.",
    has_commands: false,
    lacks: |operands| (operands == 0).then_some("no language and file given"),
};

const LOG: Row = Row {
    verb: Verb::Log,
    name: "log",
    usage: "[--all] [--json] [-p instance] [-w output] [file]",
    operands: Completion::File,
    brief: "print logged packets as they arrive, or write them as pcap",
    text: "Print the packets that are logged from now on, until killed.\n\
           The\n\
           .Ar file\n\
           is a log of\n\
           .Xr skipstepd 8 ,\n\
           by default\n\
           .Pa /var/log/skipstep/pflog0 .\n\
           A line has the time, the number of the matching rule, the reason, the action, the\n\
           direction, the interface and the packet.\n\
           If the rule is in an anchor, the number is followed by the name of the anchor and the\n\
           number of the rule in it, as in\n\
           .Dq rule 3.web.1 .\n\
           If the log is rotated,\n\
           .Nm\n\
           continues with the new file.\n\
           If skipstepd has not logged a packet yet,\n\
           .Nm\n\
           waits for the file.\n\
           .Pp\n\
           With\n\
           .Fl w Ar - ,\n\
           programs that read pcap show the packets as they arrive:\n\
           .Dl # pfctl log -w - | tcpdump -n -e -ttt -r -\n\
           .Dl # pfctl log -w - | wireshark -k -i -\n\
           With\n\
           .Fl -json ,\n\
           the stable identity of the rule is included if the rule is still in force, or was before\n\
           the last load.",
    has_commands: false,
    lacks: |_| None,
};

const DROPS: Row = Row {
    verb: Verb::Drops,
    name: "drops",
    usage: "[--explain] [--json] [-p instance] [filter ...]",
    operands: Completion::None,
    brief: "print dropped packets with their reasons as they are dropped",
    text: "Print the packets that the filter drops from now on, until interrupted.\n\
           A packet need not be logged by a rule.\n\
           A line has the time, the reason, the direction, the interface, the rule with its file,\n\
           line and labels, and the packet.\n\
           .Sx REASONS\n\
           says what each reason means, and what to do.\n\
           A rule without a file is in the file that was loaded with\n\
           .Fl f ,\n\
           which is shown as\n\
           .Pa pf.conf .\n\
           .Pp\n\
           The\n\
           .Ar filter\n\
           chooses packets.\n\
           It consists of the criteria of a rule, as in\n\
           .Xr pf.conf 5 .\n\
           A\n\
           .Cm port\n\
           without\n\
           .Cm from\n\
           or\n\
           .Cm to\n\
           is that of either end.\n\
           In front of the criteria,\n\
           .Cm reason Ar name\n\
           chooses packets with this reason.\n\
           .Dl # pfctl drops reason state-mismatch on wan0 proto tcp port 22\n\
           .Pp\n\
           At most 20 similar packets are printed in a second.\n\
           Then a line has the number of further ones.\n\
           After the interrupt, a table has the number of packets by reason and rule.\n\
           With\n\
           .Fl -json ,\n\
           each line is an object, and there is no table.\n\
           At most four programs read dropped packets at once.\n\
           While one reads, dropped packets take the slow path of the filter.\n\
           Each CPU reports at most 10,000 packets in a second.\n\
           Standard error has the number of further packets.\n\
           .Pp\n\
           Frames that the rules of a bridge block are counted by\n\
           .Cm bridge show ,\n\
           and not printed.",
    has_commands: false,
    lacks: |_| None,
};

const BRIDGE: Row = Row {
    verb: Verb::Bridge,
    name: "bridge",
    usage: "[-p instance] [-v] [--json] command ...",
    operands: Completion::None,
    brief: "manage transparent bridges between interfaces",
    text: "Manage transparent bridges of skipstep, which are independent of the kernel's bridges.\n\
           A frame that comes in by one port leaves by another, without addresses or routes.\n\
           The filter evaluates it where it comes in and where it leaves.\n\
           While the filter is disabled, all frames are forwarded.\n\
           The commands are those of\n\
           .Xr ifconfig 8\n\
           on\n\
           .Ox :\n\
           .Bl -tag -width Ds\n\
           .It Cm add Ar interface ...\n\
           Make the interfaces ports of one bridge.\n\
           If an interface is a port of a bridge already, the others become ports of that bridge.\n\
           Otherwise they become ports of a new bridge.\n\
           .It Cm delete Ar interface ...\n\
           Remove interfaces from their bridge.\n\
           .It Cm show\n\
           Show bridges, their ports, the stations at each port, and the seconds since the last\n\
           frame of each station.\n\
           With\n\
           .Fl v ,\n\
           show counters and rules, too.\n\
           .It Cm flush\n\
           Forget all stations.\n\
           .It Cm timeout Ar interface seconds\n\
           Set the time after which the bridge of this port forgets a station without frames.\n\
           The default is 240 seconds.\n\
           With 0, it never forgets a station.\n\
           .It Cm blocknonip Ar interface\n\
           Block all frames on a port except IPv4, IPv6, ARP and reverse ARP.\n\
           .It Cm passnonip Ar interface\n\
           Pass all frames on a port, which is the default.\n\
           .It Xo\n\
           .Cm rule add Cm pass | block Cm in | out | in/out Cm on Ar interface\n\
           .Op Cm src Ar address\n\
           .Op Cm dst Ar address\n\
           .Op Cm type Ar type | Cm arp | rarp\n\
           .Xc\n\
           Append a rule for frames to the rules of the port.\n\
           The first matching rule decides.\n\
           A frame without a matching rule passes.\n\
           A type is a number, or\n\
           .Cm ip , ip6 , arp , rarp , vlan , pppoe\n\
           or\n\
           .Cm lldp .\n\
           .It Cm rule show Op Ar interface\n\
           Show rules for frames.\n\
           .It Cm rule flush Ar interface\n\
           Remove the rules of a port.\n\
           .El",
    has_commands: true,
    lacks: |operands| (operands == 0).then_some("no command given"),
};

const CONFIRM: Row = Row {
    verb: Verb::Confirm,
    name: "confirm",
    usage: "[-q] [-p instance]",
    operands: Completion::None,
    brief: "keep the rules that --confirm put on trial",
    text: "Keep the rules that a load with\n\
           .Fl -confirm\n\
           put on trial.\n\
           If the load had\n\
           .Fl -write ,\n\
           replace\n\
           .Pa /etc/pf.conf\n\
           by its file, as it was when it was loaded.\n\
           The exit status is 1 if nothing is on trial, or if the time is over.",
    has_commands: false,
    lacks: |operands| (operands != 0).then_some("takes no operand"),
};

const REVERT: Row = Row {
    verb: Verb::Revert,
    name: "revert",
    usage: "[-q] [-p instance]",
    operands: Completion::None,
    brief: "undo the load that --confirm put on trial",
    text: "End a trial at once: the rules before the load are in force again.\n\
           The exit status is 1 if nothing is on trial.",
    has_commands: false,
    lacks: |operands| (operands != 0).then_some("takes no operand"),
};

const DOCTOR: Row = Row {
    verb: Verb::Doctor,
    name: "doctor",
    usage: "[-q] [--json] [-f file] [-i interface] [-p instance]",
    operands: Completion::None,
    brief: "check the host and the filter, and name the command that mends each fault",
    text: "Check the kernel, the filter and its hooks, the failsafe list, other programs that filter\n\
           packets or use their marks, settings, units, clock, log and limits.\n\
           Nothing is changed.\n\
           Each finding has a level\n\
           .Pq Cm OK , WARN No or Cm FAIL ,\n\
           an object, a text, and the command that mends the fault.\n\
           With\n\
           .Fl q ,\n\
           only faults are printed.\n\
           With\n\
           .Fl i ,\n\
           only the filter and this interface are checked.\n\
           With\n\
           .Fl f ,\n\
           the commands name\n\
           .Ar file\n\
           in place of\n\
           .Pa /etc/pf.conf .\n\
           .Pp\n\
           Only root can run all checks.\n\
           A check that could not see its object is a warning.\n\
           Some commands stop another program, or change a setting only until the next boot.\n\
           .Pp\n\
           The exit status is 0 without faults, 1 with warnings, and 2 with failures.",
    has_commands: false,
    lacks: |operands| (operands != 0).then_some("no operands; -i names an interface"),
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
        assert_eq!((DIFF.lacks)(1), Some("two files needed, the old one and the new one"));
        assert_eq!((DIFF.lacks)(2), None);
        assert_eq!((FMT.lacks)(0), None);
    }
}
