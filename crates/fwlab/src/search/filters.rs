//! Filters that a search is done with, one after the other: RFC 3511, section 4 asks for rule sets
//! of several sizes, and for translation of addresses off and on.

use clap::ValueEnum;

use crate::rules::MOST_RULES;

/// Whether the addresses of clients are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Translation {
    /// never
    Off,
    /// all to the one that the firewall has towards the server
    On,
    /// without, and then with it
    Both,
}

/// Filters, by flags.
#[derive(Debug, Clone, clap::Args)]
pub struct Filters {
    /// Rules of the system that block a port each; several numbers are searched with one after the
    /// other
    #[arg(long, value_name = "NUMBER,...", value_delimiter = ',', default_value = "0", conflicts_with_all = ["simulate", "client_if", "client_agent"], value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_RULES)))]
    rules: Vec<u32>,
    /// Whether the system translates the addresses of clients, in searches with connections
    #[arg(long, value_enum, value_name = "WHEN", default_value = "off", conflicts_with_all = ["simulate", "client_if", "client_agent"])]
    nat: Translation,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Rules.
    pub rules: u32,
    /// Whether it translates the addresses of clients.
    pub nat: bool,
}

impl Filter {
    /// What tells it from others.
    pub fn name(self) -> String {
        format!("{} rules{}", self.rules, if self.nat { " and NAT" } else { "" })
    }
}

impl Filters {
    /// All of them.
    pub fn each(&self) -> Vec<Filter> {
        let nat: &[bool] = match self.nat {
            Translation::Off => &[false],
            Translation::On => &[true],
            Translation::Both => &[false, true],
        };
        let with = |&rules: &u32| nat.iter().map(move |&nat| Filter { rules, nat });
        self.rules.iter().flat_map(with).collect()
    }

    /// Whether there are several numbers of rules.
    pub fn have_several_sizes(&self) -> bool {
        self.rules.iter().any(|rules| rules != &self.rules[0])
    }

    /// Whether they are to translate.
    pub fn translate(&self) -> bool {
        self.nat != Translation::Off
    }

    /// Whether addresses are translated by some of them, and not by others.
    pub fn have_both(&self) -> bool {
        self.nat == Translation::Both
    }

    /// Whether all of them have rules.
    pub fn have_rules(&self) -> bool {
        self.rules.iter().all(|&rules| rules > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_rules_has_both() {
        let filters = Filters { rules: vec![1, 100], nat: Translation::Both };
        let names: Vec<_> = filters.each().into_iter().map(Filter::name).collect();
        assert_eq!(names, ["1 rules", "1 rules and NAT", "100 rules", "100 rules and NAT"]);
        assert!(filters.have_several_sizes() && filters.have_both());
        let same = Filters { rules: vec![5, 5], nat: Translation::On };
        assert!(!same.have_several_sizes() && !same.have_both() && same.translate());
    }
}
