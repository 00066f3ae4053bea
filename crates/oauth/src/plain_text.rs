//! Writes secrets in plain text, for the token store only.

use serde::Serializer;
use toolhub_core::Secret;

/// Serializes a secret in plain text.
pub(super) fn write_plain<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(secret) => serializer.serialize_some(secret.expose()),
        None => serializer.serialize_none(),
    }
}
