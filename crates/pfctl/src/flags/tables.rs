//! Flags about tables.

use super::flag::{Flag, Name, Value, names};
#[cfg(test)]
use super::tests;
use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::words;

pub(super) const COMMAND: Flag = Flag {
    name: Name::Letter('T'),
    value: Some(Value { name: "command", kind: Completion::Words(|| names(words::TABLE_COMMAND)) }),
    brief: "with -t: add, delete, expire, flush, kill, replace, show, test or zero; or load",
    text: "Execute\n.Ar command\n(may be abbreviated) on the table given with\n.Fl t :\n.Cm add , \
           delete\nor\n.Cm replace\naddresses,\n.Cm expire Ar seconds\n(delete the addresses \
           whose statistics were not cleared for this time),\n.Cm show\naddresses,\n.Cm test\nif \
           addresses match (exit status 2 if not all do),\n.Cm flush\nall addresses,\n.Cm zero\n\
           the counters, or\n.Cm kill\nthe table. Addresses are operands, or come from the file \
           given with\n.Fl f .\nWith\n.Fl v ,\nlist the addresses that are affected, with\n.Fl \
           vv\nall addresses, after a letter:\n.Cm A\nadded,\n.Cm D\ndeleted,\n.Cm C\nchanged,\n\
           .Cm M\nmatches,\n.Cm X\nduplicate,\n.Cm Y\nconflict: the table has the address with \
           the opposite negation,\n.Cm Z\ncleared. Without\n.Fl t , Cm load\nloads only the \
           tables of the rule set given with\n.Fl f .",
    set: |args, value| {
        args.command = Some(words::lookup(words::TABLE_COMMAND, value, "table command")?);
        Ok(())
    },
};

#[test]
fn command() {
    let args = tests::args(&["-t", "bad", "-Tadd", "10.0.0.1"]);
    assert_eq!(args.command, Some(words::TableCommand::Add));
    assert_eq!(args.operands, ["10.0.0.1"]);
    assert_eq!(
        tests::refusal(&["-t", "bad", "-T", "make"]),
        Refusal::Usage("Unknown table command 'make'".into())
    );
}

pub(super) const TABLE: Flag = Flag {
    name: Name::Letter('t'),
    value: Some(Value { name: "table", kind: Completion::Table }),
    brief: "name of the table for -T",
    text: "Name of the table for\n.Fl T ,\nof 1 to 31 bytes.",
    set: |args, value| {
        // OpenBSD's structures have room for 31 bytes and a NUL
        if value.is_empty() || value.len() > 31 {
            return Err(Refusal::Usage(format!("table name '{value}' must have 1 to 31 bytes")));
        }
        args.table = Some(value.to_string());
        Ok(())
    },
};

#[test]
fn table() {
    assert_eq!(tests::args(&["-Ts", "-t", "bad"]).table.as_deref(), Some("bad"));
    assert!(matches!(tests::refusal(&["-Ts", "-t", &"x".repeat(32)]), Refusal::Usage(_)));
}
