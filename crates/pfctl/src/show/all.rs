//! `-s all`: the output of most modifiers, each under its title. As in OpenBSD, interfaces are left
//! out.

/// A section of `-s all`.
pub struct Section {
    /// Title, such as `STATES:`; empty if the text has its own.
    pub title: &'static str,
    /// Text below the title; may be empty.
    pub text: String,
    /// True if the title is printed even if the text is empty.
    pub always: bool,
}

/// True if a printed rule has a label. Then the title of the labels is printed, even if all labels
/// belong to other rule sets.
pub fn has_label(rules: &str) -> bool {
    rules.contains(" label \"")
}

/// Joins the sections, with an empty line between two.
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
