//! The hash chain: gathers records, numbers and chains them, and packs them into batches as a store keeps them.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use toolhub_core::audit::AuditEvent;
use toolhub_core::hex;

use crate::encoding::put_number;
use crate::record::{AuditRecord, CallFields, VERSION, encode_call, encode_event};

/// Begins the text whose hash precedes the first record of a log.
const GENESIS: &[u8] = b"toolhub audit log 1\0";
/// Bytes of a record's hash that a batch keeps, to name the first record that was changed.
pub(crate) const KEPT_HASH_BYTES: usize = 8;
/// Maximum number of distinct principals in the summary of a batch.
const MAX_SUMMARY_PRINCIPALS: usize = 64;
/// Delimits each principal in the summary of a batch.
const DELIMITER: char = '\u{1f}';

/// The hash of a record and of all records before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// SHA-256 of this hash and the next record's encoding.
    pub(crate) fn next(self, encoding: &[u8]) -> Self {
        self.next_with(encoding, &mut Vec::with_capacity(self.0.len() + encoding.len()))
    }

    /// As [`Hash::next`], with a buffer for the hashed bytes: hashing them in two parts costs more.
    fn next_with(self, encoding: &[u8], hashed: &mut Vec<u8>) -> Self {
        hashed.clear();
        hashed.extend_from_slice(&self.0);
        hashed.extend_from_slice(encoding);
        Self::of(digest(&SHA256, hashed).as_ref())
    }

    fn of(digest: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest);
        Self(hash)
    }

    pub(crate) fn kept(&self) -> &[u8] {
        &self.0[..KEPT_HASH_BYTES]
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// The random id of a log. Every hash depends on it, so that records of another log do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogId(pub [u8; 16]);

impl LogId {
    /// A new id. It is unique and need not be secret.
    pub fn generate() -> Self {
        let mut id = [0; 16];
        if SystemRandom::new().fill(&mut id).is_err() {
            let number = || RandomState::new().hash_one(SystemTime::now()).to_le_bytes();
            id[..8].copy_from_slice(&number());
            id[8..].copy_from_slice(&number());
        }
        Self(id)
    }

    /// The hash before the first record.
    pub fn genesis(&self) -> Hash {
        Hash::of(digest(&SHA256, &[GENESIS, &self.0].concat()).as_ref())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// Records without numbers, gathered for one transaction.
#[derive(Debug, Default)]
pub struct PendingRecords {
    /// The encoded events.
    events: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    principals: Principals,
    times: Option<(u64, u64)>,
}

impl PendingRecords {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Their size in bytes.
    pub fn bytes(&self) -> usize {
        self.events.len()
    }

    /// Adds other records.
    pub fn append(&mut self, other: &Self) {
        let offset = self.events.len();
        self.events.extend_from_slice(&other.events);
        self.ends.extend(other.ends.iter().map(|end| offset + end));
        self.principals.append(&other.principals);
        self.times = match (self.times, other.times) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (times, other_times) => times.or(other_times),
        };
    }

    /// Adds an event.
    pub fn push_event(&mut self, event: &AuditEvent) {
        encode_event(event, &mut self.events);
        let record = AuditRecord { sequence: 0, event: event.clone() };
        self.end(record.micros(), &event.principal);
    }

    /// Adds a call, with the sources that answered or were attempted.
    pub fn push_call<'a>(&mut self, call: &CallFields<'_>, sources: impl ExactSizeIterator<Item = &'a str>) {
        encode_call(call, sources, &mut self.events);
        self.end(call.micros, call.principal);
    }

    fn end(&mut self, micros: u64, principal: &str) {
        self.ends.push(self.events.len());
        self.principals.add(principal);
        let (first, last) = self.times.unwrap_or((micros, micros));
        self.times = Some((first.min(micros), last.max(micros)));
    }
}

/// The principals of a batch; `None` if there are too many to list.
#[derive(Debug)]
pub(crate) struct Principals(Option<Vec<String>>);

impl Default for Principals {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl Principals {
    pub(crate) fn add(&mut self, principal: &str) {
        let Some(names) = &mut self.0 else { return };
        if names.iter().any(|known| known == principal) {
            return;
        }
        if names.len() < MAX_SUMMARY_PRINCIPALS { names.push(principal.to_owned()) } else { self.0 = None }
    }

    fn append(&mut self, other: &Self) {
        match &other.0 {
            Some(names) => names.iter().for_each(|name| self.add(name)),
            None => self.0 = None,
        }
    }

    pub(crate) fn column(&self) -> Option<String> {
        let names = self.0.as_ref()?;
        Some(names.iter().map(|name| StoredBatch::principal_text(name)).collect())
    }
}

/// The end of a log: the number and the hash of its last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// The number of the last record; 0 if there is none.
    pub sequence: u64,
    /// Its hash; that of the log's id if there is none.
    pub hash: Hash,
}

impl Chain {
    /// The chain of a log without records.
    pub fn empty(log: &LogId) -> Self {
        Self { sequence: 0, hash: log.genesis() }
    }

    /// Numbers and chains the records. Returns their batch, or `None` if there are none.
    pub fn extend(&mut self, pending: &PendingRecords) -> Option<StoredBatch> {
        let (first_micros, last_micros) = pending.times?;
        let (first_sequence, previous_hash) = (self.sequence + 1, self.hash);
        let mut entries = Vec::with_capacity(pending.events.len() + pending.len() * 20);
        let (mut start, mut hashed) = (0, Vec::new());
        for end in &pending.ends {
            self.sequence += 1;
            let at = entries.len();
            entries.extend_from_slice(&[0; 4]);
            entries.push(VERSION);
            put_number(&mut entries, self.sequence);
            entries.extend_from_slice(&pending.events[start..*end]);
            start = *end;
            let length = u32::try_from(entries.len() - at - 4).unwrap_or(u32::MAX);
            entries[at..at + 4].copy_from_slice(&length.to_le_bytes());
            self.hash = self.hash.next_with(&entries[at + 4..], &mut hashed);
            entries.extend_from_slice(self.hash.kept());
        }
        Some(StoredBatch {
            first_sequence,
            last_sequence: self.sequence,
            first_micros,
            last_micros,
            previous_hash,
            last_hash: self.hash,
            principals: pending.principals.column(),
            entries,
        })
    }
}

/// Consecutive records as a store keeps them: one row, with a summary for queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBatch {
    /// The number of the first record.
    pub first_sequence: u64,
    /// The number of the last record.
    pub last_sequence: u64,
    /// The earliest time of a record, in microseconds since 1970.
    pub first_micros: u64,
    /// The latest time of a record.
    pub last_micros: u64,
    /// The hash of the record before the first one.
    pub previous_hash: Hash,
    /// The hash of the last record.
    pub last_hash: Hash,
    /// The principals, each between two separators (U+001F); `None` if there are too many.
    pub principals: Option<String>,
    /// Each record as a little-endian `u32` length, its encoding, and the first bytes of its hash.
    pub entries: Vec<u8>,
}

impl StoredBatch {
    /// The text that the summary of each batch with records of this principal contains.
    pub fn principal_text(principal: &str) -> String {
        // Not every database can store NUL in a text.
        format!("{DELIMITER}{}{DELIMITER}", principal.replace('\0', "␀"))
    }

    /// The records. Stops at the first one that is damaged.
    pub fn records(&self) -> impl Iterator<Item = AuditRecord> + '_ {
        self.stored().map_while(|entry| AuditRecord::decode(entry?.encoding))
    }

    /// The stored records; the last item is `None` if bytes are left that are no whole record.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Option<StoredEntry<'_>>> {
        let mut rest = self.entries.as_slice();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let entry = StoredEntry::split(&mut rest);
            if entry.is_none() {
                rest = &[];
            }
            Some(entry)
        })
    }
}

/// A record in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredEntry<'a> {
    pub(crate) encoding: &'a [u8],
    /// Its hash, or the first bytes of it.
    pub(crate) kept_hash: &'a [u8],
}

impl<'a> StoredEntry<'a> {
    fn split(rest: &mut &'a [u8]) -> Option<Self> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (encoding, after) = after.split_at_checked(length)?;
        let (kept_hash, after) = after.split_at_checked(KEPT_HASH_BYTES)?;
        *rest = after;
        Some(Self { encoding, kept_hash })
    }
}
