//! Engines that all tests of a binary share, because the verifier takes seconds for each new one.
//!
//! An engine runs in a thread, and so in a network namespace, of its own. `Engine::load` empties
//! all its maps, as the differential test does some hundred thousand times. So each test begins
//! with `load`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex};

use skipstep_ruleset::Evaluator;
use skipstep_testing::TestEngine;

/// One engine for each evaluator.
pub static ENGINES: LazyLock<[SharedEngine; 3]> = LazyLock::new(|| {
    [Evaluator::Linear, Evaluator::SkipSteps, Evaluator::Compiled].map(SharedEngine::start)
});

type Job = (fn(&mut TestEngine), Sender<Result<(), Box<dyn Any + Send>>>);

/// A handle for the thread of an engine.
pub struct SharedEngine {
    evaluator: Evaluator,
    jobs: Mutex<Sender<Job>>,
}

impl SharedEngine {
    fn start(evaluator: Evaluator) -> Self {
        let (jobs, received) = channel::<Job>();
        std::thread::spawn(move || {
            let mut engine = TestEngine::new(evaluator).unwrap();
            for (test, done) in received {
                let result = catch_unwind(AssertUnwindSafe(|| test(&mut engine)));
                done.send(result).unwrap();
            }
        });
        SharedEngine { evaluator, jobs: Mutex::new(jobs) }
    }

    /// Runs a test on the engine, and panics if the test does.
    pub fn run(&self, test: fn(&mut TestEngine)) {
        let (done, result) = channel();
        // if the engine could not be loaded, its thread has ended
        let sent = self.jobs.lock().unwrap().send((test, done));
        let result = sent.ok().and_then(|()| result.recv().ok());
        let result = result.unwrap_or_else(|| panic!("{:?}: no engine", self.evaluator));
        if let Err(panic) = result {
            eprintln!("on the engine {:?}", self.evaluator);
            resume_unwind(panic);
        }
    }
}
