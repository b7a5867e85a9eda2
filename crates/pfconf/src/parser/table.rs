//! Parses `table` (pf-features section 11).

use super::rule::did_you_mean;
use super::{Parse, Parser};
use crate::ast::{Address, Host, StatementKind, TableContents, TableDefinition};
use crate::token::{Place, TokenKind};

impl Parser<'_> {
    /// Parses `table <name> [const] [persist] [counters] [file "f"] [{ ... }]`, with options in any
    /// order.
    pub(super) fn table(&mut self) -> Parse<StatementKind> {
        self.expect("table")?;
        let mut table = TableDefinition { name: self.table_name()?, ..TableDefinition::default() };
        loop {
            let place = self.place();
            match self.peek().kind.clone() {
                TokenKind::String(word) => {
                    self.skip();
                    match word.as_str() {
                        "const" => table.constant = true,
                        "persist" => table.persist = true,
                        "counters" => table.counters = true,
                        _ => {
                            let help = did_you_mean(&word, ["const", "persist", "counters"]);
                            return self.error_with_help(
                                format!("invalid table option '{word}'"),
                                place,
                                help,
                            );
                        }
                    }
                }
                TokenKind::Keyword("file") => {
                    self.skip();
                    table.contents.push(TableContents::File(self.string()?));
                    table.initialized = true;
                }
                TokenKind::Sign('{') => {
                    let hosts = self.table_list()?;
                    self.check_table_hosts(&hosts, place)?;
                    if !hosts.is_empty() {
                        table.contents.push(TableContents::List(hosts));
                    }
                    table.initialized = true;
                }
                _ => return Ok(StatementKind::Table(table)),
            }
        }
    }

    /// Parses `{ ... }`, which may be empty.
    fn table_list(&mut self) -> Parse<Vec<Host>> {
        self.expect_sign('{')?;
        self.new_lines();
        if self.accept_sign('}') {
            return Ok(Vec::new());
        }
        let mut hosts = Vec::new();
        loop {
            hosts.extend(self.table_item()?);
            self.count_item()?;
            self.new_lines();
            if self.accept_sign('}') {
                return Ok(hosts);
            }
            self.list_comma()?;
        }
    }

    /// Parses a host, or a list in the list, because macros may contain lists.
    fn table_item(&mut self) -> Parse<Vec<Host>> {
        if self.at_sign('{') && self.depth < 64 {
            self.depth += 1;
            let hosts = self.list(Self::table_item);
            self.depth -= 1;
            return hosts.map(|hosts| hosts.concat());
        }
        let mut hosts = self.maybe_negated_host()?;
        let weight = self.weight()?;
        for host in &mut hosts {
            host.weight = weight;
        }
        Ok(hosts)
    }

    fn check_table_hosts(&mut self, hosts: &[Host], place: Place) -> Parse<()> {
        for host in hosts {
            let text = match host.address {
                Address::Net(..) | Address::Any => continue,
                Address::Range(..) => "address ranges are not permitted inside tables",
                Address::Dynamic { .. } => "dynamic addresses are not permitted inside tables",
                Address::Table(_) => "tables cannot contain tables",
                Address::NoRoute => "\"no-route\" is not permitted inside tables",
                Address::UrpfFailed => "\"urpf-failed\" is not permitted inside tables",
                Address::RouteLabel(_) => "unknown address type 5",
            };
            return self.error_at(text, place);
        }
        Ok(())
    }
}
