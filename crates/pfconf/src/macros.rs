//! Macros: defined by `name = value`, used as `$name`.

use std::collections::HashMap;

/// The macros defined so far.
#[derive(Debug, Clone, Default)]
pub struct Macros {
    list: Vec<Macro>,
    /// Index of each macro in `list`, by name.
    places: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Macro {
    name: String,
    value: String,
    used: bool,
    /// True for a macro of `-D`, which no definition in the text replaces.
    given: bool,
}

impl Macros {
    /// Returns the macros of `-D`. The first of two macros with one name counts.
    pub fn given(macros: &[(String, String)]) -> Self {
        let mut known = Macros::default();
        for (name, value) in macros {
            if known.find(name).is_none() {
                known.add(name, value, true);
            }
        }
        known
    }

    /// Defines or redefines a macro, unless `-D` gave it.
    pub fn define(&mut self, name: &str, value: &str) {
        match self.find(name) {
            Some(known) if known.given => {}
            Some(known) => (known.value, known.used) = (value.to_string(), false),
            None => self.add(name, value, false),
        }
    }

    /// Returns the value of a macro and marks the macro as used.
    pub fn expand(&mut self, name: &str) -> Option<&str> {
        let known = self.find(name)?;
        known.used = true;
        Some(&known.value)
    }

    /// Returns the value of a macro for messages, without marking it.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|known| known.name == name).map(|known| known.value.as_str())
    }

    /// True if names and values are the same as `before`, and all macros used then are still
    /// marked. A macro that was redefined since is not marked.
    pub fn are_unchanged_since(&self, before: &Macros) -> bool {
        let is_as = |(now, before): (&Macro, &Macro)| {
            now.name == before.name && now.value == before.value && now.used >= before.used
        };
        self.list.len() == before.list.len() && self.list.iter().zip(&before.list).all(is_as)
    }

    /// Marks the macros that `others` used. `others` must have the same macros.
    pub fn adopt_uses(&mut self, others: &Macros) {
        for (own, other) in self.list.iter_mut().zip(&others.list) {
            own.used |= other.used;
        }
    }

    /// Returns the names of all macros.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|known| known.name.as_str())
    }

    /// Returns the names of unused macros.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        self.list.iter().filter(|known| !known.used).map(|known| known.name.as_str())
    }

    fn add(&mut self, name: &str, value: &str, given: bool) {
        self.places.insert(name.to_string(), self.list.len());
        let (name, value) = (name.to_string(), value.to_string());
        self.list.push(Macro { name, value, used: false, given });
    }

    fn find(&mut self, name: &str) -> Option<&mut Macro> {
        self.list.get_mut(*self.places.get(name)?)
    }
}
