//! The text of a definition: JSON permits escapes of lone surrogates and numbers of any size, on which some parsers fail.

use toolhub_core::RawJson;

use super::{PortabilityError, not_portable};

/// Returns the definition without lone surrogates, or `None` if it has none. Refuses numbers that exceed the range of
/// `f64`.
pub(super) fn sanitized(definition: &RawJson) -> Result<Option<RawJson>, PortabilityError> {
    let text = definition.get();
    let scan = TextScan::in_text(text);
    if scan.has_huge_number {
        return Err(not_portable("a number in it is too large for clients", "其中有客户端无法表示的大数"));
    }
    if scan.lone_surrogates.is_empty() {
        return Ok(None);
    }
    let mut repaired = String::with_capacity(text.len());
    let mut end = 0;
    for at in scan.lone_surrogates {
        repaired.push_str(&text[end..at]);
        repaired.push_str("\\ufffd");
        end = at + ESCAPE;
    }
    repaired.push_str(&text[end..]);
    let unreadable = || not_portable("its text is not Unicode", "其文本不是 Unicode");
    RawJson::parse(repaired).map(Some).map_err(|_| unreadable())
}

/// The length of `\uXXXX`.
const ESCAPE: usize = 6;

#[derive(Default)]
struct TextScan {
    /// The positions of escapes of lone surrogates.
    lone_surrogates: Vec<usize>,
    has_huge_number: bool,
}

impl TextScan {
    fn in_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut scan, mut at, mut in_string) = (Self::default(), 0, false);
        while let Some(byte) = bytes.get(at) {
            at += match byte {
                b'"' => {
                    in_string = !in_string;
                    1
                }
                b'\\' => match (code_unit(bytes, at), code_unit(bytes, at + ESCAPE)) {
                    (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
                    (Some(0xd800..=0xdfff), _) => {
                        scan.lone_surrogates.push(at);
                        ESCAPE
                    }
                    _ => 2,
                },
                b'-' | b'0'..=b'9' if !in_string => {
                    let is_part =
                        |byte: &&u8| matches!(**byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let length = bytes[at..].iter().take_while(is_part).count();
                    let number = text[at..at + length].parse::<f64>();
                    scan.has_huge_number |= number.is_ok_and(f64::is_infinite);
                    length
                }
                _ => 1,
            };
        }
        scan
    }
}

/// Returns the code unit of an escape at that position.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, PortabilityError> {
        let raw = RawJson::parse(text.to_owned()).unwrap();
        Ok(sanitized(&raw)?.unwrap_or(raw).get().to_owned())
    }

    #[test]
    fn replaces_lone_surrogates_only() {
        for (input, expect) in [
            (r#"{"a":"cut \ud83d"}"#, r#"{"a":"cut \ufffd"}"#),
            (
                r#"["\udc00\ud83d\ude00\uD800x\ud800\ud83d\ude00"]"#,
                r#"["\ufffd\ud83d\ude00\ufffdx\ufffd\ud83d\ude00"]"#,
            ),
            (r#"["\\ud83d","\u4e2d\n"]"#, r#"["\\ud83d","\u4e2d\n"]"#),
            (r#"{"n":[-1.5e300,0,12],"s":"1e999"}"#, r#"{"n":[-1.5e300,0,12],"s":"1e999"}"#),
        ] {
            assert_eq!(read(input).unwrap(), expect);
        }
        for huge in ["1e400".to_owned(), "9".repeat(4301), format!("-{}", "1".repeat(310))] {
            assert!(read(&format!(r#"{{"a":{huge}}}"#)).is_err());
        }
    }
}
