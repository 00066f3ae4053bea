//! The raw output of a tool, with views of its content.

use std::sync::OnceLock;

use crate::json::{RawJson, RawObject};

/// The raw output of a tool: an object with `content` blocks and optionally `structuredContent`.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    raw: RawJson,
    /// Parsed on first use; forwarding an output needs no parsing.
    members: OnceLock<RawObject>,
}

impl ToolOutput {
    /// Wraps a raw output; `None` if it is not an object.
    pub fn from_raw(raw: RawJson) -> Option<Self> {
        raw.is_object().then(|| Self { raw, members: OnceLock::new() })
    }

    fn members(&self) -> &RawObject {
        self.members.get_or_init(|| self.raw.object().unwrap_or_default())
    }

    /// An output with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        let members = RawObject::default().with("content", RawJson::of(&[text_block(text.into())]));
        Self { raw: RawJson::of(&members), members: members.into() }
    }

    /// An output with a structured value, and its JSON as text.
    pub fn json(value: impl Into<RawJson>) -> Self {
        let value = value.into();
        let mut members =
            RawObject::default().with("content", RawJson::of(&[text_block(value.get().to_owned())]));
        if value.is_object() {
            members.set("structuredContent", value);
        }
        Self { raw: RawJson::of(&members), members: members.into() }
    }

    /// The raw output.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Converts to the raw output.
    pub fn into_raw(self) -> RawJson {
        self.raw
    }

    /// The content blocks.
    pub fn blocks(&self) -> Vec<RawJson> {
        self.members().get("content").and_then(|content| content.decode().ok()).unwrap_or_default()
    }

    /// The structured content, if there is any.
    pub fn structured(&self) -> Option<&RawJson> {
        self.members().get("structuredContent").filter(|value| value.get() != "null")
    }

    /// Whether the tool reports an error (`isError`).
    pub fn is_error(&self) -> bool {
        self.raw.might_contain("isError", "true")
            && self.members().get("isError").is_some_and(|flag| flag.get() == "true")
    }

    /// The texts of the text blocks, and whether all blocks are text.
    pub fn texts(&self) -> (Vec<String>, bool) {
        let blocks = self.blocks();
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        let only = texts.len() == blocks.len();
        (texts, only)
    }

    /// The output as one value: its text if all blocks are text, else its structured content, else its blocks.
    pub fn result(&self) -> RawJson {
        match self.texts() {
            (texts, true) if !texts.is_empty() => RawJson::from(texts.join("\n")),
            (_, true) => self.structured().cloned().unwrap_or_else(RawJson::null),
            (_, false) => RawJson::of(&self.blocks()),
        }
    }
}

fn text_block(text: String) -> RawObject {
    RawObject::default().with("type", "text").with("text", text)
}

fn text_of(block: &RawJson) -> Option<String> {
    let block = block.object()?;
    let is_text = block.get("type").is_some_and(|kind| kind.get() == "\"text\"");
    is_text.then(|| block.get("text")?.decode().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> ToolOutput {
        ToolOutput::from_raw(RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn joins_text_blocks_into_result() {
        let check = |input: &str, expect: &str| assert_eq!(output(input).result().get(), expect);
        check(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, r#""a\nb""#);
        check(r#"{"content":[],"structuredContent":{"n":1}}"#, r#"{"n":1}"#);
        check(r#"{"content":[{"type":"hologram","x":1}]}"#, r#"[{"type":"hologram","x":1}]"#);
        check("{}", "null");
    }

    #[test]
    fn json_output_has_text_and_structured_content() {
        let output = ToolOutput::json(serde_json::json!({"n": 1}));
        assert_eq!(output.structured().unwrap().get(), r#"{"n":1}"#);
        assert_eq!(output.result().get(), r#""{\"n\":1}""#);
    }
}
