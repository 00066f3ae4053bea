//! The names under which a profile offers the prompts of its servers. They are the same for all principals: what rules hide from
//! one of them does not free a name for the prompt of another server.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::{RawJson, ServerId, Source};
use toolhub_engine::ReservedNames;
use toolhub_engine::reserved::{hashed_name, qualified_name};
use toolhub_mcp_client::Server;

use super::name_holders::{HeldNameBudget, NameHolders};

/// A resource, resource template or prompt.
#[derive(Debug, Clone)]
pub(super) struct OfferedItem {
    pub(super) server: Arc<Server>,
    /// Its name or URI at its server.
    pub(super) key: String,
    /// Its name or URI as offered to clients.
    pub(super) exposed_name: String,
    pub(super) item: RawJson,
}

impl OfferedItem {
    /// The names that rules may use: each under which it could be offered, whatever other servers offer.
    pub(super) fn names(&self) -> [String; 3] {
        offered_names(self.server.id(), &self.key)
    }
}

/// Each name under which an item of a server could be offered, whatever other servers offer.
pub(super) fn offered_names(server: &ServerId, key: &str) -> [String; 3] {
    let source = Source::Server(server.clone());
    [key.to_owned(), qualified_name(&source, key), hashed_name(&source, key)]
}

/// The names of prompts and their owners.
#[derive(Debug, Default)]
pub(super) struct PromptNames {
    /// The server that had each name first, by which calls are resolved as long as the gateway runs.
    holders: Mutex<NameHolders<ServerId>>,
}

impl PromptNames {
    /// Names the prompts of all servers of the profile. If `is_complete`, the lists of all servers are known, so that the owner of a
    /// name does not depend on the order of their responses.
    pub(super) fn assign(&self, reserved: &ReservedNames, entries: &mut Vec<OfferedItem>, is_complete: bool) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Vec<PromptKey> =
            entries.iter().map(|entry| (entry.server.id().clone(), entry.key.clone())).collect();
        let mut names = names_of(reserved, &named, &holders).into_iter();
        // A prompt without a name is one that its server lists several times.
        entries.retain_mut(|entry| {
            let Some(name) = names.next().flatten() else { return false };
            if name != entry.key {
                let item = entry.item.object().unwrap_or_default().with("name", name.as_str());
                (entry.exposed_name, entry.item) = (name, item.into_raw());
            }
            true
        });
        if is_complete {
            // Plain names first: those for which the limit had room are held.
            let (plain, prefixed): (Vec<&OfferedItem>, Vec<&OfferedItem>) =
                entries.iter().partition(|entry| entry.exposed_name == entry.key);
            for entry in plain.into_iter().chain(prefixed) {
                holders.hold(&entry.exposed_name, entry.server.id());
            }
        }
    }

    /// The prompt with that offered name, or the one whose server had the name before another server offered the same one.
    pub(super) fn find(&self, name: &str, mut entries: Vec<OfferedItem>) -> Option<OfferedItem> {
        if let Some(position) = entries.iter().position(|entry| entry.exposed_name == name) {
            return Some(entries.swap_remove(position));
        }
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = holders.get(name)?;
        entries.into_iter().find(|entry| entry.key == name && entry.server.id() == holder)
    }
}

/// A prompt: its server, and its name there.
type PromptKey = (ServerId, String);

/// Adds the server prefix to names of prompts that several servers have, that are reserved or that another server had before, and to those
/// of a server that holds too many names.
/// Prefixed names are assigned first, so that no other prompt can take them, whatever the order of the servers.
fn names_of(
    reserved: &ReservedNames,
    prompts: &[PromptKey],
    holders: &NameHolders<ServerId>,
) -> Vec<Option<String>> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (_, key) in prompts {
        *count.entry(key.as_str()).or_default() += 1;
    }
    let source = |server: &ServerId| Source::Server(server.clone());
    let is_of_other = |(server, key): &PromptKey| holders.get(key).is_some_and(|holder| holder != server);
    let is_prefixed = |prompt: &PromptKey| {
        let (server, key) = prompt;
        count.get(key.as_str()).is_some_and(|many| *many > 1)
            || reserved.reserves(&source(server), key)
            || is_of_other(prompt)
    };
    let (first, second): (Vec<usize>, Vec<usize>) =
        (0..prompts.len()).partition(|index| prompts.get(*index).is_some_and(is_prefixed));
    let mut taken = HashSet::new();
    let mut names: Vec<Option<String>> = vec![None; prompts.len()];
    let mut budget = HeldNameBudget::new(Some(holders));
    for index in first.into_iter().chain(second) {
        let Some(prompt @ (server, key)) = prompts.get(index) else { continue };
        let further = [qualified_name(&source(server), key), hashed_name(&source(server), key)];
        let is_plain = !is_prefixed(prompt) && budget.admits(key, server);
        let plain_name = is_plain.then(|| key.clone());
        let mut free = plain_name.into_iter().chain(further);
        names[index] = free.find(|name| taken.insert(name.clone()));
    }
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::name_holders::MAX_HELD_NAMES;
    use super::*;

    fn prompt(server: &str, name: &str) -> PromptKey {
        (ServerId::new(server), name.to_owned())
    }

    proptest! {
        /// Whatever names the other servers choose, and whichever of their prompts appear later, no prompt takes a name that
        /// another server had.
        #[test]
        fn a_name_stays_with_its_server(
            before in proptest::collection::vec(("[ab]", "[xy]{1,2}|a__x|b__x"), 0..6),
            after in proptest::collection::vec(("[ab]", "[xy]{1,2}|a__x|b__x"), 0..6),
        ) {
            let reserved = ReservedNames::new(["a", "b"]);
            let mut holders: NameHolders<ServerId> = NameHolders::default();
            for list in [before, after] {
                let mut prompts: Vec<PromptKey> = list.iter().map(|(server, name)| prompt(server, name)).collect();
                prompts.sort();
                for (name, (server, _)) in names_of(&reserved, &prompts, &holders).into_iter().zip(&prompts) {
                    let Some(name) = name else { continue };
                    holders.hold(&name, server);
                    prop_assert_eq!(holders.get(&name), Some(server));
                }
            }
        }
    }

    #[test]
    fn a_server_that_renames_its_prompts_holds_a_limited_number_of_names() {
        let reserved = ReservedNames::new(["a", "b"]);
        let mut holders: NameHolders<ServerId> = NameHolders::default();
        let mut plain = Vec::new();
        for round in 0..3 {
            let own = (0..MAX_HELD_NAMES / 2 + 1).map(|number| prompt("b", &format!("ask_{round}_{number}")));
            let prompts: Vec<PromptKey> = own.chain([prompt("a", "ask")]).collect();
            let names = names_of(&reserved, &prompts, &holders);
            assert_eq!(names.last(), Some(&Some("ask".to_owned())));
            let of_b = names.iter().flatten().zip(&prompts).filter(|(_, (server, _))| server.as_str() == "b");
            plain.push(of_b.filter(|(name, (_, key))| *name == key).count());
            for (name, (server, _)) in names.iter().flatten().zip(&prompts) {
                holders.hold(name, server);
            }
        }
        assert_eq!(plain, [MAX_HELD_NAMES / 2 + 1, MAX_HELD_NAMES / 2 - 1, 0]);
    }
}
