//! Words of shell commands that pfctl proposes.

/// True if a shell reads the word as it is.
pub fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || ":./=-_,@+".contains(c))
}

/// Returns a word as it is written in a command: in quotes unless it is plain.
pub fn quoted(word: &str) -> String {
    match is_plain(word) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, written) in [
            ("/etc/pf.conf", "/etc/pf.conf"),
            ("2001:db8::1[22]", "'2001:db8::1[22]'"),
            ("a b", "'a b'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), written);
        }
    }
}
