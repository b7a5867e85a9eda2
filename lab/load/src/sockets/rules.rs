//! Checks of a proxy's rules from the clients' side: clients reach the allowed server, and no
//! other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use fwlab_net::placement::Placement;
use fwlab_net::rules::Rules;
use fwlab_net::topology::{End, Lab};
use fwlab_net::traffic::{FTP, ServerAddress};

use super::{Server, Talk};
use crate::ftp::Session;

/// Timeout of a connection attempt that must fail.
const TRY: Duration = Duration::from_millis(300);

/// Checks that clients cannot bypass the proxy to port `closed` of the server, and cannot reach
/// another server through the proxy.
///
/// # Errors
/// Fails if clients can do either, or if the client's namespace no longer exists.
/// They do.
pub fn check_borders(lab: &Lab, talk: &Talk, closed: u16) -> anyhow::Result<()> {
    let client = lab.end(End::Client);
    let past = client.inside(|| gets_past(talk, closed))?;
    ensure!(!past, "clients reach port {closed} of the server past the proxy");
    let forbidden = client.inside(|| begins_with_another(talk))?;
    ensure!(!forbidden, "the proxy begins a session with a server that no rule allows");
    Ok(())
}

/// Serves FTP at an open port and at some blocked ports, and checks that a session begins with the
/// open port only.
///
/// # Errors
/// Fails if a rule is not applied, or if a server's port is taken.
/// They do not, or they do.
pub fn check_rules(lab: &Lab, talk: &Talk, rules: &Rules, at: Placement) -> anyhow::Result<()> {
    let ports = [vec![Rules::OPEN], rules.tried()].concat();
    let _server = Server::of_sessions(lab.end(talk.to), at, &ports)?;
    let client = lab.end(End::Client);
    let begin = |port| client.inside(|| begin(talk, talk.to.address(talk.family), port));
    begin(Rules::OPEN)?.with_context(|| {
        format!("no session begins at port {}, which no rule blocks", Rules::OPEN)
    })?;
    for port in rules.tried() {
        ensure!(
            begin(port)?.is_err(),
            "a session begins at port {port}, although a rule blocks it"
        );
    }
    Ok(())
}

/// Begins a session with a server, directly or by the proxy. A gateway takes the server and its
/// port from the user name.
fn begin(talk: &Talk, server: IpAddr, port: u16) -> anyhow::Result<Session> {
    let door = talk.way.address(talk.to, talk.family);
    let user = talk.way.user(server);
    match talk.way {
        ServerAddress::Named => Session::begin((door, FTP).into(), &format!("{user}:{port}")),
        _ => Session::begin((door, port).into(), &user),
    }
}

/// Returns true if a port can be reached at the server's own address, past the proxy.
fn gets_past(talk: &Talk, port: u16) -> bool {
    let server = talk.to.address(talk.family);
    TcpStream::connect_timeout(&(server, port).into(), TRY).is_ok()
}

/// Returns true if a gateway allows an FTP session with a server that its rules do not name.
fn begins_with_another(talk: &Talk) -> bool {
    let other = match talk.to.address(talk.family) {
        IpAddr::V4(server) => IpAddr::from(Ipv4Addr::from(server.to_bits() + 1)),
        IpAddr::V6(server) => IpAddr::from(Ipv6Addr::from(server.to_bits() + 1)),
    };
    talk.way == ServerAddress::Named && begin(talk, other, FTP).is_ok()
}
