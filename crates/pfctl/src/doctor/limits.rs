//! Checks of the limits: tables of the filter that are nearly full.

use anyhow::Result;

use super::finding::Finding;
use super::{Inputs, Words};

const SUBJECT: &str = "limits";

/// Percentage from which a limit is near.
const NEAR: u64 = 80;

/// A limit of `set limit`.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Name of the limit.
    name: &'static str,
    /// Entries in use.
    used: u64,
    /// Largest number of entries; `u32::MAX` if there is no limit.
    limit: u32,
    /// Entries that the filter has memory for; a larger limit needs a new filter.
    room: u32,
}

/// Reads the facts; there are none if this user may not read the filter.
///
/// # Errors
/// Fails if the maps or the record of the rules cannot be read.
pub fn collect(inputs: &Inputs) -> Result<Vec<Facts>> {
    let Some((instance, loaded, status)) = inputs.open() else { return Ok(Vec::new()) };
    let limits = &loaded.ruleset.options.limits;
    let tables = instance.table_list()?;
    let entries = tables.iter().map(|table| u64::from(table.entries)).sum();
    let sources = instance.maps().source_nodes.capacity();
    let row = |name, used, limit, room| Facts { name, used, limit, room };
    Ok(vec![
        row("states", status.states.into(), limits.states, status.capacity),
        row("src-nodes", status.engine.sources, limits.src_nodes, sources),
        row("frags", status.fragments.current, limits.frags, u32::MAX),
        row("tables", tables.len() as u64, limits.tables, u32::MAX),
        row("table-entries", entries, limits.table_entries, u32::MAX),
        row("pktdelay-pkts", status.delay.waiting.into(), limits.pktdelay_pkts, u32::MAX),
        row("anchors", loaded.ruleset.anchors.len() as u64, limits.anchors, u32::MAX),
    ])
}

/// Judges the facts.
pub fn judge(limits: &[Facts], words: &Words) -> Vec<Finding> {
    let near: Vec<Finding> = limits.iter().filter_map(|limit| limit.finding(words)).collect();
    if !near.is_empty() || limits.is_empty() {
        return near;
    }
    let used = limits.iter().filter(|limit| limit.used > 0).map(Facts::usage);
    let used = used.collect::<Vec<_>>().join(", ");
    let text = if used.is_empty() { "nothing is in use".to_owned() } else { used };
    vec![Finding::ok(SUBJECT, text)]
}

impl Facts {
    fn usage(&self) -> String {
        format!("{} {} of {}", self.name, self.used, self.limit)
    }

    /// Reports a limit that is reached or near.
    fn finding(&self, words: &Words) -> Option<Finding> {
        let percent = self.used * 100 / u64::from(self.limit.max(1));
        if self.limit == u32::MAX || percent < NEAR {
            return None;
        }
        let Facts { used, limit, .. } = self;
        let is_full = *used >= u64::from(*limit);
        let mut text = format!("{used} of {limit} in use, {percent} %");
        if is_full {
            text += ": new entries are refused";
        }
        if self.needs_new_filter() {
            text += "; the command disables the filter for a moment, and all states are lost";
        }
        let make = if is_full { Finding::fail } else { Finding::warn };
        Some(make(self.name.to_owned(), text).mended_by(self.raise(words)))
    }

    /// Returns twice the limit.
    fn doubled(&self) -> u32 {
        self.limit.saturating_mul(2)
    }

    /// True if twice the limit needs larger maps, so a new filter without states.
    fn needs_new_filter(&self) -> bool {
        self.doubled() > self.room
    }

    /// Returns the command that doubles the limit.
    fn raise(&self, words: &Words) -> String {
        let Words { pfctl, file, .. } = words;
        let write = format!("echo 'set limit {} {}' >>{file}", self.name, self.doubled());
        match self.needs_new_filter() {
            true => format!("{write} && {pfctl} -d && {pfctl} -f {file} && {pfctl} -e"),
            false => format!("{write} && {pfctl} -f {file}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn states(used: u64) -> Facts {
        Facts { name: "states", used, limit: 1000, room: 100_000 }
    }

    #[test]
    fn a_limit_is_near_from_80_percent_on() {
        let judged = |used| judge(&[states(used)], &Words::usual());
        assert_eq!((judged(799)[0].level, judged(799).len()), (Level::Ok, 1));
        assert_eq!(judged(0)[0].text, "nothing is in use");
        assert_eq!(judged(800)[0].level, Level::Warn);
        assert_eq!(judged(800)[0].text, "800 of 1000 in use, 80 %");
        assert_eq!(judged(1000)[0].level, Level::Fail);
        assert!(judged(1000)[0].text.ends_with("new entries are refused"));
    }

    #[test]
    fn the_command_doubles_the_limit() {
        let command = |facts: Facts| judge(&[facts], &Words::usual())[0].command.clone().unwrap();
        assert_eq!(
            command(states(900)),
            "echo 'set limit states 2000' >>/etc/pf.conf && pfctl -f /etc/pf.conf"
        );
        let full = Facts { room: 1000, ..states(900) };
        let text = &judge(std::slice::from_ref(&full), &Words::usual())[0].text;
        assert!(text.ends_with(
            "90 %; the command disables the filter for a moment, and all \
                                states are lost"
        ));
        assert_eq!(
            command(full),
            "echo 'set limit states 2000' >>/etc/pf.conf && pfctl -d && \
             pfctl -f /etc/pf.conf && pfctl -e"
        );
    }

    #[test]
    fn no_limit_is_never_near() {
        let unlimited = Facts { limit: u32::MAX, ..states(u64::from(u32::MAX)) };
        assert_eq!(judge(&[unlimited], &Words::usual())[0].level, Level::Ok);
        assert!(judge(&[], &Words::usual()).is_empty());
    }
}
