//! A list of several addresses, tables and interfaces behind `->` of an old rule, or of next hops
//! by way of interfaces: its members have their turn as they are written, each to its end.

use skipstep_ruleset::{Family, PoolAddress};

use crate::pool::{Around, Block, Cursor, List, Loads, PoolOf, list_of, net, next};

/// A part of a pool's list.
pub(crate) enum Member {
    List(List),
    /// `None` if it is of the other family.
    Net(Option<Block>),
}

impl Member {
    pub fn new(address: &PoolAddress, of: PoolOf, around: Around, family: Family) -> Self {
        match list_of(address, of.rule, around, family) {
            Some(list) => Member::List(list.once()),
            None => Member::Net(net(address, family)),
        }
    }

    /// Moves the cursor to the next address of this member, to the first one if it comes `anew`.
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

/// What a walk over members is about.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub of: PoolOf<'a>,
    pub around: Around<'a>,
    pub loads: &'a Loads,
    /// The packet's.
    pub family: Family,
}

impl Walk<'_> {
    /// Chooses from a list as FreeBSD does: its members as they are written, each to its end, and
    /// at the very beginning the second one. Returns the address and its family.
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

    /// Moves the cursor to the next address of a member: of a pool that prefers IPv6 to those
    /// first.
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
        // each packet's destination is of its own family
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
        let member = Member::new(member, self.of, self.around, family);
        member.step(cursor, anew, self.loads).map(|()| family)
    }

    /// `prefer-ipv6-nexthop` and a table: first through its IPv6 addresses, then through its IPv4
    /// ones.
    pub fn choose_of_both(
        &self,
        cursor: &mut Cursor,
        table: &PoolAddress,
    ) -> Option<(Family, u128)> {
        let mut wanted = self.turn_to(cursor.turned, cursor);
        for _ in 0..4 {
            let list = list_of(table, self.of.rule, self.around, wanted)?.once();
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

    /// Whether the packet may have an IPv4 next hop after all.
    fn may_turn(&self, cursor: &Cursor) -> bool {
        self.family == Family::Inet && !cursor.turned
    }

    /// IPv6 addresses have their turn, or those of IPv4, which IPv6 packets cannot use. Returns
    /// which.
    fn turn_to(&self, inet: bool, cursor: &mut Cursor) -> Family {
        let inet = inet && self.family == Family::Inet;
        if cursor.turned != inet {
            cursor.index = usize::MAX;
        }
        cursor.turned = inet;
        if inet { Family::Inet } else { Family::Inet6 }
    }
}
