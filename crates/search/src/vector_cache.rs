//! Vector cache file: stores vectors by model and text, bounded in size, written atomically.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use toolhub_private_files::{SyncMode, create_private_parent, replace_private};

/// The file signature. Other layouts use another number.
const MAGIC: &[u8; 16] = b"toolhub-vectors1";
/// Maximum number of vectors, more than any catalog has; about 50 MB with 384 dimensions.
const MAX_VECTORS: usize = 32_768;
/// Maximum file size; larger files are not ours.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// Signature, model, size of a vector, number of vectors.
const HEADER_BYTES: usize = 16 + 32 + 4 + 4;
const KEY_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;

/// Identifies the model of a vector: its weights and vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// The hash of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TextHash([u8; KEY_BYTES]);

impl TextHash {
    pub(crate) fn of(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// A cache file of the vectors of one model. An unreadable cache is rebuilt; if it cannot be written, the next run
/// computes the vectors again.
#[derive(Debug, Clone)]
pub struct VectorCache {
    file: PathBuf,
    model: Fingerprint,
}

/// Keys with their vectors, most recently used first.
type Entries = Vec<(TextHash, Arc<[f32]>)>;

impl VectorCache {
    /// The cache of this model in `file`, which need not exist.
    pub fn new(file: impl Into<PathBuf>, model: Fingerprint) -> Self {
        Self { file: file.into(), model }
    }

    /// All cached vectors; none if the file belongs to another model, is damaged or does not exist.
    pub(crate) fn read(&self) -> HashMap<TextHash, Arc<[f32]>> {
        self.entries().into_iter().collect()
    }

    /// Writes vectors as the most recently used ones; evicts the least recently used beyond the maximum.
    pub(crate) fn write(&self, used: &[(TextHash, Arc<[f32]>)]) -> io::Result<()> {
        // Read again, because another hub may have written in the meantime.
        let before = self.entries();
        let size = used.first().map_or(0, |(_, vector)| vector.len());
        let mut seen = HashSet::new();
        let all =
            used.iter().chain(&before).filter(|(key, vector)| vector.len() == size && seen.insert(*key));
        let all: Vec<&(TextHash, Arc<[f32]>)> = all.take(MAX_VECTORS).collect();
        let mut bytes =
            Vec::with_capacity(HEADER_BYTES + all.len() * (KEY_BYTES + size * 4) + CHECKSUM_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.model.0);
        let counted = |number: usize| u32::try_from(number).map(u32::to_le_bytes).map_err(io::Error::other);
        bytes.extend(counted(size)?);
        bytes.extend(counted(all.len())?);
        for (key, vector) in all {
            bytes.extend(key.0);
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes.extend(Sha256::digest(&bytes));
        create_private_parent(&self.file)?;
        replace_private(&self.file, &bytes, SyncMode::File)
    }

    fn entries(&self) -> Entries {
        let Ok(file) = File::open(&self.file) else { return Entries::new() };
        let mut bytes = Vec::new();
        match file.take(MAX_FILE_BYTES).read_to_end(&mut bytes) {
            Ok(_) => parse(&bytes, self.model).unwrap_or_default(),
            Err(_) => Entries::new(),
        }
    }
}

fn parse(bytes: &[u8], model: Fingerprint) -> Option<Entries> {
    let (content, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (mark, rest) = content.split_first_chunk::<16>()?;
    let (made_by, rest) = rest.split_first_chunk::<32>()?;
    let (size, rest) = rest.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    if mark != MAGIC || *made_by != model.0 || Sha256::digest(content).as_slice() != sum {
        return None;
    }
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let each = size.checked_mul(4)?.checked_add(KEY_BYTES)?;
    if size == 0 || count > MAX_VECTORS || rest.len() != count.checked_mul(each)? {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let (key, numbers) = bytes.split_first_chunk::<KEY_BYTES>()?;
        let (numbers, _) = numbers.as_chunks::<4>();
        Some((TextHash(*key), numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()))
    };
    rest.chunks_exact(each).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn vector(number: f32) -> Arc<[f32]> {
        Arc::from([number, 0.5, -1.0])
    }

    fn cache(folder: &Path, model: &str) -> VectorCache {
        VectorCache::new(folder.join("inner").join("vectors.bin"), Fingerprint::of([model]))
    }

    #[test]
    fn reads_and_extends_written_vectors() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "a");
        assert!(cache.read().is_empty());
        cache.write(&[(TextHash::of("one"), vector(1.0)), (TextHash::of("two"), vector(2.0))]).unwrap();
        cache.write(&[(TextHash::of("three"), vector(3.0)), (TextHash::of("one"), vector(1.0))]).unwrap();
        let found = cache.read();
        assert_eq!(found.len(), 3);
        assert_eq!(found.get(&TextHash::of("two")), Some(&vector(2.0)));
        let files: Vec<_> = std::fs::read_dir(folder.path().join("inner")).unwrap().collect();
        assert_eq!(files.len(), 1, "no file is left over: {files:?}");
    }

    #[test]
    fn ignores_and_replaces_vectors_of_another_model() {
        let folder = tempfile::tempdir().unwrap();
        cache(folder.path(), "a").write(&[(TextHash::of("one"), vector(1.0))]).unwrap();
        assert!(cache(folder.path(), "b").read().is_empty());
        cache(folder.path(), "b").write(&[(TextHash::of("one"), vector(9.0))]).unwrap();
        assert_eq!(cache(folder.path(), "b").read().get(&TextHash::of("one")), Some(&vector(9.0)));
        assert!(cache(folder.path(), "a").read().is_empty());
    }

    #[test]
    fn ignores_and_rewrites_damaged_cache_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "a");
        cache.write(&[(TextHash::of("one"), vector(1.0)), (TextHash::of("two"), vector(2.0))]).unwrap();
        let bytes = std::fs::read(&cache.file).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            std::fs::write(&cache.file, damaged).unwrap();
            assert!(cache.read().is_empty(), "byte {at}");
            std::fs::write(&cache.file, &bytes[..at]).unwrap();
            assert!(cache.read().is_empty(), "cut at {at}");
        }
        cache.write(&[(TextHash::of("one"), vector(1.0))]).unwrap();
        assert_eq!(cache.read().len(), 1);
    }

    #[test]
    fn evicts_least_recently_used_vectors() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "a");
        let many: Entries =
            (0..MAX_VECTORS).map(|number| (TextHash::of(&format!("old {number}")), vector(0.0))).collect();
        cache.write(&many).unwrap();
        cache.write(&[(TextHash::of("new"), vector(1.0))]).unwrap();
        let found = cache.read();
        assert_eq!(found.len(), MAX_VECTORS);
        assert!(found.contains_key(&TextHash::of("new")) && found.contains_key(&TextHash::of("old 0")));
        assert!(!found.contains_key(&TextHash::of(&format!("old {}", MAX_VECTORS - 1))));
    }
}
