//! A configuration file that is read, edited and written under a lock against other hubs.

use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::write::{FileLock, lock_file, write_atomically};

/// A file with its lock, held until drop.
#[derive(Debug)]
pub struct LockedFile {
    file: PathBuf,
    text: String,
    _lock: FileLock,
}

impl LockedFile {
    /// Locks and reads a file, which need not exist.
    pub fn open(file: &Path) -> Result<Self, ConfigError> {
        let lock = lock_file(file)?;
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ConfigError::io(file, &error)),
        };
        Ok(Self { file: file.to_owned(), text, _lock: lock })
    }

    /// The content when it was opened.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the file if the text has changed. Returns whether it has.
    pub fn write(&self, text: &str) -> Result<bool, ConfigError> {
        if text == self.text {
            return Ok(false);
        }
        write_atomically(&self.file, text)?;
        Ok(true)
    }
}
