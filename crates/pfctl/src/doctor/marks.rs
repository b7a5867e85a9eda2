//! Checks of the packet's mark: other programs that write or compare the bits of the filter.

use skipstep_kernel::mark_rules::{self, MASK, MarkRule};

use super::finding::Finding;
use super::netfilter::{MarkWrite, Table};

const SUBJECT: &str = "mark";

/// Most findings about rules of one table.
const MOST: usize = 5;

/// Bits of the mark that docs/howto/kubernetes.md gives Calico. kube-proxy uses the two bits above
/// them, and Calico needs at least eight.
const MASK_OF_CALICO: u32 = 0x3ff0;

/// Policy rules that compare the mark, and the tables whose rules may write it.
pub struct Facts<'a> {
    /// The policy rules, or the reason why they cannot be read.
    rules: Result<Vec<MarkRule>, String>,
    tables: &'a [Table],
    /// True if `tables` are all tables.
    has_all: bool,
}

/// Reads the policy rules. `tables` are those of netfilter; the check of [`super::netfilter`]
/// reports if they cannot be seen.
pub fn collect(tables: &super::netfilter::Facts) -> Facts<'_> {
    let rules = mark_rules::read().map_err(|error| error.to_string());
    Facts { rules, tables: tables.tables(), has_all: tables.are_all() }
}

/// Judges the facts.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let rules = match &facts.rules {
        Ok(rules) => rules.iter().map(policy_rule).collect(),
        Err(why) => vec![Finding::unseen(SUBJECT, why)],
    };
    let written = facts.tables.iter().flat_map(writes);
    let findings: Vec<Finding> = rules.into_iter().chain(written).collect();
    let nobody = if facts.has_all { "no other program uses" } else { "no policy rule compares" };
    match findings.is_empty() {
        true => vec![Finding::ok(SUBJECT, format!("{nobody} the bits {MASK:#010x} of the mark"))],
        false => findings,
    }
}

/// Reports a policy rule that compares the filter's bits. They differ from packet to packet, so the
/// rule matches by chance.
fn policy_rule(rule: &MarkRule) -> Finding {
    let MarkRule { priority, mark, mask, table, .. } = rule;
    let ip = if rule.inet6 { "ip -6" } else { "ip" };
    let text = format!(
        "`{ip} rule` {priority} compares fwmark {mark:#x}/{mask:#x}, and skipstep uses the bits \
         {MASK:#010x}"
    );
    let finding = Finding::warn(SUBJECT, text);
    // a rule with more criteria, or for bits that are not free, has to be rewritten by hand
    if rule.has_more || mark & MASK != 0 {
        return finding;
    }
    let free = mask & !MASK;
    finding.mended_by(format!(
        "{ip} rule add priority {priority} fwmark {mark:#x}/{free:#x} table {table} && \
         {ip} rule delete priority {priority} fwmark {mark:#x}/{mask:#x} table {table}"
    ))
}

/// Reports the rules of a table that write the filter's bits.
fn writes(table: &Table) -> Vec<Finding> {
    let bad: Vec<&MarkWrite> =
        table.marks.iter().filter(|write| write.touched & MASK != 0).collect();
    let mut findings: Vec<Finding> =
        bad.iter().take(MOST).map(|write| written(table, write)).collect();
    if let Some(more) = bad.len().checked_sub(MOST).filter(|more| *more > 0) {
        findings.push(Finding::warn(SUBJECT, format!("{more} more rules of {table} write marks")));
    }
    findings
}

fn written(table: &Table, write: &MarkWrite) -> Finding {
    let MarkWrite { chain, touched, ones, undo } = write;
    let place = format!("chain {chain} of {table}");
    let finding = match ones & MASK {
        0 => Finding::warn(
            SUBJECT,
            format!("{place} writes bits {:#010x}: tags and priorities are lost", touched & MASK),
        ),
        bits => Finding::fail(
            SUBJECT,
            format!("{place} sets bits {bits:#010x}: tags and priorities of rules become others"),
        ),
    };
    match table.owner() {
        Some("Calico") => finding.mended_by(other_mask_of_calico(table)),
        // the program would restore a deleted rule
        Some(_) => finding,
        None => Finding { command: undo.clone(), ..finding },
    }
}

/// Returns the command that lets Calico use bits that neither skipstep nor kube-proxy uses.
fn other_mask_of_calico(table: &Table) -> String {
    let setting = match table.name.as_str() {
        "calico" => "nftablesMarkMask",
        _ => "iptablesMarkMask",
    };
    format!(
        "kubectl patch felixconfiguration default --type merge -p \
         '{{\"spec\":{{\"{setting}\":{MASK_OF_CALICO}}}}}'"
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn facts(rules: Vec<MarkRule>, tables: &[Table]) -> Facts<'_> {
        Facts { rules: Ok(rules), tables, has_all: true }
    }

    fn write(touched: u32, ones: u32) -> MarkWrite {
        let undo = Some("nft delete rule inet t c handle 3".to_owned());
        MarkWrite { chain: "c".to_owned(), touched, ones, undo }
    }

    fn table(marks: Vec<MarkWrite>) -> Table {
        Table {
            family: "inet".to_owned(),
            name: "t".to_owned(),
            chains: vec!["c".to_owned()],
            marks,
            ..Table::default()
        }
    }

    #[test]
    fn the_lower_half_is_free() {
        let low = table(vec![write(0xffff, 0x4000)]);
        let findings = judge(&facts(Vec::new(), &[low]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].text, "no other program uses the bits 0xffff0000 of the mark");
    }

    #[test]
    fn rules_that_set_or_clear_the_upper_half_are_reported() {
        let tables = [table(vec![write(u32::MAX, 1), write(0x1_0000, 0x1_0000)])];
        let findings = judge(&facts(Vec::new(), &tables));
        assert_eq!(findings[0].level, Level::Warn);
        assert_eq!(
            findings[0].text,
            "chain c of table inet t writes bits 0xffff0000: tags and priorities are lost"
        );
        assert_eq!(findings[1].level, Level::Fail);
        assert_eq!(
            findings[1].text,
            "chain c of table inet t sets bits 0x00010000: tags and priorities of rules become \
             others"
        );
        assert_eq!(findings[1].command.as_deref(), Some("nft delete rule inet t c handle 3"));
    }

    #[test]
    fn a_table_with_many_rules_is_cut() {
        let tables = [table(vec![write(u32::MAX, 1); 9])];
        let findings = judge(&facts(Vec::new(), &tables));
        assert_eq!(findings.len(), MOST + 1);
        assert_eq!(findings[MOST].text, "4 more rules of table inet t write marks");
    }

    #[test]
    fn rules_of_a_program_are_not_deleted() {
        let marks = vec![write(0x2_0000, 0x2_0000)];
        let of = |chain: &str| Table { chains: vec![chain.to_owned()], ..table(marks.clone()) };
        let tables = [of("ts-forward"), of("cali-PREROUTING")];
        let findings = judge(&facts(Vec::new(), &tables));
        assert!(findings[0].text.starts_with("chain c of table inet t (Tailscale) sets bits"));
        assert_eq!(findings[0].command, None);
        let command = "kubectl patch felixconfiguration default --type merge -p \
                       '{\"spec\":{\"iptablesMarkMask\":16368}}'";
        assert_eq!(findings[1].command.as_deref(), Some(command));
    }

    #[test]
    fn a_policy_rule_is_given_the_mask_of_the_free_half() {
        let rule =
            MarkRule { priority: 100, mark: 7, mask: u32::MAX, table: 10, ..MarkRule::default() };
        let findings = judge(&facts(vec![rule.clone()], &[]));
        assert_eq!(
            findings[0].command.as_deref(),
            Some(
                "ip rule add priority 100 fwmark 0x7/0xffff table 10 && \
                 ip rule delete priority 100 fwmark 0x7/0xffffffff table 10"
            )
        );
        let high = MarkRule { mark: 0x8_0000, inet6: true, ..rule.clone() };
        let complex = MarkRule { has_more: true, ..rule };
        for rule in [high, complex] {
            let findings = judge(&facts(vec![rule], &[]));
            assert_eq!((findings[0].level, &findings[0].command), (Level::Warn, &None));
        }
    }

    #[test]
    fn unreadable_rules_are_a_finding() {
        let all = facts(Vec::new(), &[]);
        assert!(!judge(&Facts { rules: Err("refused".to_owned()), ..all })[0].seen);
        let without_tables = Facts { has_all: false, ..facts(Vec::new(), &[]) };
        assert_eq!(
            judge(&without_tables)[0].text,
            "no policy rule compares the bits 0xffff0000 of the mark"
        );
    }
}
