//! Durations: `30s`, `500ms`, `2m`, `1h`, or a number of seconds.

use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toolhub_core::lang::LocalizedText;

/// A duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationSetting(pub Duration);

impl FromStr for DurationSetting {
    type Err = LocalizedText;

    fn from_str(text: &str) -> Result<Self, LocalizedText> {
        let wrong = || {
            LocalizedText::new(
                format!("`{text}` is not a time: write it like `30s`, `500ms`, `2m`, `1h` or `7d`"),
                format!("`{text}` 不是时间：请写成 `30s`、`500ms`、`2m`、`1h` 或 `7d`"),
            )
        };
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "ms" => number / 1000.0,
            "" | "s" | "秒" => number,
            "m" | "min" | "分" | "分钟" => number * 60.0,
            "h" | "小时" => number * 3600.0,
            "d" | "天" => number * 86_400.0,
            _ => return Err(wrong()),
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(span) if !span.is_zero() => Ok(Self(span)),
            _ => Err(wrong()),
        }
    }
}

impl<'de> Deserialize<'de> for DurationSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationVisitor;
        impl Visitor<'_> for DurationVisitor {
            type Value = DurationSetting;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as \"30s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DurationSetting, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<DurationSetting, E> {
                seconds.to_string().parse().map_err(E::custom)
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<DurationSetting, E> {
                seconds.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(DurationVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_duration_settings() {
        let check = |text: &str, millis: Option<u64>| {
            let span = text.parse::<DurationSetting>().ok().map(|span| span.0);
            assert_eq!(span, millis.map(Duration::from_millis), "{text}");
        };
        check("30s", Some(30_000));
        check("30", Some(30_000));
        check("1.5s", Some(1_500));
        check("500ms", Some(500));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        check("2 分钟", Some(120_000));
        check("0", None);
        check("-1s", None);
        check("soon", None);
        check("", None);
        check("1e400s", None);
    }
}
