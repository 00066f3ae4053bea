//! Calls: requests to run a tool. The result of a call is an [`crate::Outcome`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::caller::CallerHandle;
use crate::json::RawJson;
use crate::nested::NestedTools;
use crate::principal::Authorization;
use crate::source::Source;
use crate::tool::ToolName;

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
        const MAX_ID_BYTES: usize = 4 + 3 * 17;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = since.as_secs().saturating_mul(1000) + u64::from(since.subsec_millis());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut text = [0; MAX_ID_BYTES];
        // Filled from the end, because the length is not known in advance.
        let mut start = MAX_ID_BYTES;
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

/// Whether a call names a tool or a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CallBy {
    /// The name of a tool.
    #[default]
    Name,
    /// A capability: any tool that has it may serve the call.
    Capability,
}

/// Whether arguments that nearly match a tool's schema are coerced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coercion {
    /// Arguments are passed unchanged, and rejected if they do not match.
    #[default]
    Off,
    /// Unambiguous deviations are corrected, and the corrections reported.
    On,
}

/// A request to run a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The name of a tool or of a capability.
    pub tool: ToolName,
    /// Whether `tool` names a tool or a capability.
    pub by: CallBy,
    /// The arguments: an object.
    pub arguments: RawJson,
    /// Whether arguments that do not match the schema are coerced.
    pub coercion: Coercion,
    /// The source that the caller names; see the routing rules for its effect.
    pub source: Option<String>,
    /// Timeout of the call, if the caller sets one.
    pub timeout: Option<Duration>,
    /// The conversation it belongs to.
    pub conversation: Option<Arc<str>>,
    /// The user's request in natural language that the call serves, if any.
    pub request: Option<String>,
    /// The sources that may serve the call; `None` allows all.
    pub among: Option<Arc<[Source]>>,
    /// Handle to the caller, if it can receive messages while the call runs.
    pub caller: Option<CallerHandle>,
    /// Who makes the call, and what allowed it.
    pub authorization: Authorization,
    /// The call that makes this one, if a tool does.
    pub parent: Option<CallId>,
    /// The tools that the tool may call in turn; `None` if the tool decides that by itself.
    pub nested: Option<Arc<dyn NestedTools>>,
}

impl ToolCall {
    /// A call of `tool` with `arguments`.
    pub fn new(tool: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self::of(ToolName::new(tool), arguments)
    }

    /// A call of a tool by `ToolName`.
    pub fn of(tool: ToolName, arguments: impl Into<RawJson>) -> Self {
        Self {
            id: CallId::generate(),
            tool,
            by: CallBy::Name,
            arguments: arguments.into(),
            coercion: Coercion::Off,
            source: None,
            timeout: None,
            conversation: None,
            request: None,
            among: None,
            caller: None,
            authorization: Authorization::default(),
            parent: None,
            nested: None,
        }
    }

    /// A call of any tool with this capability.
    pub fn by_capability(capability: impl Into<Arc<str>>, arguments: impl Into<RawJson>) -> Self {
        Self { by: CallBy::Capability, ..Self::new(capability, arguments) }
    }

    /// Restricts the call to `source`.
    #[must_use]
    pub fn at(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Allows coercion of the arguments.
    #[must_use]
    pub fn with_coercion(mut self) -> Self {
        self.coercion = Coercion::On;
        self
    }

    /// Sets a timeout.
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
