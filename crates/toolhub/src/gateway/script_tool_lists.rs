//! The lists of tools that the scripts of a view share, as long as one of them runs.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use toolhub_core::NestedToolList;

/// The lists of a view.
#[derive(Debug, Default)]
pub(super) struct ScriptToolLists {
    /// The tools of `run_script`.
    pub(super) all: SharedList,
    /// The tools of scripts of skills, which call no other scripts.
    pub(super) without_scripts: SharedList,
}

/// A list that exists while it is used.
#[derive(Debug, Default)]
pub(super) struct SharedList(Mutex<Weak<NestedToolList>>);

impl SharedList {
    /// The list that another script uses, or a new one.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> Arc<NestedToolList>) -> Arc<NestedToolList> {
        let mut cached_list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached_list.upgrade().unwrap_or_else(|| {
            let list = make();
            *cached_list = Arc::downgrade(&list);
            list
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn scripts_share_one_list_as_long_as_one_uses_it() {
        let (shared, made) = (SharedList::default(), Cell::new(0));
        let list = || {
            shared.get_or_make(|| {
                made.set(made.get() + 1);
                Arc::new(NestedToolList::new(Vec::new()))
            })
        };
        let users: Vec<_> = (0..100).map(|_| list()).collect();
        assert!(users.iter().all(|other| Arc::ptr_eq(other, &users[0])));
        assert_eq!(made.get(), 1);
        drop(users);
        assert_eq!(shared.0.lock().unwrap().strong_count(), 0);
        drop(list());
        assert_eq!(made.get(), 2);
    }
}
