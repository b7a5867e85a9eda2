//! Between the worker, which speaks with the world and may do nothing else, and the guardian, which
//! may change the filter. The worker asks for data connections of sessions that the guardian knows,
//! and names neither rules nor hosts: an attacker who has taken the worker over can open the filter
//! between the two hosts of a session, for ports of FTP, and for nobody else.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use crate::proxy::rules::Expected;

/// What the worker asks for, as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Lets this data connection of a session through. The address is the worker's own, on its way
    /// to the server. The answer is a line, too: empty, or an error.
    Open(u32, IpAddr, Expected),
    /// Ends a session. That has no answer.
    Close(u32),
}

/// Where an answer goes.
type Asker = oneshot::Sender<String>;

/// Who waits for an answer: the guardian answers in order.
type Waiting = Rc<RefCell<VecDeque<Asker>>>;

/// The worker's end. Many may ask at once, and the guardian does in one change what has come
/// together.
pub struct Gate {
    requests: mpsc::UnboundedSender<(Request, Option<Asker>)>,
}

impl Gate {
    /// The end that the guardian has put in the place of standard output.
    ///
    /// # Errors
    /// It is no such thing.
    pub fn inherited() -> Result<Gate> {
        let stream = StdStream::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        stream.set_nonblocking(true)?;
        Gate::new(UnixStream::from_std(stream).context("guardian")?)
    }

    fn new(stream: UnixStream) -> Result<Gate> {
        let (answers, stream) = stream.into_split();
        let (requests, asked) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let told = spawn_local(hand_over(answers, waiting.clone()));
        spawn_local(async move {
            // the one ends with the other: nobody is at the other end any more
            tokio::select! {
                _ = told => {}
                _ = pass_on(asked, stream, waiting) => {}
            }
        });
        Ok(Gate { requests })
    }

    /// Asks for a data connection, and waits until it is let through.
    ///
    /// # Errors
    /// What the filter says, or the guardian is gone.
    pub async fn open(&self, id: u32, proxy: IpAddr, expected: Expected) -> Result<()> {
        let gone = || anyhow!("the guardian is gone");
        let (asker, answer) = oneshot::channel();
        let request = (Request::Open(id, proxy, expected), Some(asker));
        self.requests.send(request).map_err(|_| gone())?;
        match answer.await.map_err(|_| gone())?.trim_end() {
            "" => Ok(()),
            problem => bail!("{problem}"),
        }
    }

    /// Says that a session is over. If the guardian is gone, so are its rules.
    pub fn close(&self, id: u32) {
        let _ = self.requests.send((Request::Close(id), None));
    }

    /// Whether nobody is at the other end.
    pub fn is_gone(&self) -> bool {
        self.requests.is_closed()
    }
}

/// Writes requests as they come.
async fn pass_on(
    mut asked: mpsc::UnboundedReceiver<(Request, Option<Asker>)>,
    mut stream: OwnedWriteHalf,
    waiting: Waiting,
) -> Result<()> {
    while let Some((request, asker)) = asked.recv().await {
        waiting.borrow_mut().extend(asker);
        let mut line = serde_json::to_string(&request)?;
        line.push('\n');
        stream.write_all(line.as_bytes()).await?;
    }
    Ok(())
}

/// Hands answers to those who wait for them. Whose session has ended meanwhile does not.
async fn hand_over(stream: OwnedReadHalf, waiting: Waiting) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(answer) = lines.next_line().await? {
        let asker = waiting.borrow_mut().pop_front().context("an answer that nobody asked for")?;
        let _ = asker.send(answer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::Mode;
    use tokio::task::LocalSet;

    #[tokio::test]
    async fn answers_go_to_those_who_have_asked() {
        let check = async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let gate = Gate::new(ours).unwrap();
            let proxy = "192.0.2.1".parse().unwrap();
            let expected = Expected { mode: Mode::Active, port: 4000, told: 5000, extended: false };
            let guardian = async {
                let (requests, mut answers) = theirs.into_split();
                let mut requests = BufReader::new(requests).lines();
                for wanted in ["{\"Open\":[1,", "{\"Close\":1}", "{\"Open\":[2,"] {
                    let line = requests.next_line().await.unwrap().unwrap();
                    assert!(line.starts_with(wanted), "{line}");
                }
                answers.write_all(b"\nno\n").await.unwrap();
            };
            let asking = async {
                let first = async {
                    // who does not wait any more does not take another one's answer
                    tokio::select! {
                        biased;
                        _ = gate.open(1, proxy, expected) => unreachable!("it had no answer yet"),
                        () = tokio::task::yield_now() => gate.close(1),
                    }
                };
                first.await;
                gate.open(2, proxy, expected).await
            };
            let (answer, ()) = tokio::join!(asking, guardian);
            assert_eq!(answer.unwrap_err().to_string(), "no");
            while !gate.is_gone() {
                tokio::task::yield_now().await;
            }
            assert!(gate.open(3, proxy, expected).await.is_err());
        };
        LocalSet::new().run_until(check).await;
    }
}
