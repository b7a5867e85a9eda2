//! The keys of syncookies, and the number of cookies that are outstanding.

/// The two keys, and their counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cookies {
    /// True while SYNs are answered with cookies.
    pub active: bool,
    pub keys: [[u8; 16]; 2],
    /// Number of cookies sent with each key that did not come back.
    pub in_flight: [u32; 2],
    /// Number of keys made; its lowest bit is the index of the current key.
    pub keys_made: u32,
    /// Second at which the next key is due; `None` if there is no key.
    pub next_key_at: Option<u32>,
}

impl Cookies {
    /// Returns the index of the key for new cookies.
    pub fn current(&self) -> usize {
        self.keys_made as usize & 1
    }
}
