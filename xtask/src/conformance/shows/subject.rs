//! An evaluator whose output is compared: the model, or an instance in the kernel.

use anyhow::bail;
use pfctl::filter::Filter;
use skipstep_model::{Carried, Draw, LinkHeader, Packet};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Evaluator, Ruleset};
use skipstep_testing::TestInstance;

use super::model::ShownModel;
use crate::conformance::vector;
use crate::engines::Choice;

/// Time at which the recorder enabled pf, in seconds since 1970.
pub const START: u32 = 1_700_100_000;
/// The recorder's host id if the rules set none.
pub const HOSTID: u32 = 0xf30b_ae77;

/// The evaluators of one thread. One instance serves all evaluators in the kernel.
pub struct Subjects {
    model: ShownModel,
    instance: Option<TestInstance>,
}

impl Subjects {
    /// Creates the evaluators that the choices need. The instance is named after the process and
    /// the `job`.
    ///
    /// # Errors
    /// Fails if the instance cannot be created.
    pub fn new(choices: &[Choice], job: usize, host: &Host) -> anyhow::Result<Subjects> {
        let name = format!("conformance-{}-{job}", std::process::id());
        let wanted = choices.iter().any(|choice| *choice != Choice::Model);
        let instance = wanted.then(|| TestInstance::new(&name, host)).transpose()?;
        Ok(Subjects { model: ShownModel::new(host), instance })
    }

    /// Returns the chosen evaluator; `None` for `all`, and if the evaluator was not created.
    pub fn subject(&mut self, choice: Choice) -> Option<Subject<'_>> {
        let evaluator = match choice {
            Choice::Model => return Some(Subject::Model(&mut self.model)),
            Choice::BpfLinear => Evaluator::Linear,
            Choice::BpfSkipSteps => Evaluator::SkipSteps,
            Choice::BpfCompiled => Evaluator::Compiled,
            Choice::All => return None,
        };
        self.instance.as_mut().map(|instance| Subject::Instance(instance, evaluator))
    }
}

/// An evaluator whose output is compared.
pub enum Subject<'a> {
    Model(&'a mut ShownModel),
    Instance(&'a mut TestInstance, Evaluator),
}

impl Subject<'_> {
    /// Loads `ruleset` and plays `packets`. `draws` has the random numbers for each packet.
    ///
    /// # Errors
    /// Fails if the evaluator refuses the rules, or if a packet has an unknown direction.
    pub fn play(
        &mut self,
        ruleset: &Ruleset,
        packets: &[vector::Packet],
        draws: &[Vec<Draw>],
    ) -> anyhow::Result<()> {
        self.start(ruleset)?;
        let mut before: Option<(String, Carried)> = None;
        for (place, packet) in packets.iter().enumerate() {
            for draw in draws.get(place).into_iter().flatten() {
                self.set_random(*draw)?;
            }
            let (received_on, carried) = match before.take().filter(|_| packet.cont) {
                Some((from, carried)) => (Some(from), carried),
                None => (None, Carried::default()),
            };
            let played = Packet {
                direction: match packet.dir.as_str() {
                    "in" => Direction::In,
                    "out" => Direction::Out,
                    other => bail!("direction {other}"),
                },
                interface: packet.ifname.clone(),
                bytes: packet.bytes().unwrap_or_default(),
                link: LinkHeader::default(),
                received_on,
                carried,
                owner: None,
            };
            let carried = self.packet(packet.t, &played)?;
            before = carried.map(|carried| (packet.ifname.clone(), carried));
        }
        Ok(())
    }

    fn start(&mut self, ruleset: &Ruleset) -> anyhow::Result<()> {
        match self {
            Subject::Model(model) => model.start(ruleset)?,
            Subject::Instance(instance, evaluator) => {
                let mut ruleset = ruleset.clone();
                ruleset.options.evaluator = *evaluator;
                instance.start(&ruleset, HOSTID, START)?;
            }
        }
        Ok(())
    }

    fn set_random(&mut self, draw: Draw) -> anyhow::Result<()> {
        match self {
            Subject::Model(model) => model.set_random(draw),
            Subject::Instance(instance, _) => instance.set_random(draw),
        }
        Ok(())
    }

    fn packet(&mut self, second: u32, packet: &Packet) -> anyhow::Result<Option<Carried>> {
        match self {
            Subject::Model(model) => Ok(Some(model.packet(second, packet))),
            Subject::Instance(instance, _) => {
                instance.set_time(second)?;
                Ok(instance.packet(packet)?)
            }
        }
    }

    /// Returns the filter as pfctl reads it.
    pub fn filter(&self) -> &dyn Filter {
        match self {
            Subject::Model(model) => *model,
            Subject::Instance(instance, _) => &***instance,
        }
    }

    /// Returns the host that the evaluator runs on.
    pub fn host(&self) -> &Host {
        match self {
            Subject::Model(model) => model.host(),
            Subject::Instance(instance, _) => instance.host(),
        }
    }
}
