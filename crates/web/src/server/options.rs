//! The command line of skipstep-web.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;

/// Serve the web page of the filter
#[derive(Debug, Clone, Parser)]
#[command(name = "skipstep-web", version)]
pub struct Options {
    /// Address and port to listen on
    #[arg(long, value_name = "address:port", default_value = "127.0.0.1:8099")]
    pub listen: SocketAddr,

    /// Listen on a unix socket instead, for a web server in front
    #[arg(long, value_name = "path", conflicts_with = "listen")]
    pub unix: Option<PathBuf>,

    /// Name of this host in the browser, besides its address and localhost; may be given several
    /// times
    #[arg(long = "name", value_name = "name")]
    pub names: Vec<String>,

    /// Certificate chain for HTTPS
    #[arg(long, value_name = "file", requires = "key")]
    pub certificate: Option<PathBuf>,

    /// Private key of the certificate
    #[arg(long, value_name = "file", requires = "certificate")]
    pub key: Option<PathBuf>,

    /// Authority of client certificates; clients without a certificate are refused
    #[arg(long, value_name = "file", requires_all = ["certificate", "client_token"])]
    pub client_authority: Option<PathBuf>,

    /// File with the token whose rights clients with a certificate have
    #[arg(long, value_name = "file", requires = "client_authority")]
    pub client_token: Option<PathBuf>,

    /// Refuse all changes, also of writers
    #[arg(long)]
    pub read_only: bool,

    /// Path of the broker's socket
    #[arg(long, value_name = "path", default_value = "/run/skipstep-broker/socket")]
    pub broker: PathBuf,
}

impl Options {
    /// Checks that no token crosses a network unencrypted.
    ///
    /// # Errors
    /// Fails if the address is not one of this host and there is no certificate.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.unix.is_some() || self.certificate.is_some() || self.listen.ip().is_loopback(),
            "--listen {} needs --certificate and --key, because tokens would cross the network \
             unencrypted. Without them, listen on 127.0.0.1 and use `ssh -L {}:127.0.0.1:{1}`",
            self.listen,
            self.listen.port()
        );
        Ok(())
    }

    /// True if the page is served by HTTPS.
    pub fn is_secure(&self) -> bool {
        self.certificate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::broker;

    fn parse(words: &[&str]) -> Options {
        Options::parse_from([&["skipstep-web"], words].concat())
    }

    #[test]
    fn tokens_do_not_cross_a_network_unencrypted() {
        assert!(parse(&[]).check().is_ok());
        assert!(parse(&["--listen", "[::1]:80"]).check().is_ok());
        assert!(parse(&["--unix", "/run/x"]).check().is_ok());
        let error = parse(&["--listen", "0.0.0.0:8099"]).check().unwrap_err().to_string();
        assert!(error.contains("--certificate"), "{error}");
        assert!(error.contains("ssh -L 8099:127.0.0.1:8099"), "{error}");
        let secure = ["--listen", "0.0.0.0:443", "--certificate", "c", "--key", "k"];
        assert!(parse(&secure).check().is_ok());
    }

    #[test]
    fn the_manual_pages_have_every_option() {
        let web = (include_str!("../../../../man/skipstep-web.8"), Options::command());
        let broker =
            (include_str!("../../../../man/skipstep-broker.8"), broker::Options::command());
        for (page, command) in [web, broker] {
            for option in command.get_arguments() {
                let name = match (option.get_long(), option.get_short()) {
                    (Some(long), _) => format!("\n.It Fl -{long}"),
                    (None, short) => format!("\n.It Fl {}", short.expect("an option has a name")),
                };
                assert!(page.contains(&name), "{name}");
            }
        }
    }
}
