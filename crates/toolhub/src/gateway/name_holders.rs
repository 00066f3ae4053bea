//! The sources that had each name first. They keep their names as long as the gateway runs, also those that they offer no more, so
//! that the number of names of one source is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Maximum number of names that one source holds. Further tools or prompts of that source are offered with its prefix only.
pub(super) const MAX_HELD_NAMES: usize = 20_000;

/// The names that sources hold. A copy shares them until one of both is changed.
#[derive(Debug, Clone)]
pub(super) struct NameHolders<S>(Arc<HeldNames<S>>);

#[derive(Debug, Clone)]
struct HeldNames<S> {
    by_name: HashMap<String, S>,
    /// The number of names of each source.
    counts: HashMap<S, usize>,
}

impl<S> Default for NameHolders<S> {
    fn default() -> Self {
        Self(Arc::new(HeldNames { by_name: HashMap::new(), counts: HashMap::new() }))
    }
}

impl<S: Clone + Eq + Hash> NameHolders<S> {
    /// The source that holds a name.
    pub(super) fn get(&self, name: &str) -> Option<&S> {
        self.0.by_name.get(name)
    }

    /// The number of names that a source holds.
    fn count(&self, source: &S) -> usize {
        self.0.counts.get(source).copied().unwrap_or_default()
    }

    /// Lets a source hold a name, unless the name is held already or the source holds [`MAX_HELD_NAMES`].
    pub(super) fn hold(&mut self, name: &str, source: &S) {
        if self.get(name).is_some() || self.count(source) >= MAX_HELD_NAMES {
            return;
        }
        let held = Arc::make_mut(&mut self.0);
        held.by_name.insert(name.to_owned(), source.clone());
        *held.counts.entry(source.clone()).or_default() += 1;
    }
}

/// Counts the names that sources would hold after a naming.
#[derive(Debug)]
pub(super) struct HeldNameBudget<'a, S> {
    holders: Option<&'a NameHolders<S>>,
    /// The number of further names of each source.
    added: HashMap<S, usize>,
}

impl<'a, S: Clone + Eq + Hash> HeldNameBudget<'a, S> {
    pub(super) fn new(holders: Option<&'a NameHolders<S>>) -> Self {
        Self { holders, added: HashMap::new() }
    }

    /// Whether a source can hold a name: it holds it already, or may hold further names. The name is counted then.
    pub(super) fn admits(&mut self, name: &str, source: &S) -> bool {
        let held = self.holders.map_or(0, |holders| holders.count(source));
        if self.holders.and_then(|holders| holders.get(name)) == Some(source) {
            return true;
        }
        let added = self.added.entry(source.clone()).or_default();
        let is_admitted = held + *added < MAX_HELD_NAMES;
        if is_admitted {
            *added += 1;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_holds_a_limited_number_of_names() {
        let mut holders: NameHolders<&str> = NameHolders::default();
        for number in 0..MAX_HELD_NAMES + 10 {
            holders.hold(&format!("tool_{number}"), &"evil");
        }
        holders.hold("tool_1", &"good");
        holders.hold("pay", &"good");
        assert_eq!((holders.count(&"evil"), holders.count(&"good")), (MAX_HELD_NAMES, 1));
        assert_eq!(holders.0.by_name.len(), MAX_HELD_NAMES + 1);
        assert_eq!(holders.get("tool_1"), Some(&"evil"));
        assert_eq!(holders.get("pay"), Some(&"good"));
        let mut budget = HeldNameBudget::new(Some(&holders));
        assert!(budget.admits("tool_1", &"evil") && !budget.admits("other", &"evil"));
        assert!(budget.admits("look", &"good"));
    }

    #[test]
    fn a_naming_without_new_names_copies_nothing() {
        let mut before: NameHolders<&str> = NameHolders::default();
        before.hold("pay", &"good");
        let mut after = before.clone();
        after.hold("pay", &"good");
        after.hold("pay", &"evil");
        assert!(Arc::ptr_eq(&before.0, &after.0));
        after.hold("look", &"good");
        assert!(before.get("look").is_none() && after.get("look").is_some());
    }
}
