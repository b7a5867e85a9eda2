//! Completions for bash, zsh and fish.

use super::{letter, written};
use crate::completion::Completion;
use crate::flags::FLAGS;
use crate::flags::flag::{Flag, Name};
use crate::verbs::VERBS;

/// Shell commands that print the possible values. Tables and anchors are visible to root only.
const INTERFACES: &str = "ls /sys/class/net";
const TABLES: &str = "pfctl -q -s Tables 2>/dev/null";
const ANCHORS: &str = "pfctl -q -s Anchors 2>/dev/null";

fn verb_names() -> String {
    VERBS.iter().map(|row| row.name).collect::<Vec<_>>().join(" ")
}

/// Returns the verbs that take files as operands, joined by `separator`.
fn file_verbs(separator: &str) -> String {
    let rows = VERBS.iter().filter(|row| matches!(row.operands, Completion::File));
    rows.map(|row| row.name).collect::<Vec<_>>().join(separator)
}

/// Returns a bash function that completes by the word in front of the cursor, and by the verb.
pub fn bash() -> String {
    let flags: Vec<String> = FLAGS.iter().map(|flag| written(flag)).collect();
    let mut text = "# bash completion for pfctl, made from crates/pfctl/src/flags.rs and verbs.rs\n\
        _pfctl() {\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n    \
        case $before in\n"
        .to_string();
    for flag in FLAGS {
        let Some(value) = flag.value else { continue };
        // a flag with a value may end a cluster, as in -nvf
        let pattern = match flag.name {
            Name::Letter(letter) => format!("-{letter}|-[!-]*{letter}"),
            Name::Long(name) => format!("--{name}"),
        };
        text += &format!("        {pattern}) {}return ;;\n", bash_reply(value.kind));
    }
    text += &format!(
        "    esac\n    \
         case \" ${{COMP_WORDS[*]:1:COMP_CWORD-1}} \" in\n        \
         {}) [[ $word == -* ]] || {{ {}return; }} ;;\n    esac\n    \
         COMPREPLY=($(compgen -W \"{} {}\" -- \"$word\"))\n}}\ncomplete -F _pfctl pfctl\n",
        VERBS
            .iter()
            .filter(|row| matches!(row.operands, Completion::File))
            .map(|row| format!("*\" {} \"*", row.name))
            .collect::<Vec<_>>()
            .join("|"),
        bash_reply(Completion::File),
        flags.join(" "),
        verb_names(),
    );
    text
}

fn bash_reply(kind: Completion) -> String {
    let choices = match kind {
        Completion::None => return String::new(),
        Completion::File => "-f".to_string(),
        Completion::Interface => format!("-W \"$({INTERFACES})\""),
        Completion::Table => format!("-W \"$({TABLES})\""),
        Completion::Anchor => format!("-W \"$({ANCHORS})\""),
        Completion::Words(words) => format!("-W \"{}\"", words().join(" ")),
    };
    format!("COMPREPLY=($(compgen {choices} -- \"$word\")); ")
}

/// Returns a zsh function: a list of specifications for `_arguments`.
pub fn zsh() -> String {
    let mut text =
        "#compdef pfctl\n# made from crates/pfctl/src/flags.rs and verbs.rs\n_arguments -s -S \\\n"
            .to_string();
    for flag in FLAGS {
        let value = flag.value.map(|value| format!(":{}:{}", value.name, zsh_action(value.kind)));
        let repeated = if matches!(letter(flag), Some('D' | 'K' | 'k' | 'v')) { "*" } else { "" };
        text += &format!(
            "  '{repeated}{}[{}]{}' \\\n",
            written(flag),
            zsh_quoted(flag.brief),
            value.unwrap_or_default()
        );
    }
    let verbs: String =
        VERBS.iter().map(|row| format!("{}\\:\"{}\" ", row.name, zsh_quoted(row.brief))).collect();
    text + &format!("  '1:verb:(({}))' \\\n  '*:file:_files'\n", verbs.trim_end())
}

fn zsh_quoted(text: &str) -> String {
    text.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]")
}

fn zsh_action(kind: Completion) -> String {
    match kind {
        Completion::None => " ".into(),
        Completion::File => "_files".into(),
        Completion::Interface => "_net_interfaces".into(),
        Completion::Table => format!("(${{(f)\"$({TABLES})\"}})"),
        Completion::Anchor => format!("(${{(f)\"$({ANCHORS})\"}})"),
        Completion::Words(words) => format!("({})", words().join(" ")),
    }
}

/// Returns fish's `complete` commands, one for each flag and verb.
pub fn fish() -> String {
    let mut text =
        "# made from crates/pfctl/src/flags.rs and verbs.rs\ncomplete -c pfctl -f\n".to_string();
    for flag in FLAGS {
        text += &format!(
            "complete -c pfctl {}{} -d '{}'\n",
            fish_name(flag),
            fish_value(flag),
            fish_quoted(flag.brief)
        );
    }
    for row in VERBS {
        text += &format!(
            "complete -c pfctl -n __fish_use_subcommand -a {} -d '{}'\n",
            row.name,
            fish_quoted(row.brief)
        );
    }
    text + &format!("complete -c pfctl -n '__fish_seen_subcommand_from {}' -F\n", file_verbs(" "))
}

fn fish_quoted(text: &str) -> String {
    text.replace('\'', "\\'")
}

fn fish_name(flag: &Flag) -> String {
    match flag.name {
        Name::Letter(letter) => format!("-s {letter}"),
        Name::Long(name) => format!("-l {name}"),
    }
}

fn fish_value(flag: &Flag) -> String {
    match flag.value.map(|value| value.kind) {
        None => String::new(),
        Some(Completion::None) => " -x".into(),
        Some(Completion::File) => " -r -F".into(),
        Some(Completion::Interface) => format!(" -x -a '({INTERFACES})'"),
        Some(Completion::Table) => format!(" -x -a '({TABLES})'"),
        Some(Completion::Anchor) => format!(" -x -a '({ANCHORS})'"),
        Some(Completion::Words(words)) => format!(" -x -a '{}'", words().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_flag_verb_and_word() {
        for (shell, text) in [("bash", bash()), ("zsh", zsh()), ("fish", fish())] {
            for flag in FLAGS {
                let name = if shell == "fish" { fish_name(flag) } else { written(flag) };
                assert!(text.contains(&name), "{shell}: {name}");
                if let Some(Completion::Words(words)) = flag.value.map(|value| value.kind) {
                    assert!(text.contains(&words().join(" ")), "{shell}: words of {name}");
                }
            }
            for row in VERBS {
                assert!(text.contains(row.name), "{shell}: {}", row.name);
            }
            assert!(text.contains(TABLES), "{shell}: tables");
        }
    }

    #[test]
    fn files_are_completed_where_a_verb_takes_them() {
        assert!(bash().contains("*\" diff \"*|*\" fmt \"*"), "{}", bash());
        assert!(fish().contains("from test diff fmt import log' -F"), "{}", fish());
    }
}
