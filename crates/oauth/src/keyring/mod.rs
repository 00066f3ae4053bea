//! The system keyring, if there is a working one. If it is missing or does not answer, the store keeps the login in its file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zeroize::Zeroizing;

#[cfg_attr(target_os = "macos", path = "keychain.rs")]
#[cfg_attr(windows, path = "none.rs")]
#[cfg_attr(not(any(target_os = "macos", windows)), path = "secret_tool.rs")]
mod system;

/// Timeout of the keyring, which may prompt the user to unlock it.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(30);

/// The attributes of a keyring entry.
#[cfg_attr(windows, expect(dead_code, reason = "Windows has no keyring support"))]
struct KeyringEntry {
    home: String,
    key: String,
}

/// The system keyring.
#[derive(Debug)]
pub(crate) struct Keyring {
    /// The data folder: each folder has its own logins.
    home: String,
    /// Set after a timeout: the keyring is not used again, since every call would wait for it.
    unresponsive: AtomicBool,
}

impl Keyring {
    pub(crate) fn new(home: &Path) -> Self {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        Self {
            home: home.to_string_lossy().into_owned(),
            unresponsive: AtomicBool::new(!system::is_available()),
        }
    }

    async fn with_timeout<T>(&self, work: impl Future<Output = Option<T>>) -> Option<T> {
        if self.unresponsive.load(Ordering::Relaxed) {
            return None;
        }
        let answer = tokio::time::timeout(KEYRING_TIMEOUT, work).await;
        self.unresponsive.store(answer.is_err(), Ordering::Relaxed);
        answer.ok().flatten()
    }

    fn entry(&self, key: &str) -> KeyringEntry {
        KeyringEntry { home: self.home.clone(), key: key.to_owned() }
    }

    /// Reads the text stored under a key.
    pub(crate) async fn read(&self, key: &str) -> Option<Zeroizing<String>> {
        self.with_timeout(system::read(&self.entry(key))).await
    }

    /// Stores a text under a key. Returns whether it can be read back, since some keyrings truncate long texts.
    pub(crate) async fn write(&self, key: &str, text: &str) -> bool {
        let entry = self.entry(key);
        let stored = self.with_timeout(async {
            system::write(&entry, text).await?;
            (system::read(&entry).await?.as_str() == text).then_some(())
        });
        let stored = stored.await.is_some();
        if !stored {
            self.with_timeout(system::remove(&entry)).await;
        }
        stored
    }

    /// Removes the entry of a key.
    pub(crate) async fn remove(&self, key: &str) {
        self.with_timeout(system::remove(&self.entry(key))).await;
    }
}
