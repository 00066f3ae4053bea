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
const PATIENCE: Duration = Duration::from_secs(30);

/// The attributes of a keyring entry.
#[cfg_attr(windows, expect(dead_code, reason = "there is no keyring to ask"))]
struct Entry {
    home: String,
    key: String,
}

/// The system keyring.
#[derive(Debug)]
pub(crate) struct Keyring {
    /// The data folder: each folder has its own logins.
    home: String,
    /// Set after a timeout: the keyring is not used again, since every call would wait for it.
    silent: AtomicBool,
}

impl Keyring {
    pub(crate) fn new(home: &Path) -> Self {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        Self { home: home.to_string_lossy().into_owned(), silent: AtomicBool::new(!system::is_there()) }
    }

    async fn ask<T>(&self, work: impl Future<Output = Option<T>>) -> Option<T> {
        if self.silent.load(Ordering::Relaxed) {
            return None;
        }
        let answer = tokio::time::timeout(PATIENCE, work).await;
        self.silent.store(answer.is_err(), Ordering::Relaxed);
        answer.ok().flatten()
    }

    fn entry(&self, key: &str) -> Entry {
        Entry { home: self.home.clone(), key: key.to_owned() }
    }

    /// Reads the text stored under a key.
    pub(crate) async fn read(&self, key: &str) -> Option<Zeroizing<String>> {
        self.ask(system::read(&self.entry(key))).await
    }

    /// Stores a text under a key. Returns whether it can be read back, since some keyrings truncate long texts.
    pub(crate) async fn write(&self, key: &str, text: &str) -> bool {
        let entry = self.entry(key);
        let kept = self.ask(async {
            system::write(&entry, text).await?;
            (system::read(&entry).await?.as_str() == text).then_some(())
        });
        let kept = kept.await.is_some();
        if !kept {
            self.ask(system::remove(&entry)).await;
        }
        kept
    }

    /// Removes the entry of a key.
    pub(crate) async fn remove(&self, key: &str) {
        self.ask(system::remove(&self.entry(key))).await;
    }
}
