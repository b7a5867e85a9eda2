//! The evaluators that the chores compare.

use anyhow::anyhow;
use clap::ValueEnum;
use skipstep_kernel::Indexing;
use skipstep_kernel::object::check_kernel;
use skipstep_kernel::testing::TestEngine;
use skipstep_ruleset::Evaluator;
use skipstep_scenario::{Engine, Model};

/// One evaluator, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The reference evaluator
    Model,
    /// The BPF programs, one rule after the other (root)
    BpfLinear,
    /// The BPF programs with skip steps (root)
    BpfSkipSteps,
    /// The BPF programs with trees (root)
    BpfCompiled,
    /// The four of them
    All,
}

impl Choice {
    /// The evaluators chosen.
    fn expand(self) -> &'static [Choice] {
        match self {
            Choice::Model => &[Choice::Model],
            Choice::BpfLinear => &[Choice::BpfLinear],
            Choice::BpfSkipSteps => &[Choice::BpfSkipSteps],
            Choice::BpfCompiled => &[Choice::BpfCompiled],
            Choice::All => {
                &[Choice::Model, Choice::BpfLinear, Choice::BpfSkipSteps, Choice::BpfCompiled]
            }
        }
    }

    /// Those of the chosen evaluators that can run here. BPF without root or on an old kernel
    /// cannot, which is said; whatever else keeps one from starting is an error when it is to
    /// start.
    pub fn available(self) -> anyhow::Result<Vec<Choice>> {
        let mut available = Vec::new();
        for &choice in self.expand() {
            match check_kernel() {
                Err(error) if choice != Choice::Model && error.is_unsupported() => {
                    println!("skipped: {}: {error:#}", choice.name())
                }
                Err(error) if choice != Choice::Model => return Err(error.into()),
                _ => available.push(choice),
            }
        }
        Ok(available)
    }

    /// The name of one evaluator, as it calls itself.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Model => "model",
            Choice::BpfLinear => "bpf-linear",
            Choice::BpfSkipSteps => "bpf-skip-steps",
            Choice::BpfCompiled => "bpf-compiled",
            Choice::All => "all",
        }
    }

    /// Makes one of the evaluators.
    pub fn start(self) -> anyhow::Result<Box<dyn Engine>> {
        self.start_with(|_| ())
    }

    /// The same with no index of any table: the kernel takes tens of milliseconds to replace one.
    pub fn start_without_indexes(self) -> anyhow::Result<Box<dyn Engine>> {
        self.start_with(|engine| engine.set_indexing(Indexing::None))
    }

    fn start_with(self, change: impl Fn(&mut TestEngine)) -> anyhow::Result<Box<dyn Engine>> {
        let bpf = |evaluator| -> anyhow::Result<Box<dyn Engine>> {
            let mut engine = TestEngine::new(evaluator)?;
            change(&mut engine);
            Ok(Box::new(engine))
        };
        match self {
            Choice::Model => Ok(Box::new(Model::new())),
            Choice::BpfLinear => bpf(Evaluator::Linear),
            Choice::BpfSkipSteps => bpf(Evaluator::SkipSteps),
            Choice::BpfCompiled => bpf(Evaluator::Compiled),
            Choice::All => Err(anyhow!("choose one evaluator")),
        }
    }
}
