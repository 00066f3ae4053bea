//! Session ids that outlive the process: an id carries the data from which the session is rebuilt, sealed for the profile and
//! the principal. Clients keep their session after a restart, at another replica, and after it expired in memory; the official
//! SDK clients do not reinitialize by themselves when they receive 404.
//!
//! Ids of earlier versions carry the same data under an HMAC-SHA256 and are valid until they expire.
//!
//! An id is not a credential: each request is authenticated before its session is looked up.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use sha2::{Digest as _, Sha256};
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::shared_state::{EntryReplacement, NewEntry, ReplicaId, StateKind};
use toolhub_mcp_wire::era::LEGACY;
use toolhub_mcp_wire::length_prefixed;

use crate::budget::PrincipalHandle;
use crate::ended_session::{EndedSession, NONCE_BYTES, RESUMABLE_FOR, SessionStamp, unix_seconds};
use crate::session_record::SessionRecord;
use crate::session_seal::{MAX_SEALED_BYTES, SEALED_ID_PREFIX};

/// Maximum length of the capabilities in an id with a signature.
const MAX_CAPABILITIES_BYTES: usize = 512;
/// The first byte of a signed payload.
const SIGNED: u8 = 1;
/// The first byte of sealed data with capabilities, and of sealed data with the digest of capabilities that are stored.
const WITH_CAPABILITIES: u8 = 2;
const WITH_DIGEST: u8 = 3;
const TAG_BYTES: usize = 32;
const REVISION_BYTES: usize = 10;
const PRINCIPAL_BYTES: usize = 16;
/// A signed payload without the capabilities: format, revision, creation time, nonce.
const FIXED_BYTES: usize = 1 + REVISION_BYTES + 8 + NONCE_BYTES;
/// Sealed data without the capabilities: format, replica, revision, expiry, principal.
const SEALED_BYTES: usize = 1 + 8 + 4 + 8 + PRINCIPAL_BYTES;
/// Maximum length of a signed id, in base64 characters.
const MAX_SIGNED_LENGTH: usize = (TAG_BYTES + FIXED_BYTES + MAX_CAPABILITIES_BYTES).div_ceil(3) * 4;
/// Maximum number of different capabilities of one principal that are stored because they do not fit into an id.
const MAX_STORED_CAPABILITIES: usize = 64;

/// The data from which a session is rebuilt.
#[derive(Debug)]
pub(super) struct ResumableSession {
    pub(super) stamp: SessionStamp,
    pub(super) version: &'static str,
    pub(super) capabilities: RawJson,
    /// The replica that issued the id; `None` in an id of an earlier version.
    pub(super) replica: Option<ReplicaId>,
}

/// The sealed data of an id.
struct SealedSession<'a> {
    is_digest: bool,
    replica: ReplicaId,
    version: &'static str,
    created: u64,
    principal: [u8; PRINCIPAL_BYTES],
    capabilities: &'a [u8],
}

impl<'a> SealedSession<'a> {
    fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(SEALED_BYTES + self.capabilities.len());
        bytes.push(if self.is_digest { WITH_DIGEST } else { WITH_CAPABILITIES });
        bytes.extend_from_slice(&self.replica.0.to_be_bytes());
        bytes.extend_from_slice(&revision_number(self.version)?.to_be_bytes());
        bytes.extend_from_slice(&self.created.saturating_add(RESUMABLE_FOR.as_secs()).to_be_bytes());
        bytes.extend_from_slice(&self.principal);
        bytes.extend_from_slice(self.capabilities);
        Some(bytes)
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        let is_digest = match *format {
            WITH_CAPABILITIES => false,
            WITH_DIGEST => true,
            _ => return None,
        };
        let (replica, rest) = rest.split_first_chunk::<8>()?;
        let (revision, rest) = rest.split_first_chunk::<4>()?;
        let (expiry, rest) = rest.split_first_chunk::<8>()?;
        let (principal, capabilities) = rest.split_first_chunk::<PRINCIPAL_BYTES>()?;
        let revision = u32::from_be_bytes(*revision);
        let is_revision = |supported: &&str| revision_number(supported) == Some(revision);
        Some(Self {
            is_digest,
            replica: ReplicaId(i64::from_be_bytes(*replica)),
            version: LEGACY.iter().copied().find(is_revision)?,
            created: u64::from_be_bytes(*expiry).checked_sub(RESUMABLE_FOR.as_secs())?,
            principal: *principal,
            capabilities,
        })
    }
}

/// The date of a revision as a number, such as 20251125.
fn revision_number(revision: &str) -> Option<u32> {
    revision.replace('-', "").parse().ok()
}

/// Issues and verifies the session ids of one profile.
#[derive(Debug)]
pub(super) struct SessionIds {
    profile: Box<str>,
    record: Arc<SessionRecord>,
}

impl SessionIds {
    pub(super) fn new(profile: &str, record: Arc<SessionRecord>) -> Self {
        Self { profile: profile.into(), record }
    }

    pub(super) fn record(&self) -> &SessionRecord {
        &self.record
    }

    pub(super) fn profile(&self) -> &str {
        &self.profile
    }

    /// Issues an id. Returns `None` if the capabilities are too long and cannot be stored, there is no key, or the system has
    /// no randomness.
    pub(super) async fn issue(
        &self,
        principal: &PrincipalHandle,
        version: &'static str,
        capabilities: &RawJson,
    ) -> Option<(String, SessionStamp)> {
        let keys = self.record.seal_keys().await?;
        let fits = SEALED_BYTES + capabilities.get().len() <= MAX_SEALED_BYTES;
        let digest = if fits { None } else { Some(self.store_capabilities(principal, capabilities).await?) };
        let sealed = SealedSession {
            is_digest: digest.is_some(),
            replica: self.record.replica(),
            version,
            created: unix_seconds(),
            principal: self.principal_hash(principal),
            capabilities: digest.as_ref().map_or(capabilities.get().as_bytes(), |digest| digest.as_slice()),
        };
        let id = keys.seal(&sealed.to_bytes()?, &self.context())?;
        let stamp = SessionStamp { created: sealed.created, nonce: nonce_of(&id) };
        Some((id, stamp))
    }

    /// Verifies an id and returns its data. Returns `None` if it has expired or was not issued by this profile to this
    /// principal.
    pub(super) async fn verify(&self, id: &str, principal: &PrincipalHandle) -> Option<ResumableSession> {
        if !id.starts_with(SEALED_ID_PREFIX) {
            return self.verify_signed(id, principal);
        }
        let bytes = self.record.seal_keys().await?.open(id, &self.context())?;
        let sealed = SealedSession::parse(&bytes)?;
        if sealed.principal != self.principal_hash(principal) || !is_fresh(sealed.created) {
            return None;
        }
        let capabilities = match sealed.is_digest {
            true => self.stored_capabilities(principal, sealed.capabilities).await?,
            false => RawJson::parse(std::str::from_utf8(sealed.capabilities).ok()?).ok()?,
        };
        let stamp = SessionStamp { created: sealed.created, nonce: nonce_of(id) };
        Some(ResumableSession { stamp, version: sealed.version, capabilities, replica: Some(sealed.replica) })
    }

    /// Verifies an id of an earlier version.
    fn verify_signed(&self, id: &str, principal: &PrincipalHandle) -> Option<ResumableSession> {
        if id.len() > MAX_SIGNED_LENGTH {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (tag, payload) = bytes.split_at_checked(TAG_BYTES)?;
        hmac::verify(self.record.key()?, &self.signed(principal, payload), tag).ok()?;
        let (fixed, capabilities) = payload.split_first_chunk::<FIXED_BYTES>()?;
        let (revision, rest) = fixed.strip_prefix(&[SIGNED])?.split_at_checked(REVISION_BYTES)?;
        let (created, nonce) = rest.split_first_chunk::<8>()?;
        let stamp = SessionStamp { created: u64::from_be_bytes(*created), nonce: nonce.try_into().ok()? };
        let version = LEGACY.iter().copied().find(|supported| supported.as_bytes() == revision)?;
        let capabilities = RawJson::parse(std::str::from_utf8(capabilities).ok()?).ok()?;
        is_fresh(stamp.created).then_some(ResumableSession { stamp, version, capabilities, replica: None })
    }

    /// Returns the signed bytes. The first part separates the domain of session ids from other uses of the key.
    fn signed(&self, principal: &PrincipalHandle, payload: &[u8]) -> Vec<u8> {
        let parts =
            ["mcp-session".as_bytes(), self.profile.as_bytes(), principal.as_str().as_bytes(), payload];
        length_prefixed(parts.map(Some))
    }

    /// What is bound to sealed ids beside their data.
    fn context(&self) -> Vec<u8> {
        length_prefixed(["mcp-session", &self.profile].map(|part| Some(part.as_bytes())))
    }

    fn principal_hash(&self, principal: &PrincipalHandle) -> [u8; PRINCIPAL_BYTES] {
        let parts = ["mcp-session-principal", &self.profile, principal.as_str()];
        first_bytes(&Sha256::digest(length_prefixed(parts.map(|part| Some(part.as_bytes())))))
    }

    /// Stores capabilities that do not fit into an id, and returns their digest.
    async fn store_capabilities(
        &self,
        principal: &PrincipalHandle,
        capabilities: &RawJson,
    ) -> Option<[u8; 32]> {
        let state = self.record.state()?;
        let digest: [u8; 32] = Sha256::digest(capabilities.get()).into();
        let (id, scope) = (capabilities_id(principal, &digest), principal.as_str().to_owned());
        // Longer than the id is valid, so that they are rarely stored again.
        let expires_at = SystemTime::now() + 2 * RESUMABLE_FOR;
        let entry = NewEntry {
            kind: StateKind::Capabilities,
            id: id.clone(),
            scope: scope.clone(),
            slot: None,
            value: capabilities.clone(),
            expires_at,
        };
        if state.create_entry(entry).await.ok()?.is_some() {
            let _ = state.trim_entries(StateKind::Capabilities, &scope, MAX_STORED_CAPABILITIES).await;
            return Some(digest);
        }
        let stored_entry = state.entry(StateKind::Capabilities, &id).await.ok()??;
        if stored_entry.expires_at < SystemTime::now() + RESUMABLE_FOR + Duration::from_secs(3_600) {
            let renewed = EntryReplacement {
                kind: StateKind::Capabilities,
                id,
                expected: stored_entry.revision,
                slot: None,
                value: stored_entry.value,
                expires_at,
            };
            // If another replica was faster, it has renewed them.
            state.replace_entry(renewed).await.ok()?;
        }
        Some(digest)
    }

    async fn stored_capabilities(&self, principal: &PrincipalHandle, digest: &[u8]) -> Option<RawJson> {
        let id = capabilities_id(principal, digest);
        let entry = self.record.state()?.entry(StateKind::Capabilities, &id).await.ok()??;
        (Sha256::digest(entry.value.get()).as_slice() == digest).then_some(entry.value)
    }

    /// Reads whether other processes have ended the session in the meantime. Returns false if that is not known: the session
    /// must not be rebuilt then.
    pub(super) async fn refresh(&self, principal: &PrincipalHandle, stamp: &SessionStamp) -> bool {
        self.record.refresh_ended(&self.ended(principal, stamp)).await
    }

    /// Returns whether a session has ended or must be treated as ended.
    pub(super) fn is_ended(&self, principal: &PrincipalHandle, stamp: &SessionStamp) -> bool {
        self.record.contains(&self.ended(principal, stamp))
    }

    /// Records the end of a session in this process.
    pub(super) fn end(&self, principal: &PrincipalHandle, stamp: &SessionStamp) {
        self.record.add(self.ended(principal, stamp));
    }

    /// Stores the end of a session, so that other processes know of it.
    pub(super) async fn persist_end(&self, principal: &PrincipalHandle, stamp: &SessionStamp) {
        let (record, ended) = (Arc::clone(&self.record), self.ended(principal, stamp));
        match record.shared() {
            Some(state) => record.persist_shared(&**state, principal.as_str(), &ended).await,
            None => {
                let _ = tokio::task::spawn_blocking(move || record.write(&ended)).await;
            }
        }
    }

    /// Whether a session of this profile is among these.
    pub(super) fn is_among(
        &self,
        principal: &PrincipalHandle,
        stamp: &SessionStamp,
        ended: &[EndedSession],
    ) -> bool {
        ended.contains(&self.ended(principal, stamp))
    }

    fn ended(&self, principal: &PrincipalHandle, stamp: &SessionStamp) -> EndedSession {
        EndedSession::new(&self.profile, principal.as_str(), stamp)
    }
}

fn is_fresh(created: u64) -> bool {
    unix_seconds().saturating_sub(created) < RESUMABLE_FOR.as_secs()
}

fn first_bytes<const LENGTH: usize>(digest: &[u8]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes.copy_from_slice(&digest[..LENGTH]);
    bytes
}

/// What distinguishes the session of a sealed id from others.
fn nonce_of(id: &str) -> [u8; NONCE_BYTES] {
    first_bytes(&Sha256::digest(id))
}

fn capabilities_id(principal: &PrincipalHandle, digest: &[u8]) -> String {
    let parts = [principal.as_str().as_bytes(), digest];
    hex::sha256(&length_prefixed(parts.map(Some)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(profile: &str, record: &Arc<SessionRecord>) -> SessionIds {
        SessionIds::new(profile, Arc::clone(record))
    }

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    fn signed_id(ids: &SessionIds, principal: &PrincipalHandle, capabilities: &str) -> String {
        let payload = [
            &[SIGNED],
            LEGACY[0].as_bytes(),
            &unix_seconds().to_be_bytes(),
            &[7; NONCE_BYTES],
            capabilities.as_bytes(),
        ];
        let payload = payload.concat();
        let tag = hmac::sign(ids.record.key().unwrap(), &ids.signed(principal, &payload));
        URL_SAFE_NO_PAD.encode([tag.as_ref(), &payload].concat())
    }

    /// Ids of earlier versions are valid until they expire.
    #[tokio::test]
    async fn verifies_signed_ids_of_the_same_profile_and_principal_only() {
        let record = Arc::new(SessionRecord::in_memory());
        let (own, ann) = (ids("work", &record), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let bob = PrincipalHandle::new(toolhub_core::Principal::of_key("bob"));
        let id = signed_id(&own, &ann, r#"{"sampling":{}}"#);
        let opened = own.verify(&id, &ann).await.unwrap();
        assert_eq!((opened.capabilities.get(), opened.replica), (r#"{"sampling":{}}"#, None));
        assert!(own.verify(&id, &bob).await.is_none());
        assert!(ids("home", &record).verify(&id, &ann).await.is_none());
        for at in 0..id.len() {
            let mut forged = id.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert!(own.verify(&String::from_utf8(forged).unwrap(), &ann).await.is_none());
        }
        let longest =
            signed_id(&own, &ann, &format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_CAPABILITIES_BYTES - 8)));
        assert!(own.verify(&longest, &ann).await.is_some());
    }

    #[tokio::test]
    async fn verifies_ids_of_the_same_profile_and_principal_only() {
        let record = Arc::new(SessionRecord::in_memory());
        let (own, ann) = (ids("work", &record), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let can = raw(r#"{"sampling":{},"elicitation":{"form":{}}}"#);
        for version in LEGACY {
            let (id, stamp) = own.issue(&ann, version, &can).await.unwrap();
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()) && id.len() <= 200, "{id}");
            let opened = own.verify(&id, &ann).await.unwrap();
            assert_eq!(opened.replica, Some(record.replica()));
            assert_eq!(
                (opened.stamp, opened.version, opened.capabilities.get()),
                (stamp, version, can.get())
            );
        }
        let (id, _) = own.issue(&ann, LEGACY[0], &can).await.unwrap();
        for (profile, principal) in
            [("work", "bob"), ("home", "ann"), ("wor", "kann"), ("worka", "nn"), ("", "")]
        {
            assert!(
                ids(profile, &record)
                    .verify(&id, &PrincipalHandle::new(toolhub_core::Principal::of_key(principal)))
                    .await
                    .is_none()
            );
        }
        // Another key.
        assert!(ids("work", &Arc::new(SessionRecord::in_memory())).verify(&id, &ann).await.is_none());
        // Another character at each position.
        for at in 0..id.len() {
            for byte in *b"AB-_=.a9 " {
                let mut forged = id.clone().into_bytes();
                if forged[at] == byte {
                    continue;
                }
                forged[at] = byte;
                let forged = String::from_utf8(forged).unwrap();
                assert!(own.verify(&forged, &ann).await.is_none(), "{forged}");
            }
        }
        for forged in [
            "",
            "A",
            &id[1..],
            &id[..id.len() - 1],
            &format!("{id}A"),
            &format!("{id}="),
            &"A".repeat(1 << 20),
        ] {
            assert!(own.verify(forged, &ann).await.is_none());
        }
    }

    #[tokio::test]
    async fn issues_no_resumable_id_for_long_capabilities_without_a_store() {
        let own = ids("work", &Arc::new(SessionRecord::in_memory()));
        let ann = PrincipalHandle::new(toolhub_core::Principal::of_key("ann"));
        let of_length = |length: usize| raw(&format!(r#"{{"experimental":"{}"}}"#, "x".repeat(length - 19)));
        let max = MAX_SEALED_BYTES - SEALED_BYTES;
        let longest = own.issue(&ann, LEGACY[0], &of_length(max)).await.unwrap().0;
        assert!(longest.len() <= 200 && own.verify(&longest, &ann).await.is_some());
        assert!(own.issue(&ann, LEGACY[0], &of_length(max + 1)).await.is_none());
        // What usual clients declare fits.
        assert!(max >= r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}"#.len(), "{max}");
    }

    #[tokio::test]
    async fn rejects_expired_ids_and_unknown_formats() {
        let record = Arc::new(SessionRecord::in_memory());
        let (own, ann) = (ids("work", &record), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let keys = record.seal_keys().await.unwrap();
        let sealed = |created: u64, can: &'static str| SealedSession {
            is_digest: false,
            replica: ReplicaId(7),
            version: LEGACY[0],
            created,
            principal: own.principal_hash(&ann),
            capabilities: can.as_bytes(),
        };
        let is_valid = async |bytes: Vec<u8>| {
            own.verify(&keys.seal(&bytes, &own.context()).unwrap(), &ann).await.is_some()
        };
        let (now, limit) = (unix_seconds(), RESUMABLE_FOR.as_secs());
        for (created, can, expect) in [
            (now, "{}", true),
            (now - limit + 60, "{}", true),
            // The clock was set back.
            (now + 60, "{}", true),
            (now - limit, "{}", false),
            (0, "{}", false),
            (now, "{", false),
            (now, "", false),
        ] {
            assert_eq!(is_valid(sealed(created, can).to_bytes().unwrap()).await, expect, "{created} {can}");
        }
        let usual = sealed(now, "{}").to_bytes().unwrap();
        for (at, byte) in [(0, SIGNED), (0, WITH_DIGEST), (0, 9), (9, 0), (SEALED_BYTES - 1, 0)] {
            let mut other = usual.clone();
            other[at] = if other[at] == byte { byte + 1 } else { byte };
            assert!(!is_valid(other).await, "{at}");
        }
        for length in 0..SEALED_BYTES {
            assert!(!is_valid(usual[..length].to_vec()).await, "{length}");
        }
        // A key of another use, or for another context.
        assert!(own.verify(&keys.seal(&usual, b"").unwrap(), &ann).await.is_none());
    }
}
