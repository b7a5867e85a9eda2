//! Whether a proxy does what its rules say, as clients see it: they get to the server where they
//! may, and nowhere else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::server::FTP;
use super::{Server, Talk, Way};
use crate::ftp::Session;
use crate::placement::Placement;
use crate::rules::Rules;
use crate::topology::{End, Lab};

/// How long who must not get through tries to.
const TRY: Duration = Duration::from_millis(300);

/// Sees that clients do not get past what is in between to a port of the server, nor to another
/// server by way of it.
///
/// # Errors
/// They do.
pub fn check_borders(lab: &Lab, talk: &Talk, closed: u16) -> anyhow::Result<()> {
    let client = lab.end(End::Client);
    let past = client.inside(|| gets_past(talk, closed))?;
    ensure!(!past, "clients get to port {closed}, which should be closed");
    let forbidden = client.inside(|| begins_with_another(talk))?;
    ensure!(!forbidden, "a session with a server that is not allowed begins");
    Ok(())
}

/// Has the server serve FTP at a port that no rule blocks and at some that are blocked, and sees
/// that sessions begin with the one, and with none of the others.
///
/// # Errors
/// They do not, or they do.
pub fn check_rules(lab: &Lab, talk: &Talk, rules: &Rules, at: Placement) -> anyhow::Result<()> {
    let ports = [vec![Rules::OPEN], rules.tried()].concat();
    let _server = Server::of_sessions(lab.end(talk.to), at, &ports)?;
    let client = lab.end(End::Client);
    let begin = |port| client.inside(|| begin(talk, talk.to.address(talk.family), port));
    begin(Rules::OPEN)?.with_context(|| format!("no rule blocks port {}", Rules::OPEN))?;
    for port in rules.tried() {
        ensure!(begin(port)?.is_err(), "port {port} is blocked, but a session with it begins");
    }
    Ok(())
}

/// Begins a session with a server, by the way there is; to a gateway the client names the server
/// and its port.
fn begin(talk: &Talk, server: IpAddr, port: u16) -> anyhow::Result<Session> {
    let door = talk.way.address(talk.to, talk.family);
    let user = talk.way.user(server);
    match talk.way {
        Way::Named => Session::begin((door, FTP).into(), &format!("{user}:{port}")),
        _ => Session::begin((door, port).into(), &user),
    }
}

/// Whether a port of a server can be reached at its own address, in spite of what is in between.
fn gets_past(talk: &Talk, port: u16) -> bool {
    let server = talk.to.address(talk.family);
    TcpStream::connect_timeout(&(server, port).into(), TRY).is_ok()
}

/// Whether a gateway lets an FTP session begin with a server that its rules do not name.
fn begins_with_another(talk: &Talk) -> bool {
    let other = match talk.to.address(talk.family) {
        IpAddr::V4(server) => IpAddr::from(Ipv4Addr::from(server.to_bits() + 1)),
        IpAddr::V6(server) => IpAddr::from(Ipv6Addr::from(server.to_bits() + 1)),
    };
    talk.way == Way::Named && begin(talk, other, FTP).is_ok()
}
