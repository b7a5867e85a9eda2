//! `-s rules`

use serde_json::{Value, json};
use skipstep_pfconf::PrintOptions;
use skipstep_pfconf::print::{self, DynamicSizes, TableSizes};
use skipstep_ruleset::Rule;
use skipstep_ruleset::skip::{Skip, skip_steps};
use skipstep_scenario::engine::RuleCounters;

use super::Detail;

/// What there is to know about rules.
pub struct RulesView<'a> {
    /// The rules in force.
    pub rules: &'a [Rule],
    /// Their counters, in the same order.
    pub counters: &'a [RuleCounters],
    /// User and process that loaded them.
    pub inserted: Inserted,
    /// Number of addresses in a table (`None`: not defined), for `-vv`.
    pub table_sizes: TableSizes<'a>,
    /// Number of addresses of an interface in parentheses, for `-vv`.
    pub dynamic_sizes: DynamicSizes<'a>,
}

/// Who loaded a rule set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inserted {
    /// user id
    pub uid: u32,
    /// process id
    pub pid: u32,
}

/// The rules, each with the lines of figures that `detail` asks for.
pub fn text(view: &RulesView, detail: Detail) -> String {
    let all = detail.very_verbose() || detail.debug;
    let options = PrintOptions {
        numbers: all,
        table_sizes: all.then_some(view.table_sizes),
        dynamic_sizes: all.then_some(view.dynamic_sizes),
        ..PrintOptions::default()
    };
    let steps = if detail.debug { skip_steps(view.rules) } else { Vec::new() };
    let mut text = String::new();
    for (i, (rule, counters)) in view.rules.iter().zip(view.counters).enumerate() {
        text += &print::rule(rule, &options);
        text.push('\n');
        if detail.debug {
            text += &skip_line(i, &steps[i], view.rules.len());
            // no rule assigns queues, which are not built
            text += "  [ queue: qname= qid=0 pqname= pqid=0 ]\n";
        }
        if detail.verbose() {
            text += &counters_line(counters);
            if !detail.debug {
                text += &inserted_line(view.inserted, counters);
            }
        }
    }
    text
}

/// Where the evaluation goes on if a parameter does not match; steps to the very next rule are
/// left out.
fn skip_line(rule: usize, steps: &[u32; Skip::COUNT], rules: usize) -> String {
    let mut line = "  [ Skip steps: ".to_string();
    for skip in Skip::ALL {
        let next = steps[skip as usize] as usize;
        if next == rules {
            line += &format!("{}=end ", skip.name());
        } else if next != rule + 1 {
            line += &format!("{}={next} ", skip.name());
        }
    }
    line + "]\n"
}

fn counters_line(counters: &RuleCounters) -> String {
    format!(
        "  [ Evaluations: {:<8}  Packets: {:<8}  Bytes: {:<10}  States: {:<6}]\n",
        counters.evaluations,
        counters.packets[0] + counters.packets[1],
        counters.bytes[0] + counters.bytes[1],
        counters.states,
    )
}

fn inserted_line(inserted: Inserted, counters: &RuleCounters) -> String {
    format!(
        "  [ Inserted: uid {} pid {} State Creations: {:<6}]\n",
        inserted.uid, inserted.pid, counters.states_created
    )
}

/// A list with an object for each rule.
pub fn json(view: &RulesView) -> Value {
    let options = PrintOptions::default();
    view.rules
        .iter()
        .zip(view.counters)
        .map(|(rule, counters)| {
            json!({
                "number": rule.number,
                "line": rule.line,
                "rule": print::rule(rule, &options),
                "label": rule.label,
                "evaluations": counters.evaluations,
                "packets_in": counters.packets[0],
                "bytes_in": counters.bytes[0],
                "packets_out": counters.packets[1],
                "bytes_out": counters.bytes[1],
                "states": counters.states,
                "states_created": counters.states_created,
                "inserted": { "uid": view.inserted.uid, "pid": view.inserted.pid },
            })
        })
        .collect()
}
