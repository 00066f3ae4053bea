//! Trace context of a request in a distributed trace (W3C Trace Context).

use std::fmt;
use std::sync::Arc;

/// Maximum length of `tracestate` (W3C Trace Context).
const MAX_TRACESTATE_BYTES: usize = 512;

/// A trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    sampled: bool,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// A context with these ids; `None` if one of them is zero.
    pub fn new(trace: u128, span: u64, sampled: bool) -> Option<Self> {
        (trace != 0 && span != 0).then_some(Self { trace, span, sampled, state: None })
    }

    /// Parses `traceparent` and `tracestate`.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let (version, rest) = parent.trim().split_once('-')?;
        let (trace, rest) = rest.split_once('-')?;
        let (span, flags) = rest.split_once('-')?;
        // Later versions may append fields after the flags.
        let (flags, more) = flags.split_once('-').map_or((flags, false), |(flags, _)| (flags, true));
        let version = number(version, 2)?;
        if version == 0xff || (version == 0 && more) {
            return None;
        }
        let (trace, span) = (number(trace, 32)?, u64::try_from(number(span, 16)?).ok()?);
        let sampled = number(flags, 2)? & 1 == 1;
        let state = state.map(str::trim).filter(|state| {
            !state.is_empty()
                && state.len() <= MAX_TRACESTATE_BYTES
                && state.chars().all(|c| (' '..='~').contains(&c))
        });
        Some(Self { state: state.map(Arc::from), ..Self::new(trace, span, sampled)? })
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn with_span(&self, span: u64) -> Self {
        Self { span: if span == 0 { 1 } else { span }, ..self.clone() }
    }

    /// The trace id.
    pub fn trace(&self) -> u128 {
        self.trace
    }

    /// The span id.
    pub fn span(&self) -> u64 {
        self.span
    }

    /// Whether the trace is sampled.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// The `tracestate`, which is forwarded unchanged.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

/// Formats the context as `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Parses exactly `digits` lowercase hexadecimal digits.
fn number(text: &str, digits: usize) -> Option<u128> {
    let fits = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_traceparent_only() {
        let check = |text: &str, expect: Option<&str>| {
            let found = TraceContext::parse(text, None).map(|context| context.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        let plain = format!("00-{trace}-{span}-01");
        check(&plain, Some(&plain));
        check(&format!("00-{trace}-{span}-00"), Some(&format!("00-{trace}-{span}-00")));
        // Other flags are ignored, and a later version may add fields.
        check(&format!("00-{trace}-{span}-03"), Some(&plain));
        check(&format!("cc-{trace}-{span}-01-more"), Some(&plain));
        check(&format!("00-{trace}-{span}-01-more"), None);
        check(&format!("ff-{trace}-{span}-01"), None);
        check(&format!("00-{}-{span}-01", trace.to_uppercase()), None);
        check(&format!("00-{}-{span}-01", "0".repeat(32)), None);
        check(&format!("00-{trace}-{}-01", "0".repeat(16)), None);
        check(&format!("00-{trace}-{span}"), None);
        check("", None);
    }

    #[test]
    fn forwards_valid_tracestate_only() {
        let check = |state: &str, expect: Option<&str>| {
            let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
            let context = TraceContext::parse(parent, Some(state)).unwrap();
            assert_eq!(context.with_span(7).state(), expect, "{state}");
        };
        check("vendor=1,other=2", Some("vendor=1,other=2"));
        check(" ", None);
        check("line\nbreak", None);
        check(&"x".repeat(513), None);
    }
}
