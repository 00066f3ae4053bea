//! Access to request headers, independent of the HTTP implementation that parsed them.

use http::HeaderMap;
pub use toolhub_mcp_wire::headers::{PROTOCOL_VERSION, SESSION_ID};

/// Headers that can be looked up by name.
pub trait HeaderLookup: Sync {
    /// Returns the value of the first header of that name, which must be lower-case.
    fn value(&self, name: &str) -> Option<&[u8]>;

    /// Returns whether the predicate holds for the value of any header of that name.
    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool;

    /// Returns whether the first header of that name has exactly this value.
    fn has_value(&self, name: &str, text: &str) -> bool {
        self.value(name).is_some_and(|value| value == text.as_bytes())
    }

    /// Returns the value if it is printable ASCII.
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(printable_text)
    }

    /// Returns the session id. Every message needs it, so that implementations may cache its position.
    fn session(&self) -> Option<&str> {
        self.text(SESSION_ID)
    }

    /// Returns the protocol revision.
    fn revision(&self) -> Option<&str> {
        self.text(PROTOCOL_VERSION)
    }
}

/// Returns the value as text if it consists of printable ASCII and tabs.
pub fn printable_text(value: &[u8]) -> Option<&str> {
    let printable = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\t';
    std::str::from_utf8(value).ok().filter(|text| text.as_bytes().iter().all(printable))
}

impl HeaderLookup for HeaderMap {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(http::HeaderValue::as_bytes)
    }

    fn any(&self, name: &str, predicate: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.get_all(name).iter().any(|value| predicate(value.as_bytes()))
    }
}
