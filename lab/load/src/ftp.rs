//! The FTP load: clients that log in, fetch a file and log out, one session after the other. Data
//! connections are passive (`EPSV`, which every proxy supports) or active (`EPRT`).

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// Time without a byte after which a session has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Size of a read in bytes.
const BLOCK: usize = 256 * 1024;

/// Arguments of the load.
#[derive(Debug, Clone, clap::Args)]
pub struct Load {
    /// Address and port of the server, or of the proxy in front of it
    server: SocketAddr,
    /// User to log in as
    #[arg(long, default_value = "anonymous")]
    user: String,
    /// File to fetch
    #[arg(long, default_value = "small")]
    file: String,
    /// Number of simultaneous clients, 1 to 1000
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Duration in seconds, 0.01 to 3600; each client finishes its session and has at least one
    #[arg(long, default_value_t = 1.0, value_parser = crate::seconds)]
    seconds: f64,
    /// Number of sessions of each client, instead of a duration
    #[arg(long, conflicts_with = "seconds")]
    sessions: Option<u32>,
    /// Use active mode, in which the server opens the data connections
    #[arg(long)]
    active: bool,
    /// Number of idle sessions to log in; they send nothing more and stay until fwlab is killed
    #[arg(long, conflicts_with_all = ["file", "clients", "seconds", "sessions", "active"])]
    idle: Option<u32>,
}

/// Totals of a load.
pub struct LoadTotals {
    sessions: u64,
    bytes: u64,
    elapsed: Duration,
}

/// Runs the load and prints its rates. With `--idle` it only logs the sessions in, and never
/// returns.
///
/// # Errors
/// Fails if a session fails.
pub fn run(load: &Load) -> anyhow::Result<()> {
    match load.idle {
        Some(count) => stay(load, count),
        None => {
            println!("{}", measure(load)?);
            Ok(())
        }
    }
}

fn measure(load: &Load) -> anyhow::Result<LoadTotals> {
    let (sessions, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let duration = Duration::from_secs_f64(load.seconds);
    let client = || -> anyhow::Result<()> {
        let mut block = vec![0; BLOCK];
        for done in 1.. {
            let mut session = Session::begin(load.server, &load.user)?;
            session.active = load.active;
            bytes.fetch_add(session.fetch(&load.file, &mut block)?, Relaxed);
            session.end()?;
            sessions.fetch_add(1, Relaxed);
            if load.sessions.map_or(start.elapsed() >= duration, |most| done >= most) {
                break;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..load.clients).map(|_| scope.spawn(client)).collect();
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client's thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let (sessions, bytes) = (sessions.into_inner(), bytes.into_inner());
    Ok(LoadTotals { sessions, bytes, elapsed: start.elapsed() })
}

fn stay(load: &Load, count: u32) -> anyhow::Result<()> {
    let sessions = (0..count).map(|_| Session::begin(load.server, &load.user));
    let _sessions = sessions.collect::<Result<Vec<_>, _>>()?;
    println!("ready");
    loop {
        thread::park();
    }
}

/// An FTP session that is logged in.
pub(crate) struct Session {
    control: BufReader<TcpStream>,
    server: SocketAddr,
    /// True if the server opens the data connections.
    pub(crate) active: bool,
}

impl Session {
    /// Connects to a server and logs in.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or if it refuses the user.
    pub(crate) fn begin(server: SocketAddr, user: &str) -> anyhow::Result<Session> {
        let control = connect(server)?;
        let mut session =
            Session { control: BufReader::with_capacity(1024, control), server, active: false };
        session.expect(220)?;
        if session.send_command(&format!("USER {user}"), &[230, 331])?.0 == 331 {
            session.send_command("PASS fwlab@", &[230])?;
        }
        session.send_command("TYPE I", &[200])?;
        Ok(session)
    }

    /// Fetches a file and returns its length in bytes.
    ///
    /// # Errors
    /// Fails if the server refuses the file, or if the control or data connection breaks.
    pub(crate) fn fetch(&mut self, file: &str, block: &mut [u8]) -> anyhow::Result<u64> {
        let mut data = if self.active { self.accept(file)? } else { self.connect(file)? };
        let mut bytes = 0;
        loop {
            match data.read(block)? {
                0 => break,
                length => bytes += length as u64,
            }
        }
        self.expect(226)?;
        Ok(bytes)
    }

    /// Requests a file over a data connection that the client opens.
    fn connect(&mut self, file: &str) -> anyhow::Result<TcpStream> {
        let (_, text) = self.send_command("EPSV", &[229])?;
        let port = text.split('|').nth(3).and_then(|port| port.parse().ok());
        let port = port.with_context(|| format!("no port in '{text}'"))?;
        let data = connect(SocketAddr::new(self.server.ip(), port))?;
        self.send_command(&format!("RETR {file}"), &[125, 150])?;
        Ok(data)
    }

    /// Requests a file over a data connection that the server opens.
    fn accept(&mut self, file: &str) -> anyhow::Result<TcpStream> {
        let own = self.control.get_ref().local_addr()?.ip().to_canonical();
        let listener = TcpListener::bind((own, 0))?;
        let family = if own.is_ipv4() { 1 } else { 2 };
        let port = listener.local_addr()?.port();
        self.send_command(&format!("EPRT |{family}|{own}|{port}|"), &[200])?;
        self.send_command(&format!("RETR {file}"), &[125, 150])?;
        let data =
            crate::sockets::listener::accept(&listener, PATIENCE).context("no data connection")?;
        data.set_read_timeout(Some(PATIENCE))?;
        Ok(data)
    }

    /// Logs out. The client closes first, so that it has the port pair in TIME-WAIT. A proxy with
    /// diverted packets refuses a connection whose port pair it has in TIME-WAIT.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if the server does not answer with 221.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.control.get_mut().write_all(b"QUIT\r\n")?;
        self.control.get_ref().shutdown(Shutdown::Write)?;
        self.expect(221)
    }

    fn send_command(&mut self, command: &str, wanted: &[u16]) -> anyhow::Result<(u16, String)> {
        self.control.get_mut().write_all(format!("{command}\r\n").as_bytes())?;
        let (code, text) = self.reply()?;
        ensure!(wanted.contains(&code), "{}: '{command}' was answered {code} {text}", self.server);
        Ok((code, text))
    }

    fn expect(&mut self, wanted: u16) -> anyhow::Result<()> {
        let (code, text) = self.reply()?;
        ensure!(code == wanted, "{}: expected reply {wanted}, got {code} {text}", self.server);
        Ok(())
    }

    /// Returns the code and the text of the last line of a reply.
    fn reply(&mut self) -> anyhow::Result<(u16, String)> {
        loop {
            let mut line = String::new();
            if self.control.read_line(&mut line).with_context(|| self.server.to_string())? == 0 {
                bail!("{} has closed the connection", self.server);
            }
            if let Some((code, text)) = line.trim_end().split_once(' ')
                && let Ok(code) = code.parse()
            {
                return Ok((code, text.to_string()));
            }
        }
    }
}

fn connect(to: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE).with_context(|| to.to_string())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl fmt::Display for LoadTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let (sessions, bytes) = (self.sessions as f64 / seconds, self.bytes as f64 / seconds);
        write!(f, "{sessions:.1} sessions/s, {bytes:.0} bytes/s")
    }
}
