//! The lines of a journal: the start or the end of one call, as a JSON array. Truncated lines are ignored.

use serde::{Deserialize, Serialize};
use toolhub_core::call_log::{CallEnd, CallStart, CallStatus, RecordId};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::LOCAL;
use toolhub_core::{Authorization, CallId, RawJson, ToolName};

use crate::rows::{
    AttemptTuple, attempt_tuples, attempts_from, authorization_of, duration_from_micros, from_micros,
    micros_of, source_names, sources_named, stored_json, unix_micros,
};

/// A parsed line.
#[derive(Debug)]
pub(super) enum JournalEntry {
    Begun {
        start: CallStart,
        /// Whether the call belongs in the audit log.
        audit: bool,
    },
    Ended(CallEnd),
}

impl JournalEntry {
    /// The record of the call.
    pub(super) fn record(&self) -> &RecordId {
        match self {
            Self::Begun { start, .. } => &start.record,
            Self::Ended(end) => &end.record,
        }
    }
}

#[derive(Serialize)]
enum WrittenLine<'a> {
    #[serde(rename = "b")]
    Begun(BegunMembers<&'a str>),
    #[serde(rename = "e")]
    Ended(EndedMembers<&'a str>),
}

#[derive(Deserialize)]
enum ParsedLine {
    #[serde(rename = "b")]
    Begun(BegunMembers<String>),
    #[serde(rename = "e")]
    Ended(EndedMembers<String>),
}

/// Record, call, tool, arguments, conversation, request, strategy, candidates, may change state, start time,
/// authorization, whether it belongs in the audit log, the call that made it. The last three are missing in older lines;
/// the authorization is `None` for a call of the local user without rules.
#[derive(Serialize, Deserialize)]
struct BegunMembers<S>(
    S,
    S,
    S,
    S,
    Option<S>,
    Option<S>,
    S,
    Vec<String>,
    bool,
    i64,
    #[serde(default)] Option<AuthorizationTuple<S>>,
    #[serde(default)] bool,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<S>,
);

/// Principal, rule, approver.
type AuthorizationTuple<S> = (S, Option<S>, Option<S>);

/// Record, status, duration in microseconds, error, sources, attempts, output.
#[derive(Serialize, Deserialize)]
struct EndedMembers<S>(
    S,
    S,
    i64,
    Option<(S, LocalizedText)>,
    Vec<String>,
    Vec<AttemptTuple<String>>,
    Option<S>,
);

/// The line for the start of a call; `audit` states whether it belongs in the audit log.
pub(super) fn begun(start: &CallStart, audit: bool) -> Vec<u8> {
    let Authorization { principal, rule, approver } = &start.authorization;
    let is_local = **principal == *LOCAL && rule.is_none() && approver.is_none();
    let authorization = (!is_local).then(|| (&**principal, rule.as_deref(), approver.as_deref()));
    line(&WrittenLine::Begun(BegunMembers(
        start.record.as_str(),
        start.call.as_str(),
        start.tool.as_str(),
        start.arguments.get(),
        start.conversation.as_deref(),
        start.request.as_deref(),
        &start.strategy,
        source_names(&start.candidates),
        start.may_change,
        unix_micros(start.at),
        authorization,
        audit,
        start.parent.as_ref().map(CallId::as_str),
    )))
}

/// The line for the end of a call.
pub(super) fn ended(end: &CallEnd) -> Vec<u8> {
    line(&WrittenLine::Ended(EndedMembers(
        end.record.as_str(),
        end.status.name(),
        micros_of(end.took),
        end.error.as_ref().map(|(kind, text)| (kind.as_str(), text.clone())),
        source_names(&end.sources),
        attempt_tuples(&end.attempts),
        end.output.as_ref().map(RawJson::get),
    )))
}

fn line(written: &WrittenLine<'_>) -> Vec<u8> {
    let mut line = serde_json::to_vec(written).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Parses a line; `None` if it is invalid.
pub(super) fn read(line: &str) -> Option<JournalEntry> {
    Some(match serde_json::from_str(line).ok()? {
        ParsedLine::Begun(BegunMembers(
            record,
            call,
            tool,
            arguments,
            conversation,
            request,
            strategy,
            candidates,
            may_change,
            at,
            authorization,
            audit,
            parent,
        )) => {
            let start = CallStart {
                record: RecordId::new(record),
                call: CallId::new(call),
                tool: ToolName::new(tool),
                arguments: stored_json(arguments),
                conversation,
                request,
                strategy,
                candidates: sources_named(&candidates),
                may_change,
                at: from_micros(at),
                authorization: authorization.map_or_else(
                    Authorization::default,
                    |(principal, rule, approver)| {
                        authorization_of(&principal, rule.as_deref(), approver.as_deref())
                    },
                ),
                parent: parent.map(CallId::new),
            };
            JournalEntry::Begun { start, audit }
        }
        ParsedLine::Ended(EndedMembers(record, status, took, error, sources, attempts, output)) => {
            JournalEntry::Ended(CallEnd {
                record: RecordId::new(record),
                status: CallStatus::from_name(&status)?,
                took: duration_from_micros(took),
                error,
                sources: sources_named(&sources),
                attempts: attempts_from(attempts),
                output: output.map(stored_json),
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::{Duration, UNIX_EPOCH};

    use toolhub_core::Source;
    use toolhub_core::call_log::{AttemptStatus, StoredAttempt};

    #[test]
    fn reads_lines_without_authorization_as_local() {
        let old = r#"{"b":["r1","c1","write","{}",null,"hi","first",["native"],true,1700000000123456]}"#;
        let Some(JournalEntry::Begun { start, audit: false }) = read(old) else { panic!("{old}") };
        assert_eq!(start.authorization, Authorization::default());
        assert_eq!((start.record.as_str(), start.request.as_deref()), ("r1", Some("hi")));
        let local = String::from_utf8(begun(&start, false)).unwrap();
        let Some(JournalEntry::Begun { start: again, audit: false }) = read(&local) else {
            panic!("{local}")
        };
        assert_eq!(format!("{again:?}"), format!("{start:?}"));
    }

    #[test]
    fn reads_written_lines_and_rejects_truncated_ones() {
        let arguments = "{\"a\": 12345678901234567890123,\n \"b\": \"中\\u0000\"}".to_owned();
        let start = CallStart {
            record: RecordId::generate(),
            call: CallId::new("call_001"),
            tool: ToolName::new("write"),
            arguments: RawJson::parse(arguments).unwrap(),
            conversation: Some("c".to_owned()),
            request: Some("写\n\"it\"".to_owned()),
            strategy: "first".to_owned(),
            candidates: vec![Source::Native, Source::from_name("excel")],
            may_change: true,
            at: UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456),
            authorization: authorization_of("key:ci", Some("rule 2"), Some("oidc:https://idp.example#安")),
            parent: Some(CallId::new("call_000")),
        };
        let text = String::from_utf8(begun(&start, true)).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let Some(JournalEntry::Begun { start: again, audit: true }) = read(&text) else { panic!("{text}") };
        assert_eq!(format!("{again:?}"), format!("{start:?}"));

        let end = CallEnd {
            record: start.record,
            status: CallStatus::Failed,
            took: Duration::from_micros(77),
            error: Some(("failed".to_owned(), LocalizedText::new("no", "不"))),
            sources: Vec::new(),
            attempts: vec![StoredAttempt {
                source: Source::Native,
                tool: ToolName::new("write"),
                status: AttemptStatus::Failed,
                took: Duration::from_micros(70),
                error: Some(("failed".to_owned(), LocalizedText::new("no", "不"))),
            }],
            output: Some(RawJson::parse("{\n}".to_owned()).unwrap()),
        };
        let text = String::from_utf8(ended(&end)).unwrap();
        let Some(JournalEntry::Ended(again)) = read(&text) else { panic!("{text}") };
        assert_eq!(format!("{again:?}"), format!("{end:?}"));
        for cut in (0..text.len() - 1).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(read(&text[..cut]).is_none(), "{}", &text[..cut]);
        }
    }
}
