//! `toolhub audit`: shows, verifies and exports the audit log.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use jiff::Timestamp;
use toolhub_audit::{
    AuditQuery, AuditRecord, AuditStore, ExportFormat, Summary, Tampering, verify_json_lines,
};
use toolhub_core::audit::{AuditAction, AuditKind};
use toolhub_core::{Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::args::access::{AuditArgs, AuditCommand, AuditExportArgs, AuditShowArgs};
use crate::commands::history::{local_time, principal_id};
use crate::exit::{Exit, UsageError};
use crate::render::screen::{DIM, NAME};
use crate::render::table::{Cell, table_lines};

/// The default number of records.
pub(crate) const DEFAULT_RECORDS: usize = 20;

pub(crate) async fn run(app: &App, args: AuditArgs) -> anyhow::Result<Exit> {
    match chosen(app, args)? {
        AuditCommand::Show(args) => show(app, &args).await,
        AuditCommand::Verify(args) => match args.file {
            Some(file) => verify_export(app, &file).await,
            None => verify(app).await,
        },
        AuditCommand::Export(args) => export(app, &args).await,
    }
}

/// The subcommand, `show` by default.
pub(crate) fn chosen(app: &App, args: AuditArgs) -> Result<AuditCommand, UsageError> {
    let AuditArgs { command, show } = args;
    // Global options may precede the subcommand, those of `show` would be lost there.
    if command.is_some() && show != AuditShowArgs::default() {
        let why = app.lang().choose(
            "write the options of `show` after it: `toolhub audit show -n 5`",
            "`show` 的选项请写在它之后：`toolhub audit show -n 5`",
        );
        return Err(UsageError(why.to_owned()));
    }
    Ok(command.unwrap_or(AuditCommand::Show(show)))
}

async fn log(app: &App) -> anyhow::Result<Arc<dyn AuditStore>> {
    let hub = app.hub().await?;
    let off = app.lang().choose(
        "the audit log is off: set `enabled = true` in `[audit]`, or make a key with `toolhub keys new NAME`",
        "审计日志未启用：请在 `[audit]` 中设置 `enabled = true`，或用 `toolhub keys new 名称` 生成密钥",
    );
    Ok(Arc::clone(hub.audit().ok_or_else(|| UsageError(off.to_owned()))?))
}

/// The requested kind of records.
pub(crate) fn checked_kind(app: &App, args: &AuditShowArgs) -> Result<Option<AuditKind>, UsageError> {
    let kind = args.kind.as_deref().map(|name| {
        let names: Vec<&str> = AuditKind::ALL.into_iter().map(AuditKind::name).collect();
        let names = names.join(", ");
        AuditKind::from_name(name).ok_or_else(|| {
            UsageError(app.lang().choose(
                format!("there is no kind `{name}`; there are: {names}"),
                format!("没有类别 `{name}`；现有：{names}"),
            ))
        })
    });
    kind.transpose()
}

async fn show(app: &App, args: &AuditShowArgs) -> anyhow::Result<Exit> {
    let limit = args.limit.unwrap_or(DEFAULT_RECORDS);
    let query = AuditQuery {
        principal: args.by.as_deref().map(principal_id),
        kind: checked_kind(app, args)?,
        since: args.since.and_then(|span| SystemTime::now().checked_sub(span.0)),
        limit: args.reference.is_none().then_some(limit),
        ..AuditQuery::default()
    };
    let mut records = log(app).await?.audit_records(query).await?;
    if let Some(wanted) = &args.reference {
        records.retain(|record| reference(record).is_some_and(|reference| reference == wanted));
        records.truncate(limit);
    }
    let records: Vec<ShownRecord> = records.iter().map(ShownRecord::from).collect();
    print(app, &records);
    Ok(Exit::Done)
}

/// Prints records.
pub(crate) fn print(app: &App, records: &[ShownRecord]) {
    if app.screen.json {
        let all: Vec<RawObject> = records.iter().map(ShownRecord::as_json).collect();
        app.screen.json(&RawJson::of(&all));
        return;
    }
    let rows: Vec<Vec<Cell>> = records.iter().map(ShownRecord::row).collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
    if records.is_empty() {
        app.screen.note(app.lang().choose("no record fits", "没有符合条件的记录"));
    }
}

/// A record as it is shown.
pub(crate) struct ShownRecord {
    pub(crate) sequence: u64,
    pub(crate) at: SystemTime,
    pub(crate) principal: String,
    pub(crate) kind: String,
    /// What it is about.
    pub(crate) object: String,
    /// What happened.
    pub(crate) state: String,
    pub(crate) reference: Option<String>,
    pub(crate) rule: Option<String>,
    pub(crate) approver: Option<String>,
}

impl From<&AuditRecord> for ShownRecord {
    fn from(record: &AuditRecord) -> Self {
        let (object, state) = record.event.action.object_and_state();
        let event = &record.event;
        let (rule, approver) = match &event.action {
            AuditAction::Call(call) => (call.rule.as_deref(), call.approver.as_deref()),
            AuditAction::HeldCall(held) => (held.rule.as_deref(), None),
            AuditAction::Refusal(refusal) => (refusal.rule.as_deref(), None),
            AuditAction::Use(used) => (used.rule.as_deref(), None),
            AuditAction::Login(_) | AuditAction::Change(_) => (None, None),
        };
        Self {
            sequence: record.sequence,
            at: event.at,
            principal: event.principal.to_string(),
            kind: event.action.kind().name().to_owned(),
            object,
            state,
            reference: reference(record).map(str::to_owned),
            rule: rule.map(str::to_owned),
            approver: approver.map(str::to_owned),
        }
    }
}

impl ShownRecord {
    fn row(&self) -> Vec<Cell> {
        vec![
            Cell::new(self.sequence.to_string(), DIM),
            Cell::new(local_time(self.at), DIM),
            Cell::from(self.principal.as_str()),
            Cell::from(self.kind.as_str()),
            Cell::new(self.object.as_str(), NAME),
            Cell::from(self.state.as_str()),
            Cell::new(self.reference.as_deref().unwrap_or_default(), DIM),
        ]
    }

    fn as_json(&self) -> RawObject {
        let at = Timestamp::try_from(self.at).map(|at| at.to_string()).unwrap_or_default();
        RawObject::default()
            .with("sequence", self.sequence)
            .with("at", at)
            .with("principal", self.principal.as_str())
            .with("kind", self.kind.as_str())
            .with("object", self.object.as_str())
            .with("state", self.state.as_str())
            .with("reference", RawJson::of(&self.reference))
            .with("rule", RawJson::of(&self.rule))
            .with("approver", RawJson::of(&self.approver))
    }
}

/// The reference by which a person finds the record.
fn reference(record: &AuditRecord) -> Option<&str> {
    match &record.event.action {
        AuditAction::Refusal(refusal) => Some(&refusal.reference),
        AuditAction::HeldCall(held) => Some(&held.reference),
        AuditAction::Call(call) => Some(&call.record),
        AuditAction::Login(_) | AuditAction::Change(_) | AuditAction::Use(_) => None,
    }
}

async fn verify(app: &App) -> anyhow::Result<Exit> {
    let log = log(app).await?;
    let verification = log.verify_audit(None).await?;
    if !verification.has_head {
        warn_of_missing_checkpoint(app);
    }
    Ok(report(app, &verification.result))
}

pub(crate) fn warn_of_missing_checkpoint(app: &App) {
    app.screen.warn(app.lang().choose(
        "the file with the last checkpoint is missing: records that were cut off at the end cannot be noticed",
        "缺少最后检查点的文件：无法发现末尾被截去的记录",
    ));
}

async fn verify_export(app: &App, file: &Path) -> anyhow::Result<Exit> {
    // Keys of the store if there is one; an export also names the key that signed it, which alone proves nothing.
    let keys = log(app).await?.verify_audit(None).await?.keys;
    let reader = BufReader::new(File::open(file).with_context(|| file.display().to_string())?);
    Ok(report(app, &verify_json_lines(reader, &keys)?.map(Some)))
}

fn report(app: &App, result: &Result<Option<Summary>, Tampering>) -> Exit {
    let lang = app.lang();
    let (exit, intact, records, text) = match result {
        Ok(None) => (Exit::Done, true, 0, lang.choose("nothing was recorded yet", "尚无记录").to_owned()),
        Ok(Some(summary)) => {
            let records = summary.records();
            let (checkpoints, confirmed) = (summary.checkpoints, summary.confirmed);
            let text = lang.choose(
                format!("intact: {records} records, {checkpoints} signed checkpoints, confirmed up to record {confirmed}"),
                format!("完整：{records} 条记录，{checkpoints} 个签名检查点，已确认至第 {confirmed} 条"),
            );
            (Exit::Done, true, records, text)
        }
        Err(tampering) => (Exit::Failed, false, 0, tampering.localize(lang)),
    };
    print_verdict(app, intact, records, &text);
    exit
}

/// Prints the result of a verification.
pub(crate) fn print_verdict(app: &App, intact: bool, records: u64, text: &str) {
    if app.screen.json {
        let json = RawObject::default().with("intact", intact).with("records", records).with("text", text);
        app.screen.json(&json.into_raw());
    } else if intact {
        app.screen.line(text);
    } else {
        app.screen.error(text);
    }
}

async fn export(app: &App, args: &AuditExportArgs) -> anyhow::Result<Exit> {
    let log = log(app).await?;
    let format = if args.format == "ocsf" { ExportFormat::Ocsf } else { ExportFormat::JsonLines };
    let mut bytes = Vec::new();
    if args.file == Path::new("-") {
        log.export_audit(format, &mut bytes).await?;
        app.screen.verbatim(&String::from_utf8_lossy(&bytes));
        return Ok(Exit::Done);
    }
    let mut out = BufWriter::new(File::create(&args.file).with_context(|| args.file.display().to_string())?);
    let count = log.export_audit(format, &mut out).await?;
    out.flush()?;
    app.screen.note(&app.lang().choose(
        format!("wrote {count} records to `{}`", args.file.display()),
        format!("已将 {count} 条记录写入 `{}`", args.file.display()),
    ));
    Ok(Exit::Done)
}
