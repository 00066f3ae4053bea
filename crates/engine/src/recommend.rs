//! Recommends tools from recorded calls. Pure.

use std::collections::HashMap;
use std::time::Duration;

use toolhub_core::ToolName;
use toolhub_core::call_log::{CallRecord, CallStatus};
use toolhub_core::lang::LocalizedText;

use crate::score::wilson_lower_bound;
use crate::verify::similarity;

/// Without a shared conversation, calls further apart than this are unrelated.
const MAX_FOLLOW_UP_GAP: Duration = Duration::from_secs(10 * 60);
/// Minimum similarity of two requests.
const MIN_SIMILARITY: f64 = 0.12;

/// The kind of recommendation.
#[derive(Debug, Clone, Copy)]
pub enum RecommendationQuery<'a> {
    /// Tools that usually follow this tool.
    After(&'a str),
    /// Tools that served similar requests.
    For(&'a str),
    /// Tools that work in general.
    Anything,
}

/// A recommended tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The name of the tool.
    pub tool: ToolName,
    /// From 0 to 1, higher is better.
    pub score: f64,
    /// Number of calls in this situation.
    pub calls: u64,
    /// Number of successes in this situation.
    pub successes: u64,
    /// The reason.
    pub why: LocalizedText,
}

#[derive(Default)]
struct ToolUsage {
    calls: u64,
    successes: u64,
    /// Successes, weighted by similarity.
    weight: f64,
    /// The most similar request.
    best: Option<(f64, String)>,
}

/// Recommended tools, best first. `calls` are newest first.
pub fn recommend(query: RecommendationQuery<'_>, calls: &[CallRecord]) -> Vec<Recommendation> {
    let mut seen: HashMap<&ToolName, ToolUsage> = HashMap::new();
    let mut total = 0.0;
    let mut count = |call: &'_ CallRecord, fit: f64, tool: &mut ToolUsage| {
        let success = call.status == CallStatus::Succeeded;
        tool.calls += 1;
        tool.successes += u64::from(success);
        tool.weight += if success { fit } else { 0.0 };
        total += fit;
    };
    match query {
        RecommendationQuery::After(name) => {
            for (first, next) in followed(calls) {
                if first.start.tool.as_str() == name && next.start.tool != first.start.tool {
                    count(next, 1.0, seen.entry(&next.start.tool).or_default());
                }
            }
        }
        RecommendationQuery::For(request) => {
            for call in calls {
                let Some(other) = &call.start.request else { continue };
                let fit = similarity(request, other);
                if fit >= MIN_SIMILARITY {
                    let tool = seen.entry(&call.start.tool).or_default();
                    count(call, fit, tool);
                    if call.status == CallStatus::Succeeded
                        && tool.best.as_ref().is_none_or(|(best, _)| fit > *best)
                    {
                        tool.best = Some((fit, other.clone()));
                    }
                }
            }
        }
        RecommendationQuery::Anything => {
            for call in calls {
                count(call, 1.0, seen.entry(&call.start.tool).or_default());
            }
        }
    }
    let mut advice: Vec<Recommendation> = seen
        .into_iter()
        .filter(|(_, tool)| tool.successes > 0)
        .map(|(name, tool)| {
            // Share of calls in this situation, and lower bound of the success rate.
            let share = tool.weight / f64::max(total, 1.0);
            let sure = wilson_lower_bound(tool.successes as f64, tool.calls as f64);
            let score = share.sqrt() * (0.5 + sure / 2.0);
            Recommendation {
                tool: name.clone(),
                score,
                calls: tool.calls,
                successes: tool.successes,
                why: why(query, &tool),
            }
        })
        .collect();
    advice.sort_by(|left, right| right.score.total_cmp(&left.score).then_with(|| left.tool.cmp(&right.tool)));
    advice
}

/// Pairs each call with the next one: in its conversation, or else within `MAX_FOLLOW_UP_GAP`.
fn followed(calls: &[CallRecord]) -> impl Iterator<Item = (&CallRecord, &CallRecord)> {
    // `calls` is newest first, so that the next call has a lower index.
    calls.iter().enumerate().filter_map(|(index, call)| {
        let next =
            calls[..index].iter().rev().find(|next| next.start.conversation == call.start.conversation)?;
        let soon = next.start.at.duration_since(call.start.at).is_ok_and(|gap| gap <= MAX_FOLLOW_UP_GAP);
        (call.start.conversation.is_some() || soon).then_some((call, next))
    })
}

fn why(query: RecommendationQuery<'_>, tool: &ToolUsage) -> LocalizedText {
    let (good, calls) = (tool.successes, tool.calls);
    match (query, &tool.best) {
        (RecommendationQuery::After(name), _) => LocalizedText::new(
            format!("came after `{name}` {calls} times, {good} of them successfully"),
            format!("在 `{name}` 之后用过 {calls} 次，成功 {good} 次"),
        ),
        (RecommendationQuery::For(_), Some((_, request))) => {
            let request = toolhub_core::text::truncate(request, 60).unwrap_or_else(|| request.clone());
            LocalizedText::new(
                format!("served requests like “{request}” ({good} of {calls} succeeded)"),
                format!("处理过类似的请求“{request}”（{calls} 次中成功 {good} 次）"),
            )
        }
        _ => LocalizedText::new(
            format!("{good} of {calls} calls succeeded"),
            format!("{calls} 次调用中成功 {good} 次"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};
    use toolhub_core::call_log::{CallStart, RecordId};
    use toolhub_core::{CallId, RawJson};

    /// Calls as a store returns them, newest first; `list` is oldest first: minute, tool, request, success.
    fn calls(list: &[(u64, &str, Option<&str>, bool)]) -> Vec<CallRecord> {
        let at = |minute: u64| -> SystemTime { UNIX_EPOCH + Duration::from_secs(1_000_000 + minute * 60) };
        list.iter()
            .rev()
            .map(|(minute, tool, request, success)| CallRecord {
                start: CallStart {
                    record: RecordId::generate(),
                    call: CallId::generate(),
                    tool: ToolName::new(*tool),
                    arguments: RawJson::empty_object(),
                    conversation: None,
                    request: request.map(str::to_owned),
                    strategy: "first".to_owned(),
                    candidates: Vec::new(),
                    may_change: false,
                    at: at(*minute),
                    authorization: toolhub_core::Authorization::default(),
                    parent: None,
                },
                status: if *success { CallStatus::Succeeded } else { CallStatus::Failed },
                took: None,
                error: None,
                sources: Vec::new(),
                attempts: Vec::new(),
            })
            .collect()
    }

    fn names(advice: &[Recommendation]) -> Vec<&str> {
        advice.iter().map(|one| one.tool.as_str()).collect()
    }

    #[test]
    fn recommends_tools_that_followed_successfully() {
        let calls = calls(&[
            (0, "open", None, true),
            (1, "write", None, true),
            (10, "open", None, true),
            (11, "write", None, true),
            (20, "open", None, true),
            (21, "read", None, true),
            (30, "open", None, true),
            (31, "broken", None, false),
            // An hour later: unrelated.
            (40, "open", None, true),
            (100, "other", None, true),
        ]);
        assert_eq!(names(&recommend(RecommendationQuery::After("open"), &calls)), ["write", "read"]);
        assert!(recommend(RecommendationQuery::After("nobody"), &calls).is_empty());
    }

    #[test]
    fn recommends_tools_of_similar_requests() {
        let calls = calls(&[
            (0, "weather", Some("北京明天的天气怎么样"), true),
            (1, "weather", Some("上海今天的天气"), true),
            (2, "calculate", Some("compute the sum of two numbers"), true),
            (3, "guess", Some("北京明天的天气怎么样"), false),
        ]);
        assert_eq!(
            names(&recommend(RecommendationQuery::For("广州明天的天气怎么样？"), &calls)),
            ["weather"]
        );
        assert_eq!(names(&recommend(RecommendationQuery::For("the sum of numbers"), &calls)), ["calculate"]);
        assert!(recommend(RecommendationQuery::For("book a flight"), &calls).is_empty());
        assert_eq!(names(&recommend(RecommendationQuery::Anything, &calls))[0], "weather");
    }
}
