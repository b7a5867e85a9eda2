//! Lists of rules as they are read: serde makes room for a megabyte of a list, whatever its length
//! is said to be, and moves it again and again as it grows.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// More rules than a rule set may have: nobody makes us take memory for what is not there.
const MOST: usize = 1 << 17;

/// Reads a list, with room for all that is said to come.
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
