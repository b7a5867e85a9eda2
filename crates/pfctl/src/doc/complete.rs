//! Completions for bash, zsh and fish.

use super::Program;
use crate::completion::Completion;
use crate::flags::flag::{Flag, Name};
use crate::verbs::Row;

/// Shell commands that print the possible values. Tables and anchors are visible to root only.
const INTERFACES: &str = "ls /sys/class/net";
const TABLES: &str = "pfctl -q -s Tables 2>/dev/null";
const ANCHORS: &str = "pfctl -q -s Anchors 2>/dev/null";

impl<A> Program<A> {
    fn verb_names(&self) -> String {
        self.verbs.iter().map(|row| row.name).collect::<Vec<_>>().join(" ")
    }

    /// Returns the verbs that take files as operands.
    fn file_verbs(&self) -> Vec<&'static str> {
        let rows = self.verbs.iter().filter(|row| matches!(row.operands, Completion::File));
        rows.map(|row| row.name).collect()
    }
}

/// Returns a bash function that completes by the word in front of the cursor, and by the verb.
pub fn bash<A>(program: &Program<A>) -> String {
    let Program { name, source, flags, .. } = program;
    let written: Vec<String> = flags.iter().map(|flag| flag.written()).collect();
    let mut text = format!(
        "# bash completion for {name}, made from {source}\n\
        _{name}() {{\n    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n    \
        case $before in\n"
    );
    for flag in *flags {
        let Some(value) = flag.value else { continue };
        // a flag with a value may end a cluster, as in -nvf
        let pattern = match flag.name {
            Name::Letter(letter) => format!("-{letter}|-[!-]*{letter}"),
            Name::Long(name) => format!("--{name}"),
        };
        text += &format!("        {pattern}) {}return ;;\n", bash_reply(value.kind));
    }
    text += "    esac\n";
    let file_verbs: Vec<_> =
        program.file_verbs().iter().map(|verb| format!("*\" {verb} \"*")).collect();
    if !file_verbs.is_empty() {
        text += &format!(
            "    case \" ${{COMP_WORDS[*]:1:COMP_CWORD-1}} \" in\n        \
             {}) [[ $word == -* ]] || {{ {}return; }} ;;\n    esac\n",
            file_verbs.join("|"),
            bash_reply(Completion::File),
        );
    }
    let words = format!("{} {}", written.join(" "), program.verb_names());
    text + &format!(
        "    COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n}}\ncomplete -F _{name} {name}\n",
        words.trim_end()
    )
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
pub fn zsh<A>(program: &Program<A>) -> String {
    let Program { name, source, .. } = program;
    let mut text = format!("#compdef {name}\n# made from {source}\n_arguments -s -S");
    for flag in program.flags {
        let value = flag.value.map(|value| format!(":{}:{}", value.name, zsh_action(value.kind)));
        let is_repeated = flag.letter().is_some_and(|letter| program.repeated.contains(&letter));
        text += &format!(
            " \\\n  '{}{}[{}]{}'",
            if is_repeated { "*" } else { "" },
            flag.written(),
            zsh_quoted(flag.brief),
            value.unwrap_or_default()
        );
    }
    let verb = |row: &Row| format!("{}\\:\"{}\" ", row.name, zsh_quoted(row.brief));
    let verbs: String = program.verbs.iter().map(verb).collect();
    if !verbs.is_empty() {
        text += &format!(" \\\n  '1:verb:(({}))' \\\n  '*:file:_files'", verbs.trim_end());
    }
    text + "\n"
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
pub fn fish<A>(program: &Program<A>) -> String {
    let Program { name, source, .. } = program;
    let mut text = format!("# made from {source}\ncomplete -c {name} -f\n");
    for flag in program.flags {
        text += &format!(
            "complete -c {name} {}{} -d '{}'\n",
            fish_name(flag.name),
            fish_value(flag),
            fish_quoted(flag.brief)
        );
    }
    for row in program.verbs {
        text += &format!(
            "complete -c {name} -n __fish_use_subcommand -a {} -d '{}'\n",
            row.name,
            fish_quoted(row.brief)
        );
    }
    let verbs = program.file_verbs().join(" ");
    if !verbs.is_empty() {
        text += &format!("complete -c {name} -n '__fish_seen_subcommand_from {verbs}' -F\n");
    }
    text
}

fn fish_quoted(text: &str) -> String {
    text.replace('\'', "\\'")
}

fn fish_name(name: Name) -> String {
    match name {
        Name::Letter(letter) => format!("-s {letter}"),
        Name::Long(name) => format!("-l {name}"),
    }
}

fn fish_value<A>(flag: &Flag<A>) -> String {
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
    use super::super::PFCTL;
    use super::*;

    #[test]
    fn every_shell_knows_every_flag_verb_and_word() {
        for (shell, text) in [("bash", bash(&PFCTL)), ("zsh", zsh(&PFCTL)), ("fish", fish(&PFCTL))]
        {
            for flag in PFCTL.flags {
                let name = if shell == "fish" { fish_name(flag.name) } else { flag.written() };
                assert!(text.contains(&name), "{shell}: {name}");
                if let Some(Completion::Words(words)) = flag.value.map(|value| value.kind) {
                    assert!(text.contains(&words().join(" ")), "{shell}: words of {name}");
                }
            }
            for row in PFCTL.verbs {
                assert!(text.contains(row.name), "{shell}: {}", row.name);
            }
            assert!(text.contains(TABLES), "{shell}: tables");
        }
    }

    #[test]
    fn files_are_completed_where_a_verb_takes_them() {
        let (bash, fish) = (bash(&PFCTL), fish(&PFCTL));
        assert!(bash.contains("*\" diff \"*|*\" fmt \"*"), "{bash}");
        assert!(fish.contains("from test diff fmt import log' -F"), "{fish}");
    }
}
