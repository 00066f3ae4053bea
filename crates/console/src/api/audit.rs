//! `audit`: records, verification and export.

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use toolhub_audit::{AuditQuery, AuditRecord, AuditStore, ExportFormat};
use toolhub_core::Localize as _;
use toolhub_core::audit::{AuditAction, AuditKind};
use toolhub_core::lang::LocalizedText;

use super::{CURSOR, LIMIT, Page, SINCE, timestamp};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::{Parameter, json_response};

const DEFAULT_PAGE_RECORDS: usize = 50;
const MAX_PAGE_RECORDS: usize = 500;

/// The query parameters of the list.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter { name: "principal", description: "Only records of this principal.", r#type: "string" },
    Parameter { name: "kind", description: "Only records of this kind.", r#type: "string" },
    Parameter {
        name: "reference",
        description: "Only records with this reference: of a refusal, a held call or a call.",
        r#type: "string",
    },
    SINCE,
    LIMIT,
    CURSOR,
];

/// A record of the audit log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) at: String,
    pub(crate) principal: String,
    /// Such as `login`, `refusal`, `call`, `held_call`, `key_change`, `server_change` or `use`.
    pub(crate) kind: String,
    /// What it is about.
    pub(crate) object: String,
    /// What happened.
    pub(crate) state: String,
    pub(crate) reference: Option<String>,
    /// The rule that allowed, held or refused it.
    pub(crate) rule: Option<String>,
    /// The principal that approved the call.
    pub(crate) approver: Option<String>,
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Verification {
    pub(crate) intact: bool,
    pub(crate) records: u64,
    pub(crate) text: String,
    /// Whether the last checkpoint is stored outside the database: without it, records that were cut off at the end cannot be
    /// noticed.
    pub(crate) has_last_checkpoint: bool,
}

/// The audit log.
pub(crate) fn log<'a>(context: &'a ConsoleContext<'_>) -> Result<&'a Arc<dyn AuditStore>, Problem> {
    context.hub().audit().ok_or_else(|| {
        let detail = LocalizedText::new(
            "the audit log is off: set `enabled = true` in `[audit]` and restart `toolhub serve`",
            "审计日志未启用：请在 `[audit]` 中设置 `enabled = true`，并重新启动 `toolhub serve`",
        );
        Problem::new(StatusCode::CONFLICT, "audit-off", detail)
    })
}

pub(crate) async fn list(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    Ok(json_response(StatusCode::OK, &page(context).await?))
}

/// One page of the log, by the query of the request.
pub(crate) async fn page(context: &ConsoleContext<'_>) -> Result<Page<Record>, Problem> {
    let query = &context.query;
    let limit = query.number("limit", DEFAULT_PAGE_RECORDS, MAX_PAGE_RECORDS)?;
    let kind = query.get("kind").map(|name| {
        AuditKind::from_name(name).ok_or_else(|| {
            let names = AuditKind::ALL.map(AuditKind::name).join(", ");
            Problem::bad_request(
                format!("there is no kind `{name}`; there are: {names}"),
                format!("没有类别 `{name}`；现有：{names}"),
            )
        })
    });
    let before = query.get("cursor").map(|text| {
        text.parse().map_err(|_| Problem::bad_request("`cursor` is a number", "`cursor` 应为数字"))
    });
    let wanted = AuditQuery {
        principal: query.get("principal").map(str::to_owned),
        kind: kind.transpose()?,
        before: before.transpose()?,
        since: query.time(SINCE.name)?,
        limit: query.get("reference").is_none().then_some(limit + 1),
        ..AuditQuery::default()
    };
    let mut records = log(context)?.audit_records(wanted).await?;
    if let Some(reference) = query.get("reference") {
        records.retain(|record| reference_of(&record.event.action) == Some(reference));
    }
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().filter(|_| more).map(|record| record.sequence.to_string());
    Ok(Page { items: records.iter().map(record).collect(), next })
}

/// The reference by which a person finds the record.
fn reference_of(action: &AuditAction) -> Option<&str> {
    match action {
        AuditAction::Refusal(refusal) => Some(&refusal.reference),
        AuditAction::HeldCall(held) => Some(&held.reference),
        AuditAction::Call(call) => Some(&call.record),
        AuditAction::Login(_) | AuditAction::Change(_) | AuditAction::Use(_) => None,
    }
}

fn record(record: &AuditRecord) -> Record {
    let action = &record.event.action;
    let (rule, approver) = match action {
        AuditAction::Call(call) => (call.rule.as_deref(), call.approver.as_deref()),
        AuditAction::HeldCall(held) => (held.rule.as_deref(), None),
        AuditAction::Refusal(refusal) => (refusal.rule.as_deref(), None),
        AuditAction::Use(used) => (used.rule.as_deref(), None),
        AuditAction::Login(_) | AuditAction::Change(_) => (None, None),
    };
    let (object, state) = action.object_and_state();
    Record {
        sequence: record.sequence,
        at: timestamp(record.event.at),
        principal: record.event.principal.to_string(),
        kind: record.event.action.kind().name().to_owned(),
        object,
        state,
        reference: reference_of(action).map(str::to_owned),
        rule: rule.map(str::to_owned),
        approver: approver.map(str::to_owned),
    }
}

pub(crate) async fn verify(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let lang = context.lang;
    let verification = log(context)?.verify_audit(None).await?;
    let has_last_checkpoint = verification.has_head;
    let body = match &verification.result {
        Ok(None) => Verification {
            intact: true,
            records: 0,
            text: lang.choose("nothing was recorded yet", "尚无记录").to_owned(),
            has_last_checkpoint,
        },
        Ok(Some(summary)) => {
            let records = summary.records();
            let (checkpoints, confirmed) = (summary.checkpoints, summary.confirmed);
            let text = lang.choose(
                format!("intact: {records} records, {checkpoints} signed checkpoints, confirmed up to record {confirmed}"),
                format!("完整：{records} 条记录，{checkpoints} 个签名检查点，已确认至第 {confirmed} 条"),
            );
            Verification { intact: true, records, text, has_last_checkpoint }
        }
        Err(tampering) => {
            Verification { intact: false, records: 0, text: tampering.localize(lang), has_last_checkpoint }
        }
    };
    Ok(json_response(StatusCode::OK, &body))
}

pub(crate) async fn export(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let (format, name) = match context.query.get("format") {
        None | Some("jsonl") => (ExportFormat::JsonLines, "attachment; filename=\"audit.jsonl\""),
        Some("ocsf") => (ExportFormat::Ocsf, "attachment; filename=\"audit.ocsf.jsonl\""),
        Some(other) => {
            return Err(Problem::bad_request(
                format!("there is no format `{other}`: use `jsonl` or `ocsf`"),
                format!("没有格式 `{other}`：请用 `jsonl` 或 `ocsf`"),
            ));
        }
    };
    let mut bytes = Vec::new();
    log(context)?.export_audit(format, &mut bytes).await?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
    Ok(response)
}
