//! Detects duplicate keys during a scan: compares a fingerprint of each key with those of the same object. Matches are verified
//! by `toolhub_core::json::key_problem`; no match means that there is no duplicate.

/// Maximum number of remembered keys of open objects; with more, the text has to be verified.
const MAX_OBJECT_KEYS: usize = 32;
/// Maximum number of nested objects: one byte of `starts` for each.
const MAX_OPEN: u32 = 8;

/// How a scan treats keys.
pub trait KeyObserver: Default {
    /// An object starts.
    fn open(&mut self);
    /// A key of the innermost object, as written between its quotes.
    fn key(&mut self, key: &[u8], escaped: bool);
    /// The innermost object ends.
    fn close(&mut self);
}

/// Ignores keys: for texts that are forwarded unchanged.
#[derive(Debug, Default)]
pub struct IgnoreKeys;

impl KeyObserver for IgnoreKeys {
    #[inline(always)]
    fn open(&mut self) {}
    #[inline(always)]
    fn key(&mut self, _: &[u8], _: bool) {}
    #[inline(always)]
    fn close(&mut self) {}
}

/// Compares keys: for texts that decisions depend on.
#[derive(Debug, Default)]
pub struct DuplicateKeyDetector {
    fingerprints: [u64; MAX_OBJECT_KEYS],
    count: usize,
    /// The index of the first key of each open object, the innermost in the lowest byte.
    starts: u64,
    open: u32,
    may_have_duplicate: bool,
}

impl DuplicateKeyDetector {
    /// Whether an object may have a duplicate key.
    #[inline]
    pub(super) fn may_have_duplicate(&self) -> bool {
        self.may_have_duplicate
    }
}

impl KeyObserver for DuplicateKeyDetector {
    #[inline]
    fn open(&mut self) {
        self.open += 1;
        self.may_have_duplicate |= self.open > MAX_OPEN;
        self.starts = self.starts << 8 | self.count as u64;
    }

    #[inline]
    fn key(&mut self, key: &[u8], escaped: bool) {
        let print = fingerprint(key);
        let start = (self.starts & 0xff) as usize;
        let seen = self.fingerprints.get(start..self.count).unwrap_or_default();
        self.may_have_duplicate |= escaped || seen.contains(&print);
        match self.fingerprints.get_mut(self.count) {
            Some(position) => {
                *position = print;
                self.count += 1;
            }
            None => self.may_have_duplicate = true,
        }
    }

    #[inline]
    fn close(&mut self) {
        self.count = (self.starts & 0xff) as usize;
        self.starts >>= 8;
        self.open = self.open.saturating_sub(1);
    }
}

/// Equal for equal keys, and nearly always different otherwise: combines length, start and end.
#[inline]
fn fingerprint(key: &[u8]) -> u64 {
    let (first, last) = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
            }
            _ => {
                let byte = |position: usize| u64::from(key.get(position).copied().unwrap_or_default());
                (byte(0) << 8 | byte(1), byte(2))
            }
        },
    };
    (first ^ key.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ last
}
