//! What of a result enters a model's context: as many characters as its kind is worth, cut at the end of a sentence.
//! Whatever is not text stays, and the full result is kept elsewhere, behind a handle.

use toolhub_core::text::cut;
use toolhub_core::{Outcome, RawJson, RawObject, ToolOutput};

/// How much of a result a model is shown, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Of a calculation.
    pub calculate: usize,
    /// Of a time.
    pub time: usize,
    /// Of what a search found.
    pub search: usize,
    /// How many hits of a search.
    pub hits: usize,
    /// Of a conversation's history.
    pub history: usize,
    /// Of a skill's instructions and files.
    pub skills: usize,
    /// Of anything else.
    pub other: usize,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { calculate: 100, time: 200, search: 500, hits: 3, history: 1_000, skills: 24_000, other: 500 }
    }
}

impl Lengths {
    /// The limit for a tool that is good for `tags`: the first one counts that has a limit of its own.
    pub fn of(&self, tags: &[String]) -> usize {
        let own = tags.iter().find_map(|tag| match tag.as_str() {
            "calculate" => Some(self.calculate),
            "time" => Some(self.time),
            "search" => Some(self.search),
            "history" => Some(self.history),
            "skills" => Some(self.skills),
            _ => None,
        });
        own.unwrap_or(self.other)
    }

    /// The outcome as a model is shown it, for a tool that is good for `tags`.
    #[must_use]
    pub fn shorten(&self, outcome: Outcome, tags: &[String]) -> Outcome {
        let hits = tags.iter().any(|tag| tag == "search").then_some(self.hits);
        let Ok(output) = &outcome.result else { return outcome };
        match brief(output, self.of(tags), hits) {
            Some(short) => Outcome { result: Ok(short), truncated: true, ..outcome },
            None => outcome,
        }
    }
}

/// An output with at most `limit` characters of text and, where it lists hits, at most `hits` of them; `None` where it
/// is no longer than that.
pub fn brief(output: &ToolOutput, limit: usize, hits: Option<usize>) -> Option<ToolOutput> {
    let (texts, _) = output.texts();
    let text = texts.join("\n");
    let fewer = hits.and_then(|hits| first_hits(output, &texts, hits));
    let text = fewer.clone().unwrap_or(text);
    let shown = match cut(&text, limit) {
        Some(short) => short,
        None => fewer?,
    };
    let mut blocks = vec![RawObject::default().with("type", "text").with("text", shown).into_raw()];
    blocks.extend(output.blocks().into_iter().filter(|block| !is_text(block)));
    let mut members = output.raw().object()?;
    members.set("content", RawJson::of(&blocks));
    ToolOutput::from_raw(members.into_raw())
}

fn is_text(block: &RawJson) -> bool {
    block.object().is_some_and(|members| members.get("type").is_some_and(|kind| kind.get() == "\"text\""))
}

/// The first hits as text, where there are more: of several blocks the first ones, of a JSON list the first entries.
fn first_hits(output: &ToolOutput, texts: &[String], hits: usize) -> Option<String> {
    if texts.len() > hits {
        return Some(texts[..hits].join("\n"));
    }
    let [text] = texts else { return None };
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        return fewer_entries(value, hits);
    }
    let listed = output.structured().is_some_and(|value| fewer_entries(value.value(), hits).is_some());
    listed.then(|| numbered(text, hits)).flatten()
}

/// A JSON list, or an object whose one long list is its hits, with the first entries only.
fn fewer_entries(mut value: serde_json::Value, hits: usize) -> Option<String> {
    let list = match &mut value {
        serde_json::Value::Array(list) => Some(list),
        serde_json::Value::Object(members) => members.values_mut().find_map(serde_json::Value::as_array_mut),
        _ => None,
    }?;
    (list.len() > hits).then(|| list.truncate(hits))?;
    Some(value.to_string())
}

/// A text whose hits begin with `1.`, `2.` and so on, without those after the last wanted one.
fn numbered(text: &str, hits: usize) -> Option<String> {
    let next = format!("\n{}. ", hits + 1);
    text.find(&next).map(|end| text[..end].trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> ToolOutput {
        ToolOutput::from_raw(RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn each_kind_has_its_limit() {
        let lengths = Lengths::default();
        let check = |tags: &[&str], expect: usize| {
            let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
            assert_eq!(lengths.of(&tags), expect, "{tags:?}");
        };
        check(&["calculate"], 100);
        check(&["read", "time"], 200);
        check(&["search", "web"], 500);
        check(&["history"], 1_000);
        check(&["table"], 500);
        check(&[], 500);
    }

    #[test]
    fn texts_are_cut_and_the_rest_stays() {
        let long = "这是一句话。".repeat(200);
        let raw = serde_json::json!({"content": [
            {"type": "text", "text": long},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a"},
        ], "structuredContent": {"n": 1}, "x-vendor": true});
        let short = brief(&output(&raw.to_string()), 500, None).unwrap();
        let text = short.texts().0.concat();
        assert!(text.chars().count() <= 500 && text.ends_with('。'), "{text}");
        assert_eq!(short.blocks().len(), 3);
        assert_eq!(short.raw().value()["x-vendor"], true);
        assert_eq!(short.structured().unwrap().get(), r#"{"n":1}"#);
        assert!(brief(&ToolOutput::text("short"), 500, None).is_none());
    }

    #[test]
    fn a_search_shows_its_first_hits() {
        let check = |given: serde_json::Value, expect: &str| {
            let short = brief(&output(&given.to_string()), 500, Some(3)).unwrap();
            assert_eq!(short.texts().0.concat(), expect);
        };
        let block = |text: &str| serde_json::json!({"type": "text", "text": text});
        let five: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|text| block(text)).collect();
        check(serde_json::json!({"content": five}), "a\nb\nc");
        check(serde_json::json!({"content": [block("[1,2,3,4]")]}), "[1,2,3]");
        check(
            serde_json::json!({"content": [block(r#"{"q":"x","results":[1,2,3,4]}"#)]}),
            r#"{"q":"x","results":[1,2,3]}"#,
        );
        let text = "1. a\n2. b\n3. c\n4. d\n5. e";
        let structured = serde_json::json!({"results": [1, 2, 3, 4, 5]});
        check(
            serde_json::json!({"content": [block(text)], "structuredContent": structured}),
            "1. a\n2. b\n3. c",
        );
    }
}
