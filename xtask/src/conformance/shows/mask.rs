//! Parts of an output that depend on the machine, on the wall clock, or on the way rules are
//! searched (README-show.md beside the vectors).

/// Removes these parts from a text; with `random` also sequence numbers that pf drew. Source nodes
/// are sorted, because the order of their rules is random.
pub fn text(arguments: &str, text: &str, random: bool) -> String {
    // the list of systems depends on the fingerprint database
    let text = text.split("\nOS FINGERPRINTS:").next().unwrap_or_default();
    let mut masked: Vec<String> = Vec::new();
    let mut labels = arguments.ends_with("-sl");
    let mut above = "";
    for text in text.lines() {
        if text.ends_with(':') {
            labels = text == "LABEL COUNTERS:";
        }
        masked.push(match labels {
            true => label(text),
            false if random && holds_drawn_number(text, above) => "   [ … ]".to_owned(),
            false => line(text),
        });
        above = text;
    }
    sort_sources(&mut masked);
    masked.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns true if a line under a state has a random sequence number, of `modulate state` or
/// `synproxy state`.
fn holds_drawn_number(text: &str, above: &str) -> bool {
    text.trim_start().starts_with('[') && (text.contains("](+") || above.contains("PROXY:"))
}

/// Sorts each run of source nodes. A node is one line, or two of which the second is indented.
fn sort_sources(lines: &mut [String]) {
    let is_node = |line: &String| line.contains(" ( states ") && line.ends_with(" )");
    let mut at = 0;
    while at < lines.len() {
        let begin = at;
        let mut nodes: Vec<Vec<String>> = Vec::new();
        while at < lines.len()
            && (is_node(&lines[at]) || at > begin && lines[at].starts_with("   age"))
        {
            match lines[at].starts_with("   age") {
                true => nodes.last_mut().into_iter().for_each(|node| node.push(lines[at].clone())),
                false => nodes.push(vec![lines[at].clone()]),
            }
            at += 1;
        }
        nodes.sort();
        for (line, sorted) in lines[begin..at].iter_mut().zip(nodes.into_iter().flatten()) {
            *line = sorted;
        }
        at += usize::from(at == begin);
    }
}

fn line(line: &str) -> String {
    let trimmed = line.trim_start();
    if trimmed.starts_with("[ Evaluations:")
        && let Some(at) = line.find("Packets:")
    {
        return format!("[ Evaluations: … {}", &line[at..]);
    }
    if trimmed.starts_with("[ Inserted:")
        && let Some(at) = line.find("State Creations:")
    {
        return format!("[ Inserted: … {}", &line[at..]);
    }
    if trimmed.starts_with("[ queue:") {
        return "[ queue: …".to_owned();
    }
    match trimmed.split_once(':') {
        Some((what @ ("Cleared" | "Checksum"), _)) => format!("{what}: …"),
        // the number of lookups in a table depends on skip steps, too
        Some(("Evaluations", _)) => "Evaluations: …".to_owned(),
        _ => line.to_owned(),
    }
}

/// Masks the number of evaluations, the first of eight numbers after a label.
fn label(line: &str) -> String {
    let mut fields: Vec<&str> = line.rsplitn(9, ' ').collect();
    if fields.len() == 9 {
        fields[7] = "…";
    }
    fields.reverse();
    fields.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_evaluations_of_a_label_are_masked() {
        assert_eq!(text("-sl", "a b 9 2 3 4 5 6 7 8\n", false), "a b … 2 3 4 5 6 7 8\n");
        let both = "LABEL COUNTERS:\na 9 2 3 4 5 6 7 8\n\nTIMEOUTS:\na 9 2 3 4 5 6 7 8\n";
        let masked = "LABEL COUNTERS:\na … 2 3 4 5 6 7 8\n\nTIMEOUTS:\na 9 2 3 4 5 6 7 8\n";
        assert_eq!(text("-s all", both, false), masked);
    }

    #[test]
    fn source_nodes_are_sorted_with_what_belongs_to_them() {
        let both = "b ( states 1 )\n   age 2\na ( states 1 )\n   age 1\n\nINFO\n";
        let sorted = "a ( states 1 )\n   age 1\nb ( states 1 )\n   age 2\n\nINFO\n";
        assert_eq!(text("-s all -v", both, false), sorted);
    }

    #[test]
    fn packets_of_a_rule_are_compared() {
        let line =
            "  [ Evaluations: 3         Packets: 2         Bytes: 80          States: 0     ]";
        assert_eq!(
            text("-sr -v", line, false),
            "[ Evaluations: … Packets: 2         Bytes: 80          States: 0     ]\n"
        );
    }
}
