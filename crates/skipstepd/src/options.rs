//! The command line of skipstepd, with the letters of OpenBSD's pflogd.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;

use crate::pflog::MAX_SNAPLEN;
use crate::task::Task;

/// Attach new interfaces to the packet filter, track their addresses, and write the filter's log
#[derive(Debug, Clone, Parser)]
#[command(name = "skipstepd", version)]
pub struct Options {
    /// Source address of IPFIX reports
    #[arg(short = 'a', value_name = "address")]
    pub source: Option<IpAddr>,

    /// Print all events, not only errors
    #[arg(short = 'D')]
    pub debug: bool,

    /// Collector of IPFIX reports on states with pflow; may be given several times
    #[arg(short = 'e', value_name = "address:port")]
    pub collectors: Vec<SocketAddr>,

    /// Path of log files, to which the number of the pflog interface is appended
    #[arg(short = 'f', value_name = "path", default_value = "/var/log/skipstep/pflog")]
    pub file: PathBuf,

    /// Name of the instance of the filter, as for pfctl
    #[arg(short = 'p', value_name = "instance")]
    pub instance: Option<String>,

    /// Maximum number of bytes of a packet in the log, 20 to 160
    #[arg(short = 's', value_name = "snaplen", default_value_t = MAX_SNAPLEN, value_parser = snaplen)]
    pub snaplen: usize,

    /// This process is the worker with this task.
    #[arg(long = "worker", hide = true)]
    pub worker: Option<Task>,
}

fn snaplen(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if (20..=MAX_SNAPLEN).contains(&bytes) => Ok(bytes),
        _ => Err(format!("must be 20 to {MAX_SNAPLEN} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_has_every_option() {
        let page = include_str!("../../../man/skipstepd.8");
        let command = Options::command();
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let letter = option.get_short().expect("pflogd's options are letters");
            assert!(page.contains(&format!("\n.It Fl {letter}")), "-{letter}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        let options = Options::parse_from(["skipstepd"]);
        assert_eq!(options.file, PathBuf::from("/var/log/skipstep/pflog"));
        assert_eq!(options.snaplen, 160);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for line in [["skipstepd", "-s0"], ["skipstepd", "-s161"]] {
            assert!(Options::try_parse_from(line).is_err(), "{line:?}");
        }
    }
}
