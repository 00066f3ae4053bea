//! Uses of recorded calls: earlier results, full results, statistics, recommendations.

use std::time::Duration;

use toolhub_core::call_log::{CallQuery, CallRecord, CallStatus, RecordId};
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::ports::StoreError;
use toolhub_core::statistics::{StatisticsSummary, SummaryQuery, ToolStatistics};
use toolhub_core::{CallBy, Event, EventKind, Outcome, Source, ToolCall, ToolName, ToolOutput, json};
use toolhub_engine::recommend::{Recommendation, RecommendationQuery, recommend};
use toolhub_engine::verify::verify;

use crate::hub::Hub;

/// The number of earlier results that a new one is compared with.
const MAX_EARLIER_RESULTS: usize = 5;
/// The number of recent calls that recommendations are based on.
const MAX_RECENT_CALLS: usize = 5_000;

impl Hub {
    /// Shortens an outcome for a model to the limit of its kind. The full result is available by its handle.
    pub fn shorten(&self, outcome: Outcome) -> Outcome {
        let catalog = self.catalog();
        let source = outcome.source().cloned();
        let entry = catalog
            .named(outcome.tool.as_str())
            .find(|entry| Some(&entry.tool.source) == source.as_ref())
            .cloned();
        // For a call by capability there is no such tool: the capability itself is the tag.
        let tags = entry.map_or_else(|| vec![outcome.tool.to_string()], |entry| entry.tags().to_vec());
        self.settings.limits.result.output_limits().shorten(outcome, &tags)
    }

    /// Checks a result against earlier results of the same call, and its numbers, dates and times. Returns `None` if the call
    /// failed.
    pub async fn verify(&self, call: &ToolCall, outcome: &Outcome) -> Option<OutcomeVerification> {
        let answer = text_of(outcome.result.as_ref().ok()?);
        let earlier = match call.by {
            CallBy::Name => self.earlier_answers(call, outcome).await,
            CallBy::Capability => Vec::new(),
        };
        let mut verification = verify(&answer, &earlier);
        if let Some(synthesis) = &outcome.synthesis {
            if synthesis.conflict {
                verification.verified = false;
                verification.confidence = (verification.confidence - 0.3).max(0.05);
                verification.issues.push(synthesis.note.clone());
            } else {
                verification.confidence = (verification.confidence + 0.1).min(0.95);
            }
        }
        Some(verification)
    }

    /// Earlier results of the same call, newest first. Empty for tools that have side effects or depend on the time, whose
    /// results may differ.
    async fn earlier_answers(&self, call: &ToolCall, outcome: &Outcome) -> Vec<String> {
        let Some(store) = &self.store else { return Vec::new() };
        let catalog = self.catalog();
        let steady = catalog.named(call.tool.as_str()).all(|entry| {
            entry.tool.hints().read_only == Some(true) && !entry.tags().iter().any(|tag| tag == "time")
        });
        let Some(arguments) = json::canonical_json(call.arguments.get()).filter(|_| steady) else {
            return Vec::new();
        };
        let query = CallQuery {
            tool: Some(call.tool.to_string()),
            arguments: Some(arguments),
            status: Some(CallStatus::Succeeded),
            limit: Some(MAX_EARLIER_RESULTS + 1),
            ..CallQuery::default()
        };
        let mut answers = Vec::new();
        for record in store.calls(query).await.unwrap_or_default() {
            let id = record.start.record;
            if outcome.handle.as_ref() == Some(&id) || answers.len() == MAX_EARLIER_RESULTS {
                continue;
            }
            if let Ok(Some(output)) = store.output(&id).await
                && let Some(output) = ToolOutput::from_raw(output)
            {
                answers.push(text_of(&output));
            }
        }
        answers
    }

    /// The matching calls, newest first.
    pub async fn calls(&self, query: CallQuery) -> Result<Vec<CallRecord>, StoreError> {
        match &self.store {
            Some(store) => store.calls(query).await,
            None => Ok(Vec::new()),
        }
    }

    /// The start of the newest part of the history before a record, or of all of it; see
    /// [`toolhub_core::call_log::CallHistory::part_start`].
    pub async fn history_part(
        &self,
        before: Option<RecordId>,
        calls: usize,
    ) -> Result<Option<RecordId>, StoreError> {
        match &self.store {
            Some(store) => store.part_start(before, calls).await,
            None => Ok(None),
        }
    }

    /// A recorded call by its id.
    pub async fn call_record(&self, id: &RecordId) -> Result<Option<CallRecord>, StoreError> {
        // No id lies between this one and the same with one more character: ids have equal lengths.
        let before = RecordId::new(format!("{id}0"));
        let query = CallQuery { before: Some(before), limit: Some(1), ..CallQuery::default() };
        let candidate = self.calls(query).await?.into_iter().next();
        Ok(candidate.filter(|record| record.start.record == *id))
    }

    /// The full result behind a handle.
    pub async fn result(&self, handle: &RecordId) -> Result<Option<ToolOutput>, StoreError> {
        match &self.store {
            Some(store) => Ok(store.output(handle).await?.and_then(ToolOutput::from_raw)),
            None => Ok(None),
        }
    }

    /// The statistics of all tools.
    pub async fn statistics(&self) -> Result<Vec<ToolStatistics>, StoreError> {
        match &self.store {
            Some(store) => store.statistics().await,
            None => Ok(Vec::new()),
        }
    }

    /// The statistics of one tool at one source; `None` if it was never used.
    pub async fn tool_statistics(
        &self,
        source: &Source,
        tool: &ToolName,
    ) -> Result<Option<ToolStatistics>, StoreError> {
        match &self.store {
            Some(store) => store.tool_statistics(source, tool).await,
            None => Ok(None),
        }
    }

    /// Sums over the statistics of all tools.
    pub async fn statistics_summary(&self, query: SummaryQuery) -> Result<StatisticsSummary, StoreError> {
        match &self.store {
            Some(store) => store.statistics_summary(query).await,
            None => Ok(StatisticsSummary::default()),
        }
    }

    /// Recommends tools: after a tool, for a similar request, or in general.
    pub async fn recommend(
        &self,
        requested: RecommendationQuery<'_>,
        limit: usize,
    ) -> Result<Vec<Recommendation>, StoreError> {
        let query = CallQuery { limit: Some(MAX_RECENT_CALLS), ..CallQuery::default() };
        let calls = self.calls(query).await?;
        let catalog = self.catalog();
        let mut advice = recommend(requested, &calls);
        // Removed tools cannot be called.
        advice.retain(|recommendation| catalog.named(recommendation.tool.as_str()).next().is_some());
        advice.truncate(limit);
        Ok(advice)
    }

    /// Whether there may be several candidates, so that routing depends on statistics.
    pub(crate) fn depends_on_statistics(&self, by: CallBy, tool: &str) -> bool {
        by != CallBy::Name || self.catalog().named(tool).nth(1).is_some()
    }

    /// Reads the statistics of tools once, if the order of candidates depends on them.
    pub(crate) async fn load_statistics(&self, by: CallBy, tool: &str) {
        let Some(store) = &self.store else { return };
        if !self.depends_on_statistics(by, tool) {
            return;
        }
        let read = || async {
            match store.statistics().await {
                Ok(statistics) => self.engine.scores().load(statistics),
                Err(error) => self.report_error(&error),
            }
        };
        self.recalled.get_or_init(read).await;
    }

    /// Waits until pending writes are done, and signs the last checkpoint of the audit log: the store, which signs when it is
    /// closed, may still be in use when the process ends.
    pub(crate) async fn flush_store(&self, timeout: Duration) {
        let Some(store) = &self.store else { return };
        let flushed = async {
            store.flush().await?;
            match self.audit() {
                Some(audit) => audit.sign_checkpoint().await,
                None => Ok(()),
            }
        };
        match tokio::time::timeout(timeout, flushed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.report_error(&error),
            Err(_) => self.report_error(&StoreError("it took too long to write what happened".into())),
        }
        let lost = store.dropped_details();
        if lost > 0 {
            let detail = format!("{lost} calls are in the statistics, but their details could not be kept");
            self.events.emit(Event::now(None, EventKind::InternalError { detail }));
        }
    }

    fn report_error(&self, error: &StoreError) {
        self.events.emit(Event::now(None, EventKind::InternalError { detail: error.to_string() }));
    }
}

fn text_of(output: &ToolOutput) -> String {
    let (texts, _) = output.texts();
    if texts.is_empty() {
        return output.structured().map(|value| value.get().to_owned()).unwrap_or_default();
    }
    texts.join("\n")
}
