//! Tables without a name in the text: those that pools with several addresses become. Their numbers
//! mean nothing, so they are compared and shown as what is in them.

use skipstep_ruleset::{Table, automatic};

/// The names of such tables, each with its list.
pub struct Lists(Vec<(String, String)>);

impl Lists {
    /// Those among the tables of a rule set.
    pub fn of(tables: &[Table]) -> Self {
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

    /// `text` with the lists in place of the names, which stand between `before` and `after`.
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

/// Whether nobody wrote the table's name.
pub fn is_automatic(table: &Table) -> bool {
    table.name.starts_with(automatic::PREFIX)
}

/// A network, or a single address without its length.
fn net(net: ipnet::IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}
