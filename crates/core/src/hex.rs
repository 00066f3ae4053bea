//! Bytes as hexadecimal digits, always in lower case.

use sha2::{Digest as _, Sha256};

/// Encodes bytes as lower-case hexadecimal digits, two per byte.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Decodes lower-case hexadecimal digits; `None` unless there are exactly two for each of `N` bytes.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// The SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_it_encodes() {
        assert_eq!(encode(&[]), "");
        assert_eq!(encode(&[0, 0xab, 0x1f, 0xff]), "00ab1fff");
        assert_eq!(decode::<4>("00ab1fff"), Some([0, 0xab, 0x1f, 0xff]));
        assert_eq!(decode::<0>(""), Some([]));
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode::<256>(&encode(&all)).unwrap().as_slice(), all);
    }

    #[test]
    fn rejects_other_lengths_and_characters() {
        for text in ["00ab1", "00ab1f00", "00AB1F", "00ab1g", "+0ab1f", " 0ab1f", "00ab\u{e9}", ""] {
            assert_eq!(decode::<3>(text), None, "{text}");
        }
    }

    #[test]
    fn sha256_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
