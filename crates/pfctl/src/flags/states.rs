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
    text: "Restrict\n\
           .Fl F , k\n\
           and\n\
           .Fl s\n\
           to the states and statistics of this\n\
           .Ar interface .",
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
    text: "With\n\
           .Fl k Cm source :\n\
           the number of the source limiter, from 1 to 255.",
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
    text: "Kill the source tracking entries of the given host or network.\n\
           With a second\n\
           .Fl K ,\n\
           kill only entries whose pool has chosen an address of the second host or network.",
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
    text: "Kill the states whose source is the given host or network.\n\
           With a second\n\
           .Fl k ,\n\
           the destination must also be the second host or network.\n\
           Sources and destinations are those before translation.\n\
           .Pp\n\
           If the first\n\
           .Ar key\n\
           is one of these words, the word says what the second\n\
           .Ar key\n\
           is:\n\
           .Bl -tag -width gateway\n\
           .It Cm label\n\
           The label of the rule that created the states.\n\
           .It Cm id\n\
           The id of a state, as\n\
           .Fl vvss\n\
           prints it.\n\
           A slash and the id of the state's creator may follow.\n\
           .It Cm key\n\
           A state in the form\n\
           .Dq protocol host1:port1 direction host2:port2 ,\n\
           as\n\
           .Fl ss\n\
           prints it.\n\
           .It Cm gateway\n\
           The next hop that\n\
           .Cm route-to , reply-to\n\
           or\n\
           .Cm dup-to\n\
           chose for the states, or a network of next hops.\n\
           .It Cm source\n\
           An address, which the source limiter of\n\
           .Fl I\n\
           forgets.\n\
           No states are killed.\n\
           If the address appears again, the limiter counts its states from 0.\n\
           .El",
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
    text: "Load the states in\n\
           .Ar statefile ,\n\
           which\n\
           .Fl S\n\
           has written.\n\
           The states continue as they were when they were stored.\n\
           States that exist already are not changed.",
    set: |args, value| {
        args.load_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn load_states() {
    assert_eq!(tests::args(&["-L", "states"]).load_states.as_deref(), Some("states"));
}

// Differs from OpenBSD: linux.md, "Flags of macOS and FreeBSD"
pub(super) const BOTH_SIDES: Flag = Flag {
    name: Name::Letter('M'),
    value: None,
    brief: "with -k and -F states: also kill the state on the connection's other interface",
    text: "With\n\
           .Fl k\n\
           and\n\
           .Fl F Cm states :\n\
           a forwarded connection has a state on each of its two interfaces.\n\
           If one of them is killed, also kill the other.\n\
           The flag comes from FreeBSD.",
    set: |args, _| {
        args.both_sides = true;
        Ok(())
    },
};

#[test]
fn both_sides() {
    assert!(tests::args(&["-M", "-k", "10.0.0.1"]).both_sides);
    assert!(tests::args(&["-M", "-i", "em0", "-Fs"]).both_sides);
    for line in [&["-M", "-e"][..], &["-M", "-Fr"], &["-M", "-I1", "-k", "source", "-k", "::1"]] {
        let message = "-M applies to states of -k and -F only".into();
        assert_eq!(tests::refusal(line), Refusal::Usage(message), "{line:?}");
    }
}

pub(super) const STORE_STATES: Flag = Flag {
    name: Name::Letter('S'),
    value: Some(Value { name: "statefile", kind: Completion::File }),
    brief: "store all states in a file, for -L",
    text: "Store the states in\n\
           .Ar statefile ,\n\
           one JSON object a line.\n\
           The first object describes the filter, and each later object is a state.\n\
           The file is replaced atomically, and only root may read it.",
    set: |args, value| {
        args.store_states = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn store_states() {
    assert_eq!(tests::args(&["-S", "states"]).store_states.as_deref(), Some("states"));
}
