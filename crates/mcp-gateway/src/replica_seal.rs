//! Protects requests between replicas: each has keys of its own, derived from the session keys, so that only a replica of the same
//! cluster can make a request, and its parts cannot be read, altered, reordered or moved to another request.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::Prk;
use ring::hmac;
use toolhub_mcp_wire::length_prefixed;

use crate::session_seal::{MAX_SEALING_KEYS, SessionKey};

/// The uses of the derived keys.
const REQUEST_LABEL: &[u8] = b"requests between replicas";
const RESPONSE_LABEL: &[u8] = b"responses between replicas";
const STATE_LABEL: &[u8] = b"states of servers";
/// Length of the name of a key.
const NAME_LENGTH: usize = 6;
/// Length of the random value that makes the keys of each request different.
const SALT_BYTES: usize = 16;

/// The secrets from which the keys of requests are derived: the first seals, all open.
pub struct ReplicaSeal(Vec<(String, Prk)>);

impl std::fmt::Debug for ReplicaSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl ReplicaSeal {
    pub(super) fn new(keys: &[SessionKey]) -> Option<Self> {
        let derive = |key: &SessionKey| (key.name(), key.derivation_secret());
        let keys: Vec<_> = keys.iter().take(MAX_SEALING_KEYS).map(derive).collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Seals a request, bound to `context`. `None` if the system has no randomness.
    pub fn seal(&self, request: &[u8], context: &[u8]) -> Option<(Vec<u8>, ResponseSeal)> {
        let (name, secret) = self.0.first()?;
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).ok()?;
        let binding = Binding { name, salt: &salt, context };
        let sealed = seal(&binding.key(secret, REQUEST_LABEL)?, 0, request)?;
        let message = [name.as_bytes(), &salt, &sealed].concat();
        Some((message, ResponseSeal(binding.key(secret, RESPONSE_LABEL)?)))
    }

    /// Keys with which all replicas sign the states of servers that clients return: the first signs, all verify.
    pub fn state_keys(&self) -> Vec<hmac::Key> {
        let derive = |(name, secret): &(String, Prk)| {
            let info = length_prefixed([STATE_LABEL, name.as_bytes()].map(Some));
            let info = [info.as_slice()];
            let key = secret.expand(&info, hmac::HMAC_SHA256).ok()?;
            Some(hmac::Key::from(key))
        };
        self.0.iter().filter_map(derive).collect()
    }

    /// Opens a request that was sealed for this context.
    pub fn open(&self, message: &[u8], context: &[u8]) -> Option<(Vec<u8>, ResponseSeal)> {
        let (name, rest) = message.split_at_checked(NAME_LENGTH)?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>()?;
        // Names are digests of four bytes: two keys could have the same one.
        self.0.iter().filter(|(key_name, _)| key_name.as_bytes() == name).find_map(|(name, secret)| {
            let binding = Binding { name, salt, context };
            let request = open(&binding.key(secret, REQUEST_LABEL)?, 0, sealed)?;
            Some((request, ResponseSeal(binding.key(secret, RESPONSE_LABEL)?)))
        })
    }
}

/// The key of the response to one request. The parts of the response are numbered; the sender seals each number once.
pub struct ResponseSeal(LessSafeKey);

impl std::fmt::Debug for ResponseSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResponseSeal")
    }
}

impl ResponseSeal {
    /// Seals a part.
    pub fn seal(&self, number: u64, part: &[u8]) -> Option<Vec<u8>> {
        seal(&self.0, number, part)
    }

    /// Opens a part.
    pub fn open(&self, number: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        open(&self.0, number, sealed)
    }
}

/// What the keys of a request are bound to.
struct Binding<'a> {
    name: &'a str,
    salt: &'a [u8; SALT_BYTES],
    context: &'a [u8],
}

impl Binding<'_> {
    fn key(&self, secret: &Prk, label: &[u8]) -> Option<LessSafeKey> {
        let parts = [label, self.name.as_bytes(), self.salt.as_slice(), self.context];
        let info = length_prefixed(parts.map(Some));
        let info = [info.as_slice()];
        let key = secret.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }
}

/// The nonce is the number: a key belongs to one request, and seals each number once.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

fn seal(key: &LessSafeKey, number: u64, part: &[u8]) -> Option<Vec<u8>> {
    let mut sealed = part.to_vec();
    key.seal_in_place_append_tag(nonce(number), Aad::empty(), &mut sealed).ok()?;
    Some(sealed)
}

fn open(key: &LessSafeKey, number: u64, sealed: &[u8]) -> Option<Vec<u8>> {
    let mut sealed = sealed.to_vec();
    let length = key.open_in_place(nonce(number), Aad::empty(), &mut sealed).ok()?.len();
    sealed.truncate(length);
    Some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal_of(keys: &[&SessionKey]) -> ReplicaSeal {
        ReplicaSeal::new(&keys.iter().map(|key| (*key).clone()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn requests_and_responses_open_with_their_keys_and_context_alone() {
        let [old, new, other] = [(); 3].map(|()| SessionKey::generate().unwrap());
        let (message, sender) = seal_of(&[&new, &old]).seal(b"request", b"context").unwrap();
        let (request, receiver) = seal_of(&[&old, &new]).open(&message, b"context").unwrap();
        assert_eq!(request, b"request");
        let parts = [0, 1].map(|number| receiver.seal(number, b"part").unwrap());
        assert_ne!(parts[0], parts[1]);
        assert_eq!(sender.open(0, &parts[0]).unwrap(), b"part");
        // Not at another place, nor of another request with the same contents.
        assert!(sender.open(1, &parts[0]).is_none());
        let (_, second) = seal_of(&[&new]).seal(b"request", b"context").unwrap();
        assert!(second.open(0, &parts[0]).is_none());
        // A request is no response.
        let sealed = &message[NAME_LENGTH + SALT_BYTES..];
        assert!(sender.open(0, sealed).is_none());
        assert!(seal_of(&[&new]).open(&message, b"another context").is_none());
        assert!(seal_of(&[&old, &other]).open(&message, b"context").is_none());
        assert!(ReplicaSeal::new(&[]).is_none());
    }

    #[test]
    fn altered_requests_are_rejected() {
        let key = SessionKey::generate().unwrap();
        let seal = seal_of(&[&key]);
        let (message, _) = seal.seal(b"request", b"").unwrap();
        for at in 0..message.len() {
            let mut altered = message.clone();
            altered[at] ^= 1;
            assert!(seal.open(&altered, b"").is_none(), "{at}");
            assert!(seal.open(&message[..at], b"").is_none(), "{at}");
        }
    }
}
