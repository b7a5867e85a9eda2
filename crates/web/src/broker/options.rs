//! The command line of skipstep-broker.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::request::Role;

/// Execute requests of the filter's web page
#[derive(Debug, Clone, Parser)]
#[command(name = "skipstep-broker", version)]
pub struct Options {
    /// Path of the socket for requests
    #[arg(long, value_name = "path", default_value = "/run/skipstep-broker/socket")]
    pub socket: PathBuf,

    /// Group of the processes that may connect to the socket
    #[arg(long, value_name = "group", default_value = "_skipstep-web")]
    pub group: String,

    /// File with the hashes of the tokens
    #[arg(long, value_name = "file", default_value = "/etc/skipstep/web-tokens")]
    pub tokens: PathBuf,

    /// File of the log that the page shows
    #[arg(long, value_name = "file", default_value = "/var/log/skipstep/pflog0")]
    pub log: PathBuf,

    /// Name of the instance of the filter, as for pfctl
    #[arg(short = 'p', value_name = "instance")]
    pub instance: Option<String>,

    /// The pfctl to run; by default the one in the folder of this program
    #[arg(long, value_name = "path")]
    pub pfctl: Option<PathBuf>,

    /// The command; without one the program serves requests.
    #[command(subcommand)]
    pub command: Option<Administration>,
}

/// Commands other than serving.
#[derive(Debug, Clone, Subcommand)]
pub enum Administration {
    /// Add, remove or list tokens of users
    #[command(subcommand)]
    Token(TokenCommand),
}

/// Commands for tokens.
#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; only its hash is stored
    Add {
        /// reader or writer
        role: Role,
        /// Name of the user, for the list and for the log
        name: String,
    },
    /// Remove the tokens of a user
    Remove {
        /// Name of the user
        name: String,
    },
    /// Print the role and the name of each token
    List,
}

impl Options {
    /// Returns the path of pfctl.
    pub fn pfctl(&self) -> PathBuf {
        self.pfctl.clone().unwrap_or_else(|| {
            let program = std::env::current_exe().unwrap_or_default();
            program.with_file_name("pfctl")
        })
    }
}
