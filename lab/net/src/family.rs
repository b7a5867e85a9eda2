//! The address families.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Family, String> {
        match text {
            "4" => Ok(Family::V4),
            "6" => Ok(Family::V6),
            _ => Err("4 or 6".to_owned()),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Family::V4 { "IPv4" } else { "IPv6" })
    }
}
