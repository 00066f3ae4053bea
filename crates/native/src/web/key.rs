//! An API key, which is only ever sent in a header.

use reqwest::header::HeaderValue;

/// The key of a search service. Marked as sensitive, so that it is not printed.
#[derive(Debug, Clone)]
pub(super) struct ApiKey(HeaderValue);

impl ApiKey {
    /// Creates a key; `None` if the text is not a valid header value.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut value = HeaderValue::from_str(text).ok()?;
        value.to_str().ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// The header value.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The key as text, for a header value with a prefix.
    pub(super) fn expose(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Replaces `secret` in `text`.
pub(super) fn hidden(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.to_owned() } else { text.replace(secret, "…") }
}

/// The origin of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    Config,
    Variable(&'static str),
}

impl KeySource {
    /// The name for messages.
    pub(super) fn name(self) -> String {
        match self {
            Self::Config => "`api_key` in `[web_search]`".to_owned(),
            Self::Variable(name) => format!("`{name}`"),
        }
    }
}
