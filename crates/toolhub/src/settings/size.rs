//! Sizes in bytes: `500MB`, `4GiB`, or a plain number.

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a size: write it like `500MB` or `4GiB`, or as a number of bytes");
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "t" | "tb" => 1_000_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            "tib" => 1 << 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).filter(|bytes| *bytes > 0).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnySize;
        impl Visitor<'_> for AnySize {
            type Value = ByteSize;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a size such as \"4GiB\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                bytes.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(AnySize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes_with_units() {
        let check = |text: &str, bytes: Option<u64>| {
            assert_eq!(text.parse::<ByteSize>().ok().map(|size| size.0), bytes, "{text}");
        };
        check("1", Some(1));
        check("500MB", Some(500_000_000));
        check("4 GiB", Some(4 << 30));
        check("2g", Some(2_000_000_000));
        check("64kib", Some(64 << 10));
        check("0", None);
        check("-1", None);
        check("lots", None);
        check("1.5GB", None);
        check("99999999999TB", None);
    }
}
