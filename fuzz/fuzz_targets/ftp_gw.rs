//! Input: any bytes of a client and a server of ftp-gw. The gateway connects to no address that its
//! rules deny, whatever the name. The server receives whole lines that a rule allows, and the
//! client receives whole lines. The lowest bit of the first byte of each piece selects the side;
//! the other bits are the length. The bytes of a name determine its addresses.
#![no_main]

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream as StdStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use libfuzzer_sys::fuzz_target;
use skipstep_ftp::gateway::config::Config;
use skipstep_ftp::gateway::network::{Later, Network};
use skipstep_ftp::gateway::{Gateway, Session};
use socket2::{SockRef, Socket};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// The configuration: some networks and users are denied, some commands are not allowed.
const CONFIG: &str = r#"
listen = ["127.0.0.1:2121"]
[[rule]]
action = "deny"
to = ["10.0.0.0/8", "fc00::/7"]
[[rule]]
action = "allow"
to = ["192.0.2.0/24", "2001:db8::/32", "*.example.org"]
users = ["a", "b"]
commands = ["@read", "STOR"]
"#;

/// Commands that no rule of [`CONFIG`] allows.
const NEVER: [&[u8]; 7] = [b"AUTH", b"PROT", b"CPSV", b"LPRT", b"SITE", b"DELE", b"REIN"];

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().expect("runtime");
    static DOOR: TcpListener = TcpListener::bind("127.0.0.1:0").expect("door");
    static CONFIGURED: Config = {
        let mut config = Config::parse("fuzz", CONFIG).expect("configuration");
        let short = Duration::from_millis(20);
        config.timeouts.connect = short;
        config.timeouts.login = short;
        config.timeouts.idle = short;
        config.timeouts.data = short;
        config
    };
}

/// Makes a connection within this process, and returns both ends.
fn connection() -> io::Result<(StdStream, StdStream)> {
    DOOR.with(|door| {
        let ours = StdStream::connect(door.local_addr()?)?;
        let (theirs, _) = door.accept()?;
        for stream in [&ours, &theirs] {
            // otherwise closed ports wait for a minute (TIME_WAIT)
            SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
            stream.set_nonblocking(true)?;
        }
        Ok((ours, theirs))
    })
}

/// The network of a session. The first connection is to a server that has already sent its bytes.
struct ScriptedNetwork {
    said: Vec<u8>,
    server: Arc<Mutex<Option<Socket>>>,
}

impl Network for ScriptedNetwork {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Later<'a, io::Result<Vec<SocketAddr>>> {
        let addresses = name.as_bytes().chunks(4).map(|bytes| {
            let mut four = [192, 0, 2, 7];
            four[..bytes.len()].copy_from_slice(bytes);
            let [a, b, c, d] = four;
            let mapped = Ipv6Addr::from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, b, c, d]);
            let choices: [IpAddr; 4] =
                [four.into(), mapped.into(), [127, b, c, d].into(), [192, 0, 2, d].into()];
            SocketAddr::new(choices[usize::from(a & 3)], port)
        });
        let addresses = addresses.collect();
        Box::pin(async { Ok(addresses) })
    }

    fn connect(&self, to: SocketAddr, _: IpAddr) -> Later<'_, Result<TcpStream>> {
        assert!(is_allowed(to.ip()), "connects to {to}");
        Box::pin(async {
            let mut server = self.server.lock().expect("one thread");
            ensure!(server.is_none(), "the only server has a connection");
            let (ours, mut theirs) = connection()?;
            // as much as the socket accepts
            let _ = theirs.write(&self.said);
            theirs.shutdown(std::net::Shutdown::Write)?;
            *server = Some(theirs.into());
            TcpStream::from_std(ours).map_err(|error| anyhow!("{error}"))
        })
    }
}

/// True if the rules of [`CONFIG`] allow the address, judged without the gateway's code.
fn is_allowed(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !v4.is_loopback()
                && !v4.is_unspecified()
                && !v4.is_multicast()
                && !v4.is_link_local()
                && !v4.is_broadcast()
                && v4.octets()[0] != 0
                && v4.octets()[0] != 10
        }
        IpAddr::V6(v6) => v6.segments()[..2] == [0x2001, 0xdb8],
    }
}

/// Splits the input into the bytes of each side.
fn sides(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    let mut rest = bytes;
    while let Some((&head, behind)) = rest.split_first() {
        let (said, behind) = behind.split_at(usize::from(head >> 1).min(behind.len()));
        rest = behind;
        sides[usize::from(head & 1)].extend_from_slice(said);
    }
    sides
}

/// Reads all bytes that have arrived at a side.
fn heard(mut stream: &StdStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // the end is an error if the other side has not shut its stream down
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Checks that a stream consists of whole lines, which end with CR LF and contain neither.
fn are_lines(bytes: &[u8]) {
    let mut before = b'\n';
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => assert_eq!(before, b'\r', "LF alone at {index}"),
            0 => assert_eq!(before, b'\r', "NUL alone at {index}"),
            _ => assert_ne!(before, b'\r', "CR alone at {index}"),
        }
        before = *byte;
    }
    assert!(bytes.is_empty() || before == b'\n', "half a line");
}

fuzz_target!(|bytes: &[u8]| {
    let [client, said] = sides(bytes);
    let server = Arc::new(Mutex::new(None));
    let network = ScriptedNetwork { said, server: server.clone() };
    let config = CONFIGURED.with(Config::clone);
    let gateway = Arc::new(Gateway::new(config, None, Box::new(network)));
    let (ours, mut theirs) = connection().expect("loopback");
    let _ = theirs.write(&client);
    theirs.shutdown(std::net::Shutdown::Write).expect("client");
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let ours = TcpStream::from_std(ours).expect("client");
            let session = Session::new(gateway, 1, ours, false).expect("a client that is there");
            session.run().await;
        });
    });
    are_lines(&heard(&theirs));
    let Some(server) = server.lock().expect("one thread").take() else { return };
    let commands = heard(&StdStream::from(server));
    are_lines(&commands);
    for line in commands.split(|byte| *byte == b'\n') {
        let verb = line.get(..4).unwrap_or_default();
        assert!(!NEVER.contains(&verb), "{}", line.escape_ascii());
        let is_user = line.strip_prefix(b"USER ");
        assert!(is_user.is_none_or(|user| [&b"a\r"[..], b"b\r"].contains(&user)));
    }
});
