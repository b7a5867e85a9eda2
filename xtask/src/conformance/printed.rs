//! The output of pfctl for the rule sets of all vectors, or its error messages. No evaluator is
//! involved.

use serde::Deserialize;
use skipstep_pfconf::{Context, Dialect, Loaded, Names, Rejected, Severity};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{AutomaticTables, Optimization};
use skipstep_scenario::host;

/// The name of the file without packets. Its rule sets were also recorded after optimization.
pub const FILE: &str = "parse";

/// The only rule set with a different output here, `pass from fe80::1%em0`. The recorder knew no
/// interface em0 when it read the zone. OpenBSD's own case 14 shows the output of a system:
/// `on em0`.
const OTHER_HOST: &str = "parse-02373";

/// Users and groups of the recording host.
const PASSWD: &str = "root:*:0:0::/:/\ndaemon:*:1:1::/:/\noperator:*:2:5::/:/\nbin:*:3:7::/:/\n\
    sshd:*:27:27::/:/\nproxy:*:71:71::/:/\nnobody:*:32767:32767::/:/\n";
const GROUP: &str = "wheel:*:0:\ndaemon:*:1:\noperator:*:5:\nbin:*:7:\nsshd:*:27:\nproxy:*:71:\n\
    nobody:*:32767:\n";

/// A rule set and the output of pfctl.
#[derive(Deserialize)]
struct Vector {
    id: String,
    rules: String,
    #[serde(default)]
    printed: String,
    printed_optimized: Option<String>,
    #[serde(default)]
    messages: String,
    #[serde(default)]
    error: bool,
    #[serde(default)]
    printed_before_error: String,
}

/// Number of equal vectors, and the differences.
#[derive(Default)]
pub struct Tally {
    pub equal: usize,
    pub other_host: usize,
    pub differences: Vec<String>,
}

/// Compares every vector, first as written, then optimized if that was recorded.
///
/// # Errors
/// Fails if a line is not a vector.
pub fn compare(lines: &[String]) -> anyhow::Result<Tally> {
    let host = host::standard();
    let mut tally = Tally::default();
    for line in lines {
        let vector: Vector = serde_json::from_str(line)?;
        let optimized = vector.printed_optimized.as_ref();
        let printed = [(Optimization::None, &vector.printed)].into_iter();
        let printed = printed.chain(optimized.map(|printed| (Optimization::Basic, printed)));
        let mut differences = printed.filter_map(|(level, printed)| {
            difference(
                &vector,
                level,
                if vector.error { &vector.printed_before_error } else { printed },
                &host,
            )
        });
        match differences.next() {
            None => tally.equal += 1,
            Some(_) if vector.id == OTHER_HOST => tally.other_host += 1,
            Some(difference) => tally.differences.push(difference),
        }
    }
    Ok(tally)
}

fn difference(vector: &Vector, level: Optimization, printed: &str, host: &Host) -> Option<String> {
    // the recorder set the default level, not -o, and replaced all random numbers by one
    let chosen = vector.rules.contains("set ruleset-optimization");
    let names = Names::builtin().clone().with_owners(PASSWD, GROUP);
    let context = Context {
        optimization: (!chosen).then_some(level),
        automatic_tables: AutomaticTables::for_loading(0x5eed),
        random: &|| 0x5eed,
        names: &names,
        dialect: Dialect::OpenBsd,
        ..Context::new(host)
    };
    let found = messages_and_rules(&vector.rules, &context);
    let expected = format!("{}{printed}", vector.messages);
    (found != expected).then(|| {
        let Vector { id, rules, .. } = vector;
        format!("{id}, optimized {level:?}\n{rules}expected\n{expected}found\n{found}")
    })
}

/// Returns the messages, followed by the printed rules.
fn messages_and_rules(rules: &str, context: &Context) -> String {
    let (messages, printed) = match skipstep_pfconf::load(rules, context) {
        Ok(Loaded { echo, warnings, .. }) => {
            // OpenBSD does not warn of a missing interface
            let told = warnings.into_iter().filter(|warning| {
                warning.kind == Severity::Warning
                    && !warning.message.contains("there is no interface")
            });
            (told.map(|warning| format!("{warning}\n")).collect::<String>(), echo)
        }
        Err(Rejected { diagnostics, echo }) => {
            let told: String = diagnostics.iter().map(|told| format!("{told}\n")).collect();
            (told + "pfctl: Syntax error in config file: pf rules not loaded\n", echo)
        }
    };
    messages + &printed.replace("__automatic_5eed_", "__automatic_")
}
