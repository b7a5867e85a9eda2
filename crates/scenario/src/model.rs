//! The reference evaluator as an [`Engine`].

use std::net::IpAddr;

use skipstep_model as model;
use skipstep_model::{Draw, Fate, Packet, TableCounters, TrialTime};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{RuleId, RulesChange, Ruleset, TableName};
use skipstep_views::{
    InterfaceCounters, LimitedView, LimiterView, NodeKind, RuleCounters, SourceView, StateView,
    Status, TableEdit,
};

use crate::engine::Engine;

/// The model as an engine; empty until rules are loaded.
#[derive(Default)]
pub struct Model {
    firewall: Option<model::Firewall>,
}

impl Model {
    /// Returns a model without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the firewall itself, for operations that [`Engine`] does not have.
    pub fn firewall(&mut self) -> &mut model::Firewall {
        self.firewall
            .get_or_insert_with(|| model::Firewall::new(Ruleset::default(), Host::default()))
    }
}

impl Engine for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String> {
        self.firewall = Some(model::Firewall::new(ruleset.clone(), host.clone()));
        Ok(())
    }

    fn change_rules(&mut self, change: &RulesChange) -> Result<(), String> {
        let next = change.next(self.firewall().ruleset());
        self.firewall().replace_rules(&next)
    }

    fn try_rules(&mut self, change: &RulesChange, time: TrialTime) -> Result<(), String> {
        let next = change.next(self.firewall().ruleset());
        self.firewall().try_rules(&next, time)
    }

    fn end_trial(&mut self, confirm: bool) -> bool {
        match confirm {
            true => self.firewall().confirm_rules(),
            false => self.firewall().revert_rules().is_some(),
        }
    }

    fn change_host(&mut self, host: &Host) -> Result<(), String> {
        self.firewall().change_host(host.clone());
        Ok(())
    }

    fn set_time(&mut self, seconds: u32) -> Vec<u64> {
        self.firewall().set_time(seconds)
    }

    fn set_random(&mut self, draw: Draw) {
        self.firewall().set_random(draw);
    }

    fn packet(&mut self, packet: &Packet) -> Fate {
        self.firewall().packet(packet)
    }

    fn kill(&mut self, ids: &[u64]) {
        self.firewall().kill(ids);
    }

    fn labelled(&mut self, label: &str) -> Vec<u64> {
        self.firewall().states_with_label(label)
    }

    fn edit_table(&mut self, edit: &TableEdit) -> bool {
        self.firewall().edit_table(edit)
    }

    fn states(&mut self) -> Vec<StateView> {
        let firewall = self.firewall();
        firewall.states().map(|state| state_view(firewall, state)).collect()
    }

    fn sources(&mut self) -> Vec<SourceView> {
        let sources = self.firewall().sources();
        sources.map(|(rule, kind, source, node)| source_view(rule, kind, source, node)).collect()
    }

    fn limiters(&mut self) -> Vec<LimiterView> {
        self.firewall().limiters().map(limiter_view).collect()
    }

    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters {
        self.firewall().rule_counters(rule)
    }

    fn interface_counters(&mut self, name: &str) -> InterfaceCounters {
        self.firewall().interface_counters(name)
    }

    fn table_counters(&mut self, name: &TableName) -> TableCounters {
        self.firewall().table_counters(name)
    }

    fn status(&mut self) -> Status {
        self.firewall().status()
    }
}

fn source_view(
    rule: Option<RuleId>,
    kind: NodeKind,
    source: IpAddr,
    node: &model::SourceNode,
) -> SourceView {
    SourceView {
        rule,
        kind,
        source,
        // pf treats an address of zeros as none.
        chosen: node
            .chosen
            .as_ref()
            .map(|chosen| chosen.address)
            .filter(|address| !address.is_unspecified()),
        states: node.states,
        connections: node.connections,
        rate: node.rate(),
        created_at: node.created_at,
        expires_at: node.expires_at,
        packets: node.packets,
        bytes: node.bytes,
    }
}

fn limiter_view(state: &model::LimiterState) -> LimiterView {
    let sources = state.sources.iter().map(|((rdomain, address), source)| LimitedView {
        rdomain: *rdomain,
        net: state.limiter.masked(*address),
        states: source.states,
        counts: source.counts,
    });
    LimiterView {
        limiter: state.limiter.clone(),
        states: state.states,
        counts: state.counts,
        sources_made: state.sources_made,
        sources_limited: state.sources_limited,
        sources_lost: 0,
        sources: sources.collect(),
    }
}

fn state_view(firewall: &model::Firewall, state: &model::State) -> StateView {
    let [wire, stack] = [0, 1].map(|side| {
        let key = &state.key[side];
        [(key.address[0], key.port[0]), (key.address[1], key.port[1])]
    });
    StateView {
        id: state.id,
        protocol: state.key[0].protocol,
        family: state.key[0].family,
        direction: state.direction,
        interface: state.interface.clone(),
        rdomain: state.key[0].rdomain,
        rule: firewall.rule_of(state),
        anchor_rule: firewall.anchor_rule_of(state),
        wire,
        stack,
        src: state.src,
        dst: state.dst,
        timeout: state.timeout,
        created_at: state.created_at,
        expires_at: firewall.expires_at(state),
        packets: state.packets,
        bytes: state.bytes,
        flags: state.flags(),
        min_ttl: state.actions.min_ttl,
        max_mss: state.actions.max_mss,
        tag: state.tag.clone(),
        tracked: state.is_tracked(),
        route: state.route.clone(),
    }
}
