//! Tables that nobody wrote: those of pools with several addresses, and those that the optimizer
//! makes of rules. Both are named from one sequence, as in pfctl.

/// What the names of such tables begin with.
pub const PREFIX: &str = "__automatic_";

/// The sequence of names of one load.
#[derive(Debug, Clone, Default)]
pub struct AutomaticTables {
    identifier: Option<u32>,
    next: u32,
}

impl AutomaticTables {
    /// Names for a rule set that is only looked at: `__automatic_0` and so on.
    pub fn for_looking() -> Self {
        Self::default()
    }

    /// Names for a rule set that goes into force: `__automatic_5eed_0` and so on. The identifier
    /// keeps them apart from those of earlier loads, whose tables other anchors may still hold.
    pub fn for_loading(identifier: u32) -> Self {
        AutomaticTables { identifier: Some(identifier), next: 0 }
    }

    /// The name of the next table.
    pub fn next_name(&mut self) -> String {
        let number = self.next;
        self.next += 1;
        match self.identifier {
            Some(identifier) => format!("{PREFIX}{identifier:x}_{number}"),
            None => format!("{PREFIX}{number}"),
        }
    }

    /// Passes over a name, for a table that was begun and not worth making. pfctl counts those too,
    /// unless it loads.
    pub(crate) fn skip(&mut self) {
        if self.identifier.is_none() {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looking_counts_tables_that_are_not_made() {
        let mut names = AutomaticTables::for_looking();
        names.skip();
        assert_eq!(names.next_name(), "__automatic_1");
        let mut names = AutomaticTables::for_loading(0x5eed);
        names.skip();
        assert_eq!(names.next_name(), "__automatic_5eed_0");
        assert_eq!(names.next_name(), "__automatic_5eed_1");
    }
}
