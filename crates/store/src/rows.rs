//! The column layout of calls, common to both databases.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use toolhub_core::call_log::{
    AttemptStatus, CallEnd, CallRecord, CallStart, CallStatus, RecordId, StoredAttempt, stored_arguments,
};
use toolhub_core::json::canonical_json;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Authorization, CallId, RawJson, Source, ToolName};

/// The columns that [`call_of`] reads, in order; `status` is replaced by an expression, see `query`.
pub(crate) const COLUMNS: [&str; 20] = [
    "record",
    "call",
    "tool",
    "arguments",
    "conversation",
    "request",
    "strategy",
    "candidates",
    "may_change",
    "began",
    "status",
    "took",
    "error_kind",
    "error",
    "sources",
    "attempts",
    "principal",
    "rule",
    "approver",
    "parent",
];

/// A row of either database.
pub(crate) trait Columns {
    type Error;
    fn text(&self, column: usize) -> Result<String, Self::Error>;
    fn maybe_text(&self, column: usize) -> Result<Option<String>, Self::Error>;
    fn int(&self, column: usize) -> Result<i64, Self::Error>;
    fn maybe_int(&self, column: usize) -> Result<Option<i64>, Self::Error>;
}

/// The call in a row of [`COLUMNS`].
pub(crate) fn call_of<C: Columns>(row: &C) -> Result<CallRecord, C::Error> {
    let start = CallStart {
        record: RecordId::new(row.text(0)?),
        call: CallId::new(row.text(1)?),
        tool: ToolName::new(row.text(2)?),
        arguments: stored_json(row.text(3)?),
        conversation: row.maybe_text(4)?,
        request: row.maybe_text(5)?,
        strategy: row.text(6)?,
        candidates: sources_of(&row.text(7)?),
        may_change: row.int(8)? != 0,
        at: from_micros(row.int(9)?),
        authorization: authorization_of(
            &row.text(16)?,
            row.maybe_text(17)?.as_deref(),
            row.maybe_text(18)?.as_deref(),
        ),
        parent: row.maybe_text(19)?.map(CallId::new),
    };
    let error = row.maybe_text(12)?.zip(row.maybe_text(13)?);
    Ok(CallRecord {
        start,
        status: CallStatus::from_name(&row.text(10)?).unwrap_or(CallStatus::Unknown),
        took: row.maybe_int(11)?.map(duration_from_micros),
        error: error.map(|(kind, text)| (kind, text_of(&text))),
        sources: sources_of(&row.text(14)?),
        attempts: attempts_of(&row.text(15)?),
    })
}

/// The authorization with these parts. Most calls are those of the local user, which need no allocation.
pub(crate) fn authorization_of(principal: &str, rule: Option<&str>, approver: Option<&str>) -> Authorization {
    let local = Authorization::default();
    let principal = if *local.principal == *principal { local.principal } else { principal.into() };
    Authorization { principal, rule: rule.map(Into::into), approver: approver.map(Into::into) }
}

/// The columns of a call's end.
pub(crate) struct EndColumns<'a> {
    pub(crate) status: &'static str,
    pub(crate) took: Option<i64>,
    pub(crate) error_kind: Option<&'a str>,
    pub(crate) error: Option<String>,
    pub(crate) sources: String,
    pub(crate) attempts: String,
    pub(crate) places: String,
}

impl<'a> EndColumns<'a> {
    /// For a running call: a filter by source finds it at its candidates.
    pub(crate) fn running(start: &CallStart) -> Self {
        let empty = || "[]".to_owned();
        let (sources, attempts, places) = (empty(), empty(), delimited_names(start.candidates.iter()));
        let status = CallStatus::Running.name();
        Self { status, took: None, error_kind: None, error: None, sources, attempts, places }
    }

    pub(crate) fn of(end: &'a CallEnd) -> Self {
        let (error_kind, error) =
            end.error.as_ref().map(|(kind, text)| (kind.as_str(), json_text(text))).unzip();
        Self {
            status: end.status.name(),
            took: Some(micros_of(end.took)),
            error_kind,
            error,
            sources: source_list(&end.sources),
            attempts: attempt_list(&end.attempts),
            places: places(end),
        }
    }
}

/// Delimits each name in `places`; no name contains it.
const NAME_DELIMITER: char = '\u{1f}';

/// The text that a filter by source searches in `places`.
pub(crate) fn source_pattern(source: &str) -> String {
    format!("{NAME_DELIMITER}{source}{NAME_DELIMITER}")
}

/// The sources that answered a call, or else those that were attempted.
fn places(end: &CallEnd) -> String {
    match end.sources.is_empty() {
        true => delimited_names(end.attempts.iter().map(|attempt| &attempt.source)),
        false => delimited_names(end.sources.iter()),
    }
}

fn delimited_names<'a>(sources: impl Iterator<Item = &'a Source>) -> String {
    let mut places = String::new();
    for source in sources {
        let place = source_pattern(&source.to_string());
        if !places.contains(&place) {
            places.push_str(&place);
        }
    }
    places
}

/// Sources as a JSON list of their names.
pub(crate) fn source_list(sources: &[Source]) -> String {
    match sources {
        // The most frequent case.
        [Source::Native] => r#"["native"]"#.to_owned(),
        _ => json_text(&source_names(sources)),
    }
}

/// The name of a source, the inverse of [`Source::from_name`].
pub(crate) fn source_name(source: &Source) -> &str {
    match source {
        Source::Native => "native",
        Source::Skill => "skill",
        Source::Server(id) => id.as_str(),
    }
}

/// The names of sources.
pub(crate) fn source_names(sources: &[Source]) -> Vec<String> {
    sources.iter().map(ToString::to_string).collect()
}

/// The sources of these names.
pub(crate) fn sources_named(names: &[String]) -> Vec<Source> {
    names.iter().map(|name| Source::from_name(name)).collect()
}

fn sources_of(list: &str) -> Vec<Source> {
    sources_named(&serde_json::from_str::<Vec<String>>(list).unwrap_or_default())
}

/// An attempt in its column: source, tool, status, microseconds, error.
pub(crate) type AttemptTuple<S> = (S, S, S, i64, Option<(String, LocalizedText)>);

fn attempt_list(attempts: &[StoredAttempt]) -> String {
    let tuples: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let (source, took) = (attempt.source.to_string(), micros_of(attempt.took));
            (source, attempt.tool.as_str(), attempt.status.name(), took, &attempt.error)
        })
        .collect();
    json_text(&tuples)
}

/// Attempts as tuples that own their texts.
pub(crate) fn attempt_tuples(attempts: &[StoredAttempt]) -> Vec<AttemptTuple<String>> {
    let tuple = |attempt: &StoredAttempt| {
        let (tool, status) = (attempt.tool.to_string(), attempt.status.name().to_owned());
        (attempt.source.to_string(), tool, status, micros_of(attempt.took), attempt.error.clone())
    };
    attempts.iter().map(tuple).collect()
}

fn attempts_of(list: &str) -> Vec<StoredAttempt> {
    attempts_from(serde_json::from_str(list).unwrap_or_default())
}

/// Converts tuples to attempts.
pub(crate) fn attempts_from(tuples: Vec<AttemptTuple<String>>) -> Vec<StoredAttempt> {
    tuples
        .into_iter()
        .filter_map(|(source, tool, status, took, error)| {
            Some(StoredAttempt {
                source: Source::from_name(&source),
                tool: ToolName::new(tool),
                status: AttemptStatus::from_name(&status)?,
                took: duration_from_micros(took),
                error,
            })
        })
        .collect()
}

fn text_of(json: &str) -> LocalizedText {
    serde_json::from_str(json).unwrap_or_else(|_| LocalizedText::from(json))
}

/// Serialises a value as JSON.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Wraps stored JSON.
pub(crate) fn stored_json(text: String) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| RawJson::null())
}

/// A hash that is equal for all spellings of the same arguments.
pub(crate) fn arguments_hash(arguments: &str) -> i64 {
    let canonical = canonical_json(arguments);
    let digest = Sha256::digest(canonical.as_deref().unwrap_or(arguments).as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| (hash << 8) | i64::from(*byte))
}

/// The hash of arguments in a query. Long arguments are stored truncated; these are truncated in the same way.
pub(crate) fn stored_hash(arguments: &str) -> i64 {
    match RawJson::parse(arguments) {
        Ok(arguments) => arguments_hash(stored_arguments(&arguments).get()),
        Err(_) => arguments_hash(arguments),
    }
}

/// The arguments without Unicode escapes, if they contain any, so that a search for `中` finds `"\u4e2d"`.
pub(crate) fn without_unicode_escapes(arguments: &str) -> Option<String> {
    if arguments.contains("\\u") { canonical_json(arguments) } else { None }
}

/// A time in microseconds since 1970.
pub(crate) fn unix_micros(time: SystemTime) -> i64 {
    micros_of(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The start time, in microseconds since 1970, before which data is older than `span`.
pub(crate) fn cutoff_micros(now: SystemTime, span: Duration) -> i64 {
    now.checked_sub(span).map_or(0, unix_micros)
}

/// The time of microseconds since 1970.
pub(crate) fn from_micros(micros: i64) -> SystemTime {
    UNIX_EPOCH + duration_from_micros(micros)
}

/// A duration in microseconds.
pub(crate) fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A duration from microseconds.
pub(crate) fn duration_from_micros(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0).unsigned_abs())
}

/// A time in milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> i64 {
    unix_micros(time) / 1_000
}

/// A duration in milliseconds.
pub(crate) fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The time of milliseconds since 1970.
pub(crate) fn from_millis(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs())
}
