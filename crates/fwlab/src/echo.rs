//! The answering side: sends back whatever it gets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use anyhow::Context;

/// Largest datagram or read.
const BUFFER: usize = 65_536;

/// Echoes on `port` until the process is killed. The sockets are IPv6 ones, which Linux lets
/// answer for IPv4 too. Prints `ready` once both are open.
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

/// A connection that breaks is its client's concern; the next one is served all the same.
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
            // An answer that cannot be sent is a lost datagram; the client counts those.
            Ok((length, client)) => {
                let _ = socket.send_to(&buffer[..length], client);
            }
            // An ICMP error about an earlier answer shows up here and means nothing.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => {
                eprintln!("fwlab: udp: {error}");
                return;
            }
        }
    }
}
