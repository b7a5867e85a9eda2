//! Tests of whole sessions. Each test plays the server and the network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::gateway::config::Config;
use crate::gateway::network::{Later, Network};
use crate::gateway::session::{Gateway, Session};

/// Number of bytes that an endless server sends at most, so that the test ends if a limit is
/// missing.
const MOST_SENT: usize = 16 << 20;

/// A network in which every name has the same addresses, and all addresses lead to one server.
#[derive(Clone)]
struct Played {
    addresses: Vec<SocketAddr>,
    server: SocketAddr,
    /// The names that were resolved, and the endpoints that were connected to.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Network for Played {
    fn resolve<'a>(&'a self, name: &'a str, _: u16) -> Later<'a, io::Result<Vec<SocketAddr>>> {
        self.asked.lock().unwrap().push(name.to_string());
        Box::pin(async { Ok(self.addresses.clone()) })
    }

    fn connect(&self, to: SocketAddr, _: IpAddr) -> Later<'_, Result<TcpStream>> {
        self.asked.lock().unwrap().push(to.to_string());
        Box::pin(async { TcpStream::connect(self.server).await.context("server") })
    }
}

/// A client of a gateway, and the listening socket of the only server.
struct Stage {
    client: BufReader<TcpStream>,
    server: TcpListener,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    /// Starts a session with the rules of `config`. All names have `addresses`.
    async fn new(config: &str, addresses: &[&str]) -> Stage {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let asked = Arc::default();
        let network = Played {
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            server: server.local_addr().unwrap(),
            asked: Arc::clone(&asked),
        };
        let config = Config::parse("gw", &format!("listen = [\"[::1]:21\"]\n{config}")).unwrap();
        let gateway = Arc::new(Gateway::new(config, None, Box::new(network)));
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(door.local_addr().unwrap()).await.unwrap();
        let (stream, _) = door.accept().await.unwrap();
        tokio::spawn(Session::new(gateway, 1, stream, false).unwrap().run());
        Stage { client: BufReader::new(client), server, asked }
    }

    async fn say(&mut self, line: &str) {
        self.client.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
    }

    /// Returns the next line that begins with `start`.
    async fn hear(&mut self, start: &str) -> String {
        let hearing = async {
            let mut heard = Vec::new();
            loop {
                let mut line = String::new();
                let length = self.client.read_line(&mut line).await.unwrap();
                assert!(length > 0, "no line begins with {start}: {heard:?}");
                if line.starts_with(start) {
                    return line;
                }
                heard.push(line);
                heard.truncate(10);
            }
        };
        timeout(Duration::from_secs(20), hearing).await.expect("a line in time")
    }

    /// Logs in, and returns the server's end of its control connection.
    async fn log_in(&mut self) -> BufReader<TcpStream> {
        self.hear("220").await;
        self.say("USER ftp@192.0.2.7").await;
        let (stream, _) = self.server.accept().await.unwrap();
        let mut server = BufReader::new(stream);
        tell(&mut server, "220 hello\r\n").await;
        assert_eq!(told(&mut server).await, "USER ftp\r\n");
        tell(&mut server, "230 in\r\n").await;
        self.hear("230").await;
        server
    }
}

async fn tell(server: &mut BufReader<TcpStream>, text: &str) {
    server.write_all(text.as_bytes()).await.unwrap();
}

async fn told(server: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    server.read_line(&mut line).await.unwrap();
    line
}

/// Sends the same text until the gateway closes the connection.
fn tell_without_end(mut server: BufReader<TcpStream>, text: &'static str) {
    tokio::spawn(async move {
        let block = text.repeat(4096 / text.len());
        let mut sent = 0;
        while sent < MOST_SENT && server.write_all(block.as_bytes()).await.is_ok() {
            sent += block.len();
        }
    });
}

const EVERYBODY: &str = "[[rule]]\naction = \"allow\"\n";

#[tokio::test]
async fn the_address_that_was_judged_is_the_one_connected_to() {
    let rules = "[[rule]]\naction = \"deny\"\nto = [\"10.0.0.0/8\"]\n\
                 [[rule]]\naction = \"allow\"\nto = [\"*.example.org\"]\n";
    let addresses =
        ["127.0.0.1:21", "[::ffff:10.0.0.1]:21", "[64:ff9b::a00:1]:21", "[::ffff:192.0.2.7]:21"];
    let mut stage = Stage::new(rules, &addresses).await;
    stage.hear("220").await;
    stage.say("USER ftp@a.example.org").await;
    let (stream, _) = stage.server.accept().await.unwrap();
    let mut server = BufReader::new(stream);
    tell(&mut server, "220 hello\r\n").await;
    assert_eq!(told(&mut server).await, "USER ftp\r\n");
    assert_eq!(*stage.asked.lock().unwrap(), ["a.example.org", "192.0.2.7:21"]);
}

#[tokio::test]
async fn a_name_of_denied_addresses_alone_leads_nowhere() {
    for addresses in [&["127.0.0.1:21"][..], &["[::ffff:127.0.0.1]:21", "0.0.0.0:21"], &[]] {
        let mut stage = Stage::new(EVERYBODY, addresses).await;
        stage.hear("220").await;
        stage.say("USER ftp@a.example.org").await;
        stage.hear("530").await;
        assert_eq!(*stage.asked.lock().unwrap(), ["a.example.org"]);
    }
}

#[tokio::test]
async fn the_end_of_a_transfer_is_bounded() {
    let mut stage = Stage::new(EVERYBODY, &[]).await;
    let mut server = stage.log_in().await;
    stage.say("EPSV").await;
    assert_eq!(told(&mut server).await, "PASV\r\n");
    tell(&mut server, "227 (192,0,2,7,200,13)\r\n").await;
    let reply = stage.hear("229").await;
    let (_data, _) = stage.server.accept().await.unwrap();
    assert_eq!(stage.asked.lock().unwrap().last().unwrap(), "192.0.2.7:51213");
    let port = reply.split('|').nth(3).unwrap().parse().unwrap();
    let _own_data = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stage.say("RETR large").await;
    assert_eq!(told(&mut server).await, "RETR large\r\n");
    tell(&mut server, "150 here\r\n").await;
    stage.hear("150").await;
    tell_without_end(server, "226-more\r\n");
    let end = stage.hear("421").await;
    assert!(end.contains("limit of 1000 lines"), "{end}");
}

#[tokio::test]
async fn a_list_of_features_is_bounded() {
    let mut stage = Stage::new(EVERYBODY, &[]).await;
    let mut server = stage.log_in().await;
    stage.say("FEAT").await;
    assert_eq!(told(&mut server).await, "FEAT\r\n");
    tell(&mut server, "211-Features\r\n").await;
    tell_without_end(server, " SIZE\r\n");
    let end = stage.hear("421").await;
    assert!(end.contains("limit of 1000 lines"), "{end}");
}

#[tokio::test]
async fn every_other_answer_is_bounded() {
    // lines of one reply, preliminary replies, and lines without a code
    for text in ["214-more\r\n", "150 wait\r\n", "\r\n"] {
        let mut stage = Stage::new(EVERYBODY, &[]).await;
        let mut server = stage.log_in().await;
        stage.say("HELP").await;
        assert_eq!(told(&mut server).await, "HELP\r\n");
        tell_without_end(server, text);
        let end = stage.hear("421").await;
        assert!(end.contains("limit of 1048576 bytes"), "{text}: {end}");
    }
}

#[tokio::test]
async fn a_line_of_a_client_is_bounded() {
    let mut stage = Stage::new(EVERYBODY, &[]).await;
    stage.hear("220").await;
    // the gateway may close the connection during this write
    let _ = stage.client.write_all(&[b'x'; 5000]).await;
    let end = stage.hear("421").await;
    assert!(end.contains("a line of more than 4096 bytes"), "{end}");
}
