//! Session ids that any replica can open: `v1.KEY.` and the data of the session, sealed with AES-256-GCM. `KEY` names the key, so
//! that ids of an earlier key stay valid while it is listed.
//!
//! The raw keys themselves encrypt nothing: every use has a key of its own, derived from them with HKDF under a label.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;
use sha2::{Digest as _, Sha256};
use toolhub_core::Secret;

/// The beginning of every sealed id.
pub(super) const SEALED_ID_PREFIX: &str = "v1.";
/// Maximum length of a sealed id, which is sent with each request.
pub(super) const MAX_ID_LENGTH: usize = 200;
/// The salt of all derivations, which separates them from other programs with the same key.
const DERIVATION_SALT: &[u8] = b"toolhub session keys v1";
/// The use of a derived key.
const ID_LABEL: &[u8] = b"session ids";
/// Number of bytes of the digest of a key that name it.
const KEY_NAME_BYTES: usize = 4;
/// Length of the name of a key in an id.
const KEY_NAME_LENGTH: usize = 6;
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// Maximum number of keys. More are not needed for a rotation, and each costs an attempt to open an id.
pub(super) const MAX_SEALING_KEYS: usize = 8;

/// Maximum length of the sealed data.
pub(super) const MAX_SEALED_BYTES: usize =
    (MAX_ID_LENGTH - SEALED_ID_PREFIX.len() - KEY_NAME_LENGTH - 1) / 4 * 3 - NONCE_LEN - TAG_BYTES;

/// A raw key of 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; KEY_BYTES]);

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey")
    }
}

impl SessionKey {
    /// Reads a key: 256 bits in base64, with or without padding, or in the alphabet of URLs.
    pub fn parse(text: &Secret) -> Option<Self> {
        let text = text.expose().trim().trim_end_matches('=');
        let standard = || STANDARD.decode(format!("{text}=")).ok();
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().or_else(standard)?;
        bytes.try_into().ok().map(Self)
    }

    /// A new key. `None` if the system has no randomness.
    pub(super) fn generate() -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The key of a hub alone, made from its other key, so that there is one secret.
    pub(super) fn derive(from: &hmac::Key) -> Self {
        let tag = hmac::sign(from, b"toolhub session ids, sealed, v1");
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(&tag.as_ref()[..KEY_BYTES]);
        Self(bytes)
    }

    pub(super) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The secret from which the keys of all uses are derived.
    pub(super) fn derivation_secret(&self) -> Prk {
        Salt::new(HKDF_SHA256, DERIVATION_SALT).extract(&self.0)
    }

    /// The name of the key in ids.
    pub(super) fn name(&self) -> String {
        let digest = Sha256::new().chain_update(b"toolhub session key").chain_update(self.0).finalize();
        URL_SAFE_NO_PAD.encode(&digest[..KEY_NAME_BYTES])
    }
}

/// The keys in force: the first seals, all open.
pub(super) struct SealKeys(Vec<(String, LessSafeKey)>);

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl SealKeys {
    pub(super) fn new(keys: &[SessionKey]) -> Option<Self> {
        let sealing = |key: &SessionKey| {
            let unbound = UnboundKey::from(key.derivation_secret().expand(&[ID_LABEL], &AES_256_GCM).ok()?);
            Some((key.name(), LessSafeKey::new(unbound)))
        };
        let keys: Option<Vec<_>> = keys.iter().take(MAX_SEALING_KEYS).map(sealing).collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// Seals data into an id for this context. `None` if the data is too long or the system has no randomness.
    pub(super) fn seal(&self, data: &[u8], context: &[u8]) -> Option<String> {
        let (name, key) = self.0.first()?;
        if data.len() > MAX_SEALED_BYTES {
            return None;
        }
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut sealed = data.to_vec();
        let sealing = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(sealing, Aad::from(bound(name, context)), &mut sealed).ok()?;
        Some(
            [SEALED_ID_PREFIX, name, ".", &URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())]
                .concat(),
        )
    }

    /// Opens an id that was sealed for this context.
    pub(super) fn open(&self, id: &str, context: &[u8]) -> Option<Vec<u8>> {
        if id.len() > MAX_ID_LENGTH {
            return None;
        }
        let (name, sealed) = id.strip_prefix(SEALED_ID_PREFIX)?.split_once('.')?;
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        // Names are digests of four bytes: two keys could have the same one.
        self.0.iter().filter(|(key_name, _)| key_name == name).find_map(|(_, key)| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let opened = key.open_in_place(nonce, Aad::from(bound(name, context)), &mut sealed).ok()?;
            Some(opened.to_vec())
        })
    }
}

/// The data that is bound to an id without being in it.
fn bound(name: &str, context: &[u8]) -> Vec<u8> {
    [SEALED_ID_PREFIX.as_bytes(), name.as_bytes(), b".", context].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&SessionKey]) -> SealKeys {
        SealKeys::new(&keys.iter().map(|key| (*key).clone()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn first_key_seals_and_all_open() {
        let [old, new, other] = [(); 3].map(|()| SessionKey::generate().unwrap());
        let id = keys(&[&old]).seal(b"data", b"context").unwrap();
        assert_eq!(keys(&[&old]).open(&id, b"context").unwrap(), b"data");
        // The old key stays listed for a while.
        assert_eq!(keys(&[&new, &old]).open(&id, b"context").unwrap(), b"data");
        let later = keys(&[&new, &old]).seal(b"data", b"context").unwrap();
        assert!(keys(&[&old]).open(&later, b"context").is_none(), "the first key seals");
        assert!(keys(&[&new]).open(&id, b"context").is_none(), "the old key is not listed any more");
        assert!(keys(&[&other]).open(&id, b"context").is_none());
        assert!(keys(&[&old]).open(&id, b"another context").is_none());
        assert_ne!(keys(&[&old]).seal(b"data", b"context").unwrap(), id, "every id is another one");
    }

    #[test]
    fn raw_key_opens_no_id() {
        let key = SessionKey::generate().unwrap();
        let id = keys(&[&key]).seal(b"data", b"context").unwrap();
        let raw = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key.0).unwrap());
        let raw = SealKeys(vec![(key.name(), raw)]);
        assert!(raw.open(&id, b"context").is_none());
    }

    #[test]
    fn altered_ids_are_rejected() {
        let (key, other) = (SessionKey::generate().unwrap(), SessionKey::generate().unwrap());
        let keys = keys(&[&key, &other]);
        let longest = keys.seal(&[7; MAX_SEALED_BYTES], b"").unwrap();
        assert!(longest.len() <= MAX_ID_LENGTH && keys.open(&longest, b"").is_some(), "{}", longest.len());
        assert!(keys.seal(&[7; MAX_SEALED_BYTES + 1], b"").is_none());
        for at in 0..longest.len() {
            for byte in *b"AB-_=.a9 " {
                let mut altered = longest.clone().into_bytes();
                if altered[at] == byte {
                    continue;
                }
                altered[at] = byte;
                assert!(keys.open(&String::from_utf8(altered).unwrap(), b"").is_none(), "{at}");
            }
        }
        // The name of another key.
        let (_, data) = longest.strip_prefix(SEALED_ID_PREFIX).unwrap().split_once('.').unwrap();
        assert!(keys.open(&format!("{SEALED_ID_PREFIX}{}.{data}", other.name()), b"").is_none());
        for altered in [
            "",
            "v1.",
            "v1..",
            "v1.AAAAAA.",
            &longest[..longest.len() - 1],
            &format!("{longest}A"),
            &format!("{longest}="),
            &longest.replacen("v1", "v2", 1),
            &"A".repeat(1 << 20),
        ] {
            assert!(keys.open(altered, b"").is_none());
        }
    }

    #[test]
    fn keys_have_256_bits() {
        let key = SessionKey([0xfb; KEY_BYTES]);
        let parse = |text: &str| SessionKey::parse(&Secret::new(text.to_owned()));
        let standard = STANDARD.encode(key.0);
        for text in [&standard, &key.to_text(), standard.trim_end_matches('='), &format!("{standard}\n")] {
            assert!(parse(text) == Some(key.clone()), "{text}");
        }
        for text in ["", "AAAA", &STANDARD.encode([1; 31]), &STANDARD.encode([1; 33]), "secret"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(SealKeys::new(&[]).is_none());
        assert_eq!(format!("{key:?}"), "SessionKey");
    }
}
