//! Deserialization of long lists of rules. serde reserves at most one megabyte for a list. A longer
//! list would be moved several times while it grows.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// Most elements for which memory is reserved in advance. No rule set has more, and a false length
/// in the input must not exhaust memory.
const MOST: usize = 1 << 17;

/// Reads a list into a vector of the announced length.
///
/// # Errors
/// Fails if the deserializer does.
pub fn read<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Many(PhantomData))
}

struct Many<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Many<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::with_capacity(list.size_hint().unwrap_or(0).min(MOST));
        while let Some(next) = list.next_element()? {
            all.push(next);
        }
        Ok(all)
    }
}
