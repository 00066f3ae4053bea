//! An API key, which is only ever sent in a header.

use reqwest::header::HeaderValue;

/// An API key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates a key; `None` if the text is empty or not a valid header value.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && HeaderValue::from_str(text).is_ok_and(|value| value.to_str().is_ok());
        fits.then(|| Self(text.to_owned()))
    }

    /// The header value, with `prefix` as prefix.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Replaces the key in `text`.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
