//! The echo server of workloads: sends back all data that it receives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use anyhow::Context;

/// Size of the largest datagram or read in bytes.
const BUFFER: usize = 65_536;

/// Echoes on `port`, by TCP and UDP, until the process is killed. Prints `ready` once both sockets
/// are open. Linux lets the IPv6 sockets answer for IPv4, too.
///
/// # Errors
/// Fails if the port is taken.
pub fn serve(port: u16) -> anyhow::Result<()> {
    let any = (Ipv6Addr::UNSPECIFIED, port);
    let tcp = TcpListener::bind(any).with_context(|| format!("tcp port {port}"))?;
    let udp = UdpSocket::bind(any).with_context(|| format!("udp port {port}"))?;
    println!("ready");
    thread::spawn(move || answer_datagrams(&udp));
    for connection in tcp.incoming() {
        match connection {
            Ok(connection) => {
                thread::spawn(move || answer_stream(connection));
            }
            Err(error) => eprintln!("fwlab: accept: {error}"),
        }
    }
    Ok(())
}

/// Echoes one connection to its end. A broken connection concerns its client only.
fn answer_stream(mut connection: TcpStream) {
    let mut buffer = vec![0; BUFFER];
    let _ = connection.set_nodelay(true);
    while let Ok(length @ 1..) = connection.read(&mut buffer) {
        if connection.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

fn answer_datagrams(socket: &UdpSocket) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match socket.recv_from(&mut buffer) {
            // An answer that cannot be sent is a lost datagram, which the client counts.
            Ok((length, client)) => {
                let _ = socket.send_to(&buffer[..length], client);
            }
            // An ICMP error for an earlier answer.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => {
                eprintln!("fwlab: udp: {error}");
                return;
            }
        }
    }
}
