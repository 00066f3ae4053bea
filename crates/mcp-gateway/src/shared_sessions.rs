//! What replicas know in common about sessions: the key that seals their ids, and those that clients have ended.

use std::time::{Duration, SystemTime};

use toolhub_core::millis::DAY;
use toolhub_core::ports::StoreError;
use toolhub_core::shared_state::{EntryFilter, EntryReplacement, NewEntry, SharedState, StateKind};
use toolhub_core::{RawJson, Secret, hex};

use crate::ended_session::{EndedSession, MAX_ENDED, RESUMABLE_FOR};
use crate::session_seal::SessionKey;

/// The id of the entry with the key that seals session ids.
const SEAL_KEY_ID: &str = "seal";
/// How long that key is kept in the store.
const KEY_RETENTION: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The key that all replicas use, which the first of them has made.
pub(super) async fn stored_key(state: &dyn SharedState) -> Result<Option<SessionKey>, StoreError> {
    for _ in 0..2 {
        if let Some(entry) = state.entry(StateKind::SessionKey, SEAL_KEY_ID).await? {
            let text = entry.value.text().map(|text| Secret::new(text.into_owned()));
            return Ok(text.and_then(|text| SessionKey::parse(&text)));
        }
        let Some(key) = SessionKey::generate() else { return Ok(None) };
        let entry = NewEntry {
            kind: StateKind::SessionKey,
            id: SEAL_KEY_ID.to_owned(),
            scope: String::new(),
            slot: None,
            value: RawJson::from(key.to_text()),
            expires_at: SystemTime::now() + KEY_RETENTION,
        };
        if state.create_entry(entry).await?.is_some() {
            return Ok(Some(key));
        }
        // Another replica was faster.
    }
    Ok(None)
}

/// Whether the store has the end of a session.
pub(super) async fn is_stored_as_ended(
    state: &dyn SharedState,
    ended: &EndedSession,
) -> Result<bool, StoreError> {
    if state.entry(StateKind::EndedSession, &ended.id()).await?.is_some() {
        return Ok(true);
    }
    let watermark = state.entry(StateKind::EndedSession, &ended.watermark_id()).await?;
    let before = watermark.and_then(|entry| entry.value.decode::<u64>().ok()).unwrap_or(0);
    Ok(ended.stamp.created <= before)
}

/// Deletes the oldest ended sessions of a principal beyond the limit, after all of its sessions of that age count as ended.
pub(super) async fn bound_ended(
    state: &dyn SharedState,
    principal: &str,
    ended: &EndedSession,
) -> Result<(), StoreError> {
    let prefix = hex::encode(&ended.owner.0);
    let filter =
        EntryFilter { scope: Some(principal), prefix: &prefix, ..EntryFilter::all(StateKind::EndedSession) };
    let entries = state.entries(filter).await?;
    let excess = entries.len().saturating_sub(MAX_ENDED);
    let oldest = entries.iter().take(excess).filter_map(|entry| EndedSession::parse_id(&entry.id));
    let Some(before) = oldest.map(|ended| ended.stamp.created).max() else { return Ok(()) };
    let id = ended.watermark_id();
    let expires_at = SystemTime::now() + RESUMABLE_FOR + DAY;
    let (value, slot) = (RawJson::from(before), None);
    let is_stored = match state.entry(StateKind::EndedSession, &id).await? {
        Some(entry) if entry.value.decode::<u64>().is_ok_and(|watermark| watermark >= before) => true,
        Some(entry) => {
            let kind = StateKind::EndedSession;
            let change = EntryReplacement { kind, id, expected: entry.revision, slot, value, expires_at };
            state.replace_entry(change).await?.is_some()
        }
        None => {
            let kind = StateKind::EndedSession;
            // It belongs to the hub, so that it is not deleted with the entries of the principal.
            let entry = NewEntry { kind, id, scope: String::new(), slot, value, expires_at };
            state.create_entry(entry).await?.is_some()
        }
    };
    // If another replica stored it meanwhile, the next ended session tries again.
    if is_stored {
        for entry in entries.iter().take(excess) {
            state.remove_entry(StateKind::EndedSession, &entry.id, &entry.revision).await?;
        }
    }
    Ok(())
}
