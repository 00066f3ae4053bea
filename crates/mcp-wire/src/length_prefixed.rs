//! An unambiguous encoding of several texts, for signatures and digests.

/// Encodes the parts for signing. Each is preceded by its length, so that no two lists of parts have the same encoding.
pub fn length_prefixed<'a>(parts: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.push(u8::from(part.is_some()));
        let part = part.unwrap_or_default();
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}
