//! A key that goes into a header and nowhere else.

use reqwest::header::HeaderValue;

/// What a search service knows its customer by. Marked as sensitive, so that nothing prints it.
#[derive(Debug, Clone)]
pub(super) struct ApiKey(HeaderValue);

impl ApiKey {
    /// Takes a key in; `None` where it has characters that no header can hold.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut value = HeaderValue::from_str(text).ok()?;
        value.to_str().ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// As the value of a header.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The key itself, for the one place that puts words before it.
    pub(super) fn expose(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// `text` without `secret`, should somebody have put it there.
pub(super) fn hidden(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.to_owned() } else { text.replace(secret, "…") }
}
