//! The key that encrypts stored logins: in the system keyring if there is a working one, otherwise in a file that only the owner
//! can read.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use toolhub_private_files::{SyncMode, create_private};
use zeroize::Zeroizing;

use crate::error::OAuthError;
use crate::keyring::Keyring;

/// The entry of the keyring.
const KEYRING_ENTRY: &str = "key of tokens.json";
const KEY_BYTES: usize = 32;

/// Where the key is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyPlace {
    Keyring,
    File,
}

/// The key of the stored logins.
pub(crate) struct TokenKey(LessSafeKey);

impl TokenKey {
    /// Generates a key and stores it. A file is never replaced: if it exists, its key is used.
    pub(crate) async fn create(keyring: &Keyring, file: &Path) -> Result<(Self, KeyPlace), OAuthError> {
        if !file.exists() {
            let text = encode(&*random::<KEY_BYTES>()?);
            if keyring.write(KEYRING_ENTRY, &text).await {
                return Ok((Self::decode(&text).ok_or_else(invalid)?, KeyPlace::Keyring));
            }
            write_new(file, &text)?;
        }
        Ok((Self::load(KeyPlace::File, keyring, file).await?, KeyPlace::File))
    }

    /// Loads the key from where it was stored.
    pub(crate) async fn load(place: KeyPlace, keyring: &Keyring, file: &Path) -> Result<Self, OAuthError> {
        let text = match place {
            KeyPlace::Keyring => keyring.read(KEYRING_ENTRY).await.ok_or_else(|| {
                OAuthError::Store(
                    "the logins are encrypted with a key in the system keyring, which does not answer"
                        .to_owned(),
                )
            })?,
            KeyPlace::File => read_private(file)?,
        };
        Self::decode(&text).ok_or_else(invalid)
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64.decode(text.trim()).ok()?);
        UnboundKey::new(&AES_256_GCM, &bytes).ok().map(|key| Self(LessSafeKey::new(key)))
    }

    /// Encrypts a text under a name. It can be decrypted under the same name only, so that entries cannot be exchanged.
    pub(crate) fn encrypt(&self, name: &str, text: &str) -> Result<String, OAuthError> {
        let nonce = random::<NONCE_LEN>()?;
        let mut bytes = Zeroizing::new(text.as_bytes().to_vec());
        let tag = self
            .0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(*nonce), Aad::from(name), &mut bytes)
            .map_err(|_| OAuthError::Store("a login cannot be encrypted".to_owned()))?;
        Ok(BASE64.encode([&nonce[..], &bytes, tag.as_ref()].concat()))
    }

    /// Decrypts a text; `None` if it was changed, or encrypted with another key or under another name.
    pub(crate) fn decrypt(&self, name: &str, text: &str) -> Option<Zeroizing<String>> {
        let mut bytes = Zeroizing::new(BASE64.decode(text).ok()?);
        let (nonce, rest) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, Aad::from(name), rest).ok()?;
        std::str::from_utf8(plain).ok().map(|text| Zeroizing::new(text.to_owned()))
    }
}

fn invalid() -> OAuthError {
    OAuthError::Store(
        "the key of the stored logins is damaged: remove `tokens.json` and `tokens.key`, and log in again"
            .to_owned(),
    )
}

fn encode(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(BASE64.encode(bytes))
}

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, OAuthError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes)
        .map_err(|error| OAuthError::Config(format!("this system gives no random numbers: {error}")))?;
    Ok(bytes)
}

fn failed(file: &Path, error: &std::io::Error) -> OAuthError {
    OAuthError::Store(format!("`{}`: {error}", file.display()))
}

/// Writes a file that only the owner can read; another process may have been faster.
fn write_new(file: &Path, text: &str) -> Result<(), OAuthError> {
    match create_private(file, text.as_bytes(), SyncMode::File) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(file, &error)),
        _ => Ok(()),
    }
}

/// Reads the key file, unless others can read it too.
fn read_private(file: &Path) -> Result<Zeroizing<String>, OAuthError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).map_err(|error| failed(file, &error))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(OAuthError::Store(format!(
                "other users can read `{}`: run `chmod 600` on it, or remove it together with `tokens.json` and log in again",
                file.display()
            )));
        }
    }
    std::fs::read_to_string(file).map(Zeroizing::new).map_err(|error| failed(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TokenKey {
        TokenKey::decode(&encode(&*random::<KEY_BYTES>().unwrap())).unwrap()
    }

    #[test]
    fn decrypts_only_what_it_encrypted_under_the_same_name() {
        let (one, other) = (key(), key());
        let sealed = one.encrypt("notes key:ann", "token").unwrap();
        assert_eq!(one.decrypt("notes key:ann", &sealed).unwrap().as_str(), "token");
        assert!(one.decrypt("notes key:bob", &sealed).is_none());
        assert!(other.decrypt("notes key:ann", &sealed).is_none());
        assert_ne!(one.encrypt("notes key:ann", "token").unwrap(), sealed, "each text has its own nonce");
        let mut bytes = BASE64.decode(&sealed).unwrap();
        for index in 0..bytes.len() {
            bytes[index] ^= 1;
            assert!(one.decrypt("notes key:ann", &BASE64.encode(&bytes)).is_none(), "byte {index}");
            bytes[index] ^= 1;
        }
        for text in ["", "AAAA", "no base64!"] {
            assert!(one.decrypt("notes key:ann", text).is_none());
        }
    }
}
