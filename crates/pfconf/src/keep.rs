//! The state options of a rule, combined with the defaults that depend on them (pf-features section
//! 7).

use skipstep_ruleset::{KeepKind, Options, SourceTrack, StateOptions, StatePolicy, Timeout};

use crate::ast::StateOption;
use crate::settings;

/// Most connections that `max-src-conn-rate` can count, because pf multiplies them by 1000.
const HIGHEST_RATE: u32 = u32::MAX / 1000;

/// The options collected so far.
#[derive(Default)]
struct Collected {
    state: StateOptions,
    timeouts: [u32; Timeout::COUNT],
    /// The operand of `source-track`, if that was written.
    source_track: Option<Option<SourceTrack>>,
    /// True if an option makes the rule track sources.
    tracks: bool,
    /// True if an option makes the rule track sources by rule.
    by_rule: bool,
    /// True if `if-bound` or `floating` was written.
    bound: bool,
    /// True if an adaptive timeout was written.
    adaptive: bool,
}

/// Returns the state options of a rule.
///
/// # Errors
/// Fails with OpenBSD's message if an option is repeated, out of range, or incompatible with
/// another.
pub fn options(
    kind: KeepKind,
    written: &[StateOption],
    options: &Options,
) -> Result<StateOptions, String> {
    let mut collected = Collected::default();
    for option in written {
        collected.add(option)?;
    }
    collected.state.kind = kind;
    collected.finish(options)
}

impl Collected {
    fn add(&mut self, option: &StateOption) -> Result<(), String> {
        let state = &mut self.state;
        match option {
            StateOption::Max(max) => {
                once(&mut state.max, *max, "max")?;
                state.max = state.max.filter(|max| *max > 0);
            }
            StateOption::NoSync => {
                if std::mem::replace(&mut state.no_sync, true) {
                    return Err("state option 'sync' multiple definitions".to_string());
                }
            }
            StateOption::SourceTrack(track) => {
                once(&mut self.source_track, *track, "source-track")?;
                self.tracks = true;
            }
            StateOption::MaxSrcStates(max) => {
                once(&mut state.max_src_states, *max, "max-src-states")?;
                not_zero(*max, "max-src-states")?;
                self.tracks = true;
            }
            StateOption::MaxSrcConn(max) => {
                once(&mut state.max_src_conn, *max, "max-src-conn")?;
                not_zero(*max, "max-src-conn")?;
                (self.tracks, self.by_rule) = (true, true);
            }
            StateOption::MaxSrcConnRate(connections, seconds) => {
                let rate = (*connections, *seconds);
                once(&mut state.max_src_conn_rate, rate, "max-src-conn-rate")?;
                if *connections == 0 || *seconds == 0 {
                    return Err("'max-src-conn-rate' values must be > 0".to_string());
                }
                if *connections > HIGHEST_RATE {
                    return Err(format!(
                        "'max-src-conn-rate' maximum rate must be < {HIGHEST_RATE}"
                    ));
                }
                (self.tracks, self.by_rule) = (true, true);
            }
            StateOption::MaxSrcNodes(max) => {
                once(&mut state.max_src_nodes, *max, "max-src-nodes")?;
                not_zero(*max, "max-src-nodes")?;
                (self.tracks, self.by_rule) = (true, true);
            }
            StateOption::Overload(overload) => {
                if state.overload.replace(overload.clone()).is_some() {
                    return Err("multiple 'overload' table definitions".to_string());
                }
            }
            StateOption::Sloppy => {
                if std::mem::replace(&mut state.sloppy, true) {
                    return Err("state sloppy option: multiple definitions".to_string());
                }
            }
            StateOption::Pflow => {
                if std::mem::replace(&mut state.pflow, true) {
                    return Err("state pflow option: multiple definitions".to_string());
                }
            }
            StateOption::Binding(policy) => {
                if std::mem::replace(&mut self.bound, true) {
                    return Err("state locking option: multiple definitions".to_string());
                }
                state.if_bound = *policy == StatePolicy::IfBound;
            }
            StateOption::Timeout(timeout, value) => {
                self.adaptive |= matches!(timeout, Timeout::AdaptiveStart | Timeout::AdaptiveEnd);
                let known = &mut self.timeouts[*timeout as usize];
                if *known != 0 {
                    let name = timeout.name();
                    return Err(format!("state timeout {name} multiple definitions"));
                }
                *known = *value;
            }
        }
        Ok(())
    }

    /// Adds the defaults that depend on the options and on `set` statements.
    fn finish(mut self, options: &Options) -> Result<StateOptions, String> {
        if let Some(max) = self.state.max.filter(|_| !self.adaptive) {
            for (timeout, value) in settings::adaptive(max) {
                self.timeouts[timeout as usize] = value;
            }
        }
        self.track_sources()?;
        if !self.bound {
            self.state.if_bound = options.state_policy == StatePolicy::IfBound;
        }
        let written = Timeout::ALL.into_iter().zip(self.timeouts).filter(|(_, value)| *value != 0);
        self.state.timeouts = written.collect();
        Ok(self.state)
    }

    fn track_sources(&mut self) -> Result<(), String> {
        if !self.tracks {
            return Ok(());
        }
        let written = self.source_track.flatten();
        let state = &mut self.state;
        for (used, name) in [
            (state.max_src_nodes.is_some(), "max-src-nodes"),
            (state.max_src_conn.is_some(), "max-src-conn"),
            (state.max_src_conn_rate.is_some(), "max-src-conn-rate"),
        ] {
            if used && written == Some(SourceTrack::Global) {
                return Err(format!("'{name}' is incompatible with 'source-track global'"));
            }
        }
        // a source must be tracked for as long as its connections are counted
        if let Some((_, seconds)) = state.max_src_conn_rate {
            let remembered = &mut self.timeouts[Timeout::SrcTrack as usize];
            *remembered = (*remembered).max(seconds);
        }
        let by_rule = self.by_rule || written == Some(SourceTrack::Rule);
        state.source_track = Some(if by_rule { SourceTrack::Rule } else { SourceTrack::Global });
        Ok(())
    }
}

fn once<T>(option: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    if option.replace(value).is_some() {
        return Err(format!("state option '{name}' multiple definitions"));
    }
    Ok(())
}

fn not_zero(value: u32, name: &str) -> Result<(), String> {
    if value == 0 { Err(format!("'{name}' must be > 0")) } else { Ok(()) }
}
