//! The usage, printed for a wrong command line, and the help that `-h` prints.

use super::PFCTL;
use crate::flags::FLAGS;
use crate::flags::flag::{Flag, Value};
use crate::verbs::VERBS;

const WIDTH: usize = 78;

/// Returns the version of the program, and the number of its layout of maps.
pub fn version() -> String {
    format!("pfctl of skipstep {}, layout {}\n", env!("CARGO_PKG_VERSION"), skipstep_kernel::LAYOUT)
}

/// Returns the synopsis in OpenBSD's form.
pub fn usage() -> String {
    let values = FLAGS.iter().filter(|flag| !is_of_table(flag) && flag.letter().is_some());
    let mut parts =
        vec![format!("[-{}]", PFCTL.plain_letters()), "[--json]".into(), "[--remove]".into()];
    parts.push("[--room-for file]".into());
    parts.push("[--confirm seconds]".into());
    parts.extend(
        values.filter_map(|flag| Some(format!("[{} {}]", flag.written(), flag.value?.name))),
    );
    parts.push("[-t table -T command [address ...]]".into());
    let verbs: String =
        VERBS.iter().map(|row| format!("       pfctl {} {}\n", row.name, row.usage)).collect();
    wrap("usage: pfctl", &parts) + &verbs
}

/// True for `-t` and `-T`, which are together at the end of the synopsis.
fn is_of_table(flag: &Flag) -> bool {
    matches!(flag.letter(), Some('t' | 'T'))
}

/// Wraps `parts` to lines of at most 78 characters. A tab indents all lines but the first.
pub fn wrap(head: &str, parts: &[String]) -> String {
    let mut text = head.to_string();
    let mut column = head.len();
    for part in parts {
        if column + 1 + part.len() > WIDTH {
            text += "\n\t";
            column = 8;
        } else {
            text.push(' ');
            column += 1;
        }
        text += part;
        column += part.len();
    }
    text + "\n"
}

/// Returns a line for each flag.
pub fn flag_lines<A>(flags: &[&Flag<A>]) -> String {
    let line = |flag: &&Flag<A>| {
        let value = flag.value.map(|Value { name, .. }| format!(" {name}")).unwrap_or_default();
        format!("  {:<15} {}\n", flag.written() + &value, flag.brief)
    };
    flags.iter().map(line).collect()
}

/// Returns the usage and a line for each flag and verb.
pub fn help() -> String {
    let mut text = usage() + "\n";
    text += &flag_lines(FLAGS);
    text += "\nVerbs:\n";
    for row in VERBS {
        text += &format!("  {:<15} {}\n", row.name, row.brief);
    }
    text += "\nFor instance:\n  pfctl explain in on em0 proto tcp from 10.0.0.1 port 4000 \
             to 10.0.0.2 port 22\n";
    text + "\nThe manual pages are pfctl(8) and pf.conf(5).\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_fits_a_terminal_and_names_every_flag() {
        let usage = usage();
        assert!(usage.starts_with("usage: pfctl [-dEeghMNnPqrvz]"), "{usage}");
        for line in usage.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        for flag in FLAGS.iter().filter(|flag| flag.value.is_some()) {
            assert!(usage.contains(&format!("{} {}", flag.written(), flag.value.unwrap().name)));
        }
    }

    #[test]
    fn the_help_has_a_line_for_each_flag_and_verb() {
        let help = help();
        for flag in FLAGS {
            assert!(help.contains(flag.brief), "{}", flag.written());
        }
        for row in VERBS {
            assert!(help.contains(row.brief), "{}", row.name);
        }
    }
}
