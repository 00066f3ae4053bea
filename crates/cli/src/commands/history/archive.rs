//! Where recorded calls are read from: the store of this machine, or a running hub.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::Deserialize;
use toolhub::{Hub, ToolOutput};
use toolhub_core::call_log::{
    AttemptStatus, CallQuery, CallRecord, CallStart, CallStatus, RecordId, StoredAttempt,
};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::Authorization;
use toolhub_core::statistics::{CallTally, Day, LatencyHistogram, ToolStatistics};
use toolhub_core::{CallId, RawJson, Source, ToolName};

use crate::commands::through_hub::servers::parse_time;
use crate::hub_api::{ApiPath, HubApi};

/// The maximum number of calls on a page of the API.
const PAGE_SIZE: usize = 500;

/// A source of recorded calls.
pub(crate) enum CallArchive<'a> {
    /// The store of this machine.
    Local(&'a Hub),
    /// The hub that `--hub` names.
    Remote(&'a HubApi),
}

/// A recorded call and its relatives.
#[derive(Debug)]
pub(crate) struct ArchivedCall {
    pub(crate) call: CallRecord,
    /// The record of the call that made it, if there is one.
    pub(crate) parent: Option<RecordId>,
    /// The calls that it made, oldest first.
    pub(crate) nested: Vec<NestedCall>,
}

/// A call that another call made.
#[derive(Debug)]
pub(crate) struct NestedCall {
    pub(crate) record: RecordId,
    pub(crate) tool: ToolName,
    pub(crate) status: CallStatus,
    pub(crate) took: Option<Duration>,
    pub(crate) error: Option<LocalizedText>,
}

/// A call as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteCall {
    id: String,
    tool: String,
    status: String,
    principal: String,
    started_at: String,
    took_ms: Option<f64>,
    sources: Vec<String>,
    error: Option<String>,
    request: Option<String>,
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    error_kind: Option<String>,
    arguments: RawJson,
    strategy: String,
    candidates: Vec<String>,
    may_change: bool,
    conversation: Option<String>,
    #[serde(default)]
    parent: Option<String>,
    rule: Option<String>,
    approver: Option<String>,
    attempts: Vec<RemoteAttempt>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    nested: Option<Vec<RemoteNestedCall>>,
    #[serde(default)]
    result: Option<RawJson>,
}

/// A nested call as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteNestedCall {
    id: String,
    tool: String,
    status: String,
    took_ms: Option<f64>,
    error: Option<String>,
}

/// An attempt as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteAttempt {
    source: String,
    tool: String,
    status: String,
    took_ms: f64,
    error: Option<String>,
    #[serde(default)]
    error_kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RemoteStats {
    statistics: Vec<RemoteStatistics>,
}

/// The statistics of a tool as the API describes them.
#[derive(Debug, Deserialize)]
struct RemoteStatistics {
    tool: String,
    source: String,
    days: Vec<(i64, u64, u64)>,
    latency: Vec<(u8, u64)>,
    last_success: Option<String>,
    last_failure: Option<String>,
}

fn duration(millis: f64) -> Duration {
    Duration::from_micros((millis * 1_000.0).round() as u64)
}

fn error(kind: Option<String>, text: Option<String>) -> Option<(String, LocalizedText)> {
    text.map(|text| (kind.unwrap_or_default(), LocalizedText::from(text)))
}

fn sources(names: &[String]) -> Vec<Source> {
    names.iter().map(|name| Source::from_name(name)).collect()
}

impl From<RemoteCall> for CallRecord {
    fn from(call: RemoteCall) -> Self {
        let attempt = |attempt: RemoteAttempt| StoredAttempt {
            source: Source::from_name(&attempt.source),
            tool: ToolName::new(attempt.tool),
            status: AttemptStatus::from_name(&attempt.status).unwrap_or(AttemptStatus::Failed),
            took: duration(attempt.took_ms),
            error: error(attempt.error_kind, attempt.error),
        };
        let authorization = Authorization {
            principal: Arc::from(call.principal),
            rule: call.rule.map(Arc::from),
            approver: call.approver.map(Arc::from),
        };
        let start = CallStart {
            record: RecordId::new(call.id),
            call: CallId::new(call.call_id),
            tool: ToolName::new(call.tool),
            arguments: call.arguments,
            conversation: call.conversation,
            request: call.request,
            strategy: call.strategy,
            candidates: sources(&call.candidates),
            may_change: call.may_change,
            at: parse_time(&call.started_at).unwrap_or(SystemTime::UNIX_EPOCH),
            authorization,
            parent: call.parent.map(CallId::new),
        };
        Self {
            start,
            status: CallStatus::from_name(&call.status).unwrap_or(CallStatus::Unknown),
            took: call.took_ms.map(duration),
            error: error(call.error_kind, call.error),
            sources: sources(&call.sources),
            attempts: call.attempts.into_iter().map(attempt).collect(),
        }
    }
}

impl From<RemoteCall> for ArchivedCall {
    fn from(mut call: RemoteCall) -> Self {
        let nested = call.nested.take().unwrap_or_default().into_iter().map(NestedCall::from).collect();
        let parent = call.parent_id.take().map(RecordId::new);
        Self { call: call.into(), parent, nested }
    }
}

impl From<CallRecord> for NestedCall {
    fn from(call: CallRecord) -> Self {
        let CallRecord { start, status, took, error, .. } = call;
        Self { record: start.record, tool: start.tool, status, took, error: error.map(|(_, text)| text) }
    }
}

impl From<RemoteNestedCall> for NestedCall {
    fn from(call: RemoteNestedCall) -> Self {
        Self {
            record: RecordId::new(call.id),
            tool: ToolName::new(call.tool),
            status: CallStatus::from_name(&call.status).unwrap_or(CallStatus::Unknown),
            took: call.took_ms.map(duration),
            error: call.error.map(LocalizedText::from),
        }
    }
}

impl From<RemoteStatistics> for ToolStatistics {
    fn from(remote: RemoteStatistics) -> Self {
        let mut latency = LatencyHistogram::default();
        remote.latency.iter().for_each(|(bucket, count)| latency.add(*bucket, *count));
        let day = |(day, successes, failures): &(i64, u64, u64)| {
            (Day(*day), CallTally { successes: *successes, failures: *failures })
        };
        Self {
            days: remote.days.iter().map(day).collect(),
            latency,
            last_success: remote.last_success.as_deref().and_then(parse_time),
            last_failure: remote.last_failure.as_deref().and_then(parse_time),
            ..Self::new(Source::from_name(&remote.source), ToolName::new(remote.tool))
        }
    }
}

/// A call of a hub; `None` if there is no such call.
async fn remote_call(api: &HubApi, record: &RecordId) -> anyhow::Result<Option<RemoteCall>> {
    let found = async { api.get(&ApiPath::item("calls", record.as_str(), "")?, &[]).await };
    match found.await {
        Ok(call) => Ok(Some(call)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl CallArchive<'_> {
    /// The matching calls, newest first.
    pub(crate) async fn calls(&self, query: CallQuery) -> anyhow::Result<Vec<CallRecord>> {
        let api = match self {
            Self::Local(hub) => return Ok(hub.calls(query).await?),
            Self::Remote(api) => api,
        };
        if query.limit == Some(0) {
            return Ok(Vec::new());
        }
        let limit = query.limit.unwrap_or(PAGE_SIZE).min(PAGE_SIZE).to_string();
        let since =
            query.since.and_then(|since| Timestamp::try_from(since).ok()).map(|since| since.to_string());
        let filters = [
            ("tool", query.tool.as_deref()),
            ("source", query.source.as_deref()),
            ("status", query.status.map(CallStatus::name)),
            ("conversation", query.conversation.as_deref()),
            ("principal", query.principal.as_deref()),
            ("parent", query.parent.as_deref()),
            ("text", query.text.as_deref()),
            ("since", since.as_deref()),
            ("cursor", query.before.as_ref().map(RecordId::as_str)),
            ("details", Some("true")),
            ("limit", Some(limit.as_str())),
        ];
        let filters: Vec<(&str, &str)> =
            filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let calls: Vec<RemoteCall> = api.get_all(&ApiPath::new("calls"), &filters, query.limit).await?;
        Ok(calls.into_iter().map(CallRecord::from).collect())
    }

    /// A call and its relatives; `None` if there is no such call.
    pub(crate) async fn find(&self, record: &RecordId) -> anyhow::Result<Option<ArchivedCall>> {
        let hub = match self {
            Self::Local(hub) => hub,
            Self::Remote(api) => return Ok(remote_call(api, record).await?.map(ArchivedCall::from)),
        };
        let Some(call) = hub.call_record(record).await? else { return Ok(None) };
        let parent = hub.parent_call(&call).await?.map(|parent| parent.start.record);
        let nested = hub.nested_calls(&call).await?.into_iter().map(NestedCall::from).collect();
        Ok(Some(ArchivedCall { call, parent, nested }))
    }

    /// The full result of a call; `None` if there is none.
    pub(crate) async fn result(&self, record: &RecordId) -> anyhow::Result<Option<ToolOutput>> {
        let api = match self {
            Self::Local(hub) => return Ok(hub.result(record).await?),
            Self::Remote(api) => api,
        };
        let found = remote_call(api, record).await?;
        Ok(found.and_then(|call| call.result).and_then(ToolOutput::from_raw))
    }

    /// The statistics of all tools.
    pub(crate) async fn statistics(&self) -> anyhow::Result<Vec<ToolStatistics>> {
        let api = match self {
            Self::Local(hub) => return Ok(hub.statistics().await?),
            Self::Remote(api) => api,
        };
        let stats: RemoteStats = api.get(&ApiPath::new("stats"), &[("details", "true")]).await?;
        Ok(stats.statistics.into_iter().map(ToolStatistics::from).collect())
    }
}
