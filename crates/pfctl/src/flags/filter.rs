//! Flags about the packet filter as a whole.

use super::flag::{Flag, Name, Value, names, number};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::words;

pub(super) const DISABLE: Flag = Flag {
    name: Name::Letter('d'),
    value: None,
    brief: "disable the packet filter",
    text: "Disable the packet filter: detach it from every interface.\n\
           Rules, tables and states stay loaded.\n\
           All references of\n\
           .Fl E\n\
           become invalid.",
    set: |args, _| {
        args.disable = true;
        Ok(())
    },
};

#[test]
fn disable() {
    assert!(tests::args(&["-d"]).disable);
}

// Differs from OpenBSD: linux.md, "Flags of macOS and FreeBSD"
pub(super) const TAKE_REFERENCE: Flag = Flag {
    name: Name::Letter('E'),
    value: None,
    brief: "enable the packet filter until -X releases the printed token, as on macOS",
    text: "Enable the packet filter, as\n\
           .Fl e\n\
           does, take a reference, and print its token.\n\
           The filter stays enabled until\n\
           .Fl X\n\
           has released all references.\n\
           .Fl e\n\
           counts as a reference without a token, which only\n\
           .Fl d\n\
           releases.\n\
           The flag comes from macOS.",
    set: |args, _| {
        args.take_reference = true;
        Ok(())
    },
};

#[test]
fn take_reference() {
    let args = tests::args(&["-Ef", "/etc/pf.conf"]);
    assert!(args.take_reference && args.enables() && !args.enable);
}

pub(super) const ENABLE: Flag = Flag {
    name: Name::Letter('e'),
    value: None,
    brief: "enable the packet filter",
    text: "Enable the packet filter: attach it to every interface.\n\
           If the filter is enabled already, attach it to interfaces on which it is missing.",
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
    text: "Flush the part of the filter that\n\
           .Ar modifier\n\
           (may be abbreviated) names:\n\
           .Cm rules\n\
           (filter rules and legacy translation rules),\n\
           .Cm nat\n\
           (legacy translation rules only),\n\
           .Cm states , Sources\n\
           (source tracking entries),\n\
           .Cm info\n\
           (statistics that belong to no rule),\n\
           .Cm Tables , osfp\n\
           (fingerprints), or\n\
           .Cm all\n\
           of these parts.\n\
           .Cm Reset\n\
           resets limits, timeouts and other options to their defaults.\n\
           With\n\
           .Fl i ,\n\
           only states or statistics of this interface are flushed.\n\
           With\n\
           .Fl a ,\n\
           only rules and tables of this anchor are flushed.",
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
    text: "Name of the instance of the filter.\n\
           By default it is the instance of the network namespace.\n\
           So each namespace can have its own filter.\n\
           A path in\n\
           .Dq /dev ,\n\
           such as\n\
           .Dq /dev/pf ,\n\
           means the default instance: on OpenBSD this flag names the device of pf.",
    set: |args, value| {
        // Differs from OpenBSD: linux.md, "Instances and namespaces"
        args.instance = (!value.starts_with("/dev/")).then(|| value.to_string());
        Ok(())
    },
};

#[test]
fn instance() {
    assert_eq!(tests::args(&["-plab", "-e"]).instance.as_deref(), Some("lab"));
    for device in ["/dev/pf", "/dev/fd/4"] {
        assert_eq!(tests::args(&["-p", device, "-e"]).instance, None, "{device}");
    }
    assert_eq!(tests::args(&["-p", "/tmp/pf", "-e"]).instance.as_deref(), Some("/tmp/pf"));
}

pub(super) const RDOMAIN: Flag = Flag {
    name: Name::Letter('V'),
    value: Some(Value { name: "rdomain", kind: Completion::None }),
    brief: "with -k: routing domain of the states, or of the source (0)",
    text: "With\n\
           .Fl k :\n\
           the routing domain of the states, or of the source of a limiter.\n\
           The default is 0.\n\
           With\n\
           .Fl k Cm id\n\
           it has no effect.",
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

// Differs from OpenBSD: linux.md, "Flags of macOS and FreeBSD"
pub(super) const RELEASE_REFERENCE: Flag = Flag {
    name: Name::Letter('X'),
    value: Some(Value { name: "token", kind: Completion::None }),
    brief: "release the reference of -E with this token, as on macOS",
    text: "Release the reference that\n\
           .Fl E\n\
           has taken with this\n\
           .Ar token .\n\
           If no reference is left, disable the packet filter.\n\
           The flag comes from macOS.",
    set: |args, value| {
        let wrong = |_| Refusal::Usage(format!("token {value}: invalid"));
        args.release = Some(value.parse().map_err(wrong)?);
        Ok(())
    },
};

#[test]
fn release_reference() {
    let args = tests::args(&["-X", "15053025338191571182"]);
    assert_eq!(args.release, Some(15_053_025_338_191_571_182));
    for token in ["", "x", "-1", "18446744073709551616"] {
        let message = format!("token {token}: invalid");
        assert_eq!(tests::refusal(&["-X", token]), Refusal::Usage(message));
    }
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
    text: "Clear the counters of all rules.\n\
           With\n\
           .Fl s ,\n\
           the output has the counters as they were before.",
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
    text: "Disable the filter and remove all of it from the kernel: programs, rules, tables,\n\
           states and counters.\n\
           The machine is then as it was before the first rule set was loaded.",
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
    text: "Before\n\
           .Fl f ,\n\
           reserve memory for the limits that\n\
           .Ar file\n\
           sets, and for as many rules as it has.\n\
           The file is not loaded, and lines with errors are ignored.\n\
           If there is not enough memory,\n\
           .Cm pfctl\n\
           prints a warning.\n\
           Memory cannot be added once the filter is enabled.\n\
           At boot, a first rule set is loaded before the network is up.\n\
           This flag then reserves memory for the rule set that is loaded later.",
    set: |args, value| {
        args.room_for = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn room_for() {
    assert_eq!(tests::args(&["--room-for", "a"]).room_for, Some("a".into()));
}
