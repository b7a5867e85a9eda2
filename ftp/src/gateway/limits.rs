//! Limits of sessions, in total and for each client, and of wrong passwords for each client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

/// Time that wrong passwords count after the client's last one.
const GUESSES_COUNT_FOR: Duration = Duration::from_secs(60);

/// Counts sessions.
#[derive(Debug)]
pub struct Sessions {
    most: usize,
    most_per_client: usize,
    /// Counts by client, and their sum.
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The limit that refuses a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TooMany {
    /// The limit of all sessions.
    #[error("limit of sessions")]
    InAll,
    /// The limit of sessions of one client.
    #[error("limit of sessions of one client")]
    OfClient,
}

/// A counted session. Dropping the value ends the count.
#[derive(Debug)]
pub struct CountedSession {
    sessions: Arc<Sessions>,
    client: IpAddr,
}

impl Sessions {
    /// Sets the limits of all sessions and of the sessions of one client.
    pub fn new(most: usize, most_per_client: usize) -> Sessions {
        Sessions { most, most_per_client, counted: Mutex::default() }
    }

    /// Counts one more session of `client`.
    ///
    /// # Errors
    /// Fails if a limit is reached.
    pub fn admit(self: &Arc<Self>, client: IpAddr) -> Result<CountedSession, TooMany> {
        let client = client_key(client);
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.all >= self.most {
            return Err(TooMany::InAll);
        }
        let of_client = counted.of.entry(client).or_default();
        if *of_client >= self.most_per_client {
            return Err(TooMany::OfClient);
        }
        *of_client += 1;
        counted.all += 1;
        Ok(CountedSession { sessions: self.clone(), client })
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        let mut counted = self.sessions.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.all -= 1;
        let left = counted.of.get_mut(&self.client).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            counted.of.remove(&self.client);
        }
    }
}

/// Wrong passwords of each client, over all of its sessions. Otherwise an attacker would open a new
/// session for each guess.
#[derive(Debug)]
pub struct Guesses {
    most: u32,
    counted: Mutex<HashMap<IpAddr, (u32, Instant)>>,
}

impl Guesses {
    /// Allows each client `most` wrong passwords within [`GUESSES_COUNT_FOR`].
    pub fn new(most: u32) -> Guesses {
        Guesses { most, counted: Mutex::default() }
    }

    /// Counts a password before it is checked, and returns the client's count. Returns `None` if
    /// the limit is reached, so the password must not be checked.
    pub fn count(&self, client: IpAddr, now: Instant) -> Option<u32> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|_, (_, last)| now.saturating_duration_since(*last) < GUESSES_COUNT_FOR);
        let (count, last) = counted.entry(client_key(client)).or_insert((0, now));
        if *count >= self.most {
            return None;
        }
        (*count, *last) = (*count + 1, now);
        Some(*count)
    }

    /// Discounts a password that was right. The client's wrong passwords still count.
    pub fn was_right(&self, client: IpAddr) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = counted.get_mut(&client_key(client)) {
            *count = count.saturating_sub(1);
        }
    }
}

/// Returns the key that counts as one client: an IPv4 address, or the /64 of an IPv6 address. An
/// IPv6 host has a whole network of addresses.
fn client_key(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_dropped_session_is_not_counted() {
        let sessions = Arc::new(Sessions::new(2, 1));
        let first = sessions.admit(ip("10.0.0.1")).unwrap();
        assert_eq!(sessions.admit(ip("10.0.0.1")).unwrap_err(), TooMany::OfClient);
        let _second = sessions.admit(ip("10.0.0.2")).unwrap();
        assert_eq!(sessions.admit(ip("10.0.0.3")).unwrap_err(), TooMany::InAll);
        drop(first);
        assert!(sessions.admit(ip("10.0.0.1")).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let sessions = Arc::new(Sessions::new(9, 1));
        let _first = sessions.admit(ip("2001:db8::1")).unwrap();
        assert!(sessions.admit(ip("2001:db8::2")).is_err());
        assert!(sessions.admit(ip("2001:db8:0:1::2")).is_ok());
    }

    #[test]
    fn guesses_count_by_client_for_a_while() {
        let (guesses, now) = (Guesses::new(2), Instant::now());
        let client = ip("10.0.0.1");
        assert_eq!(guesses.count(client, now), Some(1));
        guesses.was_right(client);
        assert_eq!(guesses.count(client, now), Some(1));
        assert_eq!(guesses.count(client, now), Some(2));
        assert_eq!(guesses.count(client, now), None);
        assert_eq!(guesses.count(ip("10.0.0.2"), now), Some(1));
        let later = now + GUESSES_COUNT_FOR;
        assert_eq!(guesses.count(client, later), Some(1));
        assert_eq!(guesses.counted.lock().unwrap().len(), 1, "nothing is kept of others");
    }

    #[test]
    fn a_client_without_sessions_is_not_stored() {
        let sessions = Arc::new(Sessions::new(9, 9));
        drop(sessions.admit(ip("10.0.0.1")));
        assert!(sessions.counted.lock().unwrap().of.is_empty());
    }
}
