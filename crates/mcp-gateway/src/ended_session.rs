//! The identity of a session that its client has ended, as `session_record` keeps it and `shared_sessions` stores it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use toolhub_core::hex;
use toolhub_core::millis::DAY;
use toolhub_mcp_wire::length_prefixed;

/// How long a session id can be resumed after `initialize`. A session in memory may live longer.
pub(super) const RESUMABLE_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
pub(super) const NONCE_BYTES: usize = 16;
/// Maximum number of ended sessions that are remembered per principal and profile. Beyond that, the principal's sessions
/// older than the oldest remembered one cannot be resumed, so that an ended session never returns and no principal fills
/// the record of another.
pub(super) const MAX_ENDED: usize = 1_024;

/// Identifies a resumable session in the record of ended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionStamp {
    /// The time of `initialize`, in seconds since 1970.
    pub(super) created: u64,
    pub(super) nonce: [u8; NONCE_BYTES],
}

/// Returns the seconds since 1970.
pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// An ended session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedSession {
    pub(super) owner: OwnerHash,
    pub(super) stamp: SessionStamp,
}

impl EndedSession {
    /// The id of its entry in a shared store.
    pub(super) fn id(&self) -> String {
        let Self { owner, stamp } = self;
        format!("{}{:016x}{}", hex::encode(&owner.0), stamp.created, hex::encode(&stamp.nonce))
    }

    /// The session of an entry.
    pub(super) fn parse_id(id: &str) -> Option<Self> {
        let (owner, rest) = id.split_at_checked(16)?;
        let (created, nonce) = rest.split_at_checked(16)?;
        let stamp =
            SessionStamp { created: u64::from_str_radix(created, 16).ok()?, nonce: hex::decode(nonce)? };
        Some(Self { owner: OwnerHash(hex::decode(owner)?), stamp })
    }

    /// The id of the entry with the time before which all sessions of its owner count as ended.
    pub(super) fn watermark_id(&self) -> String {
        format!("before-{}", hex::encode(&self.owner.0))
    }

    /// When its id expires, and nothing needs to be known about it any more.
    pub(super) fn expires_at(&self) -> SystemTime {
        // A creation time of an id is never far in the future, but a stored one must not overflow.
        UNIX_EPOCH + Duration::from_secs(self.stamp.created.min(1 << 40)) + RESUMABLE_FOR + DAY
    }

    pub(super) fn new(profile: &str, principal: &str, stamp: &SessionStamp) -> Self {
        Self { owner: OwnerHash::of(profile, principal), stamp: *stamp }
    }
}

/// A principal in a profile, hashed because names may have any length and any characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OwnerHash(pub(super) [u8; 8]);

impl OwnerHash {
    pub(super) fn of(profile: &str, principal: &str) -> Self {
        let digest = Sha256::digest(length_prefixed([profile, principal].map(|part| Some(part.as_bytes()))));
        let mut owner = [0; 8];
        owner.copy_from_slice(&digest[..8]);
        Self(owner)
    }
}
