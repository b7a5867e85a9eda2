//! The filters of a search: RFC 3511 section 4 requires rule sets of several sizes, and address
//! translation off and on.

use clap::ValueEnum;
use fwlab_net::rules::MOST_RULES;

/// The use of address translation for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Translation {
    /// no translation
    Off,
    /// every client address becomes the firewall's address on the server's side
    On,
    /// first off, then on
    Both,
}

/// The flags for filters.
#[derive(Debug, Clone, clap::Args)]
pub struct Filters {
    /// Number of rules of the system, each of which blocks a port; the search is repeated for each
    /// of several numbers
    #[arg(long, value_name = "NUMBER,...", value_delimiter = ',', default_value = "0", conflicts_with_all = ["simulate", "client_if", "client_agent"], value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_RULES)))]
    rules: Vec<u32>,
    /// Translation of the clients' addresses by the system, in tests with connections
    #[arg(long, value_enum, value_name = "NAT", default_value = "off", conflicts_with_all = ["simulate", "client_if", "client_agent"])]
    nat: Translation,
}

/// A filter of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Number of rules.
    pub rules: u32,
    /// True if the filter translates the addresses of clients.
    pub nat: bool,
}

impl Filter {
    /// Returns the name of the filter in reports.
    pub fn name(self) -> String {
        format!("{} rules{}", self.rules, if self.nat { " and NAT" } else { "" })
    }
}

impl Filters {
    /// Returns all filters, in the order of the search.
    pub fn each(&self) -> Vec<Filter> {
        let nat: &[bool] = match self.nat {
            Translation::Off => &[false],
            Translation::On => &[true],
            Translation::Both => &[false, true],
        };
        let with = |&rules: &u32| nat.iter().map(move |&nat| Filter { rules, nat });
        self.rules.iter().flat_map(with).collect()
    }

    /// Returns true if there are several numbers of rules.
    pub fn have_several_sizes(&self) -> bool {
        self.rules.iter().any(|rules| rules != &self.rules[0])
    }

    /// Returns true if at least one filter translates addresses.
    pub fn translate(&self) -> bool {
        self.nat != Translation::Off
    }

    /// Returns true if some filters translate addresses, and others do not.
    pub fn have_both(&self) -> bool {
        self.nat == Translation::Both
    }

    /// Returns true if all filters have rules.
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
