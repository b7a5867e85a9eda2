//! The words that are valid as the next token. Messages suggest only these.

/// Most words that are stored. No production tries more at one token.
const MOST: usize = 96;

/// The words that productions have tried at the next token.
#[derive(Clone)]
pub(super) struct Expected {
    words: [&'static str; MOST],
    count: usize,
}

impl Expected {
    pub(super) fn new() -> Self {
        Expected { words: [""; MOST], count: 0 }
    }

    /// Removes all words, because a token was taken.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a word that would be accepted.
    #[inline]
    pub(super) fn note(&mut self, word: &'static str) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }

    /// Returns the words that would be accepted.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.words[..self.count].iter().copied()
    }
}
