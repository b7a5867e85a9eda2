//! The FTP commands that the gateway knows, in the groups that rules name.

use std::collections::BTreeSet;

/// Commands that are always allowed, because a session needs them.
const ALWAYS: &[&str] = &["USER", "PASS", "ACCT", "QUIT", "NOOP", "HELP", "FEAT", "ABOR"];

/// Commands that read, and change nothing.
const READ: &[&str] = &[
    "CDUP", "CLNT", "CWD", "EPRT", "EPSV", "LANG", "LIST", "MDTM", "MLSD", "MLST", "MODE", "NLST",
    "OPTS", "PASV", "PORT", "PWD", "REST", "RETR", "SIZE", "STAT", "STRU", "SYST", "TYPE", "XCUP",
    "XCWD", "XPWD",
];

/// Commands that change files or folders.
const WRITE: &[&str] =
    &["ALLO", "APPE", "DELE", "MFMT", "MKD", "RMD", "RNFR", "RNTO", "STOR", "STOU", "XMKD", "XRMD"];

/// `SITE`, whose effect depends on the server.
const SITE: &[&str] = &["SITE"];

/// Groups by the names that rules use.
const GROUPS: [(&str, &[&str]); 3] = [("@read", READ), ("@write", WRITE), ("@site", SITE)];

/// Commands that would hide the session from the gateway or involve a third host.
const NEVER: &[&str] = &[
    "ADAT", "AUTH", "CCC", "CONF", "ENC", "LPRT", "LPSV", "MIC", "PBSZ", "PROT", "REIN", "SMNT",
    "SSCN", "CPSV",
];

/// Returns the names of the groups for messages.
pub fn groups() -> String {
    GROUPS.map(|(name, _)| name).join(", ")
}

/// The gateway's treatment of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The command opens a data connection on which the client sends.
    Upload,
    /// The command opens a data connection on which the server sends.
    Download,
    /// The command names the endpoint of a data connection.
    Arrange,
    /// The command is refused by all rules.
    Never,
    /// The command is forwarded to the server.
    Plain,
}

/// Returns the treatment of a command.
pub fn kind(verb: &str) -> Treatment {
    match verb {
        "STOR" | "STOU" | "APPE" => Treatment::Upload,
        "RETR" | "LIST" | "NLST" | "MLSD" => Treatment::Download,
        "PORT" | "PASV" | "EPRT" | "EPSV" => Treatment::Arrange,
        _ if NEVER.contains(&verb) => Treatment::Never,
        _ => Treatment::Plain,
    }
}

/// The set of commands that a rule allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands(BTreeSet<String>);

impl Commands {
    /// Returns the commands that every session needs.
    pub fn none() -> Commands {
        Commands(ALWAYS.iter().map(|verb| (*verb).to_string()).collect())
    }

    /// Returns all commands of all groups.
    pub fn every() -> Commands {
        let mut commands = Commands::none();
        for (name, _) in GROUPS {
            commands.add(name);
        }
        commands
    }

    /// Allows a verb or a group. Returns false if the word is neither, or a verb that no rule can
    /// allow. An unknown verb is forwarded to the server, and opens no data connection.
    pub fn add(&mut self, word: &str) -> bool {
        if let Some((_, verbs)) = GROUPS.iter().find(|(name, _)| *name == word) {
            self.0.extend(verbs.iter().map(|verb| (*verb).to_string()));
            return true;
        }
        let is_verb = (1..=8).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase());
        let may = is_verb && kind(word) != Treatment::Never;
        if may {
            self.0.insert(word.to_string());
            // a transfer needs the commands that arrange its data connection
            if matches!(kind(word), Treatment::Upload | Treatment::Download) {
                self.0.extend(["PORT", "PASV", "EPRT", "EPSV"].map(str::to_string));
            }
        }
        may
    }

    /// Returns true if `verb` is allowed.
    pub fn allow(&self, verb: &str) -> bool {
        self.0.contains(verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_allow_their_commands() {
        let mut commands = Commands::none();
        assert!(commands.add("@read"));
        assert!(commands.allow("RETR") && commands.allow("EPSV") && commands.allow("QUIT"));
        assert!(!commands.allow("STOR") && !commands.allow("SITE") && !commands.allow("XYZ"));
    }

    #[test]
    fn nothing_allows_what_hides_the_session() {
        for verb in NEVER {
            assert!(!Commands::every().allow(verb), "{verb}");
            assert!(!Commands::none().add(verb), "{verb}");
        }
    }

    #[test]
    fn a_command_can_be_named() {
        let mut commands = Commands::none();
        assert!(commands.add("STOR") && commands.add("XCRC"));
        assert!(commands.allow("STOR") && commands.allow("PASV") && commands.allow("XCRC"));
        assert!(!commands.allow("RETR"));
        for wrong in ["", "stor", "@all", "A B", "TOOLONGAVERB"] {
            assert!(!commands.add(wrong), "{wrong}");
        }
    }

    #[test]
    fn every_transfer_is_in_a_group() {
        let every = Commands::every();
        for verb in ["STOR", "STOU", "APPE", "RETR", "LIST", "NLST", "MLSD"] {
            assert!(every.allow(verb) && kind(verb) != Treatment::Plain, "{verb}");
        }
    }

    #[test]
    fn the_manual_page_lists_the_groups() {
        let page = include_str!("../../../man/ftp-gw.conf.5");
        for (name, verbs) in GROUPS {
            let (_, behind) = page.split_once(&format!("\n.It {name}\n")).expect(name);
            let (listed, _) = behind.split_once('.').expect("a sentence");
            let listed: Vec<&str> =
                listed.split([' ', '\n', ',']).filter(|word| !word.is_empty()).collect();
            assert_eq!(listed, verbs, "{name}");
        }
    }
}
