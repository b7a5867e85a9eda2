//! A list of several addresses, tables and interfaces behind `->` of an old rule, or of next hops by way
//! of interfaces: its members have their turn as they are written, each to its end.

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
                    cursor.index = list.total;
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

/// Chooses from a list of an old rule, as FreeBSD does: its members as they are written, each to its
/// end, and at the very beginning the second one.
pub(crate) fn from_members(
    cursor: &mut Cursor,
    members: &[Member],
    family: Family,
    loads: &Loads,
) -> Option<u128> {
    let mut found = members.get(cursor.member)?.step(cursor, false, loads);
    for _ in members {
        if found.is_none() {
            cursor.member = (cursor.member + 1) % members.len();
            found = members[cursor.member].step(cursor, true, loads);
        }
    }
    found?;
    let chosen = cursor.counter;
    cursor.counter = next(chosen, family);
    Some(chosen)
}
