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
    text: "Restrict the operation to the given\n.Ar interface ,\nas far as\n.Fl F , k\nand\n.Fl s\n\
           are about interfaces or states.",
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
    brief: "with -k source: the source limiter that is to forget it",
    text: "With\n.Fl k Cm source :\nthe number of the source limiter that is to forget it.",
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
    text: "Kill the source tracking entries of the given host or network. A second\n.Fl K\ngives \
           the host or network that they are sent to.",
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
    text: "Kill the states that come from the given host or network. A second\n.Fl k\ngives the \
           host or network they go to. If the first\n.Ar key\nis the word\n.Cm label\nor\n.Cm id ,\n\
           the second one is the label of the rule that made the states, or the id of a state as\n\
           .Fl vvss\nprints it, with the creator's behind a slash if wished; if it is\n.Cm key ,\n\
           the second is\n.Dq protocol host1:port1 direction host2:port2\nas\n.Fl ss\nprints it; if \
           it is\n.Cm gateway ,\nit is the next hop that\n.Cm route-to\nand its like gave the states, or \
           a network; if it is\n.Cm source ,\nno states are killed: the source limiter\n.Fl I\nforgets \
           the address, and counts it anew when it comes again.",
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
    text: "Load the states in\n.Ar statefile ,\nwhich\n.Fl S\nhas written. They go on where they \
           were; those that are there already are left alone.",
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
    text: "Store the states in\n.Ar statefile ,\na JSON object a line: first one about the filter, \
           then each state. It is replaced in one piece, and only root may read it.",
    set: |args, value| {
        args.store_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn store_states() {
    assert_eq!(tests::args(&["-S", "states"]).store_states.as_deref(), Some("states"));
}
