//! `-s confirm`: prints the load on trial, and its changes.

use chrono::{DateTime, Local};
use nix::unistd::{Uid, User};
use serde_json::{Value, json};
use skipstep_kernel::trial::{Trial, TrialView};
use skipstep_ruleset::Ruleset;

use crate::diff::{self, Side};

/// The load on trial, or the last load that was not confirmed.
pub struct ConfirmView<'a> {
    /// The load on trial.
    pub pending: Option<TrialView>,
    /// The last load on trial if it was not confirmed.
    pub failed: Option<Trial>,
    /// The rule set in force.
    pub in_force: &'a Ruleset,
}

/// Prints the load on trial, the time that is left, and the statements that it changes.
pub fn text(view: &ConfirmView) -> String {
    let Some(pending) = &view.pending else {
        return "No rules are on trial.\n".to_owned() + &failed_line(view.failed.as_ref());
    };
    let trial = &pending.trial;
    let mut text = format!("On trial: {}\n  loaded by {}\n", file(trial), loaded_by(trial));
    text += &format!(
        "  the rules before come back in {} s (of {} s): run `pfctl confirm` to keep these rules\n",
        pending.seconds_left, trial.seconds
    );
    text += match trial.keep_states {
        true => "  states of new rules stay then (--keep-states)\n",
        false => "  states of new rules end then\n",
    };
    if trial.text.is_some() {
        text += "  `pfctl confirm` writes the rules to /etc/pf.conf\n";
    }
    let [before, now] = sides(pending, view.in_force);
    let changes = diff::changes(&before, &now);
    text += if changes.is_empty() { "No statement differs.\n" } else { "Changes:\n" };
    changes.iter().fold(text, |text, change| text + &format!("{change}\n"))
}

/// Returns an object with the load on trial and its changes, or with the last load that failed.
pub fn json(view: &ConfirmView) -> Value {
    json!({
        "pending": view.pending.as_ref().map(|pending| {
            let [before, now] = sides(pending, view.in_force);
            let changes = diff::changes(&before, &now);
            let mut object = load_json(&pending.trial);
            object["seconds_left"] = json!(pending.seconds_left);
            object["changes"] = changes.iter().map(diff::Change::json).collect();
            object
        }),
        "failed": view.failed.as_ref().map(load_json),
    })
}

/// Returns the part of `-s info` about a trial.
pub fn info_json(pending: Option<&TrialView>) -> Value {
    pending.map_or(Value::Null, |pending| {
        let mut object = load_json(&pending.trial);
        object["seconds_left"] = json!(pending.seconds_left);
        object
    })
}

fn load_json(trial: &Trial) -> Value {
    json!({
        "file": trial.file,
        "uid": trial.load.uid,
        "pid": trial.load.pid,
        "loaded_at": trial.load.at,
        "seconds": trial.seconds,
        "keep_states": trial.keep_states,
    })
}

fn sides(pending: &TrialView, in_force: &Ruleset) -> [Side; 2] {
    let side = |ruleset: &Ruleset| Side { file: String::new(), ruleset: ruleset.clone() };
    [side(&pending.kept), side(in_force)]
}

fn failed_line(failed: Option<&Trial>) -> String {
    let Some(trial) = failed else { return String::new() };
    format!(
        "The last load on trial ({}, by {}) was not confirmed in {} s: the rules before came back.\n",
        file(trial),
        loaded_by(trial),
        trial.seconds
    )
}

fn file(trial: &Trial) -> &str {
    match trial.file.as_str() {
        "" => "a change without a file",
        "-" => "standard input",
        file => file,
    }
}

fn loaded_by(trial: &Trial) -> String {
    let time = DateTime::from_timestamp(trial.load.at as i64, 0);
    let time = time.map(|time| time.with_timezone(&Local).format("%a %b %e %H:%M:%S %Y"));
    let time = time.map_or(String::new(), |time| format!(" on {time}"));
    format!("{} (process {}){time}", user(trial.load.uid), trial.load.pid)
}

/// Returns the name of a user, or the number if the user has no name.
pub fn user(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => format!("user {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use skipstep_pfconf::Context;
    use skipstep_ruleset::interface::Host;

    use super::*;

    fn rules(text: &str) -> Ruleset {
        let host = Host::default();
        skipstep_pfconf::load(text, &Context::new(&host)).unwrap().ruleset
    }

    #[test]
    fn the_text_has_the_time_and_the_changes() {
        let trial = Trial { file: "new.conf".into(), seconds: 60, ..Trial::default() };
        let pending = TrialView { trial, seconds_left: 41, kept: rules("pass") };
        let now = rules("block");
        let view = ConfirmView { pending: Some(pending), failed: None, in_force: &now };
        let text = text(&view);
        assert!(text.starts_with("On trial: new.conf\n  loaded by root (process 0) on "), "{text}");
        assert!(text.contains("come back in 41 s (of 60 s): run `pfctl confirm`"), "{text}");
        assert!(text.contains("\n- pass all") && text.contains("\n+ block drop all"), "{text}");
        let json = json(&view);
        assert_eq!(json["pending"]["seconds_left"], 41);
        assert_eq!(json["pending"]["changes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn without_a_trial_the_last_failure_is_told() {
        let now = rules("");
        let view = |failed| ConfirmView { pending: None, failed, in_force: &now };
        assert_eq!(text(&view(None)), "No rules are on trial.\n");
        let failed = Trial { file: "-".into(), seconds: 5, ..Trial::default() };
        let text = text(&view(Some(failed)));
        assert!(text.contains("(standard input, by root (process 0)"), "{text}");
        assert!(
            text.ends_with("was not confirmed in 5 s: the rules before came back.\n"),
            "{text}"
        );
    }
}
