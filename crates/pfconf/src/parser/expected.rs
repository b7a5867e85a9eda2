//! The words that may stand at the next token, so that a message guesses none that may not.

/// Most words that are kept: more than any production looks for at one token.
const MOST: usize = 96;

/// The words that productions have looked for at the next token.
#[derive(Clone)]
pub(super) struct Expected {
    words: [&'static str; MOST],
    count: usize,
}

impl Expected {
    pub(super) fn new() -> Self {
        Expected { words: [""; MOST], count: 0 }
    }

    /// Forgets all: a token was taken.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Notes that `word` may stand here.
    #[inline]
    pub(super) fn note(&mut self, word: &'static str) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }

    /// Returns the words that may stand here.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.words[..self.count].iter().copied()
    }
}
