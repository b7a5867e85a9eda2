//! What a rule refers to by name, wherever it stands in it: in an address that packets are compared
//! with, in a pool, or where sources that overdo it are put.

use crate::address::DynamicAddress;
use crate::{Address, Rule};

impl Rule {
    /// The tables that it names, each as often as it does.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        let compared = self.addresses().into_iter().filter_map(|address| match address {
            Address::Table(name) => Some(name.as_str()),
            _ => None,
        });
        let pools = self.pools().flat_map(|pool| pool.address.tables());
        let overload = self.state.as_ref().and_then(|options| options.overload.as_ref());
        compared.chain(pools).chain(overload.map(|overload| overload.table.as_str()))
    }

    /// The interfaces whose addresses it follows, each as often as it does.
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
