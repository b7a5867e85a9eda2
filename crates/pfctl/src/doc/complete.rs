//! Completions for bash, zsh and fish.

use super::{letter, written};
use crate::args::Verb;
use crate::flags::{Completion, FLAGS, Flag, Name};

/// bash: one function that looks at the word before the one to complete.
pub fn bash() -> String {
    let flags: Vec<String> = FLAGS.iter().map(|flag| written(flag)).collect();
    let verbs = Verb::ALL.map(|(name, _)| name).join(" ");
    let mut text = "# bash completion for pfctl, made from crates/pfctl/src/flags.rs\n\
        _pfctl() {\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n    \
        case $before in\n"
        .to_string();
    for flag in FLAGS {
        let how = match flag.value.map(|value| value.kind) {
            None => continue,
            Some(Completion::None) => "return".to_string(),
            Some(Completion::File) => "COMPREPLY=($(compgen -f -- \"$word\")); return".to_string(),
            Some(Completion::Interface) => {
                "COMPREPLY=($(compgen -W \"$(ls /sys/class/net)\" -- \"$word\")); return"
                    .to_string()
            }
            Some(Completion::Words(words)) => {
                format!("COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return", words().join(" "))
            }
        };
        // a flag with a value may end a cluster, as in -nvf
        let pattern = match flag.name {
            Name::Letter(letter) => format!("-{letter}|-[!-]*{letter}"),
            Name::Long(name) => format!("--{name}"),
        };
        text += &format!("        {pattern}) {how} ;;\n");
    }
    text += &format!(
        "        test|import) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n    esac\n    \
         COMPREPLY=($(compgen -W \"{} {verbs}\" -- \"$word\"))\n}}\ncomplete -F _pfctl pfctl\n",
        flags.join(" "),
    );
    text
}

/// zsh: a list of specifications for `_arguments`.
pub fn zsh() -> String {
    let mut text =
        "#compdef pfctl\n# made from crates/pfctl/src/flags.rs\n_arguments -s -S \\\n".to_string();
    for flag in FLAGS {
        let brief = flag.brief.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]");
        let value = flag.value.map(|value| format!(":{}:{}", value.name, zsh_action(value.kind)));
        let repeated = if matches!(letter(flag), Some('D' | 'k' | 'v')) { "*" } else { "" };
        text +=
            &format!("  '{repeated}{}[{brief}]{}' \\\n", written(flag), value.unwrap_or_default());
    }
    let verbs = Verb::ALL.map(|(name, _)| name).join(" ");
    text + &format!("  '1:verb:({verbs})' \\\n  '*:file:_files'\n")
}

fn zsh_action(kind: Completion) -> String {
    match kind {
        Completion::None => " ".into(),
        Completion::File => "_files".into(),
        Completion::Interface => "_net_interfaces".into(),
        Completion::Words(words) => format!("({})", words().join(" ")),
    }
}

/// fish: one command for each flag.
pub fn fish() -> String {
    let mut text = "# made from crates/pfctl/src/flags.rs\ncomplete -c pfctl -f\n".to_string();
    for flag in FLAGS {
        let brief = flag.brief.replace('\'', "\\'");
        text +=
            &format!("complete -c pfctl {}{} -d '{brief}'\n", fish_name(flag), fish_value(flag));
    }
    let verbs = Verb::ALL.map(|(name, _)| name).join(" ");
    text += &format!("complete -c pfctl -n __fish_use_subcommand -a '{verbs}'\n");
    text + "complete -c pfctl -n '__fish_seen_subcommand_from test import' -F\n"
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
        Some(Completion::Interface) => " -x -a '(ls /sys/class/net)'".into(),
        Some(Completion::Words(words)) => format!(" -x -a '{}'", words().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_flag_and_its_words() {
        for (shell, text) in [("bash", bash()), ("zsh", zsh()), ("fish", fish())] {
            for flag in FLAGS {
                let name = if shell == "fish" { fish_name(flag) } else { written(flag) };
                assert!(text.contains(&name), "{shell}: {name}");
            }
            assert!(text.contains("rules Sources states info Tables osfp Reset all"), "{shell}");
            assert!(text.contains("explain test"), "{shell}");
        }
    }
}
