//! The evaluators that the subcommands compare.

use anyhow::anyhow;
use clap::ValueEnum;
use skipstep_kernel::Indexing;
use skipstep_kernel::object::check_kernel;
use skipstep_ruleset::Evaluator;
use skipstep_scenario::{Engine, Model};
use skipstep_testing::TestEngine;

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
    /// All four evaluators
    All,
}

impl Choice {
    /// Returns the chosen evaluators.
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

    /// Returns the chosen evaluators that can run here. Without root or on an old kernel, BPF
    /// evaluators are left out with a message.
    ///
    /// # Errors
    /// Fails if the kernel cannot be checked for another reason. Other problems show when an
    /// evaluator starts.
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

    /// Returns the name of one evaluator, which [`Engine::name`] returns, too.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Model => "model",
            Choice::BpfLinear => "bpf-linear",
            Choice::BpfSkipSteps => "bpf-skip-steps",
            Choice::BpfCompiled => "bpf-compiled",
            Choice::All => "all",
        }
    }

    /// Creates the evaluator.
    ///
    /// # Errors
    /// Fails if the kernel refuses the programs, or if the choice is `All`.
    pub fn start(self) -> anyhow::Result<Box<dyn Engine>> {
        self.start_with(|_| ())
    }

    /// Creates the evaluator without table indexes, because the kernel takes tens of milliseconds
    /// to replace an index.
    ///
    /// # Errors
    /// Fails as [`Choice::start`] does.
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
