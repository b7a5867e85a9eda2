//! Flags about states, source nodes and limiters.

use super::flag::{Flag, Name, Value, number};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
use crate::refusal::Refusal;

pub(super) const INTERFACE: Flag = Flag {
    name: Name::Letter('i'),
    value: Some(Value { name: "interface", kind: Completion::Interface }),
    brief: "restrict -s states, -s Interfaces, -F states, -F info and -k to an interface",
    text: "Restrict\n.Fl F , k\nand\n.Fl s\nto states and statistics of the given\n.Ar interface .",
    set: |args, value| {
        args.interface = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn interface() {
    assert_eq!(tests::args(&["-i", "em0", "-ss"]).interface.as_deref(), Some("em0"));
}

/// Valid numbers of limiters.
const LIMITERS: std::ops::RangeInclusive<u32> = 1..=255;

pub(super) const LIMITER: Flag = Flag {
    name: Name::Letter('I'),
    value: Some(Value { name: "id", kind: Completion::None }),
    brief: "with -k source: number of the source limiter",
    text: "With\n.Fl k Cm source :\nthe number of the source limiter, from 1 to 255.",
    set: |args, value| {
        let id = number(value, "limiter id")?;
        if !LIMITERS.contains(&id) {
            let wrong = if id == 0 { "too small" } else { "too large" };
            return Err(Refusal::Usage(format!("limiter id {value}: {wrong}")));
        }
        args.limiter = Some(id);
        Ok(())
    },
};

#[test]
fn limiter() {
    let args = tests::args(&["-I", "7", "-k", "source", "-k", "10.0.0.1"]);
    assert_eq!(args.limiter, Some(7));
    for (id, wrong) in [("0", "too small"), ("256", "too large"), ("x", "invalid")] {
        let message = format!("limiter id {id}: {wrong}");
        assert_eq!(tests::refusal(&["-I", id]), Refusal::Usage(message));
    }
}

pub(super) const KILL_SOURCES: Flag = Flag {
    name: Name::Letter('K'),
    value: Some(Value { name: "key", kind: Completion::None }),
    brief: "kill source tracking entries by source, or by source and destination",
    text: "Kill the source tracking entries of the given host or network. With a second\n.Fl K ,\n\
           kill only the entries from the first to the second host or network.",
    set: |args, value| {
        if args.kill_sources.len() == 2 {
            return Err(Refusal::Usage("can only specify -K twice".into()));
        }
        args.kill_sources.push(value.to_string());
        Ok(())
    },
};

#[test]
fn kill_sources() {
    assert_eq!(tests::args(&["-K", "10.0.0.1"]).kill_sources, ["10.0.0.1"]);
    assert_eq!(
        tests::refusal(&["-Ka", "-Kb", "-Kc"]),
        Refusal::Usage("can only specify -K twice".into())
    );
}

pub(super) const KILL: Flag = Flag {
    name: Name::Letter('k'),
    value: Some(Value { name: "key", kind: Completion::None }),
    brief: "kill states by source, by source and destination, by label or by id",
    text: "Kill the states that originate from the given host or network. With a second\n.Fl k ,\n\
           kill only the states from the first to the second host or network. The first\n.Ar key\n\
           may be a word, which gives the second one another meaning.\n.Cm label :\nthe label of \
           the rule that created the states.\n.Cm id :\nthe id of a state as\n.Fl vvss\nprints \
           it, optionally with a slash and the id of its creator.\n.Cm key :\n.Dq protocol \
           host1:port1 direction host2:port2\nas\n.Fl ss\nprints it.\n.Cm gateway :\nthe next hop \
           that\n.Cm route-to , reply-to\nor\n.Cm dup-to\nset for the states, or a network.\n.Cm \
           source :\nan address. No states are killed; the source limiter\n.Fl I\nremoves the \
           address, and counts it from 0 if it appears again.",
    set: |args, value| {
        if args.kill.len() == 2 {
            return Err(Refusal::Usage("can only specify -k twice".into()));
        }
        args.kill.push(value.to_string());
        Ok(())
    },
};

#[test]
fn kill() {
    assert_eq!(tests::args(&["-k", "10.0.0.1", "-k", "0.0.0.0/0"]).kill, ["10.0.0.1", "0.0.0.0/0"]);
    assert_eq!(
        tests::refusal(&["-ka", "-kb", "-kc"]),
        Refusal::Usage("can only specify -k twice".into())
    );
}

pub(super) const LOAD_STATES: Flag = Flag {
    name: Name::Letter('L'),
    value: Some(Value { name: "statefile", kind: Completion::File }),
    brief: "load states from a file that -S wrote",
    text: "Load the states in\n.Ar statefile ,\nwhich\n.Fl S\nhas written. The states continue \
           where they were stored. States that exist already are not changed.",
    set: |args, value| {
        args.load_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn load_states() {
    assert_eq!(tests::args(&["-L", "states"]).load_states.as_deref(), Some("states"));
}

pub(super) const STORE_STATES: Flag = Flag {
    name: Name::Letter('S'),
    value: Some(Value { name: "statefile", kind: Completion::File }),
    brief: "store all states in a file, for -L",
    text: "Store the states in\n.Ar statefile ,\none JSON object a line: the first describes the \
           filter, and each later one a state. The file is\nreplaced atomically, and only root \
           may read it.",
    set: |args, value| {
        args.store_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn store_states() {
    assert_eq!(tests::args(&["-S", "states"]).store_states.as_deref(), Some("states"));
}
