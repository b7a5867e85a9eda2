//! Near names: the word that somebody may have meant who mistyped one.

/// Returns the candidate most like `word`, or `None` if none is like it: a third of the letters may
/// be added, left out, changed or swapped with their neighbour.
///
/// A word of three letters or fewer becomes another word if a letter changes or goes (`rip` is
/// neither `rdp` nor `ip`): only a letter that is missing or swapped makes a candidate like it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            (1..=bound).contains(distance) && !is_another_short_word(word, candidate)
        })
        .min_by_key(|(distance, candidate)| (*distance, candidate.len().abs_diff(word.len())))
        .map(|(_, candidate)| candidate)
}

/// True if `word` is short, and `candidate` neither adds letters to it nor has the same letters.
fn is_another_short_word(word: &str, candidate: &str) -> bool {
    fn letters(word: &str) -> Vec<char> {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    }
    word.len() <= 3 && candidate.len() <= word.len() && letters(word) != letters(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_words_are_suggested() {
        assert_eq!(nearest("bolck", ["pass", "block"]), Some("block"));
        assert_eq!(nearest("form", ["for", "from"]), Some("from"));
        assert_eq!(nearest("pas", ["pass", "block"]), Some("pass"));
        assert_eq!(nearest("tcpp", ["udp", "tcp"]), Some("tcp"));
        assert_eq!(nearest("bogus", ["pass", "block"]), None);
        assert_eq!(nearest("rip", ["rdp", "ip"]), None);
        assert_eq!(nearest("of", ["on"]), None);
        assert_eq!(nearest("tpc", ["udp", "tcp"]), Some("tcp"));
        assert_eq!(nearest("icm", ["igmp", "icmp"]), Some("icmp"));
        assert_eq!(nearest("pass", ["pass"]), None);
    }
}
