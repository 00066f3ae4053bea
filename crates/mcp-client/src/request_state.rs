//! Binds the `requestState` of a server to the principal and the request that it was issued for (2026-07-28, patterns/mrtr).
//! Clients receive a signed token instead; the server gets its own state back, byte for byte.
//!
//! A token holds the state and an HMAC-SHA256 over the state and its target, so that nothing is stored. Replicas of one hub share keys,
//! since a client may repeat its request at any of them. Otherwise the key is generated once per process: after a restart a client has
//! to repeat its request from the start.

use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;
use toolhub_core::RawJson;
use toolhub_mcp_wire::length_prefixed;

/// The prefix of every token. Tokens of requests that wait in the gateway itself start with `toolhub.`.
const TOKEN_PREFIX: &str = "toolhub-state.";

/// The key of this process. `None` if the system provides no randomness: then no token of this process is valid.
static PROCESS_KEY: LazyLock<Option<Key>> =
    LazyLock::new(|| Key::generate(HMAC_SHA256, &SystemRandom::new()).ok());
/// The keys of all replicas: the first signs, all verify.
static REPLICA_KEYS: OnceLock<Vec<Key>> = OnceLock::new();

/// Uses keys that other replicas use, too: the first signs, all verify. Only the first call has an effect.
pub fn share_state_keys(keys: Vec<Key>) {
    let _ = REPLICA_KEYS.set(keys);
}

/// All keys, the one that signs first.
fn keys() -> impl Iterator<Item = &'static Key> {
    REPLICA_KEYS.get().into_iter().flatten().chain(PROCESS_KEY.as_ref())
}

/// The principal and request that a state was issued for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateTarget<'a> {
    /// `None` if clients are not authenticated.
    pub(crate) principal: Option<&'a str>,
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    /// The tool, prompt or resource, as the server names it.
    pub(crate) name: Option<&'a str>,
}

impl StateTarget<'_> {
    /// Creates the token for a state of the server.
    pub(crate) fn seal(&self, state: &RawJson) -> String {
        match keys().next() {
            Some(key) => self.seal_with(key, state),
            None => TOKEN_PREFIX.to_owned(),
        }
    }

    fn seal_with(&self, key: &Key, state: &RawJson) -> String {
        let tag = hmac::sign(key, &self.signed(state.get()));
        let (tag, state) = (URL_SAFE_NO_PAD.encode(tag), URL_SAFE_NO_PAD.encode(state.get()));
        [TOKEN_PREFIX, &tag, ".", &state].concat()
    }

    /// The state of a token; `None` unless the token was issued for this target.
    pub(crate) fn open(&self, token: &RawJson) -> Option<RawJson> {
        self.open_with(keys(), token)
    }

    fn open_with<'k>(&self, mut keys: impl Iterator<Item = &'k Key>, token: &RawJson) -> Option<RawJson> {
        let token = token.text()?;
        let (tag, state) = token.strip_prefix(TOKEN_PREFIX)?.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        let state = String::from_utf8(URL_SAFE_NO_PAD.decode(state).ok()?).ok()?;
        let signed = self.signed(&state);
        keys.find(|key| hmac::verify(key, &signed, &tag).is_ok())?;
        RawJson::parse(state).ok()
    }

    fn signed(&self, state: &str) -> Vec<u8> {
        let parts = [self.principal, Some(self.server), Some(self.method), self.name, Some(state)];
        length_prefixed(parts.map(|part| part.map(str::as_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: StateTarget<'static> =
        StateTarget { principal: Some("ann"), server: "bank", method: "tools/call", name: Some("pay") };

    fn token(text: &str) -> RawJson {
        RawJson::from(text)
    }

    #[test]
    fn returns_state_byte_for_byte_to_the_same_target() {
        for text in [r#""1""#, r#""\u0031 é""#, r#""""#, "17", r#"{"a" : 1e2}"#] {
            let state = RawJson::parse(text).unwrap();
            let sealed = token(&ANN.seal(&state));
            assert_eq!(ANN.open(&sealed).unwrap().get(), text);
        }
    }

    #[test]
    fn token_of_another_replica_opens_with_a_shared_key_alone() {
        let keys = [1_u8, 2, 3].map(|byte| Key::new(HMAC_SHA256, &[byte; 32]));
        let state = RawJson::from("1");
        let sealed = token(&ANN.seal_with(&keys[0], &state));
        assert_eq!(ANN.open_with([&keys[1], &keys[0]].into_iter(), &sealed).unwrap().get(), state.get());
        assert!(ANN.open_with([&keys[1], &keys[2]].into_iter(), &sealed).is_none());
        assert!(ANN.open(&sealed).is_none());
    }

    #[test]
    fn rejects_token_of_another_target_and_forged_tokens() {
        let sealed = ANN.seal(&RawJson::from("1"));
        for other in [
            StateTarget { principal: Some("bob"), ..ANN },
            StateTarget { principal: None, ..ANN },
            StateTarget { principal: Some(""), ..ANN },
            StateTarget { server: "other", ..ANN },
            StateTarget { method: "prompts/get", ..ANN },
            StateTarget { name: Some("refund"), ..ANN },
            StateTarget { name: None, ..ANN },
            StateTarget { principal: Some("annb"), server: "ank", ..ANN },
        ] {
            assert!(other.open(&token(&sealed)).is_none(), "{other:?}");
        }
        let (head, state) = sealed.rsplit_once('.').unwrap();
        let another = URL_SAFE_NO_PAD.encode(r#""2""#);
        for forged in [
            "1".to_owned(),
            state.to_owned(),
            format!("{head}.{another}"),
            format!("{head}.{state}="),
            format!("{TOKEN_PREFIX}.{state}"),
            TOKEN_PREFIX.to_owned(),
            format!(" {sealed}"),
        ] {
            assert!(ANN.open(&token(&forged)).is_none(), "{forged}");
        }
        assert!(ANN.open(&RawJson::from(1)).is_none());
    }
}
