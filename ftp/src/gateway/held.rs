//! Lines of a server that the gateway keeps until the reply is complete.

use anyhow::{Result, bail};

use crate::line::Line;

/// Number of bytes of a kept reply at most.
const MOST_BYTES: usize = 64 * 1024;

/// Number of lines of a kept reply at most. The limit is needed because empty lines take memory,
/// too.
const MOST_LINES: usize = 1000;

/// The lines of one reply.
#[derive(Debug, Default)]
pub struct Lines {
    texts: Vec<Vec<u8>>,
    bytes: usize,
}

impl Lines {
    /// Keeps one more line.
    ///
    /// # Errors
    /// The reply has too many bytes or lines.
    pub fn push(&mut self, line: Line) -> Result<()> {
        self.bytes += line.raw.len();
        if self.bytes > MOST_BYTES {
            bail!("server: limit of {MOST_BYTES} bytes in a reply that is kept exceeded");
        }
        if self.texts.len() == MOST_LINES {
            bail!("server: limit of {MOST_LINES} lines in a reply that is kept exceeded");
        }
        self.texts.push(line.text);
        Ok(())
    }

    /// Returns the text of each line in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of times that `text` can be kept, and the error that follows.
    fn kept(text: &str) -> (usize, String) {
        let mut lines = Lines::default();
        loop {
            if let Err(problem) = lines.push(Line::from_text(text)) {
                return (lines.iter().count(), problem.to_string());
            }
        }
    }

    #[test]
    fn bytes_and_lines_are_bounded() {
        let (count, problem) = kept("226-");
        assert_eq!(count, MOST_LINES);
        assert!(problem.contains("limit of 1000 lines"), "{problem}");
        let (count, problem) = kept(&"x".repeat(4094));
        assert_eq!(count, 16);
        assert!(problem.contains("limit of 65536 bytes"), "{problem}");
    }
}
