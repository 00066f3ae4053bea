//! The folder of a model: reads its small files completely, up to a size limit; errors name the file.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::embedding::EmbeddingError;
use crate::vector_cache::Fingerprint;

/// Maximum file size; the largest vocabularies have about ten megabytes.
const MAX_FILE_BYTES: u64 = 32 << 20;

pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn open(&self, name: &str) -> Result<File, EmbeddingError> {
        File::open(self.path(name)).map_err(|source| self.io_error(name, source))
    }

    /// The text of a file; `None` if it does not exist.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, EmbeddingError> {
        let file = match File::open(self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io_error(name, error)),
        };
        let mut text = String::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
        let length = read.map_err(|source| self.io_error(name, source))?;
        if u64::try_from(length).is_ok_and(|length| length <= MAX_FILE_BYTES) {
            Ok(Some(text))
        } else {
            Err(self.wrong(name, format!("has more than {} MB", MAX_FILE_BYTES >> 20)))
        }
    }

    /// The parsed JSON of a file; `None` if it does not exist.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, EmbeddingError> {
        let read = |text: String| serde_json::from_str(&text).map_err(|error| self.wrong(name, error));
        self.text(name)?.map(read).transpose()
    }

    /// The hash of those of these files that exist.
    pub(super) fn fingerprint(&self, names: &[&str]) -> Result<Fingerprint, EmbeddingError> {
        let mut all = Vec::new();
        for name in names {
            let mut hash = Sha256::new();
            match File::open(self.path(name))
                .and_then(|mut file| io::copy(&mut file, &mut HashWriter(&mut hash)))
            {
                Ok(_) => all.push(hash.finalize().to_vec()),
                Err(error) if error.kind() == ErrorKind::NotFound => all.push(Vec::new()),
                Err(error) => return Err(self.io_error(name, error)),
            }
        }
        Ok(Fingerprint::of(all))
    }

    pub(super) fn io_error(&self, name: &str, source: io::Error) -> EmbeddingError {
        EmbeddingError::File { path: self.path(name).display().to_string(), source }
    }

    /// The error for a file with invalid content.
    pub(super) fn wrong(&self, name: &str, what: impl std::fmt::Display) -> EmbeddingError {
        EmbeddingError::Model(format!("`{}`: {what}", self.path(name).display()))
    }
}

/// Adapter that copies a file into a hash.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
