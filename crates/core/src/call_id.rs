//! Ids of calls.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::millis::unix_millis;

/// The id of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Wraps an id that the caller chose.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Creates an id that is unique on this machine and sorts by time.
    pub fn generate() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Cached to avoid a system call per id.
        static PROCESS: LazyLock<u32> = LazyLock::new(std::process::id);
        // The prefix, three separators and three numbers of at most 16 digits.
        const MAX_CALL_ID_BYTES: usize = 4 + 3 * 17;
        let millis = unix_millis(SystemTime::now());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut text = [0; MAX_CALL_ID_BYTES];
        // Filled from the end, because the length is not known in advance.
        let mut start = MAX_CALL_ID_BYTES;
        let mut push = |letter: u8| {
            start -= 1;
            text[start] = letter;
        };
        for mut number in [count, u64::from(*PROCESS), millis] {
            loop {
                push(b"0123456789abcdef"[(number & 15) as usize]);
                number >>= 4;
                if number == 0 {
                    break;
                }
            }
            push(b'_');
        }
        b"call".iter().rev().for_each(|letter| push(*letter));
        Self(std::str::from_utf8(&text[start..]).unwrap_or_default().into())
    }

    /// The time at which an id was generated; `None` if the caller chose it, which may also look like a generated one.
    pub fn generated_at(&self) -> Option<SystemTime> {
        let mut parts = self.0.split('_');
        let (word, millis) = (parts.next()?, parts.next()?);
        if word != "call" || parts.count() != 2 {
            return None;
        }
        let millis = u64::from_str_radix(millis, 16).ok()?;
        UNIX_EPOCH.checked_add(Duration::from_millis(millis))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_contain_time_process_and_counter() {
        let ids: Vec<CallId> = (0..300).map(|_| CallId::generate()).collect();
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
        for id in ids {
            let parts: Vec<&str> = id.as_str().split('_').collect();
            let [word, millis, process, count] = parts[..] else { panic!("{id}") };
            let number = |text: &str| {
                let number = u64::from_str_radix(text, 16).unwrap();
                assert_eq!(format!("{number:x}"), text);
                number
            };
            assert_eq!((word, number(process)), ("call", u64::from(std::process::id())));
            let generated_at = UNIX_EPOCH + Duration::from_millis(number(millis));
            assert_eq!(id.generated_at(), Some(generated_at));
            let age = SystemTime::now().duration_since(generated_at);
            assert!(age.unwrap() < Duration::from_secs(60), "{id}");
            number(count);
        }
        for id in [
            "",
            "call_1",
            "call_1_2",
            "call_1_2_3_4",
            "call_x_2_3",
            "task_1_2_3",
            "call_ffffffffffffffffff_2_3",
        ] {
            assert_eq!(CallId::new(id).generated_at(), None, "{id}");
        }
        // Far in the future, but no overflow that panics.
        let _ = CallId::new("call_ffffffffffffffff_2_3").generated_at();
    }
}
