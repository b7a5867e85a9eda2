//! `-s all`: what the other modifiers print, each under its title. Interfaces are not part of it.

/// Sections with their titles; `None` for a section that is only shown if there is something.
pub struct Section {
    /// Title, as `STATES:`; empty if the text has its own.
    pub title: &'static str,
    /// Text below it.
    pub text: String,
    /// Show the title even above nothing.
    pub always: bool,
}

/// Whether one of the rules printed has a label: then the title of labels stands, even if those of
/// this rule set have none.
pub fn has_label(rules: &str) -> bool {
    rules.contains(" label \"")
}

/// The sections one below the other, an empty line between two.
pub fn text(sections: &[Section]) -> String {
    let shown: Vec<String> = sections
        .iter()
        .filter(|section| section.always || !section.text.is_empty())
        .map(|section| match section.title {
            "" => section.text.clone(),
            title => format!("{title}\n{}", section.text),
        })
        .collect();
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_sections_have_no_title() {
        let section = |title, text: &str, always| Section { title, text: text.into(), always };
        let sections =
            [section("A:", "", true), section("B:", "", false), section("C:", "c\n", false)];
        assert_eq!(text(&sections), "A:\n\nC:\nc\n");
    }
}
