//! Messages about a pf.conf. The first line is OpenBSD's; further lines help on a terminal.

use std::fmt;

/// A message about a place in a pf.conf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity of the message.
    pub kind: Severity,
    /// Name of the text, as in the context.
    pub file: String,
    /// Line of the error, from 1; 0 if the message is about no line.
    pub line: u32,
    /// Column in characters, from 1, of the wrong word; 0 if no single word is wrong.
    pub column: u32,
    /// Length in characters of the wrong word.
    pub width: u32,
    /// The message, in OpenBSD's words where OpenBSD has the same error.
    pub message: String,
    /// True if OpenBSD prints the message without a place, as its address parser does.
    pub bare: bool,
    /// The source line; empty if there is none.
    pub source: String,
    /// Advice for a correction.
    pub help: Option<String>,
}

/// The severities of a [`Diagnostic`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Severity {
    /// The rule set cannot be loaded.
    #[default]
    Error,
    /// The rule set can be loaded, but probably has an unintended meaning.
    Warning,
    /// The rule set can be loaded and is correct. `pfctl -vv` prints notes.
    Note,
}

impl Severity {
    /// True if the rule set can be loaded.
    pub fn is_harmless(self) -> bool {
        matches!(self, Severity::Warning | Severity::Note)
    }
}

impl Diagnostic {
    /// True for an error in the syntax of the text, which does not depend on the meaning of names.
    pub fn is_syntax_error(&self) -> bool {
        let lexical =
            ["syntax error", "string too long", "reached end of file while parsing quoted string"];
        let undefined =
            self.message.starts_with("macro '") && self.message.ends_with("not defined");
        self.kind == Severity::Error && (undefined || lexical.contains(&self.message.as_str()))
    }

    /// Returns the message for a terminal, with its source line, a caret below the wrong word, and
    /// advice.
    pub fn explain(&self) -> String {
        let mut text = self.to_string();
        if !self.source.trim().is_empty() {
            if self.bare && self.line > 0 {
                text += &format!("\n    {}, line {}:", self.file, self.line);
            }
            text += &format!("\n    {}", self.source.replace('\t', " "));
            if self.column > 0 {
                let blanks = " ".repeat(self.column as usize - 1);
                text += &format!("\n    {blanks}{}", "^".repeat(self.width.max(1) as usize));
            }
        }
        if let Some(help) = &self.help {
            text += &format!("\n    help: {help}");
        }
        text
    }
}

/// Prints the message as one line without line end.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.bare {
            write!(f, "{}:{}: ", self.file, self.line)?;
        }
        f.write_str(&self.message)
    }
}

/// Returns column and length, in characters, of the word in `source` that `message` is about. Both
/// are 0 if no single word is wrong.
pub(crate) fn at_fault(message: &str, source: &str) -> (u32, u32) {
    let words = words_at_fault(message);
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut begin = 0;
    for part in source.split_inclusive(|c| !is_of_word(c)) {
        let word = part.trim_end_matches(|c| !is_of_word(c));
        if words.contains(&word) {
            let column = source[..begin].chars().count() + 1;
            return (column as u32, word.chars().count() as u32);
        }
        begin += part.len();
    }
    (0, 0)
}

/// Returns the words that `message`, about a whole statement, may be about. The first of them in
/// the statement is the wrong word.
fn words_at_fault(message: &str) -> &'static [&'static str] {
    const ICMP: &[&str] = &["icmp-type", "icmp6-type"];
    const ROUTE: &[&str] = &["route-to", "reply-to", "dup-to"];
    match message {
        "port only applies to tcp/udp" => &["port"],
        "user only applies to tcp/udp" => &["user"],
        "group only applies to tcp/udp" => &["group"],
        "os only applies to tcp" => &["os"],
        "icmp-type/code only applies to icmp"
        | "icmp-type mismatch"
        | "must indicate address family with icmp-type/code" => ICMP,
        "'overload' requires 'max-src-conn' or 'max-src-conn-rate'" => &["overload"],
        "must indicate different address family with af-to"
        | "af-to can only be used with direction in"
        | "af-to is not supported on match rules" => &["af-to"],
        "proto icmp doesn't match address family inet6" => &["icmp"],
        "proto icmp6 doesn't match address family inet" => &["icmp6", "ipv6-icmp"],
        "allow-opts can only be specified for pass rules" => &["allow-opts"],
        "fragments can be filtered only on IP header fields" => &["fragment"],
        "return-rst can only be applied to TCP rules" => &["return-rst"],
        "keep state is great, but only for pass rules" => &["keep", "modulate", "synproxy"],
        "route-to, reply-to and dup-to require keep state"
        | "route-to, reply-to and dup-to are not supported on match rules"
        | "route-to, reply-to and dup-to are not supported on block rules"
        | "direction must be explicit with rules that specify routing" => ROUTE,
        "nat-to and rdr-to require keep state" | "nat-to and rdr-to require a direction" => {
            &["nat-to", "rdr-to", "binat-to"]
        }
        "sloppy state matching cannot be used with synproxy state or modulate state" => &["sloppy"],
        "address family inet6 does not support scrub options no-df, random-id" => {
            &["no-df", "random-id"]
        }
        "divert is not supported on match rules" => &["divert-to", "divert-reply", "divert-packet"],
        "divert-to used with outgoing rule" | "divert-to address family mismatch" => &["divert-to"],
        "divert-reply used with incoming rule" => &["divert-reply"],
        "'once' only applies to pass/block rules" => &["once"],
        "tag too long, max 63 chars" => &["tag", "tagged"],
        "rule label too long (max 63 chars)" => &["label"],
        "flags always false" | "flags only apply to tcp" => &["flags"],
        "r.rpool.opts must be PF_POOL_ROUNDROBIN" => {
            &["bitmask", "random", "source-hash", "least-states"]
        }
        "binat-to cannot be specified with a direction" => &["binat-to"],
        _ => &[],
    }
}

/// Returns advice for `message`, which is about a whole statement.
pub(crate) fn help(message: &str) -> Option<String> {
    let help = match message {
        "r.rpool.opts must be PF_POOL_ROUNDROBIN" => {
            "several next hops are used in rotation: leave out the pool type, or write \
             `round-robin`"
        }
        "port only applies to tcp/udp"
        | "user only applies to tcp/udp"
        | "group only applies to tcp/udp" => "add `proto tcp`, `proto udp` or `proto { tcp, udp }`",
        "rule expands to no valid combination" => {
            "the parts of the rule contradict each other: addresses of two families, or of two interfaces"
        }
        "icmp-type/code only applies to icmp" => "add `proto icmp` (or `proto icmp6`)",
        "icmp-type mismatch" => {
            "`icmp-type` goes with `proto icmp`, `icmp6-type` with `proto icmp6`"
        }
        "must indicate address family with icmp-type/code" => {
            "add `inet` or `inet6` in front of `proto`"
        }
        "return-rst can only be applied to TCP rules" => "add `proto tcp`, or write `block return`",
        "keep state is great, but only for pass rules" => "leave out `keep state`",
        "flags always false" => "the mask behind `/` must contain all flags in front of it",
        "os only applies to tcp" | "flags only apply to tcp" => "add `proto tcp`",
        "nat-to and rdr-to require a direction" => {
            "packets get another source when they go `out`, another destination when they come `in`"
        }
        "direction must be explicit with rules that specify routing" => "add `in` or `out`",
        "tables are not supported by pool type" => "use round-robin, random or least-states",
        "dynamic interfaces must be used with :0 in a binat-to rule" => {
            "write `:0` behind the interface to select its first address"
        }
        _ => return None,
    };
    Some(help.to_string())
}
