//! The command line of Camiel Dobbelaar's ftpsesame for OpenBSD, as far as it applies, with options
//! of ftp-proxy where the original has none.

use clap::{ArgAction, Parser};

/// Watch logged FTP control connections, and add rules for their data connections
#[derive(Debug, Clone, Parser)]
#[command(name = "ftpsesame", version, disable_help_flag = true)]
pub struct Options {
    /// Highest level of messages to log, 0 (emerg) to 7 (debug)
    #[arg(short = 'D', value_name = "LEVEL", default_value_t = 5,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    pub level: u8,
    /// Stay in the foreground and log to standard error
    #[arg(short = 'd')]
    pub foreground: bool,
    /// Lifetime of the rules for a data connection in seconds, 1 to 3600
    #[arg(short = 'e', value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub expiry: u32,
    /// Name of the instance of the filter
    #[arg(short = 'I', value_name = "INSTANCE")]
    pub instance: Option<String>,
    /// Log to read, pflog0 to pflog255
    #[arg(short = 'i', value_name = "PFLOGN", default_value = "pflog1", value_parser = log)]
    pub log: u8,
    /// Maximum number of simultaneous control connections, 1 to 100000
    #[arg(short = 'm', value_name = "CONNECTIONS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// Queue for data connections
    #[arg(short = 'q', value_name = "QUEUE")]
    pub queue: Option<String>,
    /// Require the source port 20 for active data connections
    #[arg(short = 'r')]
    pub rfc: bool,
    /// Tag of data connections
    #[arg(short = 't', value_name = "TAG")]
    pub tag: Option<String>,
    /// Log data connections; with -vv, all their packets
    #[arg(short = 'v', action = ArgAction::Count)]
    pub verbose: u8,
    /// This process is the one that reads packets.
    #[arg(long = "worker", hide = true)]
    pub worker: bool,
    /// Print this help
    #[arg(short = 'h', long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl Options {
    /// Returns the name of the instance; without `-I` it is the instance of this network namespace.
    pub fn instance(&self) -> String {
        self.instance.clone().unwrap_or_else(skipstep_kernel::Instance::default_name)
    }
}

fn log(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix("pflog").and_then(|number| number.parse().ok());
    number.ok_or_else(|| "must be pflog0 to pflog255".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_has_every_option() {
        let page = include_str!("../../../man/ftpsesame.8");
        let command = Options::command();
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let letter = option.get_short().expect("options are letters");
            assert!(page.contains(&format!("\n.It Fl {letter}")), "-{letter}");
        }
    }

    #[test]
    fn the_log_is_one_of_the_filter() {
        assert_eq!(Options::parse_from(["ftpsesame"]).log, 1);
        assert_eq!(Options::parse_from(["ftpsesame", "-i", "pflog255"]).log, 255);
        for wrong in ["em0", "pflog", "pflog256", "1"] {
            assert!(Options::try_parse_from(["ftpsesame", "-i", wrong]).is_err(), "{wrong}");
        }
    }
}
