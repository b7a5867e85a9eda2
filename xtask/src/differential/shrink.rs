//! Shrinking of a case that still shows a disagreement.

use skipstep_scenario::case::{Action, Case, Rules};

/// Number of rounds over steps and rules. The first removes most; each costs hundreds of plays.
const ROUNDS: usize = 3;

/// Returns the smallest case found for which `shows` is true. `shows` must be true for `case`.
pub fn smallest(case: &Case, mut shows: impl FnMut(&Case) -> bool) -> Case {
    let mut case = case.clone();
    for _ in 0..ROUNDS {
        let size = case.steps.len() + case.rules.text.lines().count();
        let steps =
            fewest(&case.steps, |steps| shows(&Case { steps: steps.to_vec(), ..case.clone() }));
        case.steps = steps;
        let lines: Vec<String> = case.rules.text.lines().map(String::from).collect();
        let lines = fewest(&lines, |lines| shows(&with_rules(&case, lines)));
        case = with_rules(&case, &lines);
        for step in 0..case.steps.len() {
            let Action::Load(path, rules) = &case.steps[step].action else { continue };
            let (path, lines) = (path.clone(), rules.text.lines().map(String::from));
            let lines: Vec<String> = lines.collect();
            let lines = fewest(&lines, |lines| shows(&with_load(&case, step, &path, lines)));
            case = with_load(&case, step, &path, &lines);
        }
        if case.steps.len() + lines.len() == size {
            break;
        }
    }
    case
}

fn with_rules(case: &Case, lines: &[String]) -> Case {
    let mut case = case.clone();
    case.rules.text = lines.join("\n") + "\n";
    case.rules.lines.clear();
    case
}

fn with_load(case: &Case, step: usize, path: &str, lines: &[String]) -> Case {
    let mut case = case.clone();
    let rules = Rules { text: lines.join("\n") + "\n", lines: Vec::new() };
    case.steps[step].action = Action::Load(path.to_owned(), rules);
    case
}

/// Removes smaller and smaller pieces of `items` while `shows` is true for the others.
fn fewest<T: Clone>(items: &[T], mut shows: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut items = items.to_vec();
    let mut piece = items.len().div_ceil(2);
    while piece > 0 {
        // from the end, because later items depend on earlier ones
        let mut end = items.len();
        while end > 0 {
            let start = end.saturating_sub(piece);
            let rest = [&items[..start], &items[end..]].concat();
            if shows(&rest) {
                items = rest;
            }
            end = start;
        }
        // quarters find long useless runs sooner than halves
        piece = if piece == 1 { 0 } else { piece.div_ceil(4) };
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_needed_items_remain() {
        let items: Vec<u32> = (0..100).collect();
        let left = fewest(&items, |items| items.contains(&17) && items.contains(&58));
        assert_eq!(left, [17, 58]);
    }
}
