//! Concurrent strategy: the results of all candidates are merged. Once one has succeeded, the others have limited
//! time.

use std::time::Duration;

use tokio::time::Instant;
use toolhub_core::EventKind;
use toolhub_core::ports::MergeRequest;

use super::batch::Batch;
use super::{CallResult, Merged, RunningCall};
use crate::router::Route;
use crate::synthesis::{self, SourceResult};

/// Time left for the others after the first success.
const STRAGGLER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the model that merges texts.
const MODEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the first batch and merges the successes. If all fail, the remaining candidates are tried sequentially.
pub(crate) async fn run(run: RunningCall<'_>, route: &Route) -> CallResult {
    let mut batch = Batch::start(run, route);
    let mut straggler_deadline: Option<Instant> = None;
    loop {
        let deadline_passed = async {
            match straggler_deadline {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            more = batch.next() => if !more { break },
            () = deadline_passed => break,
        }
        if straggler_deadline.is_none() && batch.any_success() {
            straggler_deadline = Some(Instant::now() + STRAGGLER_TIMEOUT);
        }
    }
    let ended = batch.end();
    if ended.successes.is_empty() {
        return ended.rest().await;
    }
    let attempts = ended.attempts;
    let parts: Vec<SourceResult> = ended
        .successes
        .into_iter()
        .map(|(candidate, output)| SourceResult {
            source: candidate.source().clone(),
            tool: candidate.entry.tool.name().clone(),
            output,
        })
        .collect();
    let tags = route.candidates.first().map(|candidate| candidate.entry.tags()).unwrap_or_default();
    merge(run, parts, tags, attempts).await
}

async fn merge(
    run: RunningCall<'_>,
    mut parts: Vec<SourceResult>,
    tags: &[String],
    attempts: Vec<toolhub_core::outcome::AttemptRecord>,
) -> CallResult {
    if parts.len() == 1 {
        let part = parts.remove(0);
        let (result, sources) = (Ok(part.output), vec![part.source]);
        return CallResult { result, sources, attempts, merged: None, ended: None };
    }
    let merged_text = merge_with_model(run, &parts, tags).await;
    let synthesized = synthesis::merge(&parts, merged_text.as_deref());
    let sources: Vec<_> = parts.into_iter().map(|part| part.source).collect();
    run.emit(EventKind::Merged { sources: sources.clone(), note: synthesized.synthesis.note.clone() });
    let merged = Merged { synthesis: synthesized.synthesis, full_output: synthesized.full_output };
    CallResult { result: Ok(synthesized.output), sources, attempts, merged: Some(merged), ended: None }
}

/// The texts merged by a model, if one is configured and the texts are few, short and different.
async fn merge_with_model(run: RunningCall<'_>, parts: &[SourceResult], tags: &[String]) -> Option<String> {
    let model = run.engine.synthesizer()?;
    let texts = synthesis::texts_for_model(parts, tags)?;
    let request = MergeRequest { tool: run.call.tool.clone(), request: run.call.request.clone(), texts };
    let merged_text = tokio::time::timeout(MODEL_TIMEOUT, model.merge(request)).await;
    match merged_text {
        Ok(Ok(merged_text)) if !merged_text.trim().is_empty() => Some(merged_text),
        Ok(Ok(_)) => None,
        Ok(Err(error)) => {
            run.emit(EventKind::InternalError { detail: format!("the model could not merge: {error}") });
            None
        }
        Err(_) => {
            run.emit(EventKind::InternalError { detail: "the model took too long to merge".to_owned() });
            None
        }
    }
}
