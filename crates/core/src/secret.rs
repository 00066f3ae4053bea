//! A string that is never printed or serialized by accident, and is zeroed on drop.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use zeroize::Zeroizing;

/// A token, a code or a password. It implements neither `Display` nor `Serialize`; the text is accessible only through
/// `expose`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces this secret in `text`, in case a peer echoed it.
    pub fn hidden_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(self.expose(), "…") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        // Default error messages quote the value; a number in place of a secret is probably the secret.
        fn no_text<E: Error>() -> Result<Secret, E> {
            Err(E::custom("a secret should be a string"))
        }
        impl Visitor<'_> for Text {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret::new(text))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
                no_text()
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
                no_text()
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
                no_text()
            }
        }
        // Not `deserialize_str`: deserializers that expect a string create an error of their own that quotes the value.
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_display_hide_the_secret() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret(…) Some(Secret(…))");
        assert_eq!(secret.hidden_in("no hunter2 here"), "no … here");
        assert_eq!(Secret::default().hidden_in("abc"), "abc");
        for wrong in ["12345", "-12345", "12345.5"] {
            let error = serde_json::from_str::<Secret>(wrong).unwrap_err().to_string();
            assert!(!error.contains("12345"), "{error}");
        }
        assert_eq!(serde_json::from_str::<Secret>("\"a\"").unwrap().expose(), "a");
    }
}
