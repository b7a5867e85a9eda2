//! A search that runs: its trials, and the text of its result.

use serde_json::Value;

use super::{Arguments, connections, frames};
use crate::search::test::Test;
use crate::search::throughput;
use crate::search::{Conformance, Failure, Setting, TrialRunner};

/// The result of a search as JSON, and its conformance; or the reason for which there is none.
pub(super) type Found = Result<(Value, Conformance), Failure>;

/// A search with one kind of frames, or with connections.
pub(super) struct Search<'s, 'm> {
    pub runner: &'s mut TrialRunner<'m>,
    pub setting: &'s Setting,
    pub arguments: &'s Arguments,
    /// The result as text for people. A search that fails may have a part of it.
    pub text: String,
}

impl Search<'_, '_> {
    /// Runs the search of the test.
    pub fn run(&mut self) -> Found {
        match self.arguments.test {
            Test::Frames(test) => frames::search(self, test),
            Test::FramesAtThroughput(test) => frames::at_throughput(self, test),
            Test::Connections(test) => connections::search(self, test),
            Test::ConnectionsAtRate(test) => connections::at_rate(self, test),
        }
    }

    /// Returns the plan of a search for the highest rate without loss.
    pub fn plan(&self) -> throughput::Plan {
        let last = self.arguments.seconds;
        throughput::Plan { last, search: last.min(10.0), ..Default::default() }
    }
}
