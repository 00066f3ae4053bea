//! Keeps the permissions of recent principals, so that a decision does not examine every rule.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use toolhub_core::Principal;

use crate::decision::Decision;
use crate::permissions::Permissions;
use crate::request::{AccessResource, Action};
use crate::rule_set::RuleSet;

/// Maximum number of principals; if exceeded, all are computed anew.
const MAX_CACHED_PRINCIPALS: usize = 16_384;
/// Maximum number of variants of one principal, such as tokens with different scopes.
const MAX_VARIANTS: usize = 8;

/// The permissions of principals under one snapshot of the rules. A new snapshot needs a new cache.
#[derive(Debug)]
pub struct PermissionCache {
    rules: RuleSet,
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// By the id of the principal. Each variant is compared as a whole: roles, groups and scopes change between tokens.
    by_id: HashMap<Arc<str>, Vec<(Principal, Permissions)>>,
    /// One instance of equal permissions.
    distinct: HashSet<Permissions>,
}

impl PermissionCache {
    /// An empty cache.
    pub fn new(rules: RuleSet) -> Self {
        Self { rules, entries: RwLock::default() }
    }

    /// The rules.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The permissions of a principal. Principals with equal permissions share one instance.
    pub fn permissions(&self, principal: &Principal) -> Permissions {
        let find = |entries: &Entries| {
            let variants = entries.by_id.get(principal.id())?;
            variants
                .iter()
                .find(|(cached_principal, _)| cached_principal == principal)
                .map(|(_, permissions)| permissions.clone())
        };
        if let Some(permissions) = find(&self.entries.read().unwrap_or_else(PoisonError::into_inner)) {
            return permissions;
        }
        let permissions = self.rules.for_principal(principal);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(principal, permissions)
    }

    /// Decides by the kept permissions, as [`Permissions::decide_for`] does.
    pub fn decide(
        &self,
        principal: &Principal,
        action: Action<'_>,
        resource: &AccessResource<'_>,
    ) -> Decision {
        self.permissions(principal).decide_for(principal.id(), action, resource)
    }
}

impl Entries {
    fn insert(&mut self, principal: &Principal, permissions: Permissions) -> Permissions {
        if self.by_id.len() >= MAX_CACHED_PRINCIPALS || self.distinct.len() >= MAX_CACHED_PRINCIPALS {
            *self = Self::default();
        }
        let permissions = match self.distinct.get(&permissions) {
            Some(shared) => shared.clone(),
            None => {
                self.distinct.insert(permissions.clone());
                permissions
            }
        };
        let variants = self.by_id.entry(Arc::clone(principal.id())).or_default();
        // Another thread may have added it meanwhile.
        variants.retain(|(cached_principal, _)| cached_principal != principal);
        if variants.len() >= MAX_VARIANTS {
            variants.remove(0);
        }
        variants.push((principal.clone(), permissions.clone()));
        permissions
    }
}
