//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};

/// The configuration that is read if none is named.
const CONFIG: &str = "/etc/ftp-gw.conf";

/// An application proxy for FTP: it speaks with clients as a server and with servers as a client,
/// and passes on what its rules allow.
#[derive(Debug, Clone, Parser)]
#[command(name = "ftp-gw", version, disable_help_flag = true)]
pub struct Options {
    /// How much to tell, by syslog's levels
    #[arg(short = 'D', value_name = "LEVEL", default_value_t = 6,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    pub level: u8,
    /// Stay in the foreground and tell by standard error
    #[arg(short = 'd')]
    pub foreground: bool,
    /// The configuration
    #[arg(short = 'f', value_name = "FILE", default_value = CONFIG)]
    pub config: PathBuf,
    /// Read the configuration, say what is wrong with it, and end
    #[arg(short = 'n')]
    pub check: bool,
    /// This text
    #[arg(short = 'h', long, action = ArgAction::Help)]
    help: Option<bool>,
    /// What to do besides serving
    #[command(subcommand)]
    pub chore: Option<Chore>,
}

/// What the program does besides serving.
#[derive(Debug, Clone, Subcommand)]
pub enum Chore {
    /// Asks for a password and prints the line of the accounts' file that lets NAME in with it
    Password {
        /// Of the account
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_has_every_option() {
        let page = include_str!("../../../../man/ftp-gw.8");
        let command = Options::command();
        for option in command.get_arguments() {
            let letter = option.get_short().expect("options are letters");
            assert!(page.contains(&format!("\n.It Fl {letter}")), "-{letter}");
        }
        for chore in command.get_subcommands() {
            assert!(page.contains(&format!("\n.Cm {}", chore.get_name())), "{}", chore.get_name());
        }
    }
}
