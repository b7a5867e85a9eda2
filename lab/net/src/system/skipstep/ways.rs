//! The configurations of skipstep that are compared.

use super::Skipstep;
use super::rules::States;
use crate::system::System;

/// Returns all configurations of skipstep.
pub(in crate::system) fn all() -> Vec<Box<dyn System>> {
    let way = |name, label, evaluator, states, xdp| -> Box<dyn System> {
        Box::new(Skipstep { name, label, evaluator, states, xdp, bridges: false })
    };
    let bridge = |name, label, xdp| -> Box<dyn System> {
        let (evaluator, states) = ("skip-steps", States::Any);
        Box::new(Skipstep { name, label, evaluator, states, xdp, bridges: true })
    };
    let (none, any, cookies) = (States::None, States::Any, States::Syncookies);
    vec![
        way("skipstep-linear", "skipstep, linear", "linear", none, false),
        way("skipstep-skip-steps", "skipstep, skip steps", "skip-steps", none, false),
        way("skipstep-compiled", "skipstep, compiled", "compiled", none, false),
        way("skipstep-compiled-xdp", "skipstep, compiled and XDP", "compiled", none, true),
        way("skipstep-states", "skipstep, skip steps and states", "skip-steps", any, false),
        way("skipstep-states-xdp", "skipstep, states and XDP", "skip-steps", any, true),
        way("skipstep-syncookies", "skipstep, states and syncookies", "skip-steps", cookies, false),
        bridge("skipstep-bridge", "skipstep, a bridge with states", false),
        bridge("skipstep-bridge-xdp", "skipstep, a bridge with states and XDP", true),
    ]
}
