//! An advisory file lock across processes, held while the file is open, so that the system releases it when the process exits.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;
use toolhub_core::hex;
use toolhub_private_files::create_private_parent;

use crate::error::OAuthError;

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A lock, released on drop.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why the lock could not be taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process still holds it.
    Held(OAuthError),
    /// Locks are not possible here, for example in a read-only folder.
    Impossible(OAuthError),
}

impl From<LockError> for OAuthError {
    fn from(why: LockError) -> Self {
        match why {
            LockError::Held(error) | LockError::Impossible(error) => error,
        }
    }
}

impl Lock {
    /// Takes the lock on `file`, waiting up to `timeout`.
    pub(crate) async fn take(file: PathBuf, timeout: Duration) -> Result<Self, LockError> {
        let error = |why: String| OAuthError::Store(format!("`{}`: {why}", file.display()));
        let failed = |why: std::io::Error| LockError::Impossible(error(why.to_string()));
        create_private_parent(&file).map_err(failed)?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = options.open(&file).map_err(failed)?;
        let end = Instant::now() + timeout;
        loop {
            match opened.try_lock() {
                Ok(()) => return Ok(Self { _file: opened }),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held(error("another toolhub process holds the lock".to_owned())));
                }
                Err(TryLockError::Error(why)) => return Err(failed(why)),
            }
        }
    }
}

/// A short hash of a text, usable as a file name.
pub(crate) fn hash_of(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lock_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/x.lock");
        let lock = Lock::take(file.clone(), Duration::ZERO).await.unwrap();
        let LockError::Held(error) = Lock::take(file.clone(), Duration::ZERO).await.unwrap_err() else {
            panic!()
        };
        assert!(error.to_string().contains("another toolhub process holds the lock"), "{error}");
        drop(lock);
        Lock::take(file.clone(), Duration::ZERO).await.unwrap();
        let impossible = Lock::take(file.join("under/a/file"), Duration::ZERO).await;
        assert!(matches!(impossible, Err(LockError::Impossible(_))), "{impossible:?}");
    }
}
