//! The usage, the help, the manual page pftop(8) and the completions, made from the table of flags.

use pfctl::doc::{Program, help, man};

use crate::keys::HELP;
use crate::options::{FLAGS, Options};
use crate::view::View;

const PFTOP: Program<Options> = Program {
    name: "pftop",
    source: "crates/pftop/src/options.rs",
    flags: FLAGS,
    verbs: &[],
    repeated: &[],
};

/// Returns names below `man/` and contents of the files that are made from the table.
pub fn files() -> Vec<(String, String)> {
    let mut files = PFTOP.completions();
    files.push(("pftop.8".into(), page()));
    files
}

/// Returns the version of the program.
pub fn version() -> String {
    format!("pftop of skipstep {}, layout {}\n", env!("CARGO_PKG_VERSION"), skipstep_kernel::LAYOUT)
}

/// Returns the synopsis.
pub fn usage() -> String {
    let mut parts = vec![format!("[-{}]", PFTOP.plain_letters())];
    for flag in FLAGS {
        let value = flag.value.map(|value| format!("[{} {}]", flag.written(), value.name));
        parts.extend(value);
    }
    parts.push("[number]".into());
    help::wrap("usage: pftop", &parts)
}

/// Returns the usage, a line for each flag, and the keys.
pub fn help() -> String {
    let mut text = usage() + "\n" + &help::flag_lines(FLAGS) + "\nKeys:\n";
    for (keys, meaning) in HELP {
        text += &format!("  {keys:<15} {meaning}\n");
    }
    text + "\nThe manual page is pftop(8).\n"
}

const HEAD: &str = "\
.\\\" Made from crates/pftop/src/options.rs by `cargo run -p xtask -- man`.
.Dd November 29, 2026
.Dt PFTOP 8
.Os
.Sh NAME
.Nm pftop
.Nd show the states and rules of the packet filter
.Sh SYNOPSIS
.Nm pftop
";

const DESCRIPTION: &str = "\
.Sh DESCRIPTION
.Nm
shows the states, rules, queues, interfaces, tables and drops of the packet filter, and updates
them every few seconds.
On a terminal, keys select the view, its order and its filter.
Otherwise
.Nm
prints the rows once.
.Pp
Only root may read the filter.
.Nm
gives up the rights of root that it does not need once it has opened the filter.
It needs a terminal of at least 40 columns and 8 lines.
More columns of a view are shown if the terminal is wider.
.Pp
The flags are as follows:
.Bl -tag -width Ds
";

const VIEWS: &str = "\
.El
.Sh VIEWS
Each view has a name for
.Fl v
and a key:
.Bl -tag -width \"interfaces (9)\"
.It Cm default No (0)
States: protocol, direction of the packet that made the state, source, destination, states of both
peers, age, time until expiry, packets and bytes.
Source is the peer that made the state.
A narrow terminal has the states of TCP peers as numbers: 0 CLOSED, 1 LISTEN, 2 SYN_SENT,
3 SYN_RCVD, 4 ESTABLISHED, 5 CLOSE_WAIT, 6 FIN_WAIT_1, 7 CLOSING, 8 LAST_ACK, 9 FIN_WAIT_2,
10 TIME_WAIT.
.It Cm long No (1)
States, with the translated address
.Pq GW
before the states of the peers.
.It Cm state No (2)
States, with rates and rule in the last columns.
.It Cm time No (3)
States, with age and expiry first.
.It Cm size No (4)
States, with packets and bytes first.
.It Cm rules No (5)
Rules, with a bar for their packets.
The rule with the most packets has the longest bar, and a rule that no packet has matched has none.
Rules of an anchor follow the rule that calls it.
At the bottom, states 3/41 are 3 states of 41 that the rule has made.
.It Cm label No (6)
Rules, with their labels first.
.It Cm speed No (7)
States, with rates first: bytes a second now, the highest rate so far, and the average over the
life of the state.
.It Cm queue No (8)
Queues.
.It Cm interfaces No (9)
Interfaces, groups, and names in rules.
.It Cm tables No (t)
Tables.
.It Cm drops No (d)
Dropped packets by reason, rule and interface, since the view was opened.
The section
.Sx REASONS
of
.Xr pfctl 8
explains the reasons.
.El
.Pp
Two lines at the bottom describe the row with the cursor.
.Sh KEYS
.Bl -tag -width \"up, down, ^P, ^N\"
";

const ORDERS: &str = "\
.El
.Sh ORDERS
Counters, rates, ages and times are sorted from the largest to the smallest, addresses and ports
from the smallest to the largest.
The orders of each view, with their keys:
.Bl -tag -width Ds
";

const TAIL: &str = "\
.El
.Sh FILTERS
A filter has the words of a rule in
.Xr pf.conf 5
behind its action:
.Dl in on wan0 proto tcp from 192.0.2.0/24 to any port { 22 80 }
.Pp
A port without
.Cm from
or
.Cm to
is that of either end.
.Cm on
chooses states that are bound to the interface
.Pq Cm set state-policy if-bound .
Other states are on all interfaces, and
.Cm on all
chooses them.
A state has only the properties direction, interface, address family, protocol, addresses, ports,
type of an ICMP query, and tag, and a filter of other properties is refused.
The entries of tables in a filter are those of the time when the filter is set or rules are loaded.
.Pp
Before these words, the filter of states may have
.Cm rule Ar number ,
.Cm rule Ar anchor Ns / Ns Ar number ,
and
.Cm label Ar name .
They choose the states that the rule, or a rule with this label, has made.
The filter of drops may have
.Cm reason Ar name
instead.
.Sh ENVIRONMENT
.Bl -tag -width NO_COLOR
.It Ev NO_COLOR
If this variable is set and not empty, no colours are used.
.It Ev LC_ALL , LC_CTYPE , LANG
The first of these variables that is set decides if characters beyond ASCII are shown.
.It Ev TERM
A terminal
.Sq dumb
gets batch output.
.El
.Sh EXIT STATUS
.Ex -std
.Sh EXAMPLES
Show the states with the most bytes first:
.Dl # pftop -o bytes
.Pp
Show the connections to a web server, every second:
.Dl # pftop -s 1 -f 'proto tcp to 192.0.2.7 port 443'
.Pp
Print all rules with their counters:
.Dl # pftop -b -a -v rules -w 132
.Sh SEE ALSO
.Xr pf.conf 5 ,
.Xr pfctl 8 ,
.Xr skipstepd 8
.Sh HISTORY
The views, keys and flags are those of Can Erkin Acar's
.Nm
for
.Ox .
Its flags
.Fl c
and
.Fl D
do not exist here, its filters had the words of
.Xr tcpdump 8 ,
and the views
.Cm interfaces ,
.Cm tables
and
.Cm drops
are new.
";

/// Returns the text of the manual page.
fn page() -> String {
    let mut text = format!("{HEAD}.Op Fl {}\n", PFTOP.plain_letters());
    for flag in FLAGS {
        if let (Some(letter), Some(value)) = (flag.letter(), flag.value) {
            text += &format!(".Op Fl {letter} Ar {}\n", value.name);
        }
    }
    text += ".Op Ar number\n";
    text += DESCRIPTION;
    text += &FLAGS.iter().map(|flag| man::item(flag)).collect::<String>();
    text += ".It Ar number\nShow at most this number of rows.\n";
    text += VIEWS;
    for (keys, meaning) in HELP {
        text += &match keys {
            "" => format!("{}\n", mdoc(meaning)),
            keys => format!(".It Ic {}\n{}\n", mdoc(keys), mdoc(meaning)),
        };
    }
    text += ORDERS;
    for first in View::ALL {
        let alike = View::ALL.into_iter().filter(|view| view.kind() == first.kind());
        let names: Vec<&str> = alike.map(View::name).collect();
        if names[0] != first.name() {
            continue;
        }
        let orders = first.orders().iter();
        let orders: Vec<String> =
            orders.map(|order| format!("{} ({})", order.name(), order.key())).collect();
        text += &format!(".It Cm {}\n{}\n", names.join(" , "), orders.join(", "));
    }
    text + TAIL
}

/// Escapes a text that would be a macro, or that troff would change.
fn mdoc(text: &str) -> String {
    text.replace('^', "\\(ha").replace('-', "\\-").replace('?', "\\&?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_up_to_date() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man");
        for (name, text) in files() {
            let there = std::fs::read_to_string(directory.join(&name)).unwrap_or_default();
            assert!(there == text, "man/{name} is stale: run `cargo run -p xtask -- man`");
        }
    }

    #[test]
    fn every_flag_and_key_is_documented() {
        let (page, help) = (page(), help());
        for flag in FLAGS {
            assert!(page.contains(flag.text) && help.contains(flag.brief), "{}", flag.written());
        }
        for (_, meaning) in HELP {
            assert!(help.contains(meaning), "{meaning}");
        }
        for view in View::ALL {
            assert!(page.contains(&format!(".It Cm {} No (", view.name())), "{}", view.name());
        }
    }

    #[test]
    fn help_fits_a_terminal() {
        for line in help().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
