//! What a changed configuration changes about keys, and which keys are gone for good: what is stored for those is deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolhub_core::audit::ChangeKind;
use toolhub_server::KeyTable;

use crate::settings::RevokedKey;

/// A changed key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyChange {
    pub(crate) name: String,
    pub(crate) change: ChangeKind,
    /// Whether the person behind the name is not certainly the same any more: the key is gone, or another secret came with other
    /// permissions. A rotated key has another secret and is otherwise the same. What is pending for the name ends then.
    pub(crate) ends_person: bool,
    /// Whether the key was revoked, or was deleted before and the name now has another key. What is stored for it is deleted
    /// then, which nothing brings back.
    pub(crate) is_revoked: bool,
}

/// The keys of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct KeySettings<'a> {
    pub(crate) keys: &'a KeyTable,
    /// The maximum number of calls per day, by the id of the principal.
    pub(crate) per_day: &'a HashMap<Arc<str>, u64>,
    pub(crate) revoked: &'a [RevokedKey],
}

/// The changed keys.
pub(crate) fn key_changes(before: KeySettings<'_>, after: KeySettings<'_>) -> Vec<KeyChange> {
    let find = |keys: &KeyTable, name: &str| keys.iter().find(|key| key.principal.display == name).cloned();
    let mut changes = Vec::new();
    let mut push = |name: &str, change, ends_person, is_revoked| {
        changes.push(KeyChange { name: name.to_owned(), change, ends_person, is_revoked });
    };
    for key in after.keys.iter() {
        let (name, id) = (&key.principal.display, key.principal.id());
        let Some(earlier_key) = find(before.keys, name) else {
            push(name, ChangeKind::Created, false, false);
            continue;
        };
        let is_same_budget = before.per_day.get(id) == after.per_day.get(id);
        if !Arc::ptr_eq(&earlier_key.principal, &key.principal) || !is_same_budget {
            let is_rotated = earlier_key.expires == key.expires
                && earlier_key.principal.roles == key.principal.roles
                && earlier_key.principal.profiles == key.principal.profiles
                && is_same_budget;
            push(name, ChangeKind::Updated, earlier_key.sha256 != key.sha256 && !is_rotated, false);
        }
    }
    for key in before.keys.iter() {
        let name = &key.principal.display;
        if find(after.keys, name).is_none() {
            let is_revoked = after.revoked.iter().any(|revoked| revoked.name == *name);
            push(name, ChangeKind::Deleted, true, is_revoked);
        }
    }
    changes
}

/// A key whose entry is gone without `revoked`.
#[derive(Debug)]
struct DeletedKey {
    sha256: String,
    since: Instant,
}

/// The keys whose entries were deleted while the hub ran. An entry may also be missing for a moment, while a program writes the
/// file, or together with the whole file: a key counts as deleted after some time only.
#[derive(Debug, Default)]
pub(crate) struct DeletedKeys(Mutex<HashMap<String, DeletedKey>>);

impl DeletedKeys {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, DeletedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which keys a changed configuration does not have any more. `states_keys` is false for a configuration without any
    /// `[auth]`, which deletes no key. A deleted key whose name has another secret now is marked as revoked in `changes`.
    pub(crate) fn update(
        &self,
        before: KeySettings<'_>,
        after: KeySettings<'_>,
        states_keys: bool,
        changes: &mut [KeyChange],
    ) {
        let mut deleted_keys = self.lock();
        for key in before.keys.iter() {
            let name = &key.principal.display;
            let change = changes.iter().find(|change| change.name == *name);
            if states_keys && change.is_some_and(|change| change.change == ChangeKind::Deleted) {
                let deleted = DeletedKey { sha256: key.sha256.clone(), since: Instant::now() };
                deleted_keys.insert(name.clone(), deleted);
            }
        }
        for key in after.keys.iter() {
            let name = &key.principal.display;
            let Some(deleted) = deleted_keys.remove(name) else { continue };
            let change = changes.iter_mut().find(|change| change.name == *name);
            if let Some(change) = change.filter(|_| !deleted.sha256.eq_ignore_ascii_case(&key.sha256)) {
                change.is_revoked = true;
            }
        }
        // These are deleted as revoked keys.
        deleted_keys.retain(|name, _| !after.revoked.iter().any(|revoked| revoked.name == *name));
    }

    /// The names of the keys that have been deleted for at least this time.
    pub(crate) fn names(&self, age: Duration) -> Vec<String> {
        let deleted_keys = self.lock();
        let due = deleted_keys.iter().filter(|(_, deleted)| deleted.since.elapsed() >= age);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets a key that has been deleted for at least this time, after what is stored for it was deleted. One that was deleted again
    /// meanwhile stays.
    pub(crate) fn forget(&self, name: &str, age: Duration) {
        self.lock().retain(|key_name, deleted| key_name != name || deleted.since.elapsed() < age);
    }
}
