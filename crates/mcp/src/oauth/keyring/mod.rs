//! The system's keyring, where there is one that works. Where there is none, or it does not answer, nothing is lost:
//! the store keeps the login in its file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zeroize::Zeroizing;

#[cfg_attr(target_os = "macos", path = "keychain.rs")]
#[cfg_attr(windows, path = "none.rs")]
#[cfg_attr(not(any(target_os = "macos", windows)), path = "secret_tool.rs")]
mod system;

/// How long the keyring may take; it may be asking the user to unlock it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a text is kept under.
#[cfg_attr(windows, expect(dead_code, reason = "there is no keyring to ask"))]
struct Entry {
    home: String,
    key: String,
}

/// The system's keyring.
#[derive(Debug)]
pub(crate) struct Keyring {
    /// Which data folder this is about: two folders have two logins.
    home: String,
    /// Once it did not answer it is not asked again: every call would wait for it.
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

    /// What is kept under a key.
    pub(crate) async fn read(&self, key: &str) -> Option<Zeroizing<String>> {
        self.ask(system::read(&self.entry(key))).await
    }

    /// Keeps a text under a key; whether it can be read again. Some keyrings cut what is long.
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

    /// Forgets what is kept under a key.
    pub(crate) async fn remove(&self, key: &str) {
        self.ask(system::remove(&self.entry(key))).await;
    }
}
