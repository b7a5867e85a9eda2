//! Tables that pfctl creates for pools with several addresses. Their names have meaningless
//! numbers, so `pfctl diff` compares and shows the entries instead.

use skipstep_ruleset::{Table, automatic};

/// Pairs of an automatic table's name and its entries as a list, `{ a, b }`.
pub struct Lists(Vec<(String, String)>);

impl Lists {
    /// Collects the automatic tables among `tables`.
    pub fn from_tables(tables: &[Table]) -> Self {
        let lists = tables.iter().filter(|table| is_automatic(table)).map(|table| {
            let entries = table.entries.iter().map(|entry| {
                let sign = if entry.negated { "!" } else { "" };
                let weight = match entry.weight {
                    0 => String::new(),
                    weight => format!(" weight {weight}"),
                };
                format!("{sign}{}{weight}", net(entry.net))
            });
            (table.name.clone(), format!("{{ {} }}", entries.collect::<Vec<_>>().join(", ")))
        });
        Lists(lists.collect())
    }

    /// Replaces the names of automatic tables in `text` by their lists. Each name stands between
    /// the characters `before` and `after`, which are replaced, too.
    pub fn spell_out(&self, mut text: String, before: char, after: char) -> String {
        if !text.contains(automatic::PREFIX) {
            return text;
        }
        for (name, list) in &self.0 {
            text = text.replace(&format!("{before}{name}{after}"), list);
        }
        text
    }
}

/// True if pfctl created the table, so that no pf.conf names it.
pub fn is_automatic(table: &Table) -> bool {
    table.name.starts_with(automatic::PREFIX)
}

/// Prints a network, or a single address without its prefix length.
fn net(net: ipnet::IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}
