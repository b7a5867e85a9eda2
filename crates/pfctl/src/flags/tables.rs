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
    text: "Execute\n\
           .Ar command\n\
           (may be abbreviated) on the table given with\n\
           .Fl t .\n\
           The addresses are operands, or come from the file given with\n\
           .Fl f .\n\
           .Bl -tag -width \"expire seconds\" -compact\n\
           .It Cm add\n\
           add the addresses to the table\n\
           .It Cm delete\n\
           delete the addresses from the table\n\
           .It Cm replace\n\
           replace the addresses of the table by the given addresses\n\
           .It Cm expire Ar seconds\n\
           delete the addresses whose statistics were not cleared for this time\n\
           .It Cm show\n\
           print the addresses of the table\n\
           .It Cm test\n\
           look the given addresses up, and exit with status 2 if one of them does not match\n\
           .It Cm flush\n\
           delete all addresses\n\
           .It Cm zero\n\
           clear the statistics of the given addresses, or of the whole table\n\
           .It Cm kill\n\
           delete the table\n\
           .It Cm load\n\
           load the tables of the rule set given with\n\
           .Fl f ,\n\
           but not its rules;\n\
           .Fl t\n\
           is not allowed\n\
           .El\n\
           .Pp\n\
           With\n\
           .Fl v ,\n\
           a command prints the addresses that it affects, and with\n\
           .Fl vv\n\
           all given addresses.\n\
           A letter in front says what happened to the address:\n\
           .Cm A\n\
           added,\n\
           .Cm D\n\
           deleted,\n\
           .Cm C\n\
           changed,\n\
           .Cm M\n\
           matches,\n\
           .Cm X\n\
           given twice,\n\
           .Cm Y\n\
           in the table with the opposite negation,\n\
           .Cm Z\n\
           cleared.",
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
