//! A session of the FTP server: any user may log in, file N has N bytes, and uploads are discarded.

use std::io::{BufRead, BufReader, ErrorKind, Read, Result, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use fwlab_net::traffic::DATA_PORTS;

use super::listener::{PATIENCE, accept};

/// Source port of active data connections.
const DATA: u16 = 20;

/// Bytes of the largest file.
const LARGEST: u64 = 1 << 40;

/// Longest command line in bytes.
const LINE: u64 = 1024;

/// The way in which the next data connection is made.
enum Data {
    Nothing,
    Accept(TcpListener),
    Connect(SocketAddr),
}

impl Data {
    /// Makes the data connection, at most once.
    fn open(&mut self) -> Result<TcpStream> {
        let stream = match std::mem::replace(self, Data::Nothing) {
            Data::Nothing => return Err(ErrorKind::NotConnected.into()),
            Data::Accept(listener) => accept(&listener, PATIENCE)?,
            Data::Connect(client) => connect(client)?,
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

/// Connects to a client from port 20, as filters expect, if the process may use that port.
fn connect(client: SocketAddr) -> Result<TcpStream> {
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket,
        sockopt,
    };
    use nix::sys::time::TimeVal;
    use std::os::fd::AsRawFd;

    let (family, any): (_, IpAddr) = match client {
        SocketAddr::V4(_) => (AddressFamily::Inet, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::Inet6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let data = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&data, sockopt::ReuseAddr, &true)?;
    setsockopt(&data, sockopt::SendTimeout, &TimeVal::new(PATIENCE.as_secs() as i64, 0))?;
    // without root the connection has another port, but no filter is in between then
    let _ = bind(data.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(any, DATA)));
    connect(data.as_raw_fd(), &SockaddrStorage::from(client))?;
    Ok(data.into())
}

/// Serves one session.
pub(super) fn serve(client: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    let mut lines = BufReader::with_capacity(LINE as usize, client.try_clone()?);
    let mut data = Data::Nothing;
    client.write_all(b"220 fwlab\r\n")?;
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LINE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end();
        let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
        let reply = match &verb.to_ascii_uppercase()[..] {
            "USER" => "331 any password".to_owned(),
            "PASS" => "230 welcome".to_owned(),
            "TYPE" | "MODE" | "STRU" | "NOOP" | "OPTS" => "200 very well".to_owned(),
            "SYST" => "215 UNIX Type: L8".to_owned(),
            "PWD" => "257 \"/\"".to_owned(),
            "CWD" => "250 very well".to_owned(),
            "SIZE" => match size_of(argument) {
                Some(size) => format!("213 {size}"),
                None => "550 a file is called by its size".to_owned(),
            },
            "EPSV" | "PASV" => listen(client.local_addr()?, verb, &mut data)?,
            "EPRT" | "PORT" => match active(verb, argument) {
                Some(address) => {
                    data = Data::Connect(address);
                    "200 very well".to_owned()
                }
                None => "501 no address".to_owned(),
            },
            "RETR" => match size_of(argument) {
                Some(size) => transfer(client, &mut data, |to| give(to, size, buffer))?,
                None => "550 a file is called by its size".to_owned(),
            },
            "STOR" => transfer(client, &mut data, |from| take(from, buffer))?,
            "QUIT" => return client.write_all(b"221 bye\r\n"),
            _ => "502 unknown".to_owned(),
        };
        client.write_all(format!("{reply}\r\n").as_bytes())?;
    }
}

/// Returns the bytes of a file. Folders before its name are ignored.
fn size_of(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok().filter(|&size| size <= LARGEST)
}

/// Opens a port for a passive data connection, and returns the reply that names it.
fn listen(own: SocketAddr, verb: &str, data: &mut Data) -> Result<String> {
    static TURN: AtomicU16 = AtomicU16::new(0);
    let count = *DATA_PORTS.end() - *DATA_PORTS.start() + 1;
    let mut free = (0..count).filter_map(|_| {
        let port = DATA_PORTS.start() + TURN.fetch_add(1, Ordering::Relaxed) % count;
        Some((TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).ok()?, port))
    });
    let Some((listener, port)) = free.next() else {
        return Ok("425 all ports are taken".to_owned());
    };
    *data = Data::Accept(listener);
    Ok(match own.ip().to_canonical() {
        IpAddr::V4(address) if verb.eq_ignore_ascii_case("PASV") => {
            let [a, b, c, d] = address.octets();
            format!("227 here ({a},{b},{c},{d},{},{})", port >> 8, port & 0xff)
        }
        _ => format!("229 here (|||{port}|)"),
    })
}

/// Parses the address of an active data connection.
fn active(verb: &str, argument: &str) -> Option<SocketAddr> {
    if verb.eq_ignore_ascii_case("EPRT") {
        let mut parts = argument.split(argument.chars().next()?).skip(2);
        return Some((parts.next()?.parse::<IpAddr>().ok()?, parts.next()?.parse().ok()?).into());
    }
    let numbers: Option<Vec<u8>> = argument.split(',').map(|part| part.parse().ok()).collect();
    let [a, b, c, d, high, low] = numbers?[..] else { return None };
    Some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into())
}

/// Runs `work` on the data connection, and returns the final reply.
fn transfer(
    client: &mut TcpStream,
    data: &mut Data,
    work: impl FnOnce(&mut TcpStream) -> Result<()>,
) -> Result<String> {
    client.write_all(b"150 it comes\r\n")?;
    let end = data.open().and_then(|mut stream| work(&mut stream));
    Ok(match end {
        Ok(()) => "226 done".to_owned(),
        Err(error) => format!("426 {error}"),
    })
}

fn give(to: &mut TcpStream, size: u64, buffer: &[u8]) -> Result<()> {
    let mut left = size;
    while left > 0 {
        let length = left.min(buffer.len() as u64);
        to.write_all(&buffer[..length as usize])?;
        left -= length;
    }
    Ok(())
}

fn take(from: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    while from.read(buffer)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftp::Session;

    #[test]
    fn files_have_the_size_of_their_name() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            serve(&mut client, &mut [0; 1000]).unwrap();
        });
        let mut session = Session::begin(address, "anonymous").unwrap();
        for active in [false, true] {
            session.active = active;
            for size in [0, 1, 999, 12_345] {
                assert_eq!(session.fetch(&format!("/pub/{size}"), &mut [0; 512]).unwrap(), size);
            }
        }
        assert!(session.fetch("readme", &mut [0; 512]).unwrap_err().to_string().contains("550"));
        session.end().unwrap();
        server.join().unwrap();
    }

    #[test]
    fn active_addresses_are_parsed() {
        let address = "192.0.2.1:513".parse().ok();
        assert_eq!(active("PORT", "192,0,2,1,2,1"), address);
        assert_eq!(active("eprt", "|1|192.0.2.1|513|"), address);
        assert_eq!(active("EPRT", "|2|2001:db8::1|513|"), "[2001:db8::1]:513".parse().ok());
        for wrong in ["", "|", "192,0,2,1,2", "192,0,2,1,2,300"] {
            assert_eq!(active("PORT", wrong), None);
            assert_eq!(active("EPRT", wrong), None);
        }
    }
}
