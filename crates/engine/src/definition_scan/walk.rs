//! Visits every text of a definition, including member names, with its path, in one pass and within a size limit.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use toolhub_core::RawJson;

/// Maximum scanned bytes; a typical definition has a thousandth of that.
const MAX_SCANNED_BYTES: usize = 512 * 1024;

/// A visited item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visited<'a> {
    /// A string value or a member name.
    Written(&'a str),
    /// A duplicate member name.
    DuplicateMember(&'a str),
    /// The limit is reached; the rest is not scanned.
    TooLong,
}

/// Calls `visit` for every text with its path.
pub(super) fn texts(raw: &RawJson, visit: &mut dyn FnMut(&str, Visited<'_>)) {
    let mut walk = Walk { visit, path: String::new(), remaining_bytes: MAX_SCANNED_BYTES };
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    // The input is valid JSON; in case of an error, the texts before it have been visited.
    let _ = Value(&mut walk).deserialize(&mut reader);
}

struct Walk<'m> {
    visit: &'m mut dyn FnMut(&str, Visited<'_>),
    path: String,
    remaining_bytes: usize,
}

impl Walk<'_> {
    fn visit_text(&mut self, text: &str) {
        if self.remaining_bytes == 0 {
            return;
        }
        let end = text.floor_char_boundary(self.remaining_bytes);
        (self.visit)(&self.path, Visited::Written(&text[..end]));
        self.remaining_bytes = self.remaining_bytes.saturating_sub(text.len());
        if self.remaining_bytes == 0 {
            (self.visit)(&self.path, Visited::TooLong);
        }
    }

    /// Runs `work` with the path of a member or an item.
    fn inside<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        // Limits the length of a path segment.
        let step = &step[..step.floor_char_boundary(80)];
        if before > 0 && !step.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(step);
        let done = work(self);
        self.path.truncate(before);
        done
    }
}

struct Value<'w, 'm>(&'w mut Walk<'m>);

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.visit_text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while self.0.inside(&format!("[{index}]"), |walk| items.next_element_seed(Value(walk)))?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let twice = names.contains(&name);
            self.0.inside(&name, |walk| {
                walk.visit_text(&name);
                if twice {
                    (walk.visit)(&walk.path, Visited::DuplicateMember(&name));
                }
                members.next_value_seed(Value(walk))
            })?;
            names.insert(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit_text(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        texts(&RawJson::parse(text).unwrap(), &mut |path, text| all.push(format!("{path}: {text:?}")));
        all
    }

    #[test]
    fn visits_every_text_with_its_path() {
        let visited = visit_text(r#"{"a":[1,"x",{"b":"y"}],"n":12345678901234567890123,"a":null}"#);
        assert_eq!(
            visited,
            [
                "a: Written(\"a\")",
                "a[1]: Written(\"x\")",
                "a[2].b: Written(\"b\")",
                "a[2].b: Written(\"y\")",
                "n: Written(\"n\")",
                "a: Written(\"a\")",
                "a: DuplicateMember(\"a\")",
            ]
        );
    }

    #[test]
    fn reports_that_the_scan_limit_is_reached() {
        let long = RawJson::of(&vec!["好".repeat(MAX_SCANNED_BYTES / 8); 4]);
        let mut all = Vec::new();
        texts(&long, &mut |_, text| all.push(text == Visited::TooLong));
        assert_eq!(all, [false, false, false, true], "the fourth text is not looked at");
    }
}
