//! Users who have logged in.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::random_digits;
use crate::request::Role;

/// Maximum number of sessions. A further login ends the session that was idle longest.
const MAX_SESSIONS: usize = 64;
/// A session ends after this time without a request, and after `MAX_AGE` in any case.
const MAX_IDLE: Duration = Duration::from_secs(3600);
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of failed logins in a minute.
const MAX_FAILURES: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// A user who has logged in.
#[derive(Debug, Clone)]
pub struct Session {
    /// The user's token, which the broker wants for changes.
    pub token: String,
    /// The rights of the token at login. The broker looks them up again for each change.
    pub role: Role,
    /// Name of the user.
    pub name: String,
    /// The value that a change must bring in a header, so that no other page can ask for it. A
    /// program, which sends its token with each request, has none.
    pub proof: Option<String>,
    started: Instant,
    used: Instant,
}

/// All sessions, by the secret in the cookie.
#[derive(Debug)]
pub struct Sessions {
    by_secret: Mutex<HashMap<String, Session>>,
    failures: Mutex<(Instant, u32)>,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { by_secret: Mutex::default(), failures: Mutex::new((Instant::now(), 0)) }
    }
}

impl Sessions {
    /// Starts a session and returns its secret.
    ///
    /// # Errors
    /// Fails if the kernel has no random numbers.
    pub fn start(&self, token: String, role: Role, name: String, now: Instant) -> Result<String> {
        let (secret, proof) = (random_digits()?, random_digits()?);
        let mut sessions = lock(&self.by_secret);
        sessions.retain(|_, session| session.is_valid(now));
        while sessions.len() >= MAX_SESSIONS {
            let idle = sessions.iter().min_by_key(|(_, session)| session.used);
            let Some(secret) = idle.map(|(secret, _)| secret.clone()) else { break };
            sessions.remove(&secret);
        }
        let session = Session { token, role, name, proof: Some(proof), started: now, used: now };
        sessions.insert(secret.clone(), session);
        Ok(secret)
    }

    /// Returns the session of a cookie.
    pub fn find(&self, secret: &str, now: Instant) -> Option<Session> {
        let mut sessions = lock(&self.by_secret);
        let session = sessions.get_mut(secret).filter(|session| session.is_valid(now))?;
        session.used = now;
        Some(session.clone())
    }

    /// Ends a session.
    pub fn end(&self, secret: &str) {
        lock(&self.by_secret).remove(secret);
    }

    /// Ends all sessions of a token, which the broker no longer knows.
    pub fn end_all_of(&self, token: &str) {
        lock(&self.by_secret).retain(|_, session| session.token != token);
    }

    /// True if another login may be tried in this minute.
    pub fn may_try(&self, now: Instant) -> bool {
        let mut failures = lock(&self.failures);
        if now.duration_since(failures.0) >= MINUTE {
            *failures = (now, 0);
        }
        failures.1 < MAX_FAILURES
    }

    /// Counts a failed login.
    pub fn count_failure(&self) {
        lock(&self.failures).1 += 1;
    }
}

impl Session {
    /// Returns the session of a single request, by a program that sends its token.
    pub fn of_program(token: String, role: Role, name: String) -> Session {
        let now = Instant::now();
        Session { token, role, name, proof: None, started: now, used: now }
    }

    fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.used) < MAX_IDLE && now.duration_since(self.started) < MAX_AGE
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(sessions: &Sessions, now: Instant) -> String {
        sessions.start("token".into(), Role::Writer, "anna".into(), now).unwrap()
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_when_it_is_old() {
        let sessions = Sessions::default();
        let begin = Instant::now();
        let secret = start(&sessions, begin);
        let mut now = begin;
        while now < begin + MAX_AGE - MAX_IDLE {
            now += MAX_IDLE / 2;
            assert!(sessions.find(&secret, now).is_some());
        }
        assert!(sessions.find(&secret, begin + MAX_AGE).is_none(), "old");
        let secret = start(&sessions, begin);
        assert!(sessions.find(&secret, begin + MAX_IDLE).is_none(), "idle");
        assert!(sessions.find("", begin).is_none());
    }

    #[test]
    fn the_number_of_sessions_is_limited() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let first = start(&sessions, now);
        let second = start(&sessions, now + Duration::from_secs(1));
        for _ in 0..MAX_SESSIONS - 1 {
            start(&sessions, now + Duration::from_secs(2));
        }
        let later = now + Duration::from_secs(3);
        assert!(sessions.find(&first, later).is_none(), "it was idle longest");
        assert!(sessions.find(&second, later).is_some());
    }

    #[test]
    fn a_token_that_is_removed_ends_its_sessions() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let secret = start(&sessions, now);
        sessions.end_all_of("token");
        assert!(sessions.find(&secret, now).is_none());
    }

    #[test]
    fn failed_logins_are_limited_in_each_minute() {
        let sessions = Sessions::default();
        let now = Instant::now();
        for _ in 0..MAX_FAILURES {
            assert!(sessions.may_try(now));
            sessions.count_failure();
        }
        assert!(!sessions.may_try(now));
        assert!(sessions.may_try(now + MINUTE));
    }
}
