//! Macros: `name = value`, used as `$name`.

use std::collections::HashMap;

/// The macros known so far.
#[derive(Debug, Clone, Default)]
pub struct Macros {
    list: Vec<Macro>,
    /// Where in the list each is.
    places: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Macro {
    name: String,
    value: String,
    used: bool,
    /// Given with `-D`: a definition in the text does not replace it.
    given: bool,
}

impl Macros {
    /// The macros given from outside (`-D`). The first of two with one name counts.
    pub fn given(macros: &[(String, String)]) -> Self {
        let mut known = Macros::default();
        for (name, value) in macros {
            if known.find(name).is_none() {
                known.add(name, value, true);
            }
        }
        known
    }

    /// Defines or redefines a macro.
    pub fn define(&mut self, name: &str, value: &str) {
        match self.find(name) {
            Some(known) if known.given => {}
            Some(known) => (known.value, known.used) = (value.to_string(), false),
            None => self.add(name, value, false),
        }
    }

    /// The value of a macro, which counts as used from then on.
    pub fn expand(&mut self, name: &str) -> Option<&str> {
        let known = self.find(name)?;
        known.used = true;
        Some(&known.value)
    }

    /// The value of a macro, for messages.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|known| known.name == name).map(|known| known.value.as_str())
    }

    /// Whether the same macros are known with the same values as before, and none that was used
    /// then has been defined anew since, to be used once more.
    pub fn are_as(&self, before: &Macros) -> bool {
        let is_as = |(now, before): (&Macro, &Macro)| {
            now.name == before.name && now.value == before.value && now.used >= before.used
        };
        self.list.len() == before.list.len() && self.list.iter().zip(&before.list).all(is_as)
    }

    /// What `others`, which are the same, were used for was a use of these.
    pub fn count_uses_of(&mut self, others: &Macros) {
        for (own, other) in self.list.iter_mut().zip(&others.list) {
            own.used |= other.used;
        }
    }

    /// Names of all macros.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|known| known.name.as_str())
    }

    /// Names of the macros that nothing has used.
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
