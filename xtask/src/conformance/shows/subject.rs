//! An evaluator that is shown: the model, or an instance in the kernel.

use anyhow::bail;
use pfctl::filter::Filter;
use skipstep_kernel::testing::TestInstance;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Evaluator, Ruleset};
use skipstep_scenario::engine::{Carried, Draw, LinkHeader, TestPacket};

use super::model::ShownModel;
use crate::conformance::vector;
use crate::engines::Choice;

/// Seconds since 1970 when the recorder enabled pf.
pub const START: u32 = 1_700_100_000;
/// The recorder's host id where the rules set none.
pub const HOSTID: u32 = 0xf30b_ae77;

/// The evaluators of one thread. Both ways to search rules are those of one instance.
pub struct Subjects {
    model: ShownModel,
    instance: Option<TestInstance>,
}

impl Subjects {
    /// What the choices need. The instance is named after the process and the `job`.
    pub fn new(choices: &[Choice], job: usize, host: &Host) -> anyhow::Result<Subjects> {
        let name = format!("conformance-{}-{job}", std::process::id());
        let wanted = choices.iter().any(|choice| *choice != Choice::Model);
        let instance = wanted.then(|| TestInstance::new(&name, host)).transpose()?;
        Ok(Subjects { model: ShownModel::new(host), instance })
    }

    /// The chosen one.
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

/// What is shown.
pub enum Subject<'a> {
    Model(&'a mut ShownModel),
    Instance(&'a mut TestInstance, Evaluator),
}

impl Subject<'_> {
    /// Begins anew with `ruleset` and plays `packets`; `draws` are the random numbers for each.
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
            let played = TestPacket {
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

    fn packet(&mut self, second: u32, packet: &TestPacket) -> anyhow::Result<Option<Carried>> {
        match self {
            Subject::Model(model) => Ok(Some(model.packet(second, packet))),
            Subject::Instance(instance, _) => {
                instance.set_time(second)?;
                Ok(instance.packet(packet)?)
            }
        }
    }

    /// The filter as pfctl sees it.
    pub fn filter(&self) -> &dyn Filter {
        match self {
            Subject::Model(model) => *model,
            Subject::Instance(instance, _) => &***instance,
        }
    }

    /// The machine it is on.
    pub fn host(&self) -> &Host {
        match self {
            Subject::Model(model) => model.host(),
            Subject::Instance(instance, _) => instance.host(),
        }
    }
}
