//! The connection to the broker.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::request::{Envelope, Reply, Request, Role};

/// Time in which the broker must answer. A load of many rules takes longest.
const PATIENCE: Duration = Duration::from_secs(130);

/// The way to the broker.
#[derive(Debug, Clone)]
pub struct Broker(Arc<Path>);

/// The whole answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The output of pfctl.
    pub body: Vec<u8>,
    /// Warnings and other messages of pfctl.
    pub messages: String,
}

/// The reason why a request has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The broker cannot be reached, or ended the connection.
    Broker(io::Error),
    /// The broker, or pfctl, refused the request.
    Refused(String),
    /// The token has no right to the request.
    Denied(Role),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Broker(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Failure::Broker(error) => (
                StatusCode::BAD_GATEWAY,
                format!("skipstep-broker does not answer: {error}. Does the service run?"),
            ),
            Failure::Refused(message) => (StatusCode::UNPROCESSABLE_ENTITY, message),
            Failure::Denied(needs) => {
                (StatusCode::FORBIDDEN, format!("this needs the token of a {needs}"))
            }
        };
        (status, Json(json!({ "error": message }))).into_response()
    }
}

impl Broker {
    /// Returns the broker behind the socket `path`.
    pub fn new(path: &Path) -> Broker {
        Broker(path.into())
    }

    /// Returns the path of the broker's socket.
    pub fn path(&self) -> PathBuf {
        self.0.to_path_buf()
    }

    /// Executes a request with a whole answer.
    ///
    /// # Errors
    /// Fails if the broker refuses the request or does not answer.
    pub async fn ask(&self, token: Option<String>, request: Request) -> Result<Answer, Failure> {
        let broker = self.clone();
        let work = move || broker.ask_and_wait(token, request);
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| io::Error::other(error).into())
            .and_then(|result| result)
    }

    fn ask_and_wait(&self, token: Option<String>, request: Request) -> Result<Answer, Failure> {
        let (reply, mut body) = self.send(token, request)?;
        let Reply::Done { length, messages } = reply else {
            return Err(io::Error::other("an unexpected answer").into());
        };
        let mut bytes = vec![0; length];
        body.read_exact(&mut bytes)?;
        Ok(Answer { body: bytes, messages })
    }

    /// Starts a request whose answer is a stream, and returns the stream. Blocks until the first
    /// bytes are there.
    ///
    /// # Errors
    /// As [`Broker::ask`].
    pub fn stream(&self, request: Request) -> Result<impl BufRead + use<>, Failure> {
        match self.send(None, request)? {
            (Reply::Stream, body) => Ok(body),
            _ => Err(io::Error::other("an unexpected answer").into()),
        }
    }

    /// Sends a request and reads the first line of the answer.
    fn send(
        &self,
        token: Option<String>,
        request: Request,
    ) -> Result<(Reply, BufReader<UnixStream>), Failure> {
        let mut stream = UnixStream::connect(&self.0)?;
        let has_pauses = matches!(request, Request::Log | Request::Drops);
        stream.set_read_timeout((!has_pauses).then_some(PATIENCE))?;
        let line = serde_json::to_string(&Envelope { token, request }).map_err(io::Error::from)?;
        stream.write_all((line + "\n").as_bytes())?;
        let mut body = BufReader::with_capacity(64 << 10, stream);
        let mut head = String::new();
        body.read_line(&mut head)?;
        match serde_json::from_str(&head).map_err(io::Error::from)? {
            Reply::Refused { message } => Err(Failure::Refused(message)),
            Reply::Denied { needs } => Err(Failure::Denied(needs)),
            reply => Ok((reply, body)),
        }
    }
}
