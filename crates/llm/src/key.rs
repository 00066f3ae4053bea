//! A key that goes into a header and nowhere else.

use reqwest::header::HeaderValue;

/// What a model's owner knows its customer by. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key in; `None` where it is empty or has characters that no header can hold.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && HeaderValue::from_str(text).is_ok_and(|value| value.to_str().is_ok());
        fits.then(|| Self(text.to_owned()))
    }

    /// As the value of a header, behind these words.
    pub(crate) fn header(&self, words: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{words}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `text` without the key, should somebody have put it there.
    pub(crate) fn hide(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
