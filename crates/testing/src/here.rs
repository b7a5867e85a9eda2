//! The network of this thread. All engines of the thread share it for their test runs, whichever
//! engine made it.

use std::cell::RefCell;

use skipstep_kernel::{Error, Result};
use skipstep_ruleset::interface::Host;

use crate::copies;
use crate::network::TestNetwork;

/// A network, the host for which it was made, and its current host.
struct Here {
    made_for: Host,
    now: Host,
    network: TestNetwork,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// Makes the network that of `host`. Returns the host with the indices of its interfaces. Networks
/// are slow to build, so most tests reuse the network, restored to its first host.
pub(crate) fn enter(host: &Host) -> Result<Host> {
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

/// Changes the network to that of `host`. A network that cannot be changed is given up.
pub(crate) fn change(host: &Host) -> Result<Host> {
    let mut here = HERE.take().ok_or_else(no_network)?;
    if here.now != *host {
        here.network.change(host)?;
        here.now.clone_from(host);
    }
    let known = here.network.host().clone();
    HERE.set(Some(here));
    Ok(known)
}

/// Returns the error of an engine that has no rule set yet.
pub(crate) fn no_network() -> Error {
    Error::Bpf { operation: "test".to_owned(), cause: "no rule set was loaded".to_owned() }
}
