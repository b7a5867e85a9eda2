//! Flags about the packet filter as a whole.

use super::flag::{Flag, Name, Value, names, number};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
#[cfg(test)]
use crate::refusal::Refusal;
use crate::words;

pub(super) const DISABLE: Flag = Flag {
    name: Name::Letter('d'),
    value: None,
    brief: "disable the packet filter",
    text: "Disable the packet filter: detach it from every interface. Rules, tables and states stay \
           loaded.",
    set: |args, _| {
        args.disable = true;
        Ok(())
    },
};

#[test]
fn disable() {
    assert!(tests::args(&["-d"]).disable);
}

pub(super) const ENABLE: Flag = Flag {
    name: Name::Letter('e'),
    value: None,
    brief: "enable the packet filter",
    text: "Enable the packet filter: attach it to every interface. If the filter \
           is enabled, attach it to interfaces on which it is missing.",
    set: |args, _| {
        args.enable = true;
        Ok(())
    },
};

#[test]
fn enable() {
    assert!(tests::args(&["-e"]).enable);
}

pub(super) const FLUSH: Flag = Flag {
    name: Name::Letter('F'),
    value: Some(Value { name: "modifier", kind: Completion::Words(|| names(words::FLUSH)) }),
    brief: "flush rules, nat, states, Sources, info, Tables, osfp, all of them, or Reset",
    text: "Flush the filter parameters specified by\n.Ar modifier\n(may be abbreviated):\n.Cm \
           rules , nat\n(legacy translation rules, which\n.Cm rules\nflushes, too),\n.Cm states , \
           Sources\n(source tracking),\n.Cm info\n(statistics that are not bound to rules),\n.Cm \
           Tables , osfp\n(fingerprints) or\n.Cm all\nof them;\n.Cm Reset\nresets limits, \
           timeouts and other options to their defaults. With\n.Fl i ,\nflush only states or \
           statistics of this interface; with\n.Fl a ,\nonly rules and tables of this anchor.",
    set: |args, value| {
        args.flush = Some(words::lookup(words::FLUSH, value, "flush modifier")?);
        Ok(())
    },
};

#[test]
fn flush() {
    assert_eq!(tests::args(&["-Fs"]).flush, Some(words::Flush::States));
    assert_eq!(tests::args(&["-F", "all"]).flush, Some(words::Flush::All));
    assert_eq!(tests::refusal(&["-Fx"]), Refusal::Usage("Unknown flush modifier 'x'".into()));
}

pub(super) const INSTANCE: Flag = Flag {
    name: Name::Letter('p'),
    value: Some(Value { name: "instance", kind: Completion::None }),
    brief: "name of the instance of the filter",
    text: "Name of the instance of the filter. By default it is the instance of the network \
           namespace, so\neach namespace can have its own filter.",
    set: |args, value| {
        args.instance = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn instance() {
    assert_eq!(tests::args(&["-plab", "-e"]).instance.as_deref(), Some("lab"));
}

pub(super) const RDOMAIN: Flag = Flag {
    name: Name::Letter('V'),
    value: Some(Value { name: "rdomain", kind: Completion::None }),
    brief: "with -k: routing domain of the states, or of the source (0)",
    text: "With\n.Fl k :\nkill only states, or the source of a limiter, of this routing domain. \
           The default is 0.",
    set: |args, value| {
        args.rdomain = Some(number(value, "rdomain")?);
        Ok(())
    },
};

#[test]
fn rdomain() {
    assert_eq!(tests::args(&["-V", "3", "-k", "10.0.0.1"]).rdomain, Some(3));
    assert_eq!(tests::refusal(&["-V", "-1"]), Refusal::Usage("rdomain -1: too small".into()));
}

// Differs from OpenBSD: linux.md, "Debug level"
pub(super) const DEBUG_LEVEL: Flag = Flag {
    name: Name::Letter('x'),
    value: Some(Value { name: "level", kind: Completion::Words(|| names(words::DEBUG_LEVEL)) }),
    brief: "set the debug level",
    text: "Set the debug\n.Ar level\n(may be abbreviated) to\n\
           .Cm emerg , alert , crit , error , warning , notice , info\nor\n.Cm debug .",
    set: |args, value| {
        args.debug_level = Some(words::lookup(words::DEBUG_LEVEL, value, "debug level")?);
        Ok(())
    },
};

#[test]
fn debug_level() {
    assert_eq!(tests::args(&["-x", "err"]).debug_level, Some(3));
    assert_eq!(
        tests::refusal(&["-x", "loud"]),
        Refusal::Usage("Unknown debug level 'loud'".into())
    );
}

pub(super) const ZERO: Flag = Flag {
    name: Name::Letter('z'),
    value: None,
    brief: "clear the counters of rules",
    text: "Clear the counters of all rules; with\n.Fl s Cm rules\nor\n.Fl s Cm labels ,\nafter \
           showing them.",
    set: |args, _| {
        args.zero = true;
        Ok(())
    },
};

#[test]
fn zero() {
    assert!(tests::args(&["-z"]).zero);
}

pub(super) const REMOVE: Flag = Flag {
    name: Name::Long("remove"),
    value: None,
    brief: "disable the filter and remove all of it from the kernel",
    text: "Disable the filter and remove all of it from the kernel: programs, rules, tables, states \
           and counters. The machine is as it was before the first rule set was loaded.",
    set: |args, _| {
        args.remove = true;
        Ok(())
    },
};

#[test]
fn remove() {
    assert!(tests::args(&["-p", "lab", "--remove"]).remove);
}

pub(super) const ROOM_FOR: Flag = Flag {
    name: Name::Long("room-for"),
    value: Some(Value { name: "file", kind: Completion::File }),
    brief: "file whose limits and number of rules to reserve memory for",
    text: "Before\n.Fl f ,\nreserve memory for the limits that\n.Ar file\nsets, and for as many \
           rules as it has. Memory cannot be added once the filter is enabled.\nThe file is not \
           loaded, and lines with errors are ignored.\nIf there is not enough memory,\n.Cm pfctl\n\
           prints a warning.\nAt boot, the rules that are loaded before the network is up reserve \
           memory for the later rules\nin this way.",
    set: |args, value| {
        args.room_for = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn room_for() {
    assert_eq!(tests::args(&["--room-for", "a"]).room_for, Some("a".into()));
}
