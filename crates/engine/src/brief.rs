//! Shortens results for a model's context: limits characters by kind of tool and cuts at a sentence end. Blocks other
//! than text are kept; the full result stays available by its handle.

use toolhub_core::text::truncate;
use toolhub_core::{Outcome, RawJson, RawObject, ToolOutput};

/// Maximum characters of a result that a model receives, by kind of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Calculations.
    pub calculate: usize,
    /// Times.
    pub time: usize,
    /// Search results.
    pub search: usize,
    /// Number of search hits.
    pub hits: usize,
    /// Conversation history.
    pub history: usize,
    /// Instructions and files of skills.
    pub skills: usize,
    /// Everything else.
    pub other: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { calculate: 100, time: 200, search: 500, hits: 3, history: 1_000, skills: 24_000, other: 500 }
    }
}

impl OutputLimits {
    /// The limit for a tool with these `tags`: the first tag that has its own limit decides.
    pub fn of(&self, tags: &[String]) -> usize {
        let tag_limit = tags.iter().find_map(|tag| match tag.as_str() {
            "calculate" => Some(self.calculate),
            "time" => Some(self.time),
            "search" => Some(self.search),
            "history" => Some(self.history),
            "skills" => Some(self.skills),
            _ => None,
        });
        tag_limit.unwrap_or(self.other)
    }

    /// Shortens the outcome of a tool with these `tags`.
    #[must_use]
    pub fn shorten(&self, outcome: Outcome, tags: &[String]) -> Outcome {
        let hits = tags.iter().any(|tag| tag == "search").then_some(self.hits);
        let Ok(output) = &outcome.result else { return outcome };
        match shorten_output(output, self.of(tags), hits) {
            Some(short) => Outcome { result: Ok(short), truncated: true, ..outcome },
            None => outcome,
        }
    }
}

/// Returns the output with at most `limit` characters of text and, if it lists hits, at most `hits` of them; `None`
/// if it is already within the limits.
pub fn shorten_output(output: &ToolOutput, limit: usize, hits: Option<usize>) -> Option<ToolOutput> {
    let (texts, _) = output.texts();
    let text = texts.join("\n");
    let fewer = hits.and_then(|hits| first_hits(output, &texts, hits));
    let text = fewer.clone().unwrap_or(text);
    let shortened = match truncate(&text, limit) {
        Some(short) => short,
        None => fewer?,
    };
    let mut blocks = vec![RawObject::default().with("type", "text").with("text", shortened).into_raw()];
    blocks.extend(output.blocks().into_iter().filter(|block| !is_text(block)));
    let mut members = output.raw().object()?;
    members.set("content", RawJson::of(&blocks));
    ToolOutput::from_raw(members.into_raw())
}

fn is_text(block: &RawJson) -> bool {
    block.object().is_some_and(|members| members.get("type").is_some_and(|kind| kind.get() == "\"text\""))
}

/// The first hits as text, if there are more: the first blocks, or the first entries of a JSON list.
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

/// Truncates a JSON list, or the first list in an object.
fn fewer_entries(mut value: serde_json::Value, hits: usize) -> Option<String> {
    let list = match &mut value {
        serde_json::Value::Array(list) => Some(list),
        serde_json::Value::Object(members) => members.values_mut().find_map(serde_json::Value::as_array_mut),
        _ => None,
    }?;
    (list.len() > hits).then(|| list.truncate(hits))?;
    Some(value.to_string())
}

/// Truncates a text whose hits are numbered `1.`, `2.` and so on.
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
    fn selects_limit_by_tag() {
        let lengths = OutputLimits::default();
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
    fn cuts_texts_and_keeps_other_content() {
        let long = "这是一句话。".repeat(200);
        let raw = serde_json::json!({"content": [
            {"type": "text", "text": long},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a"},
        ], "structuredContent": {"n": 1}, "x-vendor": true});
        let short = shorten_output(&output(&raw.to_string()), 500, None).unwrap();
        let text = short.texts().0.concat();
        assert!(text.chars().count() <= 500 && text.ends_with('。'), "{text}");
        assert_eq!(short.blocks().len(), 3);
        assert_eq!(short.raw().value()["x-vendor"], true);
        assert_eq!(short.structured().unwrap().get(), r#"{"n":1}"#);
        assert!(shorten_output(&ToolOutput::text("short"), 500, None).is_none());
    }

    #[test]
    fn shortens_search_result_to_first_hits() {
        let check = |input: serde_json::Value, expect: &str| {
            let short = shorten_output(&output(&input.to_string()), 500, Some(3)).unwrap();
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
