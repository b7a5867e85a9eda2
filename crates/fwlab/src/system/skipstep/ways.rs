//! The ways to use skipstep that are compared.

use super::Skipstep;
use crate::system::System;

/// All ways.
pub(in crate::system) fn all() -> Vec<Box<dyn System>> {
    let way = |name, label, evaluator, keeps_states, xdp| -> Box<dyn System> {
        Box::new(Skipstep { name, label, evaluator, keeps_states, xdp, bridges: false })
    };
    let bridge = |name, label, xdp| -> Box<dyn System> {
        let evaluator = "skip-steps";
        Box::new(Skipstep { name, label, evaluator, keeps_states: true, xdp, bridges: true })
    };
    vec![
        way("skipstep-linear", "skipstep, linear", "linear", false, false),
        way("skipstep-skip-steps", "skipstep, skip steps", "skip-steps", false, false),
        way("skipstep-compiled", "skipstep, compiled", "compiled", false, false),
        way("skipstep-compiled-xdp", "skipstep, compiled and XDP", "compiled", false, true),
        way("skipstep-states", "skipstep, skip steps and states", "skip-steps", true, false),
        way("skipstep-states-xdp", "skipstep, states and XDP", "skip-steps", true, true),
        bridge("skipstep-bridge", "skipstep, a bridge with states", false),
        bridge("skipstep-bridge-xdp", "skipstep, a bridge with states and XDP", true),
    ]
}
