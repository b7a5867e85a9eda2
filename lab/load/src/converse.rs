//! `fwlab converse` and `fwlab answer`: a client that sends and receives given numbers of bytes,
//! and its server. Workloads that are made from captures consist of such conversations.
//!
//! The client's data begins with two 64-bit numbers in network byte order: the bytes that the
//! client sends in all, these 16 included, and the bytes that it requests.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::request_response::Protocol;

/// Bytes of the two numbers.
const HEAD: usize = 16;

/// Size of a buffer in bytes.
const BLOCK: usize = 65_536;

/// Payload of the largest datagram that fits an MTU of 1500, in bytes.
const DATAGRAM: u64 = 1472;

/// Timeout of a connection attempt, and of each read and write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time after which a datagram counts as lost.
const LOST: Duration = Duration::from_millis(500);

/// Arguments of `fwlab converse`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Transport protocol
    protocol: Protocol,
    /// Address and port of a `fwlab answer`
    server: SocketAddr,
    /// Pause before the conversation in seconds, 0 to 86400
    #[arg(long, default_value_t = 0.0, value_parser = moments)]
    after: f64,
    /// Minimum duration of the conversation in seconds, 0 to 86400
    #[arg(long, default_value_t = 0.0, value_parser = moments)]
    stays: f64,
    /// Number of bytes to send, raised to 16 if it is smaller; TCP sends none if --sends and --gets
    /// are 0
    #[arg(long, default_value_t = 0)]
    sends: u64,
    /// Number of bytes to receive
    #[arg(long, default_value_t = 0)]
    gets: u64,
    /// Number of UDP datagrams; each carries an equal share of the bytes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    datagrams: u64,
}

fn moments(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be 0 to 86400 seconds".to_owned()),
    }
}

/// Sends and receives as the arguments say.
///
/// # Errors
/// Fails if the server cannot be reached or answers with fewer bytes, or if no datagram is
/// answered.
pub fn converse(arguments: &Arguments) -> anyhow::Result<()> {
    thread::sleep(Duration::from_secs_f64(arguments.after));
    let begin = Instant::now();
    let stays = Duration::from_secs_f64(arguments.stays);
    let server = arguments.server;
    match arguments.protocol {
        Protocol::Tcp => {
            let stream = TcpStream::connect_timeout(&server, PATIENCE);
            let mut stream = stream.with_context(|| format!("no connection to {server}"))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            exchange(&mut stream, arguments).with_context(|| server.to_string())?;
            thread::sleep(stays.saturating_sub(begin.elapsed()));
        }
        Protocol::Udp => exchange_datagrams(arguments, begin, stays)?,
    }
    Ok(())
}

fn exchange(stream: &mut TcpStream, arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { sends, gets, .. } = *arguments;
    if sends == 0 && gets == 0 {
        return Ok(());
    }
    let sends = sends.max(HEAD as u64);
    stream.write_all(&head(sends, gets))?;
    let copied = std::io::copy(&mut std::io::repeat(b's').take(sends - HEAD as u64), stream)?;
    ensure!(copied + HEAD as u64 == sends, "only {copied} of {sends} bytes were sent");
    let got = std::io::copy(&mut stream.take(gets), &mut std::io::sink())?;
    ensure!(got == gets, "only {got} of {gets} bytes arrived");
    Ok(())
}

/// Sends datagrams at equal intervals over `stays`, and waits for an answer to each.
fn exchange_datagrams(
    arguments: &Arguments,
    begin: Instant,
    stays: Duration,
) -> anyhow::Result<()> {
    let Arguments { server, sends, gets, datagrams, .. } = *arguments;
    let own = if server.is_ipv4() {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(own).context("udp")?;
    socket.connect(server).with_context(|| server.to_string())?;
    socket.set_read_timeout(Some(LOST))?;
    let share = |bytes: u64| bytes.div_ceil(datagrams).min(DATAGRAM);
    let (say, get) = (share(sends).max(HEAD as u64), share(gets));
    let mut said = vec![b's'; say as usize];
    said[..HEAD].copy_from_slice(&head(say, get));
    let mut answer = vec![0; BLOCK];
    let mut answered = 0;
    for number in 0..datagrams {
        let due = stays.mul_f64(number as f64 / datagrams as f64);
        thread::sleep(due.saturating_sub(begin.elapsed()));
        // a refused datagram counts as lost, like an unanswered one
        if socket.send(&said).is_ok() && get > 0 {
            answered += u64::from(socket.recv(&mut answer).is_ok());
        }
    }
    ensure!(get == 0 || answered > 0, "{server}: none of {datagrams} datagrams was answered");
    Ok(())
}

fn head(sends: u64, gets: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&sends.to_be_bytes());
    head[8..].copy_from_slice(&gets.to_be_bytes());
    head
}

/// Answers at these ports, by TCP and UDP, until the process is killed. Prints `ready` once all
/// sockets are open.
///
/// # Errors
/// Fails if a port is taken.
pub fn answer(ports: &[u16]) -> anyhow::Result<()> {
    let mut threads = Vec::new();
    for &port in ports {
        // Linux lets IPv6 sockets answer for IPv4, too
        let any = (Ipv6Addr::UNSPECIFIED, port);
        let tcp = TcpListener::bind(any).with_context(|| format!("tcp port {port}"))?;
        let udp = UdpSocket::bind(any).with_context(|| format!("udp port {port}"))?;
        threads.push(thread::spawn(move || answer_streams(&tcp)));
        threads.push(thread::spawn(move || answer_datagrams(&udp)));
    }
    println!("ready");
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    Ok(())
}

fn answer_streams(listener: &TcpListener) {
    for connection in listener.incoming() {
        match connection {
            // a broken connection concerns its client only
            Ok(connection) => drop(thread::spawn(move || answer_stream(connection))),
            Err(error) => eprintln!("fwlab: accept: {error}"),
        }
    }
}

fn answer_stream(mut connection: TcpStream) -> std::io::Result<()> {
    let mut said = [0; HEAD];
    connection.read_exact(&mut said)?;
    let (sends, gets) = numbers(&said);
    let rest = sends.saturating_sub(HEAD as u64);
    std::io::copy(&mut (&connection).take(rest), &mut std::io::sink())?;
    std::io::copy(&mut std::io::repeat(b'g').take(gets), &mut connection)?;
    // clients close first, so the ports in TIME-WAIT are theirs
    std::io::copy(&mut connection, &mut std::io::sink())?;
    Ok(())
}

fn answer_datagrams(socket: &UdpSocket) {
    let mut buffer = vec![0; BLOCK];
    let answer = [b'g'; DATAGRAM as usize];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, client)) => {
                let Some(said) = buffer[..length].first_chunk() else { continue };
                let (_, gets) = numbers(said);
                if gets > 0 {
                    // an answer that cannot be sent is a lost datagram
                    let _ = socket.send_to(&answer[..gets.min(DATAGRAM) as usize], client);
                }
            }
            // an ICMP error for an earlier answer
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => {
                eprintln!("fwlab: udp: {error}");
                return;
            }
        }
    }
}

fn numbers(head: &[u8; HEAD]) -> (u64, u64) {
    let head = u128::from_be_bytes(*head);
    ((head >> 64) as u64, head as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(protocol: Protocol, server: SocketAddr) -> Arguments {
        let (sends, gets, datagrams) = (5000, 70_000, 3);
        Arguments { protocol, server, after: 0.0, stays: 0.1, sends, gets, datagrams }
    }

    #[test]
    fn a_client_gets_what_it_wants_and_stays_as_long() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || answer_streams(&listener));
        let socket = UdpSocket::bind(server).unwrap();
        thread::spawn(move || answer_datagrams(&socket));
        let begin = Instant::now();
        converse(&talk(Protocol::Tcp, server)).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(100));
        converse(&Arguments { sends: 0, gets: 0, ..talk(Protocol::Tcp, server) }).unwrap();
        converse(&talk(Protocol::Udp, server)).unwrap();
    }

    #[test]
    fn a_server_that_gives_less_is_an_error() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 5000]).unwrap();
            stream.write_all(b"little").unwrap();
        });
        let said = format!("{:#}", converse(&talk(Protocol::Tcp, server)).unwrap_err());
        assert!(said.ends_with("only 6 of 70000 bytes arrived"), "{said}");
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        assert_eq!(numbers(&head(7, u64::MAX)), (7, u64::MAX));
    }
}
