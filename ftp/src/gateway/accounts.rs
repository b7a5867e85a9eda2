//! Accounts of clients at the gateway: a file with lines `name:hash`, hashed by Argon2.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use tokio::sync::Semaphore;

/// Number of passwords that are checked at once. Each check takes a CPU and 19 MiB for a while.
const AT_ONCE: usize = 2;

/// Number of bytes of salt (RFC 9106 section 3.1).
const SALT: usize = 16;

/// Number of bytes of a password at most.
const LONGEST: usize = 1024;

/// The accounts of the gateway.
#[derive(Debug)]
pub struct Accounts {
    /// Password hashes by account name.
    hashes: HashMap<String, Arc<str>>,
    /// A hash to verify the passwords of unknown accounts against, so that a refusal takes as long.
    any: Arc<str>,
    turns: Semaphore,
}

impl Accounts {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is accessible to everybody, or has a wrong line.
    pub fn read(path: &Path) -> Result<Accounts> {
        let name = path.display().to_string();
        let mut file = File::open(path).with_context(|| name.clone())?;
        let mode = file.metadata().with_context(|| name.clone())?.permissions().mode();
        if mode & 0o007 != 0 {
            bail!("{name}: all users can access it\nhelp: chmod o= {name}");
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(|| name.clone())?;
        Accounts::parse(&name, &text)
    }

    /// Parses a text that came from the file `file`.
    ///
    /// # Errors
    /// Fails if a line is wrong, a name appears twice, or there are no accounts.
    pub fn parse(file: &str, text: &str) -> Result<Accounts> {
        const HELP: &str = "help: `ftp-gw password NAME` makes such a line";
        let mut hashes = HashMap::new();
        let mut any = None;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let account = line.split_once(':').filter(|(name, _)| is_name(name));
            let Some((name, hash)) = account else {
                bail!("{file}:{number}: not a name and a hash\n{HELP}");
            };
            let hash = hash.trim_end();
            let is_hash = PasswordHash::new(hash).is_ok_and(|hash| {
                hash.algorithm.as_str().starts_with("argon2") && hash.hash.is_some()
            });
            if !is_hash {
                bail!("{file}:{number}: the hash of {name} is not an Argon2 hash\n{HELP}");
            }
            let hash: Arc<str> = hash.into();
            any.get_or_insert_with(|| hash.clone());
            if hashes.insert(name.to_string(), hash).is_some() {
                bail!("{file}:{number}: {name} is given twice");
            }
        }
        let any = any.ok_or_else(|| anyhow!("{file}: no accounts\n{HELP}"))?;
        Ok(Accounts { hashes, any, turns: Semaphore::new(AT_ONCE) })
    }

    /// Returns true if `password` belongs to the account `name`. An unknown name takes the same
    /// work.
    pub async fn check(&self, name: &[u8], password: &[u8]) -> bool {
        let known = str::from_utf8(name).ok().and_then(|name| self.hashes.get(name));
        let hash = known.unwrap_or(&self.any).clone();
        let may_belong = known.is_some() && password.len() <= LONGEST;
        let password = password.get(..LONGEST).unwrap_or(password).to_vec();
        // the semaphore is never closed
        let Ok(_turn) = self.turns.acquire().await else { return false };
        let checking = tokio::task::spawn_blocking(move || {
            let hash = PasswordHash::new(&hash);
            hash.is_ok_and(|hash| Argon2::default().verify_password(&password, &hash).is_ok())
        });
        checking.await.unwrap_or(false) && may_belong
    }
}

/// Returns true if a name is valid in the file and in `USER name@host`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"@:#".contains(&byte))
}

/// Asks for a password and prints the line of the file that lets `name` log in with it.
///
/// # Errors
/// Fails if the name or the password is not valid, or if standard input cannot be read.
pub fn print_line(name: &str) -> Result<()> {
    if !is_name(name) {
        bail!("'{name}' is not a name: use ASCII characters without '@', ':' and '#'");
    }
    println!("{}", line(name, &read_password()?)?);
    Ok(())
}

fn line(name: &str, password: &str) -> Result<String> {
    if password.is_empty() || password.len() > LONGEST {
        bail!("a password has 1 to {LONGEST} bytes");
    }
    let mut salt = [0; SALT];
    getrandom::fill(&mut salt).map_err(|error| anyhow!("random numbers: {error}"))?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| anyhow!("salt: {error}"))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    Ok(format!("{name}:{}", hash.map_err(|error| anyhow!("hash: {error}"))?))
}

/// Reads a line of standard input, without echo on a terminal.
fn read_password() -> Result<String> {
    let stdin = io::stdin();
    let shown = stdin.is_terminal().then(|| tcgetattr(&stdin)).transpose()?;
    if let Some(shown) = &shown {
        eprint!("Password: ");
        io::stderr().flush()?;
        let mut hidden = shown.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&stdin, SetArg::TCSAFLUSH, &hidden)?;
    }
    let mut password = String::new();
    let read = stdin.lock().read_line(&mut password);
    if let Some(shown) = &shown {
        tcsetattr(&stdin, SetArg::TCSAFLUSH, shown)?;
        eprintln!();
    }
    read.context("password")?;
    Ok(password.trim_end_matches(['\r', '\n']).to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn only_the_password_of_the_name_lets_in() {
        let text = format!("# those of us\n\n{}\n", line("alice", "secret").unwrap());
        let accounts = Accounts::parse("a", &text).unwrap();
        assert!(accounts.check(b"alice", b"secret").await);
        assert!(!accounts.check(b"alice", b"wrong").await);
        assert!(!accounts.check(b"alice", b"").await);
        // bob's password is verified against alice's hash, and bob is still refused
        assert!(!accounts.check(b"bob", b"secret").await);
        assert!(!accounts.check(b"\xff", b"secret").await);
    }

    #[tokio::test]
    async fn a_password_is_not_cut_to_fit() {
        let password = "x".repeat(LONGEST);
        let accounts = Accounts::parse("a", &line("alice", &password).unwrap()).unwrap();
        assert!(accounts.check(b"alice", password.as_bytes()).await);
        assert!(!accounts.check(b"alice", (password + "y").as_bytes()).await);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let good = line("alice", "secret").unwrap();
        for (text, wrong) in [
            ("", "a: no accounts"),
            ("alice", "a:1: not a name and a hash"),
            ("# x\nal ice:x", "a:2: not a name and a hash"),
            ("alice:secret", "a:1: the hash of alice is not"),
            ("alice:$2b$12$abcdefghijklmnopqrstuv", "a:1: the hash of alice is not"),
            (&format!("{good}\n{good}"), "a:2: alice is given twice"),
        ] {
            let said = Accounts::parse("a", text).unwrap_err().to_string();
            assert!(said.starts_with(wrong), "{said}");
        }
    }

    #[test]
    fn everybody_may_not_read_it() {
        let file = std::env::temp_dir().join(format!("ftp-gw-accounts-{}", std::process::id()));
        fs::write(&file, line("alice", "secret").unwrap()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Accounts::read(&file).unwrap_err().to_string().contains("all users"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Accounts::read(&file).is_ok());
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn no_line_is_made_that_cannot_be_read() {
        assert!(
            print_line("a@b").is_err() && print_line("").is_err() && print_line("a b").is_err()
        );
        assert!(line("alice", "").is_err());
    }
}
