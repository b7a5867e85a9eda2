//! The manual page pfctl(8), in mdoc(7).

use super::{PFCTL, reasons};
use crate::flags::FLAGS;
use crate::flags::flag::{Flag, Name};
use crate::verbs::{Row, VERBS};

const HEAD: &str = "\
.\\\" Made from crates/pfctl/src/flags.rs by `cargo run -p xtask -- man`.
.Dd November 21, 2026
.Dt PFCTL 8
.Os
.Sh NAME
.Nm pfctl
.Nd control the packet filter
.Sh SYNOPSIS
";

const DESCRIPTION: &str = "\
.Sh DESCRIPTION
.Nm
loads rule sets in the language of
.Ox Ns 's
pf.conf into the kernel, enables and disables the filter, and shows and changes rules, states,
tables and counters.
Flags, output and exit status are those of
.Ox Ns 's
.Nm ,
apart from the differences that docs/reference/linux.md of the project lists.
.Pp
The filter is a set of programs in the kernel, attached to every interface.
Filtering needs no process.
.Xr skipstepd 8
attaches the filter to interfaces that appear later, follows the addresses of interfaces,
and writes the log.
It also reports flows, and handles fragments, diverted packets and delayed packets.
Without skipstepd, packets of these three kinds are dropped.
.Pp
Flags may stand together in one word.
The value of a flag is the rest of its word, or the next word.
Words after the first operand are never flags.
The flags of a verb stand between the verb and its operands.
.Pp
The order of flags does not matter.
.Nm
first disables the filter, shows parts of it, flushes parts of it, and kills states and source
tracking entries.
If there is a
.Fl T ,
its command comes next, and
.Nm
then ends.
Otherwise
.Nm
loads rules, enables the filter, sets the debug level, stores states, and loads states.
.Pp
The flags are as follows:
.Bl -tag -width Ds
";

const VERBS_HEAD: &str = "\
.El
.Pp
The verbs are as follows:
.Bl -tag -width Ds
";

const TAIL: &str = "\
.Sh FAILSAFE LIST
No mistake in another file can block the packets that the rules of
.Pa /etc/pf.failsafe
pass.
If this file exists, each load of the main rules begins as though
.Ar file
began with
.Bd -literal -offset indent
anchor \"failsafe\" quick
load anchor \"failsafe\" from \"/etc/pf.failsafe\"
.Ed
.Pp
This holds for all instances, for the loads at boot, and for
.Fl n ,
.Cm explain
and
.Cm diff .
The file contains macros and
.Cm pass
rules without tables, limits, translation and redirection; everything else is an error.
With
.Cm no state ,
a rule also passes packets while the state table is full.
The answers then need a rule of their own:
.Bd -literal -offset indent
pass in proto tcp to port 22 no state
pass out proto tcp from port 22 no state
.Ed
.Pp
The file belongs to root, and neither its group nor other users may write it.
If it has an error or cannot be read,
.Nm
refuses the load, and the rules in force stay.
.Pp
.Nm
.Fl a Cm failsafe Fl s Cm rules
shows the list in force.
Commands that would change this anchor are refused, and so is an anchor of this name in
.Ar file :
edit
.Pa /etc/pf.failsafe
and load the main rules.
If the file has been removed, the next load of the main rules removes the list and prints a warning.
.Sh FILES
.Bl -tag -width \"/etc/protocols\" -compact
.It Pa /etc/pf.conf
The rule set that the system loads at boot.
.It Pa /etc/pf.failsafe
Rules that come before those of each main rule set.
.It Pa /etc/pf.os
Fingerprints of operating systems, unless
.Cm set fingerprints
names another file.
.It Pa /etc/services
Names of ports, in addition to the built-in names.
.It Pa /etc/protocols
Names of protocols, in addition to the built-in names.
.It Pa /run/skipstep/main/lock
Lock of the process that changes the instance main.
Other processes wait for at most 10 seconds, and then fail.
Their message names the process that has the lock.
.El
.Sh EXIT STATUS
.Nm
exits 0 on success, and 1 if an error occurs.
.Fl T Cm test
exits 2 if an address does not match.
The other commands on tables exit 255 if they fail.
.Cm diff
and
.Cm doctor
have exit statuses of their own.
.Pp
If a rule set has an error, the rules in force stay as they are.
.Sh EXAMPLES
Load a rule set and enable the filter:
.Dl # pfctl -ef /etc/pf.conf
.Pp
Check a rule set and print it as it would be loaded:
.Dl $ pfctl -nvf /etc/pf.conf
.Pp
Show the rules with their counters:
.Dl # pfctl -vvsr
.Pp
Block a network at once:
.Dl # pfctl -t bad -T add 192.0.2.0/24
.Pp
Print the verdict on a packet before loading the rules:
.Dl $ pfctl explain -f pf.conf 'in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S'
.Pp
Print the faults of the host and the filter, and the commands that mend them:
.Dl # pfctl doctor -q
Print the packets to or from port 22 that are dropped on wan0, with their reasons:
.Dl # pfctl drops on wan0 proto tcp port 22
.Sh SEE ALSO
.Xr pf.conf 5 ,
.Xr skipstepd 8 ,
.Xr tcpdump 8
";

/// Returns the text of the manual page.
pub fn page() -> String {
    let mut text = HEAD.to_string() + &synopsis() + DESCRIPTION;
    for flag in FLAGS {
        text += &item(flag);
    }
    text += VERBS_HEAD;
    for row in VERBS {
        let operands = operands(row).map(|operands| format!(" Ar {operands}"));
        text += &format!(".It Cm {}{}\n{}\n", row.name, operands.unwrap_or_default(), row.text);
    }
    text += ".El\n";
    text + &reasons::section() + TAIL
}

fn synopsis() -> String {
    let mut text = format!(
        ".Nm pfctl\n.Op Fl {}\n.Op Fl Fl json\n.Op Fl Fl remove\n\
                 .Op Fl Fl room-for Ar file\n.Op Fl Fl confirm Ar seconds\n",
        PFCTL.plain_letters()
    );
    for flag in FLAGS {
        match (flag.letter(), flag.value) {
            (Some('t' | 'T') | None, _) | (_, None) => {}
            (Some(letter), Some(value)) => text += &format!(".Op Fl {letter} Ar {}\n", value.name),
        }
    }
    text += ".Oo\n.Fl t Ar table\n.Fl T Ar command\n.Op Ar address ...\n.Oc\n";
    for row in VERBS {
        text += &format!(".Nm pfctl Cm {}\n{}", row.name, verb_synopsis(row));
    }
    text
}

/// Converts a verb's usage to mdoc: `[-f file]` becomes `.Op Fl f Ar file`.
fn verb_synopsis(row: &Row) -> String {
    let mut text = String::new();
    let mut rest = row.usage;
    while let Some((option, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
    {
        let words: Vec<String> = option.split(' ').map(mdoc_word).collect();
        text += &format!(".Op {}\n", words.join(" "));
        rest = behind.trim_start();
    }
    if rest.is_empty() { text } else { text + &format!(".Ar {rest}\n") }
}

fn mdoc_word(word: &str) -> String {
    match word.strip_prefix('-') {
        Some(flag) => format!("Fl {}", flag.replace('-', "Fl ")),
        None => format!("Ar {word}"),
    }
}

/// Returns the operands of a verb's usage without its flags; `None` if the verb has only flags.
fn operands(row: &Row) -> Option<&str> {
    let end = row.usage.rsplit_once("] ").map_or(row.usage, |(_, operands)| operands);
    (!end.starts_with("[-")).then(|| end.trim_matches(['[', ']']))
}

/// Returns the list item of a flag.
pub fn item<A>(flag: &Flag<A>) -> String {
    let name = match flag.name {
        Name::Letter(letter) => format!("Fl {letter}"),
        Name::Long(name) => format!("Fl Fl {name}"),
    };
    let value = flag.value.map(|value| format!(" Ar {}", value.name)).unwrap_or_default();
    format!(".It {name}{value}\n{}\n", flag.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_an_item() {
        let page = page();
        for flag in FLAGS {
            assert!(page.contains(&item(flag)), "{:?}", flag.name);
        }
    }

    #[test]
    fn every_verb_has_a_synopsis_and_an_item() {
        let page = page();
        assert!(page.contains(".Nm pfctl Cm diff\n.Op Fl Fl json\n.Op Fl Fl examples Ar number\n"));
        assert!(page.contains(".Op Fl D Ar macro=value\n.Ar old new\n"));
        assert!(page.contains(".It Cm fmt Ar file ...\n"));
        assert!(page.contains(".It Cm doctor\nCheck the kernel"));
        for row in VERBS {
            assert!(page.contains(row.text), "{}", row.name);
        }
    }

    /// The macros that texts of flags may begin a line with.
    const MACROS: [&str; 12] =
        ["Ar", "Bl", "Cm", "Dq", "El", "Fl", "It", "Pa", "Pp", "Sq", "Sx", "Xr"];

    /// In mdoc, a line that begins with a dot or a quote is a macro.
    #[test]
    fn texts_are_mdoc() {
        for flag in FLAGS {
            for line in flag.text.lines() {
                assert!(!line.starts_with('\'') && !line.is_empty(), "{line}");
                let macro_name = line.strip_prefix('.').map(|rest| &rest[..2]);
                assert!(macro_name.is_none_or(|name| MACROS.contains(&name)), "{line}");
            }
        }
    }
}
