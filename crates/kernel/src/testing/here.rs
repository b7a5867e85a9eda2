//! The network that this thread is in, which all its engines share: test runs go there, whichever
//! of them made it.

use std::cell::RefCell;

use skipstep_ruleset::interface::Host;

use super::copies;
use crate::error::Result;
use crate::network::TestNetwork;

/// The network with the host that it was made for, and the one that it has become.
struct Here {
    made_for: Host,
    now: Host,
    network: TestNetwork,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// Sees to it that the network is `host`'s; what the host is with the indices that its interfaces
/// have here. Networks are slow to build, and most tests use the one they had, as it was at first.
pub(super) fn enter(host: &Host) -> Result<Host> {
    let is_mine = HERE.with_borrow(|here| {
        here.as_ref().is_some_and(|here| here.made_for == *host || here.now == *host)
    });
    if is_mine {
        return change(host);
    }
    let network = TestNetwork::enter(host)?;
    copies::listen()?;
    let known = network.host().clone();
    HERE.set(Some(Here { made_for: host.clone(), now: host.clone(), network }));
    Ok(known)
}

/// Changes the network into that of `host`. One of which that fails is given up.
pub(super) fn change(host: &Host) -> Result<Host> {
    let mut here = HERE.take().ok_or_else(super::no_network)?;
    if here.now != *host {
        here.network.change(host)?;
        here.now.clone_from(host);
    }
    let known = here.network.host().clone();
    HERE.set(Some(here));
    Ok(known)
}
