//! The tables and interfaces that a rule names: in criteria, in pools, or as `overload` table.

use crate::address::DynamicAddress;
use crate::{Address, Rule};

impl Rule {
    /// Returns the names of the tables that the rule names, in order and with repetitions.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        let compared = self.addresses().into_iter().filter_map(|address| match address {
            Address::Table(name) => Some(name.as_str()),
            _ => None,
        });
        let pools = self.pools().flat_map(|pool| pool.address.tables());
        let overload = self.state.as_ref().and_then(|options| options.overload.as_ref());
        compared.chain(pools).chain(overload.map(|overload| overload.table.as_str()))
    }

    /// Returns the dynamic addresses of the rule, in order and with repetitions.
    pub fn dynamic_addresses(&self) -> impl Iterator<Item = &DynamicAddress> {
        let compared = self.addresses().into_iter().filter_map(|address| match address {
            Address::Dynamic(address) => Some(address),
            _ => None,
        });
        compared.chain(self.pools().flat_map(|pool| pool.address.interfaces()))
    }

    fn addresses(&self) -> [&Address; 2] {
        [&self.source.host.address, &self.destination.host.address]
    }
}
