//! `calls`: the history.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub_core::call_log::{CallQuery, CallRecord, CallStatus, RecordId, StoredAttempt};
use toolhub_core::json::canonical_json;
use toolhub_core::principal::LOCAL;
use toolhub_core::{Lang, Localize as _, RawJson};

use super::{CURSOR, DETAILS, LIMIT, Page, SINCE, millis, timestamp};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::{Parameter, json_response};

const DEFAULT_PAGE_CALLS: usize = 50;
const MAX_PAGE_CALLS: usize = 500;
const MAX_CALL_ID_BYTES: usize = 64;
/// Number of calls that are searched at once, so that other queries do not wait long.
const PART_CALLS: usize = 10_000;
/// Number of calls that are read at once for a principal that may not see all of their arguments.
const VISIBLE_PART_CALLS: usize = 500;
/// The time after which a search returns what it has found. Another request continues it.
const SEARCH_TIME: Duration = Duration::from_millis(50);
/// Maximum number of calls that a call can be compared with.
const MAX_OTHERS: usize = 20;

/// The query parameters of the list.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter { name: "tool", description: "Only calls of this tool.", r#type: "string" },
    Parameter { name: "source", description: "Only calls answered at this source.", r#type: "string" },
    Parameter {
        name: "status",
        description: "`running`, `succeeded`, `failed` or `unknown`.",
        r#type: "string",
    },
    Parameter { name: "principal", description: "Only calls of this principal.", r#type: "string" },
    Parameter { name: "conversation", description: "Only calls of this conversation.", r#type: "string" },
    Parameter {
        name: "parent",
        description: "Only calls that the call with this `call_id` made.",
        r#type: "string",
    },
    Parameter {
        name: "text",
        description: "Only calls whose request, arguments or tool contain this text.",
        r#type: "string",
    },
    SINCE,
    DETAILS,
    LIMIT,
    CURSOR,
];

/// A call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Call {
    /// The id of the record.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// `running`, `succeeded`, `failed` or `unknown`.
    pub(crate) status: String,
    /// The id of the principal that made it.
    pub(crate) principal: String,
    pub(crate) started_at: String,
    pub(crate) took_ms: Option<f64>,
    /// The sources of the result.
    pub(crate) sources: Vec<String>,
    /// The sources that were tried, in order; those that could have been, if none was.
    pub(crate) tried: Vec<String>,
    pub(crate) error: Option<String>,
    /// The request in natural language that it served.
    pub(crate) request: Option<String>,
    /// The `call_id` of the call that made it, if a tool did.
    pub(crate) parent: Option<String>,
}

/// An attempt of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Attempt {
    pub(crate) source: String,
    pub(crate) tool: String,
    /// `succeeded`, `failed` or `cancelled`.
    pub(crate) status: String,
    pub(crate) took_ms: f64,
    pub(crate) error: Option<String>,
    /// The kind of the error.
    pub(crate) error_kind: Option<String>,
}

/// A call in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ListedCall {
    /// With what is stored about it, apart from its result.
    Detailed(Box<CallDetail>),
    Brief(Box<Call>),
}

/// A call with everything that is stored about it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CallDetail {
    #[serde(flatten)]
    pub(crate) call: Call,
    /// The id that its caller gave it.
    pub(crate) call_id: String,
    /// The kind of the error.
    pub(crate) error_kind: Option<String>,
    #[schemars(with = "serde_json::Value")]
    pub(crate) arguments: RawJson,
    pub(crate) strategy: String,
    /// The sources of the candidates, in the order in which they are tried.
    pub(crate) candidates: Vec<String>,
    pub(crate) may_change: bool,
    pub(crate) conversation: Option<String>,
    /// The rule that allowed it.
    pub(crate) rule: Option<String>,
    /// The principal that approved it.
    pub(crate) approver: Option<String>,
    pub(crate) attempts: Vec<Attempt>,
    /// The id of the call that made it, if that is stored; `null` in lists.
    pub(crate) parent_id: Option<String>,
    /// The calls that it made, oldest first; `null` in lists.
    pub(crate) nested: Option<Vec<Call>>,
    /// The result as the source sent it, if it is stored.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) result: Option<RawJson>,
}

pub(crate) async fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let Page { items, next } = selected(context).await?.page;
    let with_details = context.query.flag(DETAILS.name)?;
    let listed = |record: &CallRecord| match with_details {
        true => ListedCall::Detailed(Box::new(detail(context, record))),
        false => ListedCall::Brief(Box::new(call(record, context.lang))),
    };
    Ok(json_response(StatusCode::OK, &Page { items: items.iter().map(listed).collect(), next }))
}

/// One page of the calls that the principal may see, by the query of the request.
pub(crate) async fn page(context: &ConsoleContext<'_>) -> Result<CallPage, Problem> {
    let Selection { page: Page { items, next }, is_partial } = selected(context).await?;
    let items = items.iter().map(|record| call(record, context.lang)).collect();
    Ok(CallPage { page: Page { items, next }, is_partial })
}

/// A page of calls.
pub(crate) type CallPage = Selection<Call>;

/// The calls of one page.
pub(crate) struct Selection<T> {
    pub(crate) page: Page<T>,
    /// Whether the search ended before the page was full; `next` continues it.
    pub(crate) is_partial: bool,
}

async fn selected(context: &ConsoleContext<'_>) -> Result<Selection<CallRecord>, Problem> {
    let query = &context.query;
    let limit = query.number("limit", DEFAULT_PAGE_CALLS, MAX_PAGE_CALLS)?;
    let own = |name: &str| query.get(name).map(str::to_owned);
    let status = query.get("status").map(|name| {
        CallStatus::from_name(name).ok_or_else(|| {
            let names = CallStatus::ALL.map(CallStatus::name).join(", ");
            Problem::bad_request(
                format!("there is no status `{name}`; there are: {names}"),
                format!("没有状态 `{name}`；现有：{names}"),
            )
        })
    });
    let principal = match context.reads_all_calls() {
        true => own("principal"),
        // Others see their own calls, whatever they ask for.
        false => Some(context.principal().id().to_string()),
    };
    let mut wanted = CallQuery {
        tool: own("tool"),
        source: own("source"),
        status: status.transpose()?,
        text: own("text"),
        conversation: own("conversation"),
        parent: own("parent"),
        since: query.time(SINCE.name)?,
        principal,
        before: query.get("cursor").map(record_id).transpose()?,
        ..CallQuery::default()
    };
    // The store compares with all arguments, also with those that the principal may not see.
    match wanted.text.take_if(|_| !context.sees_fixed_arguments()) {
        Some(text) => {
            search_visible(context, wanted, VisibleSearch { text: text.to_lowercase(), limit }).await
        }
        None => search(context, wanted, limit).await,
    }
}

/// One page of the calls that match a query.
async fn search(
    context: &ConsoleContext<'_>,
    mut wanted: CallQuery,
    limit: usize,
) -> Result<Selection<CallRecord>, Problem> {
    let (mut records, started) = (Vec::new(), Instant::now());
    let rest = loop {
        let from = match is_search(&wanted) {
            true => context.hub().history_part(wanted.before.clone(), PART_CALLS).await?,
            false => None,
        };
        wanted.from.clone_from(&from);
        wanted.limit = Some(limit + 1 - records.len());
        records.extend(context.hub().calls(wanted.clone()).await?);
        if from.is_none() || records.len() > limit || started.elapsed() > SEARCH_TIME {
            break from;
        }
        wanted.before = from;
    };
    Ok(selection(records, limit, rest))
}

/// A search in what the principal may see of its calls.
struct VisibleSearch {
    /// In lower case.
    text: String,
    limit: usize,
}

/// One page of the calls that match a query and contain a text where the principal sees it. Which calls are read, and where the
/// page ends, depends on the visible parts alone.
async fn search_visible(
    context: &ConsoleContext<'_>,
    mut wanted: CallQuery,
    VisibleSearch { text, limit }: VisibleSearch,
) -> Result<Selection<CallRecord>, Problem> {
    let (mut records, started) = (Vec::new(), Instant::now());
    wanted.limit = Some(VISIBLE_PART_CALLS);
    let rest = loop {
        let part = context.hub().calls(wanted.clone()).await?;
        let last = part.last().filter(|_| part.len() == VISIBLE_PART_CALLS);
        wanted.before = last.map(|record| record.start.record.clone());
        records.extend(part.into_iter().filter(|record| shows_text(context, record, &text)));
        if wanted.before.is_none() || records.len() > limit || started.elapsed() > SEARCH_TIME {
            break wanted.before;
        }
    };
    Ok(selection(records, limit, rest))
}

/// Whether what the principal may see of a call contains a text in lower case.
fn shows_text(context: &ConsoleContext<'_>, record: &CallRecord, text: &str) -> bool {
    let start = &record.start;
    let has = |shown: &str| shown.to_lowercase().contains(text);
    let arguments = context.visible_arguments(start.tool.as_str(), &start.arguments);
    // Without Unicode escapes, as in the store.
    let unescaped = Some(arguments.get()).filter(|text| text.contains("\\u")).and_then(canonical_json);
    has(start.tool.as_str())
        || has(unescaped.as_deref().unwrap_or(arguments.get()))
        || start.request.as_deref().is_some_and(has)
}

/// A page of these records, which may be more than its limit. `rest` is where a search continues that has not read all calls.
fn selection(mut records: Vec<CallRecord>, limit: usize, rest: Option<RecordId>) -> Selection<CallRecord> {
    let more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().filter(|_| more).map(|record| record.start.record.clone());
    let is_partial = !more && rest.is_some();
    let next = last.or(rest).map(|record| record.to_string());
    Selection { page: Page { items: records, next }, is_partial }
}

/// Whether a query reads calls that do not match, since its filters have no index.
fn is_search(query: &CallQuery) -> bool {
    let is_local = query.principal.as_deref().is_none_or(|principal| principal == LOCAL);
    let has_index =
        query.tool.is_some() || query.conversation.is_some() || query.parent.is_some() || !is_local;
    (query.text.is_some() || query.source.is_some()) && !has_index
}

fn record_id(text: &str) -> Result<RecordId, Problem> {
    let is_id = text.len() <= MAX_CALL_ID_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_id {
        return Ok(RecordId::new(text));
    }
    Err(Problem::bad_request("the id of a call has letters and digits", "调用编号由字母和数字组成"))
}

pub(crate) async fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &read(context).await?))
}

/// The call that the path names.
pub(crate) async fn read(context: &ConsoleContext<'_>) -> Result<CallDetail, Problem> {
    find(context, context.id()).await
}

/// The last calls of the same tool that the principal may see, without this one.
pub(crate) async fn others(context: &ConsoleContext<'_>, own: &Call) -> Result<Vec<Call>, Problem> {
    let principal = (!context.reads_all_calls()).then(|| context.principal().id().to_string());
    let limit = Some(MAX_OTHERS + 1);
    let query = CallQuery { tool: Some(own.tool.clone()), principal, limit, ..CallQuery::default() };
    let mut records = context.hub().calls(query).await?;
    records.retain(|record| record.start.record.as_str() != own.id);
    records.truncate(MAX_OTHERS);
    Ok(records.iter().map(|record| call(record, context.lang)).collect())
}

/// A principal of recorded calls.
pub(crate) struct SeenCaller {
    pub(crate) principal: String,
    pub(crate) last_at: String,
    pub(crate) calls: usize,
}

/// The principals of the last calls that the principal of the request may see, the last one first.
pub(crate) async fn seen_callers(context: &ConsoleContext<'_>) -> Result<Vec<SeenCaller>, Problem> {
    let principal = (!context.reads_all_calls()).then(|| context.principal().id().to_string());
    let query = CallQuery { principal, limit: Some(MAX_PAGE_CALLS), ..CallQuery::default() };
    let mut seen: Vec<SeenCaller> = Vec::new();
    for CallRecord { start, .. } in context.hub().calls(query).await? {
        let principal = start.authorization.principal.to_string();
        match seen.iter_mut().find(|caller| caller.principal == principal) {
            Some(caller) => caller.calls += 1,
            None => seen.push(SeenCaller { principal, last_at: timestamp(start.at), calls: 1 }),
        }
    }
    Ok(seen)
}

/// The call with this id, if the principal may see it.
pub(crate) async fn find(context: &ConsoleContext<'_>, id: &str) -> Result<CallDetail, Problem> {
    let unknown = || Problem::not_found(format!("there is no call `{id}`"), format!("没有调用 `{id}`"));
    let wanted = record_id(id).map_err(|_| unknown())?;
    let record = context.hub().call_record(&wanted).await?;
    let is_visible = |record: &CallRecord| {
        context.reads_all_calls() || record.start.authorization.principal == *context.principal().id()
    };
    let record = record.filter(is_visible).ok_or_else(unknown)?;
    let result = context.hub().result(&wanted).await?;
    // Both have the principal of the call, so that it may see them.
    let parent = context.hub().parent_call(&record).await?;
    let nested = context.hub().nested_calls(&record).await?;
    Ok(CallDetail {
        parent_id: parent.map(|parent| parent.start.record.to_string()),
        nested: Some(nested.iter().map(|record| call(record, context.lang)).collect()),
        result: result.map(|output| output.raw().clone()),
        ..detail(context, &record)
    })
}

/// A call without its result and related calls.
fn detail(context: &ConsoleContext<'_>, record: &CallRecord) -> CallDetail {
    let (start, lang) = (&record.start, context.lang);
    CallDetail {
        call: call(record, lang),
        call_id: start.call.to_string(),
        error_kind: record.error.as_ref().map(|(kind, _)| kind.clone()),
        arguments: context.visible_arguments(start.tool.as_str(), &start.arguments),
        strategy: start.strategy.clone(),
        candidates: start.candidates.iter().map(ToString::to_string).collect(),
        may_change: start.may_change,
        conversation: start.conversation.clone(),
        rule: start.authorization.rule.as_deref().map(str::to_owned),
        approver: start.authorization.approver.as_deref().map(str::to_owned),
        attempts: record.attempts.iter().map(|one| attempt(one, lang)).collect(),
        parent_id: None,
        nested: None,
        result: None,
    }
}

fn call(record: &CallRecord, lang: Lang) -> Call {
    let start = &record.start;
    let mut tried: Vec<String> = record.attempts.iter().map(|attempt| attempt.source.to_string()).collect();
    if tried.is_empty() {
        tried = start.candidates.iter().map(ToString::to_string).collect();
    }
    let mut seen = HashSet::new();
    tried.retain(|source| seen.insert(source.clone()));
    Call {
        id: start.record.to_string(),
        tool: start.tool.to_string(),
        status: record.status.name().to_owned(),
        principal: start.authorization.principal.to_string(),
        started_at: timestamp(start.at),
        took_ms: record.took.map(millis),
        sources: record.sources.iter().map(ToString::to_string).collect(),
        tried,
        error: record.error.as_ref().map(|(_, text)| text.localize(lang)),
        request: start.request.clone(),
        parent: start.parent.as_ref().map(ToString::to_string),
    }
}

fn attempt(attempt: &StoredAttempt, lang: Lang) -> Attempt {
    Attempt {
        source: attempt.source.to_string(),
        tool: attempt.tool.to_string(),
        status: attempt.status.name().to_owned(),
        took_ms: millis(attempt.took),
        error: attempt.error.as_ref().map(|(_, text)| text.localize(lang)),
        error_kind: attempt.error.as_ref().map(|(kind, _)| kind.clone()),
    }
}
