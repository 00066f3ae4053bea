//! Session ids that outlive the process: an id carries the data from which the session is rebuilt, and an HMAC-SHA256
//! over that data, the profile and the principal. Clients keep their session after a restart, and after it expired in
//! memory; the official SDK clients do not reinitialize by themselves when they receive 404.
//!
//! An id is not a credential: each request is authenticated before its session is looked up.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use toolhub_core::RawJson;
use toolhub_mcp_wire::era::LEGACY;
use toolhub_mcp_wire::length_prefixed;

use crate::budget::PrincipalHandle;
use crate::session_record::{EndedSession, NONCE_BYTES, RESUMABLE_FOR, SessionRecord, Ticket, now};

/// Maximum length of the capabilities in an id, which is sent with each request. A session with longer ones ends with the
/// process.
const MAX_CAPABILITIES_BYTES: usize = 512;
/// The first byte of the payload.
const FORMAT: u8 = 1;
const TAG_BYTES: usize = 32;
const REVISION_BYTES: usize = 10;
/// The payload without the capabilities: format, revision, creation time, nonce.
const FIXED_BYTES: usize = 1 + REVISION_BYTES + 8 + NONCE_BYTES;
/// Maximum length of an id, in base64 characters.
const MAX_ID_LENGTH: usize = (TAG_BYTES + FIXED_BYTES + MAX_CAPABILITIES_BYTES).div_ceil(3) * 4;

/// The data from which a session is rebuilt.
#[derive(Debug)]
pub(super) struct Resumable {
    pub(super) ticket: Ticket,
    pub(super) version: &'static str,
    pub(super) capabilities: RawJson,
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

    /// Issues an id. Returns `None` if the capabilities are too long or the system has no randomness.
    pub(super) fn issue(
        &self,
        principal: &PrincipalHandle,
        version: &str,
        capabilities: &RawJson,
    ) -> Option<(String, Ticket)> {
        let capabilities = capabilities.get();
        if capabilities.len() > MAX_CAPABILITIES_BYTES || version.len() != REVISION_BYTES {
            return None;
        }
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let ticket = Ticket { created: now(), nonce };
        let mut payload = Vec::with_capacity(FIXED_BYTES + capabilities.len());
        payload.push(FORMAT);
        payload.extend_from_slice(version.as_bytes());
        payload.extend_from_slice(&ticket.created.to_be_bytes());
        payload.extend_from_slice(&nonce);
        payload.extend_from_slice(capabilities.as_bytes());
        let tag = hmac::sign(self.record.key()?, &self.signed(principal, &payload));
        Some((URL_SAFE_NO_PAD.encode([tag.as_ref(), &payload].concat()), ticket))
    }

    /// Verifies an id and returns its data. Returns `None` if it has expired or was not issued by this profile to this
    /// principal.
    pub(super) fn verify(&self, id: &str, principal: &PrincipalHandle) -> Option<Resumable> {
        if id.len() > MAX_ID_LENGTH {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (tag, payload) = bytes.split_at_checked(TAG_BYTES)?;
        hmac::verify(self.record.key()?, &self.signed(principal, payload), tag).ok()?;
        let (fixed, capabilities) = payload.split_first_chunk::<FIXED_BYTES>()?;
        let (revision, rest) = fixed.strip_prefix(&[FORMAT])?.split_at_checked(REVISION_BYTES)?;
        let (created, nonce) = rest.split_first_chunk::<8>()?;
        let ticket = Ticket { created: u64::from_be_bytes(*created), nonce: nonce.try_into().ok()? };
        let version = LEGACY.iter().copied().find(|known| known.as_bytes() == revision)?;
        let capabilities = RawJson::parse(std::str::from_utf8(capabilities).ok()?).ok()?;
        let is_fresh = now().saturating_sub(ticket.created) < RESUMABLE_FOR.as_secs();
        is_fresh.then_some(Resumable { ticket, version, capabilities })
    }

    /// Returns the signed bytes. The first part separates the domain of session ids from other uses of the key.
    fn signed(&self, principal: &PrincipalHandle, payload: &[u8]) -> Vec<u8> {
        let parts =
            ["mcp-session".as_bytes(), self.profile.as_bytes(), principal.as_str().as_bytes(), payload];
        length_prefixed(parts.map(Some))
    }

    /// Reads the sessions that other processes have ended in the meantime.
    pub(super) fn refresh(&self) {
        self.record.refresh();
    }

    /// Returns whether a session has ended or must be treated as ended.
    pub(super) fn is_ended(&self, principal: &PrincipalHandle, ticket: &Ticket) -> bool {
        self.record.contains(&self.ended(principal, ticket))
    }

    /// Records the end of a session in this process.
    pub(super) fn end(&self, principal: &PrincipalHandle, ticket: &Ticket) {
        self.record.add(self.ended(principal, ticket));
    }

    /// Writes the end of a session to the data folder, if there is one.
    pub(super) async fn persist_end(&self, principal: &PrincipalHandle, ticket: &Ticket) {
        let (record, ended) = (Arc::clone(&self.record), self.ended(principal, ticket));
        let _ = tokio::task::spawn_blocking(move || record.write(&ended)).await;
    }

    fn ended(&self, principal: &PrincipalHandle, ticket: &Ticket) -> EndedSession {
        EndedSession::new(&self.profile, principal.as_str(), ticket)
    }
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

    #[test]
    fn verifies_ids_of_the_same_profile_and_principal_only() {
        let record = Arc::new(SessionRecord::in_memory());
        let (own, ann) = (ids("work", &record), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let can = raw(r#"{"sampling":{},"elicitation":{"form":{}}}"#);
        for version in LEGACY {
            let (id, ticket) = own.issue(&ann, version, &can).unwrap();
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()) && id.len() < 200, "{id}");
            let opened = own.verify(&id, &ann).unwrap();
            assert_eq!(
                (opened.ticket, opened.version, opened.capabilities.get()),
                (ticket, version, can.get())
            );
        }
        let (id, _) = own.issue(&ann, LEGACY[0], &can).unwrap();
        for (profile, principal) in
            [("work", "bob"), ("home", "ann"), ("wor", "kann"), ("worka", "nn"), ("", "")]
        {
            assert!(
                ids(profile, &record)
                    .verify(&id, &PrincipalHandle::new(toolhub_core::Principal::of_key(principal)))
                    .is_none()
            );
        }
        // Another key.
        assert!(ids("work", &Arc::new(SessionRecord::in_memory())).verify(&id, &ann).is_none());
        // Another character at each position.
        for at in 0..id.len() {
            for byte in *b"AB-_=.a9 " {
                let mut forged = id.clone().into_bytes();
                if forged[at] == byte {
                    continue;
                }
                forged[at] = byte;
                let forged = String::from_utf8(forged).unwrap();
                assert!(own.verify(&forged, &ann).is_none(), "{forged}");
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
            assert!(own.verify(forged, &ann).is_none());
        }
    }

    #[test]
    fn issues_no_resumable_id_for_long_capabilities() {
        let own = ids("work", &Arc::new(SessionRecord::in_memory()));
        let ann = PrincipalHandle::new(toolhub_core::Principal::of_key("ann"));
        let of_length = |length: usize| raw(&format!(r#"{{"experimental":"{}"}}"#, "x".repeat(length - 19)));
        let longest = own.issue(&ann, LEGACY[0], &of_length(MAX_CAPABILITIES_BYTES)).unwrap().0;
        assert!(longest.len() <= MAX_ID_LENGTH && own.verify(&longest, &ann).is_some());
        assert!(own.issue(&ann, LEGACY[0], &of_length(MAX_CAPABILITIES_BYTES + 1)).is_none());
    }

    #[test]
    fn rejects_expired_ids_and_unknown_formats() {
        let record = Arc::new(SessionRecord::in_memory());
        let (own, ann) = (ids("work", &record), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let sealed = |format: u8, revision: &str, created: u64, can: &str| {
            let payload =
                [&[format], revision.as_bytes(), &created.to_be_bytes(), &[7; NONCE_BYTES], can.as_bytes()]
                    .concat();
            let tag = hmac::sign(record.key().unwrap(), &own.signed(&ann, &payload));
            own.verify(&URL_SAFE_NO_PAD.encode([tag.as_ref(), &payload].concat()), &ann).is_some()
        };
        let (now, limit) = (now(), RESUMABLE_FOR.as_secs());
        assert!(sealed(FORMAT, LEGACY[0], now, "{}"));
        assert!(sealed(FORMAT, LEGACY[0], now - limit + 60, "{}"));
        assert!(sealed(FORMAT, LEGACY[0], now + 60, "{}"), "the clock was set back");
        assert!(!sealed(FORMAT, LEGACY[0], now - limit, "{}"));
        assert!(!sealed(FORMAT, LEGACY[0], 0, "{}"));
        assert!(!sealed(FORMAT + 1, LEGACY[0], now, "{}"));
        assert!(!sealed(FORMAT, "2026-07-28", now, "{}"));
        assert!(!sealed(FORMAT, LEGACY[0], now, "{"));
        assert!(!sealed(FORMAT, LEGACY[0], now, ""));
    }
}
