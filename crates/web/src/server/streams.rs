//! Logged and dropped packets as they come, as server-sent events.
//!
//! All pages share one pfctl for each kind of stream. It runs while a page reads.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::Viewer;
use super::api::error;
use super::broker::Broker;
use super::serve::Server;
use crate::request::{Envelope, Reply, Request};

/// Time for which records are collected before the pages get them.
const INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of records that the pages get for an interval; the rest is counted.
const MAX_RECORDS: usize = 1500;
/// Number of events that a slow page may be behind.
const MAX_BEHIND: usize = 16;
/// Time without pages after which pfctl is ended.
const MAX_IDLE: u32 = 25;

/// A stream that all pages share.
pub struct Feed {
    request: Request,
    events: Sender<Arc<str>>,
    is_running: Mutex<bool>,
}

impl Feed {
    /// Returns the feed of `log` or `drops`, which does not run yet.
    pub fn new(request: Request) -> Arc<Feed> {
        let (events, _) = broadcast::channel(MAX_BEHIND);
        Arc::new(Feed { request, events, is_running: Mutex::new(false) })
    }

    /// Returns a receiver of events, and starts the feed unless it runs.
    fn subscribe(self: &Arc<Self>, broker: &Broker) -> Receiver<Arc<str>> {
        let receiver = self.events.subscribe();
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_running {
            *is_running = true;
            tokio::spawn(Arc::clone(self).run(broker.clone()));
        }
        receiver
    }

    /// Reads records until the broker ends the stream or no page reads it any more.
    async fn run(self: Arc<Self>, broker: Broker) {
        if let Err(message) = self.read(&broker).await {
            // pages try again after a while
            let event = serde_json::json!({ "error": message }).to_string();
            let _ = self.events.send(event.into());
        }
        *self.is_running.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    async fn read(&self, broker: &Broker) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("skipstep-broker: {error}");
        let mut stream = UnixStream::connect(broker.path()).await.map_err(failed)?;
        let envelope = Envelope { token: None, request: self.request.clone() };
        let line = serde_json::to_string(&envelope).map_err(|error| error.to_string())?;
        stream.write_all((line + "\n").as_bytes()).await.map_err(failed)?;
        let mut lines = BufReader::with_capacity(64 << 10, stream).lines();
        let mut ticks = tokio::time::interval(INTERVAL);
        let mut batch = Batch::default();
        let (mut has_begun, mut idle) = (false, 0);
        loop {
            tokio::select! {
                line = lines.next_line() => match (line.map_err(failed)?, has_begun) {
                    (Some(record), true) => batch.add(record),
                    (Some(head), false) => {
                        begin(&head)?;
                        has_begun = true;
                    }
                    (None, _) => return Err("pfctl ended".into()),
                },
                _ = ticks.tick() => {
                    let readers = match batch.take() {
                        Some(event) => self.events.send(event.into()).unwrap_or_default(),
                        None => self.events.receiver_count(),
                    };
                    idle = if readers == 0 { idle + 1 } else { 0 };
                    if idle > MAX_IDLE {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Checks the first line of the broker's answer.
fn begin(head: &str) -> Result<(), String> {
    match serde_json::from_str(head) {
        Ok(Reply::Stream) => Ok(()),
        Ok(Reply::Refused { message }) => Err(message),
        _ => Err("skipstep-broker: an unexpected answer".into()),
    }
}

/// The records of one interval.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<String>,
    left_out: usize,
}

impl Batch {
    fn add(&mut self, record: String) {
        match self.records.len() < MAX_RECORDS {
            true => self.records.push(record),
            false => self.left_out += 1,
        }
    }

    /// Returns the event with the records, and empties the batch.
    fn take(&mut self) -> Option<String> {
        let Batch { records, left_out } = std::mem::take(self);
        if records.is_empty() {
            return None;
        }
        // each record is a JSON document
        Some(format!(r#"{{"records":[{}],"left_out":{left_out}}}"#, records.join(",")))
    }
}

/// Sends logged packets to the page.
pub async fn log(State(server): State<Arc<Server>>, _: Viewer) -> Response {
    answer(&server, &server.log)
}

/// Sends dropped packets to the page.
pub async fn drops(State(server): State<Arc<Server>>, _: Viewer) -> Response {
    answer(&server, &server.drops)
}

fn answer(server: &Arc<Server>, feed: &Arc<Feed>) -> Response {
    let Ok(place) = Arc::clone(&server.readers_of_streams).try_acquire_owned() else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many pages read logs: close some");
    };
    let receiver = feed.subscribe(&server.broker);
    let events = stream::unfold((receiver, place), next_event);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

type Place = OwnedSemaphorePermit;
type Step = Option<(Result<Event, Infallible>, (Receiver<Arc<str>>, Place))>;

/// Returns the next event for a page. A page that reads too slowly learns how many it missed.
async fn next_event((mut receiver, place): (Receiver<Arc<str>>, Place)) -> Step {
    let data = match receiver.recv().await {
        Ok(data) => data,
        Err(RecvError::Lagged(missed)) => format!(r#"{{"missed":{missed}}}"#).into(),
        Err(RecvError::Closed) => return None,
    };
    Some((Ok(Event::default().data(data)), (receiver, place)))
}

/// Returns the places for pages that read streams.
pub fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_the_records_that_it_leaves_out() {
        let mut batch = Batch::default();
        assert_eq!(batch.take(), None);
        batch.add(r#"{"a":1}"#.into());
        batch.add("2".into());
        assert_eq!(batch.take().unwrap(), r#"{"records":[{"a":1},2],"left_out":0}"#);
        for _ in 0..MAX_RECORDS + 5 {
            batch.add("0".into());
        }
        let event: serde_json::Value = serde_json::from_str(&batch.take().unwrap()).unwrap();
        assert_eq!(event["records"].as_array().unwrap().len(), MAX_RECORDS);
        assert_eq!(event["left_out"], 5);
        assert_eq!(batch.take(), None);
    }
}
