//! The interface between the worker, which speaks with strangers, and the guardian, which may
//! change the filter. The worker requests data connections of sessions that the guardian knows. A
//! request names neither rules nor hosts. So an attacker who controls the worker can open the
//! filter only between the two hosts of a session, for ports of FTP.

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

/// A request of the worker, sent as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Pass this data connection of a session. The address is the worker's own towards the server.
    /// The answer is a line: empty, or an error.
    Open(u32, IpAddr, Expected),
    /// End a session. The request has no answer.
    Close(u32),
}

/// The channel that an answer is sent to.
type Asker = oneshot::Sender<String>;

/// The channels of requests without an answer. The guardian answers in order.
type Waiting = Rc<RefCell<VecDeque<Asker>>>;

/// The worker's end. Several tasks may send requests at once; the guardian carries out requests
/// that arrive together in one change.
pub struct Gate {
    requests: mpsc::UnboundedSender<(Request, Option<Asker>)>,
}

impl Gate {
    /// Takes the end that the guardian has passed as standard output.
    ///
    /// # Errors
    /// Fails if standard output is not a stream socket, or if the system refuses a call.
    pub fn inherited() -> Result<Gate> {
        let stream = StdStream::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        stream.set_nonblocking(true)?;
        Gate::new(UnixStream::from_std(stream).context("guardian")?)
    }

    fn new(stream: UnixStream) -> Result<Gate> {
        let (answers, stream) = stream.into_split();
        let (requests, asked) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let told = spawn_local(deliver_answers(answers, waiting.clone()));
        spawn_local(async move {
            // if one task ends, the guardian has ended, so the other task is cancelled
            tokio::select! {
                _ = told => {}
                _ = write_requests(asked, stream, waiting) => {}
            }
        });
        Ok(Gate { requests })
    }

    /// Requests a data connection, and waits until its rules are active.
    ///
    /// # Errors
    /// Fails if the guardian refuses the request or has ended.
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

    /// Reports the end of a session. If the guardian has ended, it has removed the rules already.
    pub fn close(&self, id: u32) {
        let _ = self.requests.send((Request::Close(id), None));
    }

    /// Returns true if the guardian has ended.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

/// Writes requests in the order of their arrival.
async fn write_requests(
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

/// Sends each answer to the task that requested it. A task whose session has ended has dropped its
/// channel, so its answer is discarded.
async fn deliver_answers(stream: OwnedReadHalf, waiting: Waiting) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(answer) = lines.next_line().await? {
        let asker = waiting.borrow_mut().pop_front().context("an answer without a request")?;
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
                    // a task that no longer waits does not take the answer to another request
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
            while !gate.is_closed() {
                tokio::task::yield_now().await;
            }
            assert!(gate.open(3, proxy, expected).await.is_err());
        };
        LocalSet::new().run_until(check).await;
    }
}
