//! The outcome of a call: the tool's unchanged output or an error, with its sources.

use std::time::Duration;

use crate::call::CallId;
use crate::error::ToolError;
use crate::json::{RawJson, RawObject};
use crate::lang::{Lang, Localize, LocalizedText};
use crate::millis::duration_millis;
pub use crate::output::ToolOutput;
use crate::record_id::RecordId;
use crate::source::Source;
use crate::tool::ToolName;

/// The result of one attempt.
#[derive(Debug, Clone)]
pub enum AttemptEnd {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed(ToolError),
    /// It was cancelled because its result was no longer needed.
    Cancelled,
}

/// One attempt to call a candidate.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    /// The source of the candidate.
    pub source: Source,
    /// Its tool; differs from the call's name if it was chosen by capability.
    pub tool: ToolName,
    /// The duration.
    pub took: Duration,
    /// The result.
    pub end: AttemptEnd,
}

impl AttemptRecord {
    /// The error, if it failed.
    pub fn error(&self) -> Option<&ToolError> {
        match &self.end {
            AttemptEnd::Failed(error) => Some(error),
            AttemptEnd::Succeeded | AttemptEnd::Cancelled => None,
        }
    }
}

/// The result of plausibility checks.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeVerification {
    /// Whether no issue was found.
    pub verified: bool,
    /// Confidence from 0 to 1.
    pub confidence: f64,
    /// The issues.
    pub issues: Vec<LocalizedText>,
}

/// How a result was merged from several.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthesis {
    /// Agreements and conflicts of the sources.
    pub note: LocalizedText,
    /// Whether the sources contradict each other.
    pub conflict: bool,
}

/// The outcome of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The output or the error.
    pub result: Result<ToolOutput, ToolError>,
    /// The sources of the output.
    pub sources: Vec<Source>,
    /// How the output was merged, if it has several sources.
    pub synthesis: Option<Synthesis>,
    /// The attempts.
    pub attempts: Vec<AttemptRecord>,
    /// Total duration.
    pub took: Duration,
    /// The handle of the full result.
    pub handle: Option<RecordId>,
    /// Whether the output is shorter than the full result.
    pub truncated: bool,
    /// The result of plausibility checks, if they ran.
    pub verification: Option<OutcomeVerification>,
    /// Corrections of the call's text and of its arguments.
    pub repaired: Vec<LocalizedText>,
}

impl Outcome {
    /// The outcome of a call that failed before any attempt.
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

    /// The first source of the output.
    pub fn source(&self) -> Option<&Source> {
        self.sources.first()
    }

    /// The outcome as JSON (`success`, `result`, `error`, `_meta`), with messages in `lang`.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let mut meta = self.meta(lang);
        let mut json = RawObject::default().with("success", self.success());
        match &self.result {
            Ok(output) => {
                json.set("result", output.result());
                json.set("error", RawJson::null());
                if output.texts().0.len() != 1 || !output.texts().1 {
                    json.set("content", RawJson::of(&output.blocks()));
                }
                if let Some(structured) = output.structured() {
                    json.set("structuredContent", structured.clone());
                }
            }
            Err(error) => {
                json.set("result", RawJson::null());
                json.set("error", error.localize(lang));
                meta.set("error_kind", error.kind());
                meta.set("effect", error.effect().name());
            }
        }
        json.with("_meta", meta)
    }

    fn meta(&self, lang: Lang) -> RawObject {
        let sources: Vec<String> = self.sources.iter().map(ToString::to_string).collect();
        let confidence = self.verification.as_ref().map(|verification| verification.confidence);
        let repaired: Vec<String> = self.repaired.iter().map(|note| note.localize(lang)).collect();
        let mut meta = RawObject::default()
            .with("source", RawJson::of(&sources.first()))
            .with("synthesized", self.synthesis.is_some())
            .with("source_count", sources.len() as u64)
            .with("sources", RawJson::of(&sources))
            .with("call_id", self.call_id.as_str())
            .with("attempts", self.attempts.len() as u64)
            .with("duration_ms", duration_millis(self.took))
            .with("truncated", self.truncated)
            .with("handle", RawJson::of(&self.handle.as_ref().map(RecordId::as_str)))
            .with("repaired", RawJson::of(&repaired))
            .with("confidence", RawJson::of(&confidence));
        if let Some(synthesis) = &self.synthesis {
            meta.set("synthesis", synthesis.note.localize(lang));
            meta.set("conflict", synthesis.conflict);
        }
        if let Some(verification) = &self.verification {
            meta.set("verified", verification.verified);
            let issues: Vec<String> = verification.issues.iter().map(|issue| issue.localize(lang)).collect();
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
                .with("error", error.localize(lang))
                .with("duration_ms", duration_millis(self.took)),
        )
    }
}
