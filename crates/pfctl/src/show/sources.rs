//! `-s Sources`: prints the source nodes.

use serde_json::{Value, json};
use skipstep_ruleset::Ruleset;
use skipstep_views::{NodeKind, SourceView};

use super::Detail;
use super::states::clock;

/// The source nodes, with everything that is printed about them.
pub struct SourcesView<'a> {
    /// Source nodes, ordered by rule.
    pub sources: &'a [SourceView],
    /// Rule set with the rules that track the sources.
    pub ruleset: &'a Ruleset,
    /// Current time in seconds, on the clock of the source nodes.
    pub now: u32,
}

impl SourcesView<'_> {
    /// Returns the current connection rate in tenths, and the seconds of the rule's
    /// `max-src-conn-rate`. Without such a limit both are 0. The rate decays linearly since the
    /// last connection.
    fn rate(&self, source: &SourceView) -> (u32, u32) {
        let rule = source.rule.as_ref().and_then(|rule| self.ruleset.rule(rule));
        let limit = rule.and_then(|rule| rule.state.as_ref()?.max_src_conn_rate);
        let Some((_, seconds)) = limit else {
            return (0, 0);
        };
        let (thousandths, last) = source.rate;
        let elapsed = u64::from(self.now.saturating_sub(last));
        let period = u64::from(seconds);
        let left = match elapsed < period {
            true => u64::from(thousandths) - u64::from(thousandths) * elapsed / period,
            false => 0,
        };
        ((left / 100) as u32, seconds)
    }
}

/// Prints the source nodes in OpenBSD's format.
pub fn text(view: &SourcesView, detail: Detail) -> String {
    view.sources.iter().map(|source| lines(view, source, detail)).collect()
}

fn lines(view: &SourcesView, source: &SourceView, detail: Detail) -> String {
    let mut text = source.source.to_string();
    if let Some(chosen) = source.chosen {
        text += &format!(" {}{chosen}", word(source.kind));
    }
    let (tenths, seconds) = view.rate(source);
    text += &format!(
        " ( states {}, connections {}, rate {}.{}/{seconds}s )\n",
        source.states,
        source.connections,
        tenths / 10,
        tenths % 10,
    );
    if !detail.verbose() {
        return text;
    }
    text += &format!("   age {}", clock(view.now.saturating_sub(source.created_at)));
    if source.states == 0 {
        text += &format!(", expires in {}", clock(source.expires_at.saturating_sub(view.now)));
    }
    let sum = |both: [u64; 2]| both[0] + both[1];
    text += &format!(", {} pkts, {} bytes", sum(source.packets), sum(source.bytes));
    if let Some(rule) = &source.rule {
        text += &format!(", rule {}", rule.number);
    }
    text + "\n"
}

/// Returns the word in front of the address that a pool chose.
fn word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Track => "",
        NodeKind::Nat => "nat-to ",
        NodeKind::Rdr => "rdr-to ",
        NodeKind::Route => "route-to ",
    }
}

/// Returns a list with an object for each source node.
pub fn json(view: &SourcesView) -> Value {
    let sources = view.sources.iter().map(|source| {
        let (tenths, seconds) = view.rate(source);
        json!({
            "source": source.source,
            "chosen": source.chosen,
            "pool": Some(word(source.kind).trim()).filter(|word| !word.is_empty()),
            "states": source.states,
            "connections": source.connections,
            "rate": { "connections": f64::from(tenths) / 10.0, "seconds": seconds },
            "age": view.now.saturating_sub(source.created_at),
            "expires": (source.states == 0).then(|| source.expires_at.saturating_sub(view.now)),
            "packets": source.packets,
            "bytes": source.bytes,
            "anchor": source.rule.as_ref().map(|rule| &rule.anchor),
            "rule": source.rule.as_ref().map(|rule| rule.number),
        })
    });
    sources.collect()
}
