//! The command line: OpenBSD's, and `-I` for the filter's instance.

use std::net::IpAddr;

use clap::{ArgAction, Parser};

/// Run a proxy for FTP, which rewrites addresses in commands and replies, and adds rules for the
/// data connections
#[derive(Debug, Clone, Parser)]
#[command(name = "ftp-proxy", version, disable_help_flag = true)]
pub struct Options {
    /// Use IPv6 addresses, and allow only EPSV and EPRT
    #[arg(short = '6')]
    pub inet6: bool,
    /// Only permit anonymous FTP: user "ftp" or "anonymous"
    #[arg(short = 'A')]
    pub anonymous: bool,
    /// Source address of connections to servers
    #[arg(short = 'a', value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Address to listen on; by default 127.0.0.1, or ::1 with -6
    #[arg(short = 'b', value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
    /// Highest level of messages to log, 0 (emerg) to 7 (debug)
    #[arg(short = 'D', value_name = "LEVEL", default_value_t = 5,
          value_parser = clap::value_parser!(u8).range(0..=7))]
    pub level: u8,
    /// Stay in the foreground and log to standard error
    #[arg(short = 'd')]
    pub foreground: bool,
    /// Maximum number of simultaneous sessions, 1 to 100000
    #[arg(short = 'm', value_name = "SESSIONS", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub sessions: u32,
    /// Port of the server of -R
    #[arg(short = 'P', value_name = "PORT", default_value_t = 21)]
    pub server_port: u16,
    /// Port to listen on
    #[arg(short = 'p', value_name = "PORT", default_value_t = 8021)]
    pub port: u16,
    /// Queue for data connections
    #[arg(short = 'q', value_name = "QUEUE")]
    pub queue: Option<String>,
    /// Server for all sessions, instead of the server that the client connects to
    #[arg(short = 'R', value_name = "ADDRESS")]
    pub server: Option<IpAddr>,
    /// Use the source port 20 for active data connections
    #[arg(short = 'r')]
    pub rfc: bool,
    /// Tag of data connections, which other rules must pass
    #[arg(short = 'T', value_name = "TAG")]
    pub tag: Option<String>,
    /// Timeout of idle sessions in seconds, 1 to 86400
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 86_400,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
    /// Log data connections; with -vv, all their packets
    #[arg(short = 'v', action = ArgAction::Count)]
    pub verbose: u8,
    /// Name of the instance of the filter
    #[arg(short = 'I', value_name = "INSTANCE")]
    pub instance: Option<String>,
    /// This process is the one that speaks with the world.
    #[arg(long = "worker", hide = true)]
    pub worker: bool,
    /// Print this help
    #[arg(short = 'h', long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl Options {
    /// Returns the address and port to listen at.
    pub fn listen(&self) -> std::net::SocketAddr {
        let address = self.listen.unwrap_or(match self.inet6 {
            true => std::net::Ipv6Addr::LOCALHOST.into(),
            false => std::net::Ipv4Addr::LOCALHOST.into(),
        });
        (address, self.port).into()
    }

    /// Returns the name of the instance; without `-I` it is the instance of this network namespace.
    pub fn instance(&self) -> String {
        self.instance.clone().unwrap_or_else(skipstep_kernel::Instance::default_name)
    }

    /// Returns an error message if an address is not of the family that `-6` selects.
    pub fn mistake(&self) -> Option<String> {
        let named = [("-a", self.source), ("-b", self.listen), ("-R", self.server)];
        let wrong = named.into_iter().find_map(|(flag, address)| {
            address.filter(|address| address.is_ipv6() != self.inet6).map(|address| (flag, address))
        });
        wrong.map(|(flag, address)| {
            let family = if self.inet6 { "IPv6 (-6)" } else { "IPv4 without -6" };
            format!("{flag} {address}: the proxy speaks {family}")
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_page_has_every_option() {
        let page = include_str!("../../../man/ftp-proxy.8");
        let command = Options::command();
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let letter = option.get_short().expect("OpenBSD's options are letters");
            assert!(page.contains(&format!("\n.It Fl {letter}")), "-{letter}");
        }
    }

    #[test]
    fn it_listens_where_openbsd_says() {
        let options = Options::parse_from(["ftp-proxy"]);
        assert_eq!(options.listen().to_string(), "127.0.0.1:8021");
        let options = Options::parse_from(["ftp-proxy", "-6", "-p", "2121"]);
        assert_eq!(options.listen().to_string(), "[::1]:2121");
    }

    #[test]
    fn addresses_are_of_one_family() {
        let mistake = |arguments: &[&str]| {
            Options::parse_from([&["ftp-proxy"], arguments].concat()).mistake()
        };
        assert_eq!(mistake(&["-a", "10.0.0.1", "-R", "10.0.0.2"]), None);
        assert!(mistake(&["-R", "::1"]).is_some());
        assert!(mistake(&["-6", "-b", "127.0.0.1"]).is_some());
    }
}
