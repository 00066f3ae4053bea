//! The headers of a request, however whoever took it in keeps them.

use http::HeaderMap;

/// Headers that can be looked up.
pub trait HeaderLookup: Sync {
    /// The value of the first header of that name, which is written in small letters.
    fn value(&self, name: &str) -> Option<&[u8]>;

    /// Whether the value of any header of that name is such.
    fn any(&self, name: &str, such: &mut dyn FnMut(&[u8]) -> bool) -> bool;

    /// Whether the first header of that name says just that.
    fn says(&self, name: &str, text: &str) -> bool {
        self.value(name).is_some_and(|value| value == text.as_bytes())
    }

    /// The value as a text; one that is none is not there.
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(printable)
    }

    /// The session that it belongs to. Every message is asked that, and the next one too.
    fn session(&self) -> Option<&str> {
        self.text(SESSION_ID)
    }

    /// The revision that it is made in.
    fn revision(&self) -> Option<&str> {
        self.text(PROTOCOL_VERSION)
    }
}

/// What names a session.
pub const SESSION_ID: &str = "mcp-session-id";
/// What names a revision.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// What can be read as a text.
pub fn printable(value: &[u8]) -> Option<&str> {
    let printable = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\t';
    std::str::from_utf8(value).ok().filter(|text| text.as_bytes().iter().all(printable))
}

impl HeaderLookup for HeaderMap {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(http::HeaderValue::as_bytes)
    }

    fn any(&self, name: &str, such: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.get_all(name).iter().any(|value| such(value.as_bytes()))
    }
}
