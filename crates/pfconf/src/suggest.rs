//! Near names: what somebody who mistyped a word may have meant.

/// The candidate most like `word`, if one is like it at all: a third of its letters may be wrong.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = word.len() / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| (1..=bound.max(1)).contains(distance))
        .min_by_key(|(distance, candidate)| (*distance, candidate.len().abs_diff(word.len())))
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, left out, changed or swapped with their neighbour to make `a`
/// into `b` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_but_no_strangers() {
        assert_eq!(nearest("bolck", ["pass", "block"]), Some("block"));
        assert_eq!(nearest("form", ["for", "from"]), Some("from"));
        assert_eq!(nearest("pas", ["pass", "block"]), Some("pass"));
        assert_eq!(nearest("tcpp", ["udp", "tcp"]), Some("tcp"));
        assert_eq!(nearest("bogus", ["pass", "block"]), None);
        assert_eq!(nearest("pass", ["pass"]), None);
    }
}
