//! The signing key of the audit log and the files beside it: the accepted public keys, and the head, which is the last
//! checkpoint outside of the database.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolhub_audit::{Chain, Checkpoint, CheckpointKind, KeyError, LogId, SigningKey, TrustedKeys};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_private_files::{
    SyncMode, create_private, create_private_parent, open_private_file, replace_private,
};

use crate::error::OpenError;
use crate::options::AuditOptions;
use crate::rows::unix_micros;

/// Maximum size of the files: a key has 65 bytes, a head about 300.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Signs checkpoints.
#[derive(Debug)]
pub(crate) struct Auditor {
    key: SigningKey,
    file: PathBuf,
    retention: Duration,
}

impl Auditor {
    /// Reads the key, or creates it.
    pub(crate) fn open(options: &AuditOptions) -> Result<Self, OpenError> {
        let unusable = |why: LocalizedText| OpenError::AuditKey { path: options.key.clone(), why };
        let io_error = |error: io::Error| unusable(error.to_string().into());
        let text = match read(&options.key).map_err(io_error)? {
            Some(text) => text,
            None => {
                let text = SigningKey::generate().map_err(|error| unusable(key_problem(error)))?;
                create(&options.key, &format!("{text}\n")).map_err(io_error)?;
                // Another process may have created it first.
                read(&options.key).map_err(io_error)?.unwrap_or(text)
            }
        };
        check_mode(&options.key).map_err(unusable)?;
        let key = SigningKey::from_text(&text).map_err(|error| unusable(key_problem(error)))?;
        let auditor = Self { key, file: options.key.clone(), retention: options.retention };
        auditor.list_public_key().map_err(io_error)?;
        Ok(auditor)
    }

    /// The signing key.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// How long records are kept.
    pub(crate) fn retention(&self) -> Duration {
        self.retention
    }

    /// The public keys whose checkpoints are accepted.
    pub(crate) fn trusted_keys(&self) -> Result<TrustedKeys, StoreError> {
        let path = beside(&self.file, "pub");
        let text = read(&path).map_err(|error| unreadable(&path, &error))?.unwrap_or_default();
        Ok(TrustedKeys::from_lines(&text))
    }

    /// The last checkpoint as the head file states it.
    pub(crate) fn head(&self) -> Result<Option<Checkpoint>, StoreError> {
        let path = beside(&self.file, "head");
        let Some(text) = read(&path).map_err(|error| unreadable(&path, &error))? else { return Ok(None) };
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it is not a checkpoint");
        Checkpoint::from_json(&text).map(Some).ok_or_else(|| unreadable(&path, &invalid()))
    }

    /// Replaces the head by a committed checkpoint, unless it is newer. Uncommitted ones must never get there: the log
    /// would seem truncated.
    pub(crate) fn store_head(&self, checkpoint: &Checkpoint) {
        let newer = |head: &Checkpoint| head.log == checkpoint.log && head.sequence >= checkpoint.sequence;
        if self.head().ok().flatten().as_ref().is_some_and(newer) {
            return;
        }
        let text = format!("{}\n", checkpoint.to_json());
        // If this fails, the previous head stays, which finds less; the next checkpoint tries again.
        let _ = replace_private(&beside(&self.file, "head"), text.as_bytes(), SyncMode::File);
    }

    /// Signs a checkpoint at the end of a chain.
    pub(crate) fn sign(&self, log: LogId, kind: CheckpointKind, chain: Chain) -> Checkpoint {
        self.key.sign(Checkpoint {
            log,
            kind,
            sequence: chain.sequence,
            hash: chain.hash,
            micros: unix_micros(SystemTime::now()).unsigned_abs(),
            key: String::new(),
            signature: Vec::new(),
        })
    }

    /// Adds the public key to the accepted ones. Earlier keys stay, so that their checkpoints remain valid.
    fn list_public_key(&self) -> io::Result<()> {
        let path = beside(&self.file, "pub");
        let text = read(&path)?.unwrap_or_default();
        if TrustedKeys::from_lines(&text).keys().contains(&self.key.public()) {
            return Ok(());
        }
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let mut file = open_private_file(&path, OpenOptions::new().append(true).create(true))?;
        file.write_all(format!("{separator}{} toolhub\n", self.key.public()).as_bytes())
    }
}

/// The error of appending to a log that is off.
pub(crate) fn disabled() -> StoreError {
    StoreError(LocalizedText::new(
        "it was opened without the audit log, so that the event cannot be recorded",
        "打开存储时未启用审计日志，无法记录该事件",
    ))
}

fn key_problem(error: KeyError) -> LocalizedText {
    use toolhub_core::lang::{Lang, Localize as _};
    LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))
}

fn unreadable(path: &Path, error: &io::Error) -> StoreError {
    StoreError(LocalizedText::new(
        format!("`{}` cannot be read: {error}", path.display()),
        format!("无法读取 `{}`：{error}", path.display()),
    ))
}

/// The file beside the key with this extension instead of `key`.
fn beside(key: &Path, extension: &str) -> PathBuf {
    key.with_extension(extension)
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match open_private_file(path, File::options().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Creates a file with its whole content, unless it exists.
fn create(path: &Path, text: &str) -> io::Result<()> {
    create_private_parent(path)?;
    match create_private(path, text.as_bytes(), SyncMode::File) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Rejects a key that other users can read.
#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), LocalizedText> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = path.metadata().map_err(|error| LocalizedText::from(error.to_string()))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(LocalizedText::new(
        format!("other users may read it (mode {:o}): run `chmod 600` on it", mode & 0o7777),
        format!("其他用户可以读取它（权限 {:o}）：请对它执行 `chmod 600`", mode & 0o7777),
    ))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
fn check_mode(_: &Path) -> Result<(), LocalizedText> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(folder: &Path) -> AuditOptions {
        AuditOptions::new(folder.join("audit.key"))
    }

    #[test]
    fn creates_a_private_key_once_and_lists_its_public_key() {
        let folder = tempfile::tempdir().unwrap();
        let first = Auditor::open(&options(folder.path())).unwrap();
        let second = Auditor::open(&options(folder.path())).unwrap();
        assert_eq!(first.key.public(), second.key.public());
        assert_eq!(second.trusted_keys().unwrap(), TrustedKeys::new([first.key.public()]));
        #[cfg(unix)]
        for file in ["audit.key", "audit.pub"] {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = folder.path().join(file).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        // A new key is added to the earlier ones.
        std::fs::remove_file(folder.path().join("audit.key")).unwrap();
        let third = Auditor::open(&options(folder.path())).unwrap();
        assert_eq!(third.trusted_keys().unwrap().keys(), [first.key.public(), third.key.public()]);
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 2, "no temporary files");
    }

    #[cfg(unix)]
    #[test]
    fn rejects_a_key_that_others_can_read_and_one_that_is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.key");
        drop(Auditor::open(&options(folder.path())).unwrap());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = Auditor::open(&options(folder.path())).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "not a key").unwrap();
        let error = Auditor::open(&options(folder.path())).unwrap_err().to_string();
        assert!(error.contains("hexadecimal"), "{error}");
    }

    #[test]
    fn head_only_moves_forward() {
        let folder = tempfile::tempdir().unwrap();
        let auditor = Auditor::open(&options(folder.path())).unwrap();
        assert_eq!(auditor.head().unwrap(), None);
        let log = LogId([1; 16]);
        let at = |sequence| {
            let chain = Chain { sequence, hash: log.genesis() };
            auditor.sign(log, CheckpointKind::Progress, chain)
        };
        for (stored, expected) in [(5, 5), (9, 9), (7, 9)] {
            auditor.store_head(&at(stored));
            assert_eq!(auditor.head().unwrap().unwrap().sequence, expected);
        }
        std::fs::write(folder.path().join("audit.head"), "{}").unwrap();
        assert!(auditor.head().is_err(), "a damaged head must not pass for none");
    }
}
