//! The command line: a table of flags. The usage, the manual page and the completions are made from
//! it.

use pfctl::args::parse_flags;
use pfctl::completion::Completion;
use pfctl::flags::flag::{Flag, Name, Value, number};
use pfctl::refusal::Refusal;

use crate::order::Order;
use crate::view::View;

/// Default interval between two readings, in seconds.
const INTERVAL: u32 = 5;
/// Longest interval, in seconds.
pub const LONGEST_INTERVAL: u32 = 3600;
/// Default width of batch output, in characters.
const BATCH_WIDTH: u16 = 80;
/// Default log of skipstepd, without the number of its pflog interface.
const LOG: &str = "/var/log/skipstep/pflog";

/// The values of all flags, and the operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-a`: print all rows in batch mode.
    pub all: bool,
    /// `-b`: print to standard output, without keys.
    pub batch: bool,
    /// `-d`: number of readings; `None` for no limit, and in batch mode for one.
    pub count: Option<u32>,
    /// `-f`: words that choose states or drops.
    pub filter: String,
    /// `-h`, `--help`: print the help.
    pub help: bool,
    /// `-i`: read keys although the output is no terminal that pftop knows.
    pub interactive: bool,
    /// `-l`: file of skipstepd's log, without the number of the pflog interface.
    pub log: String,
    /// `-o`: order of the rows.
    pub order: Order,
    /// `-p`: name of the instance; `None` for the default.
    pub instance: Option<String>,
    /// `-r`: reverse the order.
    pub reverse: bool,
    /// `-s`: seconds between two readings.
    pub seconds: u32,
    /// `-v`: view.
    pub view: View,
    /// `--version`: print the version.
    pub version: bool,
    /// `-w`: width of batch output, in characters.
    pub width: u16,
    /// Operand: most rows to show; `None` for the rows that fit.
    pub rows: Option<usize>,
}

impl Default for Options {
    /// Returns the options of a command line without flags.
    fn default() -> Self {
        Options {
            all: false,
            batch: false,
            count: None,
            filter: String::new(),
            help: false,
            interactive: false,
            log: LOG.to_owned(),
            order: Order::None,
            instance: None,
            reverse: false,
            seconds: INTERVAL,
            view: View::Default,
            version: false,
            width: BATCH_WIDTH,
            rows: None,
        }
    }
}

/// Parses the words behind the program's name.
///
/// # Errors
/// Fails with a message for the usage if a flag or the operand is wrong, or if the view does not
/// have the order.
pub fn parse(words: &[String]) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let operands = parse_flags(FLAGS, words, &mut options)?;
    match operands {
        [] => {}
        [rows] => {
            options.rows = Some(at_least(1, number(rows, "number of rows")?, "rows")? as usize)
        }
        [_, extra, ..] => {
            return Err(Refusal::Usage(format!("unknown command line argument: {extra} ...")));
        }
    }
    let (view, order) = (options.view, options.order);
    if !view.orders().contains(&order) {
        let names: Vec<_> = view.orders().iter().map(|order| order.name()).collect();
        return Err(Refusal::Usage(format!(
            "the view {} has no order {}; its orders are {}",
            view.name(),
            order.name(),
            names.join(", ")
        )));
    }
    if options.batch && options.interactive {
        return Err(Refusal::Usage("-b and -i are mutually exclusive".into()));
    }
    Ok(options)
}

/// Refuses a number below `least`. Messages call the number `what`.
fn at_least(least: u32, number: u32, what: &str) -> Result<u32, Refusal> {
    if number < least {
        return Err(Refusal::Usage(format!("{what} {number}: too small")));
    }
    Ok(number)
}

/// Parses seconds between two readings.
///
/// # Errors
/// Fails if the text is no number from 1 to 3600.
pub fn interval(text: &str) -> Result<u32, Refusal> {
    match at_least(1, number(text, "seconds")?, "seconds")? {
        seconds if seconds > LONGEST_INTERVAL => {
            Err(Refusal::Usage(format!("seconds {text}: too large")))
        }
        seconds => Ok(seconds),
    }
}

/// Returns the names of all views.
fn view_names() -> Vec<&'static str> {
    View::ALL.iter().map(|view| view.name()).collect()
}

/// Returns the names of all orders.
fn order_names() -> Vec<&'static str> {
    Order::ALL.iter().map(|order| order.name()).collect()
}

/// Makes a flag without a value.
const fn switch(
    letter: char,
    brief: &'static str,
    text: &'static str,
    set: fn(&mut Options, &str) -> Result<(), Refusal>,
) -> Flag<Options> {
    Flag { name: Name::Letter(letter), value: None, brief, text, set }
}

/// All flags, in the order of the manual page.
pub const FLAGS: &[&Flag<Options>] = &[
    &switch('a', "print all rows (batch mode)", "In batch mode, print all rows.", |options, _| {
        options.all = true;
        Ok(())
    }),
    &switch(
        'b',
        "batch mode: print the rows and end",
        "Use batch mode: print the rows to standard output, and read no keys.\n\
         This is the default if standard output is no terminal, or if\n\
         .Ev TERM\n\
         is\n\
         .Sq dumb .\n\
         20 rows are printed, unless\n\
         .Fl a\n\
         or\n\
         .Ar number\n\
         asks for more.",
        |options, _| {
            options.batch = true;
            Ok(())
        },
    ),
    &Flag {
        name: Name::Letter('d'),
        value: Some(Value { name: "count", kind: Completion::None }),
        brief: "end after this number of updates",
        text: "End after\n\
               .Ar count\n\
               updates.\n\
               The default is 1 in batch mode, and no limit otherwise.\n\
               Rates need two updates.",
        set: |options, value| {
            options.count = Some(at_least(1, number(value, "count")?, "count")?);
            Ok(())
        },
    },
    &Flag {
        name: Name::Letter('f'),
        value: Some(Value { name: "filter", kind: Completion::None }),
        brief: "show only these states or drops: 'on wan0 proto tcp port 22'",
        text: "Show only states, or in the view\n\
               .Cm drops\n\
               only packets, that\n\
               .Ar filter\n\
               chooses, as\n\
               .Sx FILTERS\n\
               describes.",
        set: |options, value| {
            options.filter = value.to_owned();
            Ok(())
        },
    },
    &switch('h', "print this help", "Print the usage and a line for each flag.", |options, _| {
        options.help = true;
        Ok(())
    }),
    &switch(
        'i',
        "interactive mode, also if TERM is dumb",
        "Use interactive mode, which reads keys.\n\
         This is the default on a terminal.",
        |options, _| {
            options.interactive = true;
            Ok(())
        },
    ),
    &Flag {
        name: Name::Letter('l'),
        value: Some(Value { name: "file", kind: Completion::File }),
        brief: "read logs of rules from this file of skipstepd",
        text: "Read the logs of rules from\n\
               .Ar file\n\
               with the number of the rule's pflog interface behind its name.\n\
               This is the value of\n\
               .Fl f\n\
               of\n\
               .Xr skipstepd 8 .\n\
               The default is\n\
               .Pa /var/log/skipstep/pflog .",
        set: |options, value| {
            options.log = value.to_owned();
            Ok(())
        },
    },
    &Flag {
        name: Name::Letter('o'),
        value: Some(Value { name: "order", kind: Completion::Words(order_names) }),
        brief: "sort the rows by this field",
        text: "Sort the rows by\n\
               .Ar order .\n\
               .Sx ORDERS\n\
               lists the orders of each view.",
        set: |options, value| {
            let Some(order) = Order::by_name(value) else {
                let message =
                    format!("unknown order {value}; -o takes {}", order_names().join(", "));
                return Err(Refusal::Usage(message));
            };
            options.order = order;
            Ok(())
        },
    },
    &Flag {
        name: Name::Letter('p'),
        value: Some(Value { name: "instance", kind: Completion::None }),
        brief: "show this instance of the filter",
        text: "Show the filter\n\
               .Ar instance ,\n\
               as\n\
               .Fl p\n\
               of\n\
               .Xr pfctl 8\n\
               does.",
        set: |options, value| {
            options.instance = Some(value.to_owned());
            Ok(())
        },
    },
    &switch('r', "reverse the order", "Reverse the order of the rows.", |options, _| {
        options.reverse = true;
        Ok(())
    }),
    &Flag {
        name: Name::Letter('s'),
        value: Some(Value { name: "seconds", kind: Completion::None }),
        brief: "seconds between two updates",
        text: "Update the screen every\n\
               .Ar seconds ,\n\
               from 1 to 3600.\n\
               The default is 5.",
        set: |options, value| {
            options.seconds = interval(value)?;
            Ok(())
        },
    },
    &Flag {
        name: Name::Letter('v'),
        value: Some(Value { name: "view", kind: Completion::Words(view_names) }),
        brief: "begin with this view",
        text: "Begin with\n\
               .Ar view ,\n\
               as\n\
               .Sx VIEWS\n\
               lists them.\n\
               The beginning of a name is enough if no other name begins so.",
        set: |options, value| {
            let Some(view) = View::by_name(value) else {
                let message = format!("unknown view {value}; -v takes {}", view_names().join(", "));
                return Err(Refusal::Usage(message));
            };
            options.view = view;
            Ok(())
        },
    },
    &Flag {
        name: Name::Letter('w'),
        value: Some(Value { name: "width", kind: Completion::None }),
        brief: "width of the output (batch mode)",
        text: "In batch mode, print lines of\n\
               .Ar width\n\
               characters.\n\
               The default is 80.",
        set: |options, value| {
            let width = at_least(20, number(value, "width")?, "width")?;
            options.width = u16::try_from(width)
                .map_err(|_| Refusal::Usage(format!("width {value}: too large")))?;
            Ok(())
        },
    },
    &Flag {
        name: Name::Long("help"),
        value: None,
        brief: "the same as -h",
        text: "The same as\n.Fl h .",
        set: |options, _| {
            options.help = true;
            Ok(())
        },
    },
    &Flag {
        name: Name::Long("version"),
        value: None,
        brief: "print the version",
        text: "Print the version.",
        set: |options, _| {
            options.version = true;
            Ok(())
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, Refusal> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_of_pftop_are_understood() {
        let parsed = options("-w 135 -b -a -v long -o bytes 50").unwrap();
        let expected = Options {
            width: 135,
            batch: true,
            all: true,
            view: View::Long,
            order: Order::Bytes,
            rows: Some(50),
            ..Options::default()
        };
        assert_eq!(parsed, expected);
        let parsed = options("-s1 -r -d 3 -i -p lab -f tcp -l /tmp/log").unwrap();
        let expected = Options {
            seconds: 1,
            reverse: true,
            count: Some(3),
            interactive: true,
            instance: Some("lab".into()),
            filter: "tcp".into(),
            log: "/tmp/log".into(),
            ..Options::default()
        };
        assert_eq!(parsed, expected);
        assert!(options("-h").unwrap().help && options("--help").unwrap().help);
        assert!(options("--version").unwrap().version);
    }

    #[test]
    fn wrong_values_are_refused() {
        for (line, message) in [
            ("-s 0", "seconds 0: too small"),
            ("-s 3601", "seconds 3601: too large"),
            ("-s x", "seconds x: invalid"),
            ("-d 0", "count 0: too small"),
            ("-w 5", "width 5: too small"),
            ("-w 70000", "width 70000: too large"),
            ("0", "rows 0: too small"),
            ("5 6", "unknown command line argument: 6 ..."),
            ("-b -i", "-b and -i are mutually exclusive"),
            ("-c 5", "unknown option -- c"),
            (
                "-v rules -o src",
                "the view rules has no order src; its orders are none, pkt, bytes, rate, states",
            ),
        ] {
            assert_eq!(options(line), Err(Refusal::Usage(message.into())), "{line}");
        }
        for (line, begin) in [
            ("-v pf", "unknown view pf; -v takes default, long, "),
            ("-o name", "unknown order name; -o takes addresses, age, "),
        ] {
            match options(line) {
                Err(Refusal::Usage(message)) => assert!(message.starts_with(begin), "{message}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
