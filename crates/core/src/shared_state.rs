//! State that the replicas of a hub share: small entries with an owner and an expiry, counters, and the versions of what
//! changes. Several processes may work on the same entry, so that every change is a comparison with the revision that its
//! caller has read.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use crate::boxed::BoxFuture;
use crate::json::RawJson;
use crate::store_error::StoreError;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateKind {
    /// A call that waits for the decision of a person.
    HeldCall,
    /// A task that a principal created at a server.
    Task,
    /// A key that seals session ids.
    SessionKey,
    /// The capabilities of a client that do not fit into its session id, under their digest.
    Capabilities,
    /// The replica that has rebuilt a session.
    SessionOwner,
    /// A session that its client has ended.
    EndedSession,
    /// The session of a browser at the console.
    BrowserSession,
    /// A one-time ticket that opens a browser session.
    ConsoleTicket,
    /// A request with an idempotency key, and its result.
    IdempotencyKey,
    /// A turn of the OpenAI-compatible endpoint that may have changed something and was not answered with success.
    UnfinishedChange,
}

impl StateKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::HeldCall,
        Self::Task,
        Self::SessionKey,
        Self::Capabilities,
        Self::SessionOwner,
        Self::EndedSession,
        Self::BrowserSession,
        Self::ConsoleTicket,
        Self::IdempotencyKey,
        Self::UnfinishedChange,
    ];

    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeldCall => "held-call",
            Self::Task => "task",
            Self::SessionKey => "session-key",
            Self::Capabilities => "capabilities",
            // An earlier term; renaming it would orphan stored entries.
            Self::SessionOwner => "session-home",
            Self::EndedSession => "ended-session",
            Self::BrowserSession => "browser-session",
            Self::ConsoleTicket => "console-ticket",
            Self::IdempotencyKey => "idempotency-key",
            Self::UnfinishedChange => "unfinished-change",
        }
    }

    /// The part of a hub that other replicas must look at again when an entry of this kind changes.
    pub fn part(self) -> Option<ChangedPart> {
        match self {
            Self::HeldCall => Some(ChangedPart::HeldCalls),
            Self::EndedSession => Some(ChangedPart::Sessions),
            _ => None,
        }
    }
}

/// A part of a hub whose changes concern every replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangedPart {
    /// Held calls and the decisions about them.
    HeldCalls,
    /// Approved definitions of tools.
    Approvals,
    /// The lists of servers.
    ToolLists,
    /// Ended sessions.
    Sessions,
    /// The files of the configuration, with keys and rules.
    Configuration,
}

impl ChangedPart {
    /// Every part.
    pub const ALL: [Self; 5] =
        [Self::HeldCalls, Self::Approvals, Self::ToolLists, Self::Sessions, Self::Configuration];

    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeldCalls => "held-calls",
            Self::Approvals => "approvals",
            Self::ToolLists => "tool-lists",
            Self::Sessions => "sessions",
            Self::Configuration => "configuration",
        }
    }

    /// The part of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// The versions of all parts: each change increments one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeVersions(BTreeMap<ChangedPart, i64>);

impl ChangeVersions {
    /// The version of a part; 0 before its first change.
    pub fn of(&self, part: ChangedPart) -> i64 {
        self.0.get(&part).copied().unwrap_or(0)
    }

    /// Whether no version is older than that of `earlier`, and one is newer.
    pub fn is_after(&self, earlier: &Self) -> bool {
        let mut pairs = ChangedPart::ALL.into_iter().map(|part| (self.of(part), earlier.of(part)));
        self != earlier && pairs.all(|(now, before)| now >= before)
    }

    /// The parts whose versions differ.
    pub fn changed_since(&self, before: &Self) -> Vec<ChangedPart> {
        ChangedPart::ALL.into_iter().filter(|part| self.of(*part) != before.of(*part)).collect()
    }
}

impl FromIterator<(ChangedPart, i64)> for ChangeVersions {
    fn from_iter<I: IntoIterator<Item = (ChangedPart, i64)>>(versions: I) -> Self {
        Self(versions.into_iter().collect())
    }
}

/// A process that has the store open: one replica of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(pub i64);

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0.cast_unsigned())
    }
}

impl ReplicaId {
    /// The replica of a name as [`fmt::Display`] writes it.
    pub fn parse(name: &str) -> Option<Self> {
        let is_name = name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_name.then(|| u64::from_str_radix(name, 16).ok()).flatten().map(|id| Self(id.cast_signed()))
    }
}

/// A state of an entry. Every change makes another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRevision(pub String);

/// An entry to create.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// What it is.
    pub kind: StateKind,
    /// Its id, which is unique among those of its kind.
    pub id: String,
    /// The principal to which it belongs; empty if it belongs to the hub.
    pub scope: String,
    /// At most one entry of a kind is in a slot. It is created only if its slot is free.
    pub slot: Option<String>,
    /// Its content.
    pub value: RawJson,
    /// When it ceases to exist.
    pub expires_at: SystemTime,
}

/// A stored entry.
#[derive(Debug, Clone)]
pub struct StateEntry {
    /// Its id.
    pub id: String,
    /// The principal to which it belongs; empty if it belongs to the hub.
    pub scope: String,
    /// Its slot.
    pub slot: Option<String>,
    /// Its content.
    pub value: RawJson,
    /// Its state, for a later change.
    pub revision: EntryRevision,
    /// When it was created.
    pub created_at: SystemTime,
    /// When it ceases to exist.
    pub expires_at: SystemTime,
}

/// A change of an entry.
#[derive(Debug, Clone)]
pub struct EntryReplacement {
    /// What it is.
    pub kind: StateKind,
    /// Its id.
    pub id: String,
    /// The state that the caller has read. If it is another one by now, nothing changes.
    pub expected: EntryRevision,
    /// Its slot from now on; `None` frees it.
    pub slot: Option<String>,
    /// Its new content.
    pub value: RawJson,
    /// When it ceases to exist.
    pub expires_at: SystemTime,
}

/// Selects entries of one kind.
#[derive(Debug, Clone)]
pub struct EntryFilter<'a> {
    /// Their kind.
    pub kind: StateKind,
    /// The principal to which they belong; `None` for those of all principals.
    pub scope: Option<&'a str>,
    /// The beginning of their ids.
    pub prefix: &'a str,
    /// When they were created, at the earliest.
    pub since: SystemTime,
    /// Their maximum number.
    pub limit: usize,
}

impl EntryFilter<'_> {
    /// All entries of a kind, up to a number that no kind reaches.
    pub fn all(kind: StateKind) -> Self {
        Self { kind, scope: None, prefix: "", since: SystemTime::UNIX_EPOCH, limit: 1 << 20 }
    }
}

/// An amount to be added to a counter with a limit.
#[derive(Debug, Clone)]
pub struct CounterIncrement {
    /// The name of the counter.
    pub name: String,
    /// Its value if it does not exist yet.
    pub initial: u64,
    /// What is added.
    pub amount: u64,
    /// The value that it must not exceed.
    pub limit: u64,
    /// When it begins anew.
    pub expires_at: SystemTime,
}

/// Storage of shared state. All of it is durable before a method returns. An expired entry does not exist.
pub trait SharedState: Send + Sync {
    /// This process.
    fn replica(&self) -> ReplicaId;

    /// Whether other machines may have the same store open.
    fn is_shared(&self) -> bool;

    /// Whether a process still has this store open.
    fn is_alive(&self, replica: ReplicaId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// How often this process counted as ended for others although it ran, because its connection to the store was lost. It counts as
    /// alive again before this number changes.
    fn interruptions(&self) -> u64 {
        0
    }

    /// Creates an entry unless its id or its slot is in use. Of several concurrent callers, one succeeds.
    fn create_entry(&self, entry: NewEntry) -> BoxFuture<'_, Result<Option<EntryRevision>, StoreError>>;

    /// An entry by its id.
    fn entry<'a>(
        &'a self,
        kind: StateKind,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>>;

    /// The entry in a slot.
    fn entry_in_slot<'a>(
        &'a self,
        kind: StateKind,
        slot: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>>;

    /// The selected entries, oldest first.
    fn entries<'a>(&'a self, filter: EntryFilter<'a>) -> BoxFuture<'a, Result<Vec<StateEntry>, StoreError>>;

    /// Changes an entry if it is still in the expected state. Of several concurrent callers with the same expectation, one
    /// succeeds.
    fn replace_entry(
        &self,
        replacement: EntryReplacement,
    ) -> BoxFuture<'_, Result<Option<EntryRevision>, StoreError>>;

    /// Removes an entry if it is still in the state `expected`. Of several concurrent callers, one succeeds.
    fn remove_entry<'a>(
        &'a self,
        kind: StateKind,
        id: &'a str,
        expected: &'a EntryRevision,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes and returns an entry. Of several concurrent callers, one receives it.
    fn take_entry<'a>(
        &'a self,
        kind: StateKind,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StateEntry>, StoreError>> {
        Box::pin(async move {
            let Some(entry) = self.entry(kind, id).await? else { return Ok(None) };
            let removed = self.remove_entry(kind, id, &entry.revision).await?;
            Ok(removed.then_some(entry))
        })
    }

    /// Deletes the oldest entries of a principal, so that at most `keep` are left.
    fn trim_entries<'a>(
        &'a self,
        kind: StateKind,
        scope: &'a str,
        keep: usize,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Adds to a counter. Returns false, and adds nothing, if that would exceed the limit. If the connection to the store
    /// breaks meanwhile, the amount may be added twice, never not at all.
    fn add_to_counter(&self, counting: CounterIncrement) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Records that a part has changed, for changes outside of the store.
    fn announce(&self, part: ChangedPart) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The versions of all parts.
    fn versions(&self) -> BoxFuture<'_, Result<ChangeVersions, StoreError>>;

    /// Waits until the versions differ from those that are known, and returns them. Every change of a part is noticed within a
    /// second while the store can be reached.
    fn changed<'a>(
        &'a self,
        seen_versions: &'a ChangeVersions,
    ) -> BoxFuture<'a, Result<ChangeVersions, StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let names: std::collections::BTreeSet<&str> =
            StateKind::ALL.into_iter().map(StateKind::name).collect();
        assert_eq!(names.len(), StateKind::ALL.len());
        for part in ChangedPart::ALL {
            assert_eq!(ChangedPart::parse(part.name()), Some(part));
        }
        for id in [0, 1, -1, i64::MIN, i64::MAX] {
            assert_eq!(ReplicaId::parse(&ReplicaId(id).to_string()), Some(ReplicaId(id)));
        }
        for name in ["", "1", "000000000000000g", "+00000000000000f", "000000000000000F"] {
            assert_eq!(ReplicaId::parse(name), None, "{name}");
        }
    }

    #[test]
    fn versions_name_what_changed() {
        let before: ChangeVersions =
            [(ChangedPart::Approvals, 1), (ChangedPart::Sessions, 4)].into_iter().collect();
        let after: ChangeVersions =
            [(ChangedPart::Approvals, 2), (ChangedPart::Sessions, 4)].into_iter().collect();
        assert_eq!(after.changed_since(&before), [ChangedPart::Approvals]);
        assert_eq!(after.changed_since(&after), []);
        assert_eq!(ChangeVersions::default().of(ChangedPart::HeldCalls), 0);
    }
}
