//! What of a show depends on the machine, on the wall clock, or on the way in which rules are
//! searched (README-show.md beside the vectors).

/// The text without it. Source nodes are sorted: which rule's stand first is chance.
pub fn text(arguments: &str, text: &str) -> String {
    // which systems can be told apart is the database's affair
    let text = text.split("\nOS FINGERPRINTS:").next().unwrap_or_default();
    let mut masked: Vec<String> = Vec::new();
    let mut labels = arguments.ends_with("-sl");
    for text in text.lines() {
        if text.ends_with(':') {
            labels = text == "LABEL COUNTERS:";
        }
        masked.push(match labels {
            true => label(text),
            false => line(text),
        });
    }
    masked.iter().map(|line| format!("{line}\n")).collect()
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
        // how often a table is asked depends on the skip steps, too
        Some(("Evaluations", _)) => "Evaluations: …".to_owned(),
        _ => line.to_owned(),
    }
}

/// A label is followed by the number of evaluations and seven more.
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
        assert_eq!(text("-sl", "a b 9 2 3 4 5 6 7 8\n"), "a b … 2 3 4 5 6 7 8\n");
        let both = "LABEL COUNTERS:\na 9 2 3 4 5 6 7 8\n\nTIMEOUTS:\na 9 2 3 4 5 6 7 8\n";
        let masked = "LABEL COUNTERS:\na … 2 3 4 5 6 7 8\n\nTIMEOUTS:\na 9 2 3 4 5 6 7 8\n";
        assert_eq!(text("-s all", both), masked);
    }

    #[test]
    fn packets_of_a_rule_are_compared() {
        let line =
            "  [ Evaluations: 3         Packets: 2         Bytes: 80          States: 0     ]";
        assert_eq!(
            text("-sr -v", line),
            "[ Evaluations: … Packets: 2         Bytes: 80          States: 0     ]\n"
        );
    }
}
