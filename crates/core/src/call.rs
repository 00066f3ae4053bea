//! Calls: a request to run a tool. What becomes of it is an outcome.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::caller::CallerLink;
use crate::json::RawJson;
use crate::source::Source;
use crate::tool::ToolName;

/// The id of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(Arc<str>);

impl CallId {
    /// An id somebody else gave.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// A new id: unique on this machine, sorted by time.
    pub fn fresh() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The system would be asked for it anew every time.
        static PROCESS: LazyLock<u32> = LazyLock::new(std::process::id);
        // The word, three lines and three numbers of at most 16 digits.
        const ROOM: usize = 4 + 3 * 17;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = since.as_secs().saturating_mul(1000) + u64::from(since.subsec_millis());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut text = [0; ROOM];
        // Written from its end, so that it need not be known how long it gets.
        let mut start = ROOM;
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

/// What a call goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CallBy {
    /// The name of a tool.
    #[default]
    Name,
    /// A capability: whoever is good for that.
    Capability,
}

/// Whether arguments that miss a tool's schema by a hair are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mending {
    /// They are handed on as they are, and refused where they do not fit.
    #[default]
    Off,
    /// What is plainly meant is sent, and told.
    On,
}

/// A request to run a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// Which tool; or which capability.
    pub tool: ToolName,
    /// Which of the two.
    pub by: CallBy,
    /// The arguments: an object.
    pub arguments: RawJson,
    /// Whether they are mended where they do not fit.
    pub mending: Mending,
    /// Where the caller believes the tool to live; see the routing rules for what that is worth.
    pub source: Option<String>,
    /// How long it may take, where the caller minds.
    pub timeout: Option<Duration>,
    /// The conversation it belongs to.
    pub conversation: Option<Arc<str>>,
    /// What somebody asked for in words, where the call serves such a request.
    pub request: Option<String>,
    /// Who may serve it, where not everybody may.
    pub among: Option<Arc<[Source]>>,
    /// Who made it, where they can be reached while it runs.
    pub caller: Option<CallerLink>,
}

impl ToolCall {
    /// A call of `tool` with `arguments`.
    pub fn new(tool: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self::of(ToolName::new(tool), arguments)
    }

    /// The same for a name that is known as one.
    pub fn of(tool: ToolName, arguments: impl Into<RawJson>) -> Self {
        Self {
            id: CallId::fresh(),
            tool,
            by: CallBy::Name,
            arguments: arguments.into(),
            mending: Mending::Off,
            source: None,
            timeout: None,
            conversation: None,
            request: None,
            among: None,
            caller: None,
        }
    }

    /// A call of whoever is good for `capability`.
    pub fn by_capability(capability: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self { by: CallBy::Capability, ..Self::new(capability, arguments) }
    }

    /// The same call, meant for `source`.
    #[must_use]
    pub fn at(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same call, whose arguments may be mended.
    #[must_use]
    pub fn mending(mut self) -> Self {
        self.mending = Mending::On;
        self
    }

    /// The same call, with a deadline of its own.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_ids_tell_time_process_and_count() {
        let ids: Vec<CallId> = (0..300).map(|_| CallId::fresh()).collect();
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
            let age = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_millis(number(millis)));
            assert!(age.unwrap() < Duration::from_secs(60), "{id}");
            number(count);
        }
    }
}
