//! Random anchors: in braces with and without names, called by path and by wildcard, with
//! conditions and `quick`, nested, and with tables of their own.

use fastrand::Rng;

use super::pool::{Pool, TAGS, one_in, pick};
use super::rules::{Head, filter_rule, hosts, interface, table, table_called};

/// Depth of nested braces at most.
const DEEPEST: usize = 4;

/// The anchors of a rule set so far.
#[derive(Default)]
pub struct Anchors {
    /// Number of anchors with a name.
    named: usize,
    /// Paths of anchors that can be called from elsewhere.
    paths: Vec<String>,
}

impl Anchors {
    /// Draws an anchor rule, perhaps with the anchor's rules in braces.
    pub fn lines(&mut self, rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
        self.inside(rng, pool, Some(""), 0)
    }

    /// Draws an anchor rule inside the anchor `parent`. `parent` is `None` if a part of the path
    /// has no name.
    fn inside(
        &mut self,
        rng: &mut Rng,
        pool: &mut Pool,
        parent: Option<&str>,
        depth: usize,
    ) -> Vec<String> {
        let conditions = conditions(rng, pool);
        if depth == DEEPEST || (!self.paths.is_empty() && one_in(rng, 2)) {
            let name = self.called(rng);
            return vec![format!("anchor \"{name}\" {conditions}")];
        }
        let (name, path) = match parent {
            Some(parent) if !one_in(rng, 3) => {
                self.named += 1;
                let name = format!("a{}", self.named);
                (format!("\"{name}\" "), Some(format!("{parent}/{name}")))
            }
            _ => (String::new(), None),
        };
        // a path that is added before the anchor is complete may be called by the anchor's own
        // rules
        let loops = one_in(rng, 12);
        self.paths.extend(path.clone().filter(|_| loops));
        let mut lines = vec![format!("anchor {name}{conditions} {{")];
        if one_in(rng, 3) {
            lines.push(match pool.tables.is_empty() || rng.bool() {
                true => table(rng, pool),
                false => {
                    let known = pick(rng, &pool.tables);
                    table_called(rng, pool, &known)
                }
            });
        }
        for _ in 0..rng.usize(..5) {
            if one_in(rng, 4) {
                lines.extend(self.inside(rng, pool, path.as_deref(), depth + 1));
            } else {
                lines.push(filter_rule(rng, pool));
            }
        }
        lines.push("}".into());
        self.paths.extend(path.filter(|_| !loops));
        lines
    }

    /// Draws the name in an anchor rule without braces.
    fn called(&self, rng: &mut Rng) -> String {
        if self.paths.is_empty() || one_in(rng, 10) {
            return pick(rng, &["nobody", "nobody/*"]).into();
        }
        let path = pick(rng, &self.paths);
        match rng.u8(..5) {
            0 | 1 => format!("{path}/*"),
            _ => path,
        }
    }
}

fn conditions(rng: &mut Rng, pool: &mut Pool) -> String {
    let mut words = Vec::new();
    words.extend(pick(rng, &[None, None, None, Some("in"), Some("out")]).map(String::from));
    if one_in(rng, 3) {
        words.push("quick".into());
    }
    if one_in(rng, 2) {
        words.extend(interface(rng, "on"));
    }
    let protocols = [None, None, None, Some("tcp"), Some("udp"), Some("{ tcp, udp }")];
    let protocol = pick(rng, &protocols);
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    if one_in(rng, 2) {
        words.extend(hosts(rng, pool, &Head { action: "anchor", family: None, protocol }));
    }
    if one_in(rng, 6) {
        words.push(format!("tag {}", pick(rng, TAGS)));
    }
    if one_in(rng, 8) {
        words.push(format!("{}tagged {}", pick(rng, &["", "! "]), pick(rng, TAGS)));
    }
    words.join(" ")
}
