//! Held calls in the store that several hubs share: one entry per call, which has the decision and its use. Every change of an
//! entry is a comparison with the revision that was read, so that a call is decided once and used once, by whichever hub.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::shared_state::{
    ChangeVersions, EntryFilter, EntryReplacement, NewEntry, ReplicaId, StateEntry, StateKind,
};
use toolhub_core::{CallId, RawJson};

use super::{
    HeldCall, HeldState, MAX_HELD, NewHeldCall, RETENTION, StoredDecision, canonical_text, ended_to_remove,
    short_digest,
};

const KIND: StateKind = StateKind::HeldCall;
/// Number of hexadecimal digits of a whole digest.
const SLOT_DIGITS: usize = 64;
/// How often an entry is read again that other hubs change at the same time.
const MAX_ATTEMPTS: usize = 16;
/// How long a change is waited for before the entry is read again in any case.
const WAIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The content of an entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredCall {
    call: HeldCall,
    #[serde(default)]
    decision: Option<StoredDecision>,
    #[serde(default)]
    is_used: bool,
    /// The hub whose script waits for it. If that hub has ended, the call is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<i64>,
    /// Whether the script that made it has ended.
    #[serde(default)]
    is_withdrawn: bool,
}

impl StoredCall {
    fn of(entry: &StateEntry) -> io::Result<Self> {
        Ok(serde_json::from_str(entry.value.get())?)
    }

    fn to_json(&self) -> io::Result<RawJson> {
        RawJson::parse(serde_json::to_string(self)?).map_err(io::Error::other)
    }

    /// The call with its state.
    fn into_call(self) -> HeldCall {
        let Self { mut call, decision, is_used, is_withdrawn, .. } = self;
        call.state = call.state_after(decision, is_used);
        if is_withdrawn && call.depends_on_script() {
            call.state = HeldState::Withdrawn;
        }
        call
    }
}

/// The held calls in a shared store.
#[derive(Clone)]
pub(super) struct SharedHeldCalls {
    store: Arc<dyn HubStore>,
}

impl std::fmt::Debug for SharedHeldCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedHeldCalls").finish_non_exhaustive()
    }
}

impl SharedHeldCalls {
    pub(super) fn new(store: Arc<dyn HubStore>) -> Self {
        Self { store }
    }

    /// Holds a call. Of several hubs that hold an equal call at the same moment, one creates it.
    pub(super) async fn hold(&self, new: &NewHeldCall<'_>) -> io::Result<HeldCall> {
        let slot = slot_of(new);
        for _ in 0..MAX_ATTEMPTS {
            if let Some(entry) = self.store.entry_in_slot(KIND, &slot).await.map_err(failed)? {
                let stored = StoredCall::of(&entry)?;
                let held_call = self.call_of(&entry).await?;
                if held_call.is_open() && new.is_decided_by(&held_call) {
                    return Ok(HeldCall { is_new: false, ..held_call });
                }
                // It does not wait any more: the next equal call is another one.
                self.replace(&entry, &stored, None).await?;
                continue;
            }
            if let Some(denied) = self.check_held_count(new).await? {
                return Ok(denied);
            }
            let call = new.to_held_call();
            let holder = call.script.is_some().then(|| self.store.replica().0);
            let stored = StoredCall {
                call: call.clone(),
                decision: None,
                is_used: false,
                holder,
                is_withdrawn: false,
            };
            let entry = NewEntry {
                kind: KIND,
                id: call.id.clone(),
                scope: call.principal.clone(),
                slot: Some(slot.clone()),
                value: stored.to_json()?,
                expires_at: kept_until(&call),
            };
            if self.store.create_entry(entry).await.map_err(failed)?.is_some() {
                return Ok(call);
            }
        }
        Err(contended())
    }

    /// Checks that another call of the principal may wait. Returns a denial of the same call outside of this run of a script.
    async fn check_held_count(&self, new: &NewHeldCall<'_>) -> io::Result<Option<HeldCall>> {
        let calls = self.list(Some(new.principal.id())).await?;
        if let Some(denied) = calls.iter().find(|call| call.is_open() && new.is_decided_by(call)) {
            return Ok(Some(denied.clone()));
        }
        if calls.iter().filter(|call| call.state == HeldState::Held).count() >= MAX_HELD {
            return Err(io::Error::other("too many calls of this principal wait for approval"));
        }
        for ended in ended_to_remove(calls, new.arguments.get().len())? {
            if let Some(entry) = self.store.entry(KIND, &ended.id).await.map_err(failed)? {
                // One that changes at this moment stays.
                self.store.remove_entry(KIND, &ended.id, &entry.revision).await.map_err(failed)?;
            }
        }
        Ok(None)
    }

    /// The call with its state. Whether the hub of a script still runs is not part of the entry.
    async fn call_of(&self, entry: &StateEntry) -> io::Result<HeldCall> {
        let stored = StoredCall::of(entry)?;
        let holder = stored.holder.map(ReplicaId);
        let mut call = stored.into_call();
        if call.depends_on_script() {
            let is_held = match holder {
                Some(holder) => self.store.is_alive(holder).await.map_err(failed)?,
                None => false,
            };
            if !is_held {
                call.state = HeldState::Withdrawn;
            }
        }
        Ok(call)
    }

    /// All held calls, or those of a principal.
    pub(super) async fn list(&self, principal: Option<&str>) -> io::Result<Vec<HeldCall>> {
        let filter = EntryFilter { scope: principal, ..EntryFilter::all(KIND) };
        let entries = self.store.entries(filter).await.map_err(failed)?;
        let mut calls = Vec::with_capacity(entries.len());
        for entry in &entries {
            calls.push(self.call_of(entry).await?);
        }
        Ok(calls)
    }

    pub(super) async fn get(&self, id: &str) -> io::Result<Option<HeldCall>> {
        let entry = self.store.entry(KIND, id).await.map_err(failed)?;
        match entry {
            Some(entry) => self.call_of(&entry).await.map(Some),
            None => Ok(None),
        }
    }

    /// Stores a decision about a held call. Returns false if it is not held any more.
    pub(super) async fn store_decision(&self, id: &str, decision: &StoredDecision) -> io::Result<bool> {
        self.change(id, |stored| {
            let is_held = stored.clone().into_call().state == HeldState::Held;
            stored.decision = Some(decision.clone());
            is_held
        })
        .await
    }

    /// Uses an approval. The slot becomes free, so that the next equal call is held anew.
    pub(super) async fn consume(&self, id: &str) -> io::Result<bool> {
        self.change(id, |stored| {
            let is_approved = matches!(stored.clone().into_call().state, HeldState::Approved { .. });
            stored.is_used = true;
            is_approved
        })
        .await
    }

    pub(super) async fn withdraw(&self, id: &str) -> io::Result<()> {
        let Some(entry) = self.store.entry(KIND, id).await.map_err(failed)? else { return Ok(()) };
        if StoredCall::of(&entry)?.into_call().state == HeldState::Held {
            // A decision that came in between has changed the revision, and stays.
            self.store.remove_entry(KIND, id, &entry.revision).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Withdraws a call of a script that has ended. Returns whether it was open until now.
    pub(super) async fn withdraw_of_script(&self, id: &str) -> io::Result<bool> {
        self.change(id, |stored| {
            let is_open = !stored.is_withdrawn && stored.clone().into_call().depends_on_script();
            stored.is_withdrawn = true;
            is_open
        })
        .await
    }

    pub(super) async fn withdraw_all(&self, principal: &str) -> io::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            let filter = EntryFilter { scope: Some(principal), ..EntryFilter::all(KIND) };
            let mut is_complete = true;
            for entry in self.store.entries(filter).await.map_err(failed)? {
                let state = StoredCall::of(&entry)?.into_call().state;
                if matches!(state, HeldState::Held | HeldState::Approved { .. }) {
                    let removed = self.store.remove_entry(KIND, &entry.id, &entry.revision).await;
                    is_complete &= removed.map_err(failed)?;
                }
            }
            if is_complete {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Waits for a change of any held call, at most a second.
    pub(super) async fn wait_for_change(&self, seen: &mut Option<ChangeVersions>) {
        let Some(versions) = seen else {
            match self.store.versions().await {
                Ok(now) => *seen = Some(now),
                Err(_) => tokio::time::sleep(WAIT_TIMEOUT).await,
            }
            return;
        };
        match tokio::time::timeout(WAIT_TIMEOUT, self.store.changed(versions)).await {
            Ok(Ok(now)) => *versions = now,
            // The store cannot be read: waiting goes on without it.
            Ok(Err(_)) => tokio::time::sleep(WAIT_TIMEOUT).await,
            Err(_) => {}
        }
    }

    /// Applies `apply` to a call. Returns false, and stores nothing, if it returns false.
    async fn change(&self, id: &str, apply: impl Fn(&mut StoredCall) -> bool) -> io::Result<bool> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.store.entry(KIND, id).await.map_err(failed)? else { return Ok(false) };
            let mut stored = StoredCall::of(&entry)?;
            if !apply(&mut stored) {
                return Ok(false);
            }
            let slot = if stored.is_used || stored.is_withdrawn { None } else { entry.slot.clone() };
            if self.replace(&entry, &stored, slot).await? {
                return Ok(true);
            }
        }
        Err(contended())
    }

    /// Replaces an entry unless another hub has changed it.
    async fn replace(
        &self,
        entry: &StateEntry,
        stored: &StoredCall,
        slot: Option<String>,
    ) -> io::Result<bool> {
        let replacement = EntryReplacement {
            kind: KIND,
            id: entry.id.clone(),
            expected: entry.revision.clone(),
            slot,
            value: stored.to_json()?,
            expires_at: entry.expires_at,
        };
        Ok(self.store.replace_entry(replacement).await.map_err(failed)?.is_some())
    }
}

/// The slot of a call: equal calls share one decision.
fn slot_of(new: &NewHeldCall<'_>) -> String {
    let (sources, arguments) = (new.sources.join("\u{1f}"), canonical_text(new.arguments));
    let mut parts = vec![&**new.principal.id(), new.profile, new.tool, &sources, &arguments];
    // Calls of other runs have slots of their own.
    parts.extend(new.script.map(CallId::as_str));
    short_digest(&parts, SLOT_DIGITS)
}

fn kept_until(call: &HeldCall) -> SystemTime {
    // At most a hundred years, which every time type can represent.
    let expires = Duration::from_millis(call.expires_ms).min(Duration::from_secs(4_102_444_800));
    UNIX_EPOCH + expires + RETENTION
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

fn contended() -> io::Error {
    io::Error::other("too many others change this call at the same time: try again")
}
