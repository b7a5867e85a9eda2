//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};

/// The configuration that is read if none is named.
const CONFIG: &str = "/etc/ftp-gw.conf";

/// Run an application proxy for FTP, which forwards the commands and data that its rules allow
#[derive(Debug, Clone, Parser)]
#[command(name = "ftp-gw", version, disable_help_flag = true)]
pub struct Options {
    /// Highest level of messages to log, 0 (emerg) to 7 (debug)
    #[arg(short = 'D', value_name = "LEVEL", default_value_t = 6,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    pub level: u8,
    /// Stay in the foreground and log to standard error
    #[arg(short = 'd')]
    pub foreground: bool,
    /// Configuration file
    #[arg(short = 'f', value_name = "FILE", default_value = CONFIG)]
    pub config: PathBuf,
    /// Check the configuration, print its errors, and exit
    #[arg(short = 'n')]
    pub check: bool,
    /// Print this help
    #[arg(short = 'h', long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Task to do instead of serving
    #[command(subcommand)]
    pub chore: Option<Chore>,
}

/// A task of the program other than serving.
#[derive(Debug, Clone, Subcommand)]
pub enum Chore {
    /// Read a password, and print the line of the accounts file for NAME with this password
    Password {
        /// Name of the account
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_has_every_option() {
        let page = include_str!("../../../man/ftp-gw.8");
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
