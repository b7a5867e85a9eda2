//! One request: read, check, execute, answer.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::broker::command::{Command, RULES};
use crate::broker::options::Options;
use crate::broker::tokens::{self, Token};
use crate::request::{Envelope, MAX_REQUEST, MAX_RULES, Reply, Request, Role};

/// Time in which a request must arrive, and in which a reader must take a part of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an answer that is no stream, and of messages.
const MAX_BODY: u64 = 32 << 20;
const MAX_MESSAGES: u64 = 64 << 10;

/// Serves one connection. Errors of the connection end it without a word, because the other side is
/// gone.
pub fn serve(stream: &UnixStream, options: &Options) {
    let result = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    if result.is_err() {
        return;
    }
    match read_request(BufReader::new(stream)) {
        Ok(envelope) => answer(stream, &envelope, options),
        Err(message) => refuse(stream, &message),
    }
}

/// Reads and checks the line of a request.
///
/// # Errors
/// Returns a message for the user if the line is too long, no request, or has a wrong field.
pub fn read_request(input: impl BufRead) -> Result<Envelope, String> {
    let mut line = String::new();
    let mut input = input.take(MAX_REQUEST);
    input.read_line(&mut line).map_err(|error| format!("the request cannot be read: {error}"))?;
    if !line.ends_with('\n') {
        return Err(format!("a request is one line of less than {MAX_REQUEST} bytes"));
    }
    let envelope: Envelope =
        serde_json::from_str(&line).map_err(|error| format!("no request: {error}"))?;
    envelope.request.check()?;
    Ok(envelope)
}

/// Refuses a request, with a message for the user.
pub fn refuse(stream: &UnixStream, message: &str) {
    // the other side may be gone
    let _ = write_reply(stream, &Reply::Refused { message: message.to_owned() });
}

fn write_reply(mut stream: &UnixStream, reply: &Reply) -> io::Result<()> {
    let line = serde_json::to_string(reply).map_err(io::Error::other)?;
    stream.write_all((line + "\n").as_bytes())
}

fn answer(stream: &UnixStream, envelope: &Envelope, options: &Options) {
    let request = &envelope.request;
    let token = match &envelope.token {
        Some(text) => match tokens::find(&options.tokens, text) {
            Ok(token) => token,
            Err(error) => return refuse(stream, &format!("{error:#}")),
        },
        None => None,
    };
    if *request == Request::Role {
        return answer_role(stream, token.as_ref());
    }
    let role = token.as_ref().map(|token| token.role);
    if let Some(needs) = request.needs().filter(|needs| role < Some(*needs)) {
        let _ = write_reply(stream, &Reply::Denied { needs });
        return;
    }
    if let (Some(_), Some(token)) = (request.needs(), &token) {
        eprintln!("skipstep-broker: {}: {}", token.name, describe(request));
    }
    match Command::for_request(request, options) {
        Some(command) => execute(stream, &command, options),
        None => answer_file(stream, Path::new(RULES)),
    }
}

/// Returns the request as the log has it, without the text of rules.
fn describe(request: &Request) -> String {
    match request {
        Request::Load { seconds, write, .. } => {
            let write = if *write { ", to be written to the file of rules" } else { "" };
            format!("loads rules on trial for {seconds} s{write}")
        }
        Request::Diff { .. } => "compares rules".into(),
        Request::Kill { id, .. } => format!("kills state {id}"),
        Request::Add(entry) => {
            format!("adds {} to table {} of anchor `{}`", entry.address, entry.table, entry.anchor)
        }
        Request::Delete(entry) => format!(
            "deletes {} from table {} of anchor `{}`",
            entry.address, entry.table, entry.anchor
        ),
        Request::Confirm => "confirms the rules on trial".into(),
        Request::Revert => "reverts the rules on trial".into(),
        _ => String::new(),
    }
}

fn answer_role(stream: &UnixStream, token: Option<&Token>) {
    match token {
        Some(token) => {
            let body = serde_json::json!({ "role": token.role, "name": token.name });
            write_body(stream, body.to_string().as_bytes(), String::new());
        }
        None => {
            let _ = write_reply(stream, &Reply::Denied { needs: Role::Reader });
        }
    }
}

/// Answers with the text of the file of rules, which pfctl does not print.
fn answer_file(stream: &UnixStream, file: &Path) {
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(MAX_RULES as u64 + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() > MAX_RULES => {
            refuse(stream, &format!("{} has more than {MAX_RULES} bytes", file.display()));
        }
        Ok(_) => write_body(stream, text.as_bytes(), String::new()),
        Err(error) => refuse(stream, &format!("{}: {error}", file.display())),
    }
}

fn write_body(mut stream: &UnixStream, body: &[u8], messages: String) {
    let reply = Reply::Done { length: body.len(), messages };
    // the other side may be gone
    let _ = write_reply(stream, &reply).and_then(|()| stream.write_all(body));
}

/// Runs pfctl and sends its output.
fn execute(stream: &UnixStream, command: &Command, options: &Options) {
    let pfctl = options.pfctl();
    let child = std::process::Command::new(&pfctl)
        .args(&command.arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return refuse(stream, &format!("{}: {error}", pfctl.display())),
    };
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return;
    };
    let input = command.input.clone();
    // pfctl may stop reading at an error
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let messages = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.take(MAX_MESSAGES).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    if command.streams {
        pass_on(stream, child, stdout, messages);
    } else {
        collect(stream, &mut child, stdout, messages, command);
    }
    let _ = writer.join();
}

/// Waits for the end of pfctl and sends its whole output.
fn collect(
    stream: &UnixStream,
    child: &mut Child,
    stdout: ChildStdout,
    messages: thread::JoinHandle<String>,
    command: &Command,
) {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut body = Vec::new();
        let result = stdout.take(MAX_BODY + 1).read_to_end(&mut body).map(|_| body);
        let _ = sender.send(result);
    });
    let body = match receiver.recv_timeout(Duration::from_secs(command.seconds)) {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            end(child);
            return refuse(stream, &format!("pfctl: {error}"));
        }
        Err(_) => {
            end(child);
            return refuse(stream, &format!("pfctl did not end in {} s", command.seconds));
        }
    };
    if body.len() as u64 > MAX_BODY {
        end(child);
        return refuse(stream, "the answer is too long for the page: run pfctl");
    }
    let status = child.wait().ok().and_then(|status| status.code());
    let messages = messages.join().unwrap_or_default();
    match status {
        Some(status) if status < command.failure => write_body(stream, &body, messages),
        _ => refuse(stream, messages.trim_end()),
    }
}

/// Sends the output of pfctl on, until pfctl ends or the other side closes the connection.
fn pass_on(
    stream: &UnixStream,
    child: Child,
    stdout: ChildStdout,
    messages: thread::JoinHandle<String>,
) {
    let child = Mutex::new(child);
    let mut output = BufReader::with_capacity(64 << 10, stdout);
    thread::scope(|scope| {
        // pfctl may have nothing to print for hours
        scope.spawn(|| {
            wait_for_close(stream);
            end(&mut lock(&child));
        });
        match output.fill_buf() {
            Ok(bytes) if !bytes.is_empty() => {
                // ends when the other side is gone, or does not read for too long
                let _ = write_reply(stream, &Reply::Stream)
                    .and_then(|()| io::copy(&mut output, &mut &*stream).map(drop));
            }
            _ => {
                let messages = messages.join().unwrap_or_default();
                match lock(&child).wait().ok().and_then(|status| status.code()) {
                    Some(0) => drop(write_reply(stream, &Reply::Stream)),
                    _ => refuse(stream, messages.trim_end()),
                }
            }
        }
        // wakes the thread above; the other side still reads all that was sent
        let _ = stream.shutdown(Shutdown::Both);
    });
}

/// Waits until the other side closes the connection or, against the protocol, sends more.
fn wait_for_close(mut stream: &UnixStream) {
    while let Err(error) = stream.read(&mut [0]) {
        let is_timeout =
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
        if !is_timeout {
            return;
        }
    }
}

/// Ends a pfctl, unless it has ended, and collects its exit status.
fn end(child: &mut Child) {
    // fails if pfctl has ended
    let _ = child.kill();
    let _ = child.wait();
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::Instant;

    use clap::Parser;
    use tempfile::TempDir;

    use super::*;

    /// A broker whose pfctl is a script.
    struct Broker {
        folder: TempDir,
        options: Options,
    }

    impl Broker {
        fn with_script(script: &str) -> Broker {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            std::fs::write(path("pfctl"), format!("#!/bin/sh\n{script}\n")).unwrap();
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path("pfctl"), executable).unwrap();
            let mut options = Options::parse_from(["skipstep-broker"]);
            options.pfctl = Some(path("pfctl"));
            options.tokens = path("tokens");
            Broker { folder, options }
        }

        fn file(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Sends a line, and returns the answer.
        fn ask(&self, line: &str) -> (Reply, String) {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let options = self.options.clone();
            let server = thread::spawn(move || serve(&theirs, &options));
            ours.write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut reader = BufReader::new(ours);
            let mut head = String::new();
            reader.read_line(&mut head).unwrap();
            let mut body = String::new();
            reader.read_to_string(&mut body).unwrap();
            server.join().unwrap();
            (serde_json::from_str(&head).unwrap(), body)
        }
    }

    fn done(length: usize, messages: &str) -> Reply {
        Reply::Done { length, messages: messages.into() }
    }

    fn refused(message: &str) -> Reply {
        Reply::Refused { message: message.into() }
    }

    #[test]
    fn an_answer_has_the_output_and_the_messages_of_pfctl() {
        let broker = Broker::with_script(r#"echo "$@"; echo careful >&2"#);
        let answer = broker.ask(r#"{"request": {"verb": "info"}}"#);
        assert_eq!(answer, (done(15, "careful\n"), "--json -s info\n".into()));
    }

    #[test]
    fn a_failure_is_a_refusal_with_the_message_of_pfctl() {
        let broker = Broker::with_script("echo pfctl: no rules >&2; exit 1");
        for verb in ["info", "states", "log"] {
            let answer = broker.ask(&format!(r#"{{"request": {{"verb": "{verb}"}}}}"#));
            assert_eq!(answer, (refused("pfctl: no rules"), String::new()), "{verb}");
        }
    }

    #[test]
    fn a_change_needs_the_token_of_a_writer() {
        let broker = Broker::with_script("touch \"$(dirname \"$0\")/changed\"");
        let reader = tokens::add(&broker.options.tokens, Role::Reader, "r").unwrap();
        let writer = tokens::add(&broker.options.tokens, Role::Writer, "w").unwrap();
        let ask = |token: &str| {
            broker.ask(&format!(r#"{{"token": {token}, "request": {{"verb": "confirm"}}}}"#)).0
        };
        for token in ["null", "\"\"", "\"guess\"", &format!("\"{reader}\"")] {
            assert_eq!(ask(token), Reply::Denied { needs: Role::Writer }, "{token}");
        }
        assert!(!broker.file("changed").exists());
        assert_eq!(ask(&format!("\"{writer}\"")), done(0, ""));
        assert!(broker.file("changed").exists());
    }

    #[test]
    fn the_role_of_a_token() {
        let broker = Broker::with_script("false");
        let reader = tokens::add(&broker.options.tokens, Role::Reader, "screen").unwrap();
        let ask = |token: &str| {
            broker.ask(&format!(r#"{{"token": "{token}", "request": {{"verb": "role"}}}}"#))
        };
        let (_, body) = ask(&reader);
        assert_eq!(body, r#"{"name":"screen","role":"reader"}"#);
        assert_eq!(ask("guess").0, Reply::Denied { needs: Role::Reader });
    }

    #[test]
    fn rules_reach_the_standard_input_of_pfctl() {
        let broker = Broker::with_script("wc -c; exit 1");
        let token = tokens::add(&broker.options.tokens, Role::Writer, "w").unwrap();
        let rules = "#\\n".repeat(200_000);
        let line =
            format!(r#"{{"token": "{token}", "request": {{"verb": "diff", "rules": "{rules}"}}}}"#);
        let (reply, body) = broker.ask(&line);
        assert_eq!((reply, body.trim()), (done(7, ""), "400000"), "status 1 is a difference");
    }

    #[test]
    fn the_file_of_rules() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pf.conf");
        let ask = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            answer_file(&theirs, &file);
            drop(theirs);
            std::io::read_to_string(ours).unwrap()
        };
        assert!(ask().contains("\"refused\""));
        std::fs::write(&file, "block all\n").unwrap();
        assert!(ask().ends_with("\"length\":10,\"messages\":\"\"}\nblock all\n"));
        std::fs::write(&file, "#".repeat(MAX_RULES + 1)).unwrap();
        assert!(ask().contains("has more than"));
    }

    #[test]
    fn a_stream_ends_with_pfctl() {
        let broker = Broker::with_script("echo 1; sleep 0.2; echo 2");
        let answer = broker.ask(r#"{"request": {"verb": "log"}}"#);
        assert_eq!(answer, (Reply::Stream, "1\n2\n".into()));
    }

    #[test]
    fn pfctl_ends_when_nobody_reads_its_stream() {
        let broker = Broker::with_script("exec sleep 60");
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let options = broker.options.clone();
        let started = Instant::now();
        let server = thread::spawn(move || serve(&theirs, &options));
        ours.write_all(b"{\"request\": {\"verb\": \"log\"}}\n").unwrap();
        thread::sleep(Duration::from_millis(200));
        drop(ours);
        server.join().unwrap();
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn long_and_unfinished_requests_are_refused() {
        let endless = "x".repeat(MAX_REQUEST as usize + 1);
        for text in [endless.as_str(), "{\"request\": {\"verb\": \"info\"}}"] {
            let message = read_request(text.as_bytes()).unwrap_err();
            assert!(message.starts_with("a request is one line"), "{message}");
        }
    }
}
