//! The file of tokens: a line `ROLE HASH NAME` for each token. Empty lines and lines that begin
//! with `#` are comments.
//!
//! A token has 256 random bits, so its SHA-256 hash reveals nothing, and nobody guesses a token.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::request::Role;
use crate::{hex, random_digits};

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The rights of the token.
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal digits.
    hash: String,
    /// Name of the token's user.
    pub name: String,
}

/// Reads the file. A file that does not exist has no tokens.
///
/// # Errors
/// Fails if the file cannot be read or has a line in another form.
pub fn read(file: &Path) -> Result<Vec<Token>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| file.display().to_string())?,
    };
    let is_token = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let lines = text.lines().enumerate().filter(|(_, line)| is_token(line));
    lines
        .map(|(index, line)| {
            parse(line).with_context(|| format!("{}:{}", file.display(), index + 1))
        })
        .collect()
}

fn parse(line: &str) -> Result<Token> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [role, hash, name] = words[..] else {
        bail!("a line has a role, a hash and a name");
    };
    let is_hash = hash.len() == 64 && hash.chars().all(|digit| digit.is_ascii_hexdigit());
    ensure!(is_hash, "a hash has 64 hexadecimal digits");
    let role = role.parse().map_err(anyhow::Error::msg)?;
    Ok(Token { role, hash: hash.to_ascii_lowercase(), name: name.to_owned() })
}

/// Returns the entry of the token `text`, or `None` if the file has none.
///
/// # Errors
/// As [`read`].
pub fn find(file: &Path, text: &str) -> Result<Option<Token>> {
    let hash = hash(text);
    Ok(read(file)?.into_iter().find(|token| token.hash == hash))
}

/// Adds a new token for the user `name`, and returns the token.
///
/// # Errors
/// Fails if the name has a space or is taken, or if the file cannot be read or written.
pub fn add(file: &Path, role: Role, name: &str) -> Result<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.@-".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(is_name),
        "a name has letters, digits and `_`, `.`, `@`, `-`"
    );
    let mut tokens = read(file)?;
    let is_taken = tokens.iter().any(|token| token.name == name);
    ensure!(!is_taken, "{name} has a token: `skipstep-broker token remove {name}` removes it");
    let token = random_digits()?;
    tokens.push(Token { role, hash: hash(&token), name: name.to_owned() });
    write(file, &tokens)?;
    Ok(token)
}

/// Removes the token of the user `name`.
///
/// # Errors
/// Fails if the user has no token, or if the file cannot be read or written.
pub fn remove(file: &Path, name: &str) -> Result<()> {
    let mut tokens = read(file)?;
    let before = tokens.len();
    tokens.retain(|token| token.name != name);
    ensure!(tokens.len() < before, "{name} has no token");
    write(file, &tokens)
}

/// Replaces the file in one step. Only its owner may read it.
fn write(file: &Path, tokens: &[Token]) -> Result<()> {
    let folder = file.parent().context("the file has no folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut text = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(text, "# Users of skipstep-web: role, SHA-256 of the token, name.")?;
    writeln!(text, "# `skipstep-broker token add` and `token remove` change this file.")?;
    for token in tokens {
        writeln!(text, "{} {} {}", token.role, token.hash, token.name)?;
    }
    text.as_file().sync_all()?;
    text.persist(file)?;
    Ok(())
}

fn hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_found_by_its_text_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/web-tokens");
        assert_eq!(read(&file).unwrap(), []);
        let writer = add(&file, Role::Writer, "anna").unwrap();
        let reader = add(&file, Role::Reader, "wall-screen").unwrap();
        assert_eq!(writer.len(), 64);
        assert!(add(&file, Role::Reader, "anna").is_err(), "the name is taken");
        let role = |token: &str| find(&file, token).unwrap().map(|token| token.role);
        assert_eq!(role(&writer), Some(Role::Writer));
        assert_eq!(role(&reader), Some(Role::Reader));
        assert_eq!(role(""), None);
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&writer), "only hashes are stored");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        remove(&file, "anna").unwrap();
        assert_eq!(role(&writer), None);
        assert!(remove(&file, "anna").is_err());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        for line in ["root 00 x", "writer 00 x", "writer", "reader zz y z"] {
            fs::write(&file, format!("# comment\n\n{line}\n")).unwrap();
            let error = format!("{:#}", read(&file).unwrap_err());
            assert!(error.contains("tokens:3: "), "{error}");
        }
    }
}
