//! The configuration, a TOML file described in ftp-gw.conf(5).

mod mistake;
mod text;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::IpNet;
use toml::Spanned;

pub use mistake::Mistake;

use crate::dialogue::Mode;
use crate::endpoint::LOWEST_PORT;
use crate::gateway::address::canonical_network;
use crate::gateway::destination::FTP_PORT;
use crate::gateway::policy::{Action, Pattern, Policy, Rule};
use crate::gateway::shovel::Shovel;
use crate::gateway::verbs::{self, Commands};
use text::{Number, Text, Word};

/// The configuration of a gateway.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses for clients that name their server.
    pub listen: Vec<SocketAddr>,
    /// Addresses to which the packet filter diverts clients that do not know of the gateway.
    pub transparent: Vec<SocketAddr>,
    /// The user that the process becomes if root started it.
    pub user: Option<String>,
    /// The file of accounts; `None` if clients need no account.
    pub accounts: Option<PathBuf>,
    /// The method that moves bytes of data connections.
    pub shovel: Shovel,
    /// Ports of the gateway for data connections of clients.
    pub data_ports: RangeInclusive<u16>,
    /// The side that opens data connections between gateway and server.
    pub server_data: Mode,
    /// Source addresses of connections to servers, at most one of each family.
    pub source: Vec<IpAddr>,
    /// Limits of sessions and logins.
    pub limits: Limits,
    /// Timeouts of sessions.
    pub timeouts: Timeouts,
    /// The rules on clients, servers and commands.
    pub policy: Policy,
}

/// Limits of sessions and logins.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of sessions at once.
    pub sessions: usize,
    /// Number of sessions at once of one client: an IPv4 address, or an IPv6 /64.
    pub sessions_per_client: usize,
    /// Number of wrong passwords after which a session ends.
    pub login_failures: u32,
}

/// Timeouts of sessions.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Time to open a connection, or to wait for one.
    pub connect: Duration,
    /// Time until the server has accepted the client's login.
    pub login: Duration,
    /// Time without a command and without data, and time for a peer to read a line.
    pub idle: Duration,
    /// Time without a byte on a data connection.
    pub data: Duration,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has a mistake.
    pub fn read(path: &Path) -> Result<Config> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        Ok(Config::parse(&name, &text)?)
    }

    /// Parses a text that came from the file `name`.
    ///
    /// # Errors
    /// Fails if the text is not valid TOML, or has an unknown key or a wrong value.
    pub fn parse(name: &str, text: &str) -> Result<Config, Mistake> {
        let reader = Reader { name, text };
        let read: Text = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            reader.mistake(at, error.message(), "ftp-gw.conf(5) lists the keys and their values")
        })?;
        reader.config(read)
    }
}

/// Converts the words of a text to values.
struct Reader<'a> {
    name: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn mistake(&self, at: std::ops::Range<usize>, what: &str, help: &str) -> Mistake {
        Mistake::new(self.name, self.text, at, what, help)
    }

    fn config(&self, text: Text) -> Result<Config, Mistake> {
        let listen = self.each(&text.listen, |word| self.socket(word))?;
        let transparent = self.each(&text.transparent, |word| self.socket(word))?;
        if listen.is_empty() && transparent.is_empty() {
            let help = "listen = [\"192.0.2.1:21\"] is for clients that name their server, \
                        transparent = [\"127.0.0.1:8021\"] for a divert-to rule";
            return Err(self.mistake(0..0, "the gateway has no address to listen on", help));
        }
        let accounts = text.accounts.as_ref().map(|path| PathBuf::from(path.get_ref()));
        let source = self.each(&text.source, |word| self.address(word))?;
        if source.len() > 2 || source.len() == 2 && source[0].is_ipv4() == source[1].is_ipv4() {
            let help = "one address of IPv4, one of IPv6, or one of both";
            return Err(self.mistake(text.source[1].span(), "two sources of one family", help));
        }
        let rules = text.rule.iter().map(|rule| self.rule(rule, accounts.is_some()));
        let policy = Policy::new(rules.collect::<Result<_, _>>()?);
        Ok(Config {
            listen,
            transparent,
            user: text.user,
            accounts,
            shovel: text.shovel.map_or(Ok(Shovel::default()), |word| self.shovel(&word))?,
            data_ports: text.data_ports.map_or(Ok(49_152..=65_535), |word| self.ports(&word))?,
            server_data: text.server_data.map_or(Ok(Mode::Passive), |word| self.mode(&word))?,
            source,
            limits: Limits {
                sessions: self.count(text.limits.sessions, 2000, 100_000)?,
                sessions_per_client: self.count(text.limits.sessions_per_client, 100, 100_000)?,
                login_failures: self.number(text.limits.login_failures, 3, 100)? as u32,
            },
            timeouts: Timeouts {
                connect: self.seconds(text.timeouts.connect, 30)?,
                login: self.seconds(text.timeouts.login, 120)?,
                idle: self.seconds(text.timeouts.idle, 900)?,
                data: self.seconds(text.timeouts.data, 300)?,
            },
            policy,
        })
    }

    fn rule(&self, rule: &text::Rule, accounts: bool) -> Result<Rule, Mistake> {
        let action = match rule.action.get_ref().as_str() {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            _ => return Err(self.wrong(&rule.action, "action", "\"allow\" or \"deny\"")),
        };
        if let (Action::Deny, Some(word)) = (action, rule.commands.iter().flatten().next()) {
            let help = "leave it out: a denied client has no session";
            return Err(self.mistake(word.span(), "commands in a rule that denies", help));
        }
        if let (Action::Deny, Some(word)) = (action, rule.users.iter().flatten().next()) {
            let help = "write `users` in a rule that allows";
            return Err(self.mistake(word.span(), "users in a rule that denies", help));
        }
        if let (false, Some(word)) = (accounts, rule.accounts.iter().flatten().next()) {
            let help = "name their file: accounts = \"/etc/ftp-gw.accounts\"";
            return Err(self.mistake(word.span(), "there are no accounts", help));
        }
        let text = |words: &Vec<Word>| words.iter().map(|word| word.get_ref().clone()).collect();
        Ok(Rule {
            action,
            from: self.list(&rule.from, |word| self.network(word))?,
            accounts: rule.accounts.as_ref().map(text),
            to: self.list(&rule.to, |word| self.pattern(word))?,
            ports: match &rule.ports {
                Some(ports) => Some(self.each(ports, |port| self.port(port))?),
                None if action == Action::Deny => None,
                None => Some(vec![FTP_PORT]),
            },
            users: rule.users.as_ref().map(text),
            commands: match &rule.commands {
                Some(words) => self.commands(words)?,
                None => Commands::every(),
            },
        })
    }

    /// Converts each of the words.
    fn each<W, T>(
        &self,
        words: &[Spanned<W>],
        meaning: impl Fn(&Spanned<W>) -> Result<T, Mistake>,
    ) -> Result<Vec<T>, Mistake> {
        words.iter().map(meaning).collect()
    }

    fn list<T>(
        &self,
        words: &Option<Vec<Word>>,
        meaning: impl Fn(&Word) -> Result<T, Mistake>,
    ) -> Result<Option<Vec<T>>, Mistake> {
        words.as_ref().map(|words| self.each(words, meaning)).transpose()
    }

    fn wrong(&self, word: &Word, what: &str, help: &str) -> Mistake {
        self.mistake(word.span(), &format!("'{}' is not a valid {what}", word.get_ref()), help)
    }

    fn socket(&self, word: &Word) -> Result<SocketAddr, Mistake> {
        let help = "an address and a port: \"192.0.2.1:21\", \"[2001:db8::1]:21\"";
        word.get_ref().parse().map_err(|_| self.wrong(word, "address with a port", help))
    }

    fn address(&self, word: &Word) -> Result<IpAddr, Mistake> {
        let help = "an address of this host: \"192.0.2.1\", \"2001:db8::1\"";
        word.get_ref().parse().map_err(|_| self.wrong(word, "address", help))
    }

    fn network(&self, word: &Word) -> Result<IpNet, Mistake> {
        let help = "an address or a network: \"192.0.2.1\", \"2001:db8::/64\"";
        network(word.get_ref()).ok_or_else(|| self.wrong(word, "network", help))
    }

    fn pattern(&self, word: &Word) -> Result<Pattern, Mistake> {
        let help = "an address, a network, a name, or the names under one: \"*.example.org\"";
        if let Some(network) = network(word.get_ref()) {
            return Ok(Pattern::Network(network));
        }
        Pattern::name(word.get_ref()).ok_or_else(|| self.wrong(word, "server", help))
    }

    fn port(&self, number: &Number) -> Result<u16, Mistake> {
        u16::try_from(*number.get_ref()).ok().filter(|port| *port > 0).ok_or_else(|| {
            self.mistake(number.span(), "not a port", "a number from 1 to 65535; FTP is at 21")
        })
    }

    fn shovel(&self, word: &Word) -> Result<Shovel, Mistake> {
        let help = "\"splice\", or a size of blocks from \"512\" to \"1M\": \"64k\"";
        word.get_ref().parse().map_err(|_| self.wrong(word, "shovel", help))
    }

    fn ports(&self, word: &Word) -> Result<RangeInclusive<u16>, Mistake> {
        let help = "the first and the last port, at least 1024: \"50000-50999\"";
        let range = || {
            let (first, last) = word.get_ref().split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (LOWEST_PORT <= first && first <= last).then_some(first..=last)
        };
        range().ok_or_else(|| self.wrong(word, "range of ports", help))
    }

    fn mode(&self, word: &Word) -> Result<Mode, Mistake> {
        match word.get_ref().as_str() {
            "passive" => Ok(Mode::Passive),
            "active" => Ok(Mode::Active),
            _ => Err(self.wrong(word, "way to data connections", "\"passive\" or \"active\"")),
        }
    }

    fn commands(&self, words: &[Word]) -> Result<Commands, Mistake> {
        let mut commands = Commands::none();
        for word in words {
            if !commands.add(word.get_ref()) {
                let help = format!("a command in capitals, or one of {}", verbs::groups());
                return Err(self.wrong(word, "command", &help));
            }
        }
        Ok(commands)
    }

    fn number(&self, number: Option<Number>, usual: u64, most: u64) -> Result<u64, Mistake> {
        match number {
            None => Ok(usual),
            Some(number) if (1..=most).contains(number.get_ref()) => Ok(*number.get_ref()),
            Some(number) => {
                let help = format!("a number from 1 to {most}");
                Err(self.mistake(number.span(), "out of range", &help))
            }
        }
    }

    fn count(&self, number: Option<Number>, usual: u64, most: u64) -> Result<usize, Mistake> {
        Ok(self.number(number, usual, most)? as usize)
    }

    fn seconds(&self, number: Option<Number>, usual: u64) -> Result<Duration, Mistake> {
        Ok(Duration::from_secs(self.number(number, usual, 86_400)?))
    }
}

/// Parses a network in canonical notation. An address alone is a network of one host.
fn network(text: &str) -> Option<IpNet> {
    let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    network.map(canonical_network)
}

#[cfg(test)]
mod tests;
