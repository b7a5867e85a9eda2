//! Checks of netfilter: the tables of other programs, which filter packets beside skipstep, and the
//! marks that their rules write.

use std::fmt;

use serde_json::Value;

use super::finding::Finding;
use super::output_of;

const SUBJECT: &str = "netfilter";

/// Table of skipstep-closed.service, which blocks nearly all packets if the filter cannot start.
const CLOSED: &str = "skipstep_closed";

/// Beginnings of names of chains and tables, with the program that makes them.
const OWNERS: [(&str, &str); 16] = [
    ("DOCKER", "Docker"),
    ("docker-", "Docker"),
    ("KUBE-", "kube-proxy"),
    ("kube-proxy", "kube-proxy"),
    ("cali-", "Calico"),
    ("calico", "Calico"),
    ("CILIUM_", "Cilium"),
    ("FLANNEL-", "flannel"),
    ("WEAVE", "Weave Net"),
    ("ts-", "Tailscale"),
    ("f2b-", "fail2ban"),
    ("ufw-", "ufw"),
    ("firewalld", "firewalld"),
    ("LIBVIRT_", "libvirt"),
    ("libvirt_", "libvirt"),
    (CLOSED, "skipstep-closed"),
];

/// Files with the tables of the old iptables, and the programs that print and change them.
const LEGACY: [(&str, &str, &str); 2] = [
    ("/proc/net/ip_tables_names", "ip", "iptables-legacy"),
    ("/proc/net/ip6_tables_names", "ip6", "ip6tables-legacy"),
];

/// The tables of other programs, as far as they can be seen.
pub struct Facts {
    tables: Vec<Table>,
    /// The reason why tables may be missing.
    unseen: Option<&'static str>,
}

impl Facts {
    /// Returns the tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns true if no table can be missing.
    pub fn are_all(&self) -> bool {
        self.unseen.is_none()
    }

    /// Returns true if one of these programs has a table.
    pub fn has_owner(&self, owners: &[&str]) -> bool {
        self.tables.iter().filter_map(Table::owner).any(|owner| owners.contains(&owner))
    }
}

/// A table of nftables or iptables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// `ip`, `ip6`, `inet`, `bridge`, `arp` or `netdev`.
    pub family: String,
    /// Name of the table.
    pub name: String,
    /// Hooks of its chains, each with the policy of the chain unless that is accept.
    pub hooks: Vec<String>,
    /// Names of its chains.
    pub chains: Vec<String>,
    /// Rules that write the packet's mark.
    pub marks: Vec<MarkWrite>,
    /// True if it has extensions of iptables, which nft does not explain.
    pub has_extensions: bool,
}

/// A rule that writes the packet's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkWrite {
    /// Chain of the rule.
    pub chain: String,
    /// Bits that the rule may change.
    pub touched: u32,
    /// Bits that the rule sets, as far as they are known.
    pub ones: u32,
    /// Command that deletes the rule; `None` if a shell could misread the rule.
    pub undo: Option<String>,
}

impl Table {
    /// Returns the program that has made the table, if its names show it.
    pub fn owner(&self) -> Option<&'static str> {
        let mut names = self.chains.iter().chain([&self.name]);
        names.find_map(|name| {
            OWNERS.into_iter().find(|(start, _)| name.starts_with(start)).map(|(_, owner)| owner)
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} {}", self.family, self.name)?;
        self.owner().map_or(Ok(()), |owner| write!(f, " ({owner})"))
    }
}

/// Reads the tables with the programs of nftables and iptables.
pub fn collect(is_root: bool) -> Facts {
    if !is_root {
        return Facts { tables: Vec::new(), unseen: Some("only root may list the tables") };
    }
    let listed = output_of("nft", &["--json", "--handle", "list", "ruleset"]);
    let listed = listed.and_then(|text| serde_json::from_str(&text).ok());
    let unseen = listed.is_none().then_some("nft is not installed, or cannot print JSON");
    let mut tables = listed.as_ref().map(nft_tables).unwrap_or_default();
    for (family, program) in [("ip", "iptables-nft"), ("ip6", "ip6tables-nft")] {
        if tables.iter().any(|table| table.family == family && table.has_extensions)
            && let Some(text) = output_of(&format!("{program}-save"), &[])
        {
            add_marks(&mut tables, saved_tables(&text, family, program));
        }
    }
    for (file, family, program) in LEGACY {
        // the program would load the modules of tables that nobody uses
        let in_use = std::fs::read_to_string(file).is_ok_and(|names| !names.is_empty());
        if in_use && let Some(text) = output_of(&format!("{program}-save"), &[]) {
            tables.extend(saved_tables(&text, family, program));
        }
    }
    Facts { tables, unseen }
}

/// Adds the marks of `explained` to the tables of the same names.
fn add_marks(tables: &mut [Table], explained: Vec<Table>) {
    for Table { family, name, marks, .. } in explained {
        let is_same = |table: &&mut Table| (&table.family, &table.name) == (&family, &name);
        if let Some(table) = tables.iter_mut().find(is_same) {
            table.marks.extend(marks);
        }
    }
}

/// Judges the facts. `is_filtering` is true if skipstep is enabled.
pub fn judge(facts: &Facts, is_filtering: bool) -> Vec<Finding> {
    let tables = facts.tables.iter().filter(|table| !table.hooks.is_empty());
    let mut findings: Vec<Finding> = tables
        .map(|table| match (table.name.as_str(), is_filtering) {
            (CLOSED, true) => {
                let text = format!("{table} blocks nearly everything, although skipstep filters");
                Finding::fail(SUBJECT, text).mended_by("systemctl stop skipstep-closed")
            }
            (CLOSED, false) => {
                let text = format!("{table} blocks nearly everything: skipstep could not start");
                let restart = "systemctl restart skipstep-boot skipstep-rules";
                Finding::fail(SUBJECT, text).mended_by(restart)
            }
            _ => {
                let text = format!("{table} filters, too, on {}", table.hooks.join(", "));
                Finding::ok(SUBJECT, text)
            }
        })
        .collect();
    match facts.unseen {
        Some(why) => findings.push(Finding::unseen(SUBJECT, why)),
        None if findings.is_empty() => {
            findings.push(Finding::ok(SUBJECT, "no table of nftables or iptables filters packets"));
        }
        None => {}
    }
    findings
}

/// Returns the tables of `nft --json --handle list ruleset`.
fn nft_tables(listed: &Value) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let objects = listed["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(table) = object.get("table") {
            let (family, name) = (text(&table["family"]), text(&table["name"]));
            tables.push(Table { family, name, ..Table::default() });
            continue;
        }
        let Some((kind, part)) = ["chain", "rule"].iter().find_map(|k| Some((*k, object.get(k)?)))
        else {
            continue;
        };
        let place = (text(&part["family"]), text(&part["table"]));
        let Some(table) =
            tables.iter_mut().find(|it| (&it.family, &it.name) == (&place.0, &place.1))
        else {
            continue;
        };
        match kind {
            "chain" => add_chain(table, part),
            _ => add_rule(table, part),
        }
    }
    tables
}

fn add_chain(table: &mut Table, chain: &Value) {
    table.chains.push(chain["name"].as_str().unwrap_or_default().to_owned());
    if let Some(hook) = chain["hook"].as_str() {
        table.add_hook(hook, chain["policy"].as_str().unwrap_or("accept"));
    }
}

fn add_rule(table: &mut Table, rule: &Value) {
    let chain = rule["chain"].as_str().unwrap_or_default();
    for expression in rule["expr"].as_array().into_iter().flatten() {
        table.has_extensions |= expression.get("xt").is_some();
        let mangled = &expression["mangle"];
        if mangled["key"]["meta"]["key"] == "mark" {
            let (touched, ones) = bits(&mangled["value"]);
            let Table { family, name, .. } = &*table;
            let undo = format!("nft delete rule {family} {name} {chain} handle {}", rule["handle"]);
            let undo = Some(undo);
            table.marks.push(MarkWrite { chain: chain.to_owned(), touched, ones, undo });
        }
    }
}

/// Returns the bits that a value of nftables changes in the mark, and the bits that it sets.
fn bits(value: &Value) -> (u32, u32) {
    const UNKNOWN: (u32, u32) = (u32::MAX, 0);
    if let Some(number) = value.as_u64() {
        return (u32::MAX, number as u32);
    }
    if value["meta"]["key"] == "mark" {
        return (0, 0);
    }
    let Some((operator, operands)) = value.as_object().and_then(|object| object.iter().next())
    else {
        return UNKNOWN;
    };
    let mut operands = operands.as_array().into_iter().flatten();
    let Some(first) = operands.next() else { return UNKNOWN };
    let numbers: Option<Vec<u32>> = operands.map(|it| it.as_u64().map(|it| it as u32)).collect();
    let Some(numbers) = numbers else { return UNKNOWN };
    numbers.into_iter().fold(bits(first), |(touched, ones), number| match operator.as_str() {
        "|" | "^" => (touched | number, ones | number),
        "&" => (touched | !number, ones & number),
        _ => UNKNOWN,
    })
}

/// Returns the tables of iptables-save that have rules or a policy other than ACCEPT. `program`
/// changes them.
fn saved_tables(text: &str, family: &str, program: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut has_rules = false;
    for line in text.lines() {
        let (Some(first), Some(table)) = (line.chars().next(), tables.last_mut()) else {
            tables.extend(new_table(line, family));
            continue;
        };
        match first {
            '*' => {
                tables.extend(new_table(line, family));
                has_rules = false;
            }
            ':' => table.add_saved_chain(line),
            '-' => {
                has_rules = true;
                table.marks.extend(saved_mark(line, &table.name, program));
            }
            'C' if !has_rules && !table.hooks.iter().any(|hook| hook.contains("policy")) => {
                tables.pop();
            }
            _ => {}
        }
    }
    tables
}

/// Returns the table that a line `*NAME` begins.
fn new_table(line: &str, family: &str) -> Option<Table> {
    let name = line.strip_prefix('*')?.to_owned();
    Some(Table { family: family.to_owned(), name, ..Table::default() })
}

impl Table {
    fn add_hook(&mut self, hook: &str, policy: &str) {
        self.hooks.push(match policy {
            "accept" => hook.to_owned(),
            other => format!("{hook} (policy {other})"),
        });
    }

    /// Adds the chain of a line `:NAME POLICY [PACKETS:BYTES]`. Chains without a policy have no
    /// hook.
    fn add_saved_chain(&mut self, line: &str) {
        let mut words = line[1..].split_whitespace();
        let (Some(name), Some(policy)) = (words.next(), words.next()) else { return };
        self.chains.push(name.to_owned());
        if policy != "-" {
            self.add_hook(&name.to_lowercase(), &policy.to_lowercase());
        }
    }
}

/// Returns the write to the mark of a line such as `-A CHAIN -j MARK --set-xmark VALUE/MASK`, or of
/// a line with CONNMARK or TPROXY; `None` for other targets.
fn saved_mark(line: &str, table: &str, program: &str) -> Option<MarkWrite> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let behind = |flag: &str| words.iter().position(|word| *word == flag).map(|at| at + 1);
    let value = |flag: &str| words.get(behind(flag)?).copied();
    let (touched, ones) = match value("-j")? {
        "MARK" => exclusive_or(value("--set-xmark")?)?,
        "TPROXY" => exclusive_or(value("--tproxy-mark")?)?,
        "CONNMARK" if words.contains(&"--restore-mark") => {
            let mask = |flag| value(flag).map_or(Some(u32::MAX), number);
            (mask("--nfmask")? | mask("--ctmask")?, 0)
        }
        _ => return None,
    };
    let chain = value("-A")?.to_owned();
    let is_clear = !line.contains(|c: char| "$`;&|<>()'\\".contains(c));
    let undo = is_clear.then(|| format!("{program} -t {table} {}", line.replacen("-A", "-D", 1)));
    Some(MarkWrite { chain, touched, ones, undo })
}

/// Returns the bits that `VALUE/MASK` changes, and those that it sets: the bits of the mask are
/// cleared, and the value is combined by exclusive or.
fn exclusive_or(text: &str) -> Option<(u32, u32)> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    let value = number(value)?;
    Some((value | number(mask)?, value))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    fn chain(family: &str, table: &str, name: &str, hook: Option<&str>) -> Value {
        let mut chain = json!({ "family": family, "table": table, "name": name, "handle": 1 });
        if let Some(hook) = hook {
            chain["hook"] = json!(hook);
            chain["policy"] = json!("drop");
        }
        json!({ "chain": chain })
    }

    fn marking(value: Value) -> Value {
        let mangle = json!({ "key": { "meta": { "key": "mark" } }, "value": value });
        json!({ "rule": {
            "family": "inet", "table": "t", "chain": "c", "handle": 5,
            "expr": [{ "counter": null }, { "mangle": mangle }],
        } })
    }

    fn listed(objects: &[Value]) -> Vec<Table> {
        nft_tables(&json!({ "nftables": objects }))
    }

    fn inet_t() -> Value {
        json!({ "table": { "family": "inet", "name": "t", "handle": 1 } })
    }

    #[test]
    fn tables_of_nft_are_read() {
        let tables = listed(&[
            json!({ "metainfo": { "version": "1.0.6" } }),
            inet_t(),
            chain("inet", "t", "c", Some("forward")),
            chain("inet", "t", "DOCKER-USER", None),
            marking(json!({ "|": [{ "meta": { "key": "mark" } }, 0x1_0000] })),
            json!({ "rule": {
                "family": "inet", "table": "t", "chain": "c", "handle": 6,
                "expr": [{ "xt": { "type": "target", "name": "MARK" } }],
            } }),
        ]);
        let undo = Some("nft delete rule inet t c handle 5".to_owned());
        let (touched, ones) = (0x1_0000, 0x1_0000);
        let expected = Table {
            family: "inet".to_owned(),
            name: "t".to_owned(),
            hooks: vec!["forward (policy drop)".to_owned()],
            chains: vec!["c".to_owned(), "DOCKER-USER".to_owned()],
            marks: vec![MarkWrite { chain: "c".to_owned(), touched, ones, undo }],
            has_extensions: true,
        };
        assert_eq!(tables, [expected]);
        assert_eq!(tables[0].to_string(), "table inet t (Docker)");
    }

    #[test]
    fn operations_on_marks_are_followed() {
        let mark = || json!({ "meta": { "key": "mark" } });
        for (value, expected) in [
            (json!(1), (u32::MAX, 1)),
            (json!({ "|": [mark(), 4] }), (4, 4)),
            (json!({ "&": [mark(), 0xffff] }), (0xffff_0000, 0)),
            (json!({ "^": [{ "&": [mark(), 0xffff_bfff_u32] }, 0x4000] }), (0x4000, 0x4000)),
            (json!({ "ct": { "key": "mark" } }), (u32::MAX, 0)),
            (json!({ "|": [mark(), { "ct": { "key": "mark" } }] }), (u32::MAX, 0)),
            (json!({ "map": { "key": mark(), "data": "@m" } }), (u32::MAX, 0)),
            (json!("a-name"), (u32::MAX, 0)),
        ] {
            assert_eq!(bits(&value), expected, "{value}");
        }
    }

    const SAVED: &str = "# Generated by iptables-save\n\
        *mangle\n\
        :PREROUTING ACCEPT [0:0]\n\
        :KUBE-MARK - [0:0]\n\
        -A PREROUTING -i eth0 -j KUBE-MARK\n\
        -A KUBE-MARK -j MARK --set-xmark 0x4000/0x4000\n\
        -A KUBE-MARK -p tcp -j MARK --set-xmark 0x80000/0xff0000\n\
        -A PREROUTING -j CONNMARK --restore-mark --nfmask 0xff00 --ctmask 0xff\n\
        COMMIT\n\
        *raw\n\
        :PREROUTING ACCEPT [0:0]\n\
        COMMIT\n\
        *filter\n\
        :FORWARD DROP [0:0]\n\
        COMMIT\n";

    #[test]
    fn tables_of_iptables_are_read() {
        let tables = saved_tables(SAVED, "ip", "iptables-legacy");
        let names: Vec<String> = tables.iter().map(Table::to_string).collect();
        assert_eq!(names, ["table ip mangle (kube-proxy)", "table ip filter"]);
        assert_eq!(tables[1].hooks, ["forward (policy drop)"]);
        let marks = &tables[0].marks;
        let bits: Vec<(u32, u32)> = marks.iter().map(|mark| (mark.touched, mark.ones)).collect();
        assert_eq!(bits, [(0x4000, 0x4000), (0xff_0000, 0x8_0000), (0xffff, 0)]);
        assert_eq!(
            marks[1].undo.as_deref(),
            Some(
                "iptables-legacy -t mangle -D KUBE-MARK -p tcp -j MARK --set-xmark 0x80000/0xff0000"
            )
        );
        let hostile = "-A C -m comment --comment \"$(reboot)\" -j MARK --set-xmark 0x1/0x1";
        assert_eq!(saved_mark(hostile, "mangle", "iptables-legacy").unwrap().undo, None);
    }

    #[test]
    fn marks_of_extensions_go_to_their_table() {
        let mangle = json!({ "table": { "family": "ip", "name": "mangle", "handle": 1 } });
        let mut tables = listed(&[inet_t(), mangle]);
        add_marks(&mut tables, saved_tables(SAVED, "ip", "iptables-nft"));
        assert_eq!(tables.iter().map(|table| table.marks.len()).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn each_table_with_hooks_has_a_finding() {
        let tables = listed(&[inet_t(), chain("inet", "t", "c", Some("input"))]);
        let findings = judge(&Facts { tables, unseen: None }, true);
        assert_eq!(findings[0].text, "table inet t filters, too, on input (policy drop)");
        let nothing = judge(&Facts { tables: listed(&[inet_t()]), unseen: None }, true);
        assert_eq!((nothing.len(), nothing[0].level), (1, Level::Ok));
        let unseen = judge(&Facts { tables: Vec::new(), unseen: Some("no nft") }, true);
        assert_eq!((unseen.len(), unseen[0].seen), (1, false));
    }

    #[test]
    fn a_host_that_is_closed_fails() {
        let closed = json!({ "table": { "family": "inet", "name": CLOSED, "handle": 1 } });
        let tables = listed(&[closed, chain("inet", CLOSED, "in", Some("input"))]);
        let facts = Facts { tables, unseen: None };
        assert!(facts.has_owner(&["skipstep-closed"]) && !facts.has_owner(&["Docker"]));
        let command = |running| judge(&facts, running)[0].command.clone().unwrap();
        assert_eq!(command(true), "systemctl stop skipstep-closed");
        assert_eq!(command(false), "systemctl restart skipstep-boot skipstep-rules");
    }
}
