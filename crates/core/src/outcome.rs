//! What a call came to: the tool's output as it was given, or a failure, and where it came from.

use std::sync::OnceLock;
use std::time::Duration;

use crate::call::CallId;
use crate::error::ToolError;
use crate::json::{RawJson, RawObject};
use crate::lang::{Lang, Say, Text};
use crate::memory::RecordId;
use crate::source::Source;
use crate::tool::ToolName;

/// What a tool gave back, as it gave it: an object with `content` blocks and perhaps `structuredContent`.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    raw: RawJson,
    /// Read when first asked for: who only hands an output on need not.
    members: OnceLock<RawObject>,
}

impl ToolOutput {
    /// An output as its source gave it; `None` where it is not an object.
    pub fn from_raw(raw: RawJson) -> Option<Self> {
        raw.is_object().then(|| Self { raw, members: OnceLock::new() })
    }

    fn members(&self) -> &RawObject {
        self.members.get_or_init(|| self.raw.object().unwrap_or_default())
    }

    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        let members = RawObject::default().with("content", RawJson::of(&[text_block(text.into())]));
        Self { raw: RawJson::of(&members), members: members.into() }
    }

    /// A structured value, with its JSON as text for readers that want one.
    pub fn json(value: impl Into<RawJson>) -> Self {
        let value = value.into();
        let mut members =
            RawObject::default().with("content", RawJson::of(&[text_block(value.get().to_owned())]));
        if value.is_object() {
            members.set("structuredContent", value);
        }
        Self { raw: RawJson::of(&members), members: members.into() }
    }

    /// The output as it was given.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The same, for who needs nothing else of it.
    pub fn into_raw(self) -> RawJson {
        self.raw
    }

    /// The content blocks.
    pub fn blocks(&self) -> Vec<RawJson> {
        self.members().get("content").and_then(|content| content.decode().ok()).unwrap_or_default()
    }

    /// The structured content, where there is some.
    pub fn structured(&self) -> Option<&RawJson> {
        self.members().get("structuredContent").filter(|value| value.get() != "null")
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.raw.might_contain("isError", "true")
            && self.members().get("isError").is_some_and(|flag| flag.get() == "true")
    }

    /// The texts of the text blocks, and whether there was nothing but text.
    pub fn texts(&self) -> (Vec<String>, bool) {
        let blocks = self.blocks();
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        let only = texts.len() == blocks.len();
        (texts, only)
    }

    /// The output as one value: its text where it is nothing but text, else its structured content, else its
    /// blocks.
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

/// How one try of one candidate ended.
#[derive(Debug, Clone)]
pub enum AttemptEnd {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed(ToolError),
    /// It was not needed any more, and was told so.
    Cancelled,
}

/// One try of one candidate.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    /// Where the candidate lives.
    pub source: Source,
    /// Its tool; another name than the call's where it was chosen by capability.
    pub tool: ToolName,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub end: AttemptEnd,
}

impl AttemptRecord {
    /// Why it failed, if it did.
    pub fn error(&self) -> Option<&ToolError> {
        match &self.end {
            AttemptEnd::Failed(error) => Some(error),
            AttemptEnd::Succeeded | AttemptEnd::Cancelled => None,
        }
    }
}

/// What is held of an answer's truth.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// Whether nothing speaks against it.
    pub verified: bool,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What speaks against it.
    pub issues: Vec<Text>,
}

/// How an answer was made of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthesis {
    /// In words: who agrees, who differs.
    pub note: Text,
    /// Whether the sources contradict one another.
    pub conflict: bool,
}

/// What a call came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which call.
    pub call_id: CallId,
    /// Which tool.
    pub tool: ToolName,
    /// The output, or why there is none.
    pub result: Result<ToolOutput, ToolError>,
    /// Where the output came from.
    pub sources: Vec<Source>,
    /// How it was made, where it was made of several.
    pub synthesis: Option<Synthesis>,
    /// What was tried.
    pub attempts: Vec<AttemptRecord>,
    /// How long it all took.
    pub took: Duration,
    /// Where the full result is kept.
    pub handle: Option<RecordId>,
    /// Whether the output is less than the full result.
    pub truncated: bool,
    /// What is held of its truth, where that was looked into.
    pub verification: Option<Verification>,
    /// What was mended, in the call's text and in its arguments.
    pub repaired: Vec<Text>,
}

impl Outcome {
    /// The outcome of a call that never got as far as a tool.
    pub fn refused(call_id: CallId, tool: ToolName, error: ToolError) -> Self {
        Self {
            call_id,
            tool,
            result: Err(error),
            sources: Vec::new(),
            synthesis: None,
            attempts: Vec::new(),
            took: Duration::ZERO,
            handle: None,
            truncated: false,
            verification: None,
            repaired: Vec::new(),
        }
    }

    /// Whether the call succeeded.
    pub fn success(&self) -> bool {
        self.result.is_ok()
    }

    /// Where the output came from, first where it came from several.
    pub fn source(&self) -> Option<&Source> {
        self.sources.first()
    }

    /// The outcome as programs see it (`success`, `result`, `error`, `_meta`), messages in `lang`.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let mut meta = self.meta(lang);
        let mut shown = RawObject::default().with("success", self.success());
        match &self.result {
            Ok(output) => {
                shown.set("result", output.result());
                shown.set("error", RawJson::null());
                if output.texts().0.len() != 1 || !output.texts().1 {
                    shown.set("content", RawJson::of(&output.blocks()));
                }
                if let Some(structured) = output.structured() {
                    shown.set("structuredContent", structured.clone());
                }
            }
            Err(error) => {
                shown.set("result", RawJson::null());
                shown.set("error", error.say(lang));
                meta.set("error_kind", error.kind());
                meta.set("effect", error.effect().name());
            }
        }
        shown.with("_meta", meta)
    }

    fn meta(&self, lang: Lang) -> RawObject {
        let sources: Vec<String> = self.sources.iter().map(ToString::to_string).collect();
        let confidence = self.verification.as_ref().map(|found| found.confidence);
        let repaired: Vec<String> = self.repaired.iter().map(|mended| mended.say(lang)).collect();
        let mut meta = RawObject::default()
            .with("source", RawJson::of(&sources.first()))
            .with("synthesized", self.synthesis.is_some())
            .with("source_count", sources.len() as u64)
            .with("sources", RawJson::of(&sources))
            .with("call_id", self.call_id.as_str())
            .with("attempts", self.attempts.len() as u64)
            .with("duration_ms", self.took.as_millis() as u64)
            .with("truncated", self.truncated)
            .with("handle", RawJson::of(&self.handle.as_ref().map(RecordId::as_str)))
            .with("repaired", RawJson::of(&repaired))
            .with("confidence", RawJson::of(&confidence));
        if let Some(synthesis) = &self.synthesis {
            meta.set("synthesis", synthesis.note.say(lang));
            meta.set("conflict", synthesis.conflict);
        }
        if let Some(found) = &self.verification {
            meta.set("verified", found.verified);
            let issues: Vec<String> = found.issues.iter().map(|issue| issue.say(lang)).collect();
            meta.set("issues", RawJson::of(&issues));
        }
        let failed: Vec<RawObject> =
            self.attempts.iter().filter_map(|attempt| attempt.failure(lang)).collect();
        if !failed.is_empty() {
            meta.set("failed", RawJson::of(&failed));
        }
        let cancelled: Vec<String> = self
            .attempts
            .iter()
            .filter(|attempt| matches!(attempt.end, AttemptEnd::Cancelled))
            .map(|attempt| attempt.source.to_string())
            .collect();
        if !cancelled.is_empty() {
            meta.set("cancelled", RawJson::of(&cancelled));
        }
        meta
    }
}

impl AttemptRecord {
    fn failure(&self, lang: Lang) -> Option<RawObject> {
        let error = self.error()?;
        Some(
            RawObject::default()
                .with("source", self.source.to_string())
                .with("error_kind", error.kind())
                .with("error", error.say(lang))
                .with("duration_ms", self.took.as_millis() as u64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> ToolOutput {
        ToolOutput::from_raw(RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_result_is_text_where_it_is_text() {
        let check = |given: &str, expect: &str| assert_eq!(output(given).result().get(), expect);
        check(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, r#""a\nb""#);
        check(r#"{"content":[],"structuredContent":{"n":1}}"#, r#"{"n":1}"#);
        check(r#"{"content":[{"type":"hologram","x":1}]}"#, r#"[{"type":"hologram","x":1}]"#);
        check("{}", "null");
    }

    #[test]
    fn json_output_is_structured_too() {
        let output = ToolOutput::json(serde_json::json!({"n": 1}));
        assert_eq!(output.structured().unwrap().get(), r#"{"n":1}"#);
        assert_eq!(output.result().get(), r#""{\"n\":1}""#);
    }
}
