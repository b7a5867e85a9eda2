//! A list of several addresses, tables and interfaces: behind `->` of a legacy rule, or next hops
//! on interfaces. Its members are used in their order, each to its end.

use skipstep_ruleset::{Family, PoolAddress};

use crate::address_list::{Block, Cursor, List, Loads, list_of, net, next};
use crate::pool_inputs::{PoolInputs, RulePool};

/// A member of a pool's list.
pub(crate) enum Member {
    List(List),
    /// A network, `None` if it is of the other family.
    Net(Option<Block>),
}

impl Member {
    pub fn new(address: &PoolAddress, of: RulePool, inputs: PoolInputs, family: Family) -> Self {
        match list_of(address, of.rule, inputs, family) {
            Some(list) => Member::List(list.once()),
            None => Member::Net(net(address, family)),
        }
    }

    /// Moves the cursor to the next address of this member, or to the first one if `anew`. Returns
    /// `None` at the end of the member.
    fn step(&self, cursor: &mut Cursor, anew: bool, loads: &Loads) -> Option<()> {
        match self {
            Member::List(list) => {
                if anew {
                    cursor.index = usize::MAX;
                }
                list.step(cursor, loads).map(|_| ())
            }
            Member::Net(Some(net)) if anew => {
                cursor.counter = net.base;
                Some(())
            }
            Member::Net(net) => net.filter(|net| net.contains(cursor.counter)).map(|_| ()),
        }
    }
}

/// The inputs of a choice from a list.
#[derive(Clone, Copy)]
pub(crate) struct ListChoice<'a> {
    pub of: RulePool<'a>,
    pub inputs: PoolInputs<'a>,
    pub loads: &'a Loads,
    /// Family of the packet.
    pub family: Family,
}

impl ListChoice<'_> {
    /// Chooses from a list as FreeBSD does: members in their order, each to its end, beginning with
    /// the second one. Returns the family and the address.
    pub fn choose(&self, cursor: &mut Cursor, members: &[PoolAddress]) -> Option<(Family, u128)> {
        let mut found = self.step(members.get(cursor.member)?, cursor, false);
        for _ in members {
            if found.is_none() {
                cursor.member = (cursor.member + 1) % members.len();
                found = self.step(&members[cursor.member], cursor, true);
            }
        }
        let family = found?;
        let chosen = cursor.counter;
        cursor.counter = next(chosen, family);
        Some((family, chosen))
    }

    /// Moves the cursor to the next address of a member. A pool that prefers IPv6 goes to the IPv6
    /// addresses first.
    fn step(&self, member: &PoolAddress, cursor: &mut Cursor, anew: bool) -> Option<Family> {
        if !self.of.pool.prefer_ipv6 {
            return self.step_in(self.family, member, cursor, anew);
        }
        let wanted = self.turn_to(!anew && cursor.turned, cursor);
        let found = self.step_in(wanted, member, cursor, anew);
        let found = match found {
            None if self.may_turn(cursor) => {
                let wanted = self.turn_to(true, cursor);
                self.step_in(wanted, member, cursor, anew)
            }
            found => found,
        };
        // a next hop that is the packet's destination is of the packet's family
        let of_packet = matches!(member, PoolAddress::Through(_, None)).then_some(self.family);
        found.map(|family| of_packet.unwrap_or(family))
    }

    fn step_in(
        &self,
        family: Family,
        member: &PoolAddress,
        cursor: &mut Cursor,
        anew: bool,
    ) -> Option<Family> {
        let member = Member::new(member, self.of, self.inputs, family);
        member.step(cursor, anew, self.loads).map(|()| family)
    }

    /// Chooses from a table with `prefer-ipv6-nexthop`: all IPv6 addresses, then all IPv4 ones.
    pub fn choose_of_both(
        &self,
        cursor: &mut Cursor,
        table: &PoolAddress,
    ) -> Option<(Family, u128)> {
        let mut wanted = self.turn_to(cursor.turned, cursor);
        for _ in 0..4 {
            let list = list_of(table, self.of.rule, self.inputs, wanted)?.once();
            if list.step(cursor, self.loads).is_some() {
                let chosen = cursor.counter;
                cursor.counter = next(chosen, wanted);
                return Some((wanted, chosen));
            }
            cursor.index = usize::MAX;
            wanted = self.turn_to(self.may_turn(cursor), cursor);
        }
        None
    }

    /// Returns true if the packet may get an IPv4 next hop next.
    fn may_turn(&self, cursor: &Cursor) -> bool {
        self.family == Family::Inet && !cursor.turned
    }

    /// Switches to IPv4 addresses if `inet` is true, else to IPv6 ones. IPv6 packets cannot use
    /// IPv4 addresses. Returns the family.
    fn turn_to(&self, inet: bool, cursor: &mut Cursor) -> Family {
        let inet = inet && self.family == Family::Inet;
        if cursor.turned != inet {
            cursor.index = usize::MAX;
        }
        cursor.turned = inet;
        if inet { Family::Inet } else { Family::Inet6 }
    }
}
