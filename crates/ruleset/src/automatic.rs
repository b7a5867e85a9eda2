//! Names of generated tables: those of pools with several addresses, and those of the optimizer.
//! Both take their names from one sequence, as in pfctl.

/// Beginning of the names of generated tables.
pub const PREFIX: &str = "__automatic_";

/// The sequence of table names of one load.
#[derive(Debug, Clone, Default)]
pub struct AutomaticTables {
    identifier: Option<u32>,
    next: u32,
}

impl AutomaticTables {
    /// Returns the names for a rule set that is only displayed: `__automatic_0` and so on.
    pub fn for_display() -> Self {
        Self::default()
    }

    /// Returns the names for a rule set that is loaded: `__automatic_5eed_0` and so on. The
    /// identifier differs in each load, because other anchors may still use earlier tables.
    pub fn for_loading(identifier: u32) -> Self {
        AutomaticTables { identifier: Some(identifier), next: 0 }
    }

    /// Returns the next name and advances the sequence.
    pub fn next_name(&mut self) -> String {
        let number = self.next;
        self.next += 1;
        match self.identifier {
            Some(identifier) => format!("{PREFIX}{identifier:x}_{number}"),
            None => format!("{PREFIX}{number}"),
        }
    }

    /// Skips one name, for a table that the optimizer began and discarded. In a load nothing is
    /// skipped, because pfctl then counts only tables that it makes.
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
    fn discarded_tables_use_up_a_name_only_for_display() {
        let mut names = AutomaticTables::for_display();
        names.skip();
        assert_eq!(names.next_name(), "__automatic_1");
        let mut names = AutomaticTables::for_loading(0x5eed);
        names.skip();
        assert_eq!(names.next_name(), "__automatic_5eed_0");
        assert_eq!(names.next_name(), "__automatic_5eed_1");
    }
}
