//! Reading the audit log page by page: queries, verification, exports. The database is behind [`AuditTables`].

use std::io::Write;

use toolhub_audit::{
    AuditQuery, AuditRecord, CheckpointKind, ExportFormat, JsonLinesExport, LogEnd, LogEvidence,
    LogVerification, StoredBatch, Summary, Tampering, TrustedKeys, Verifier, ocsf_event,
};
use toolhub_core::BoxFuture;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::ports::StoreError;

use super::Auditor;

/// Number of batches per page.
pub(crate) const PAGE_BATCHES: usize = 32;
/// Number of attempts to verify a log from which old records are being deleted.
const MAX_ATTEMPTS: usize = 3;

/// The audit tables of a database.
pub(crate) trait AuditTables: Sync {
    fn auditor(&self) -> Option<&Auditor>;

    /// Waits until everything that happened before is in the log, including the calls of dead hubs.
    fn settle_audit(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The state of the log and its checkpoints, without the head.
    fn evidence(&self) -> BoxFuture<'_, Result<LogEvidence, StoreError>>;

    /// The next page of batches after a record, in order.
    fn batches_after(&self, sequence: u64) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>>;

    /// A page of batches that may match, newest first.
    fn batches_matching(&self, query: AuditQuery) -> BoxFuture<'_, Result<Vec<StoredBatch>, StoreError>>;
}

/// The matching records, newest first.
pub(crate) async fn records(
    tables: &impl AuditTables,
    mut query: AuditQuery,
) -> Result<Vec<AuditRecord>, StoreError> {
    // What is in the log can be read even if the rest cannot be written.
    let _ = tables.settle_audit().await;
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut records = Vec::new();
    while records.len() < limit {
        let page = tables.batches_matching(query.clone()).await?;
        for batch in &page {
            let mut matching: Vec<AuditRecord> =
                batch.records().filter(|record| query.matches(record)).collect();
            matching.reverse();
            records.extend(matching);
        }
        match page.last() {
            Some(last) if page.len() == PAGE_BATCHES => query.before = Some(last.first_sequence),
            _ => break,
        }
    }
    records.truncate(limit);
    Ok(records)
}

/// Verifies the log with these keys, or with those beside the signing key.
pub(crate) async fn verify(
    tables: &impl AuditTables,
    keys: Option<TrustedKeys>,
) -> Result<LogVerification, StoreError> {
    let keys = match (keys, tables.auditor()) {
        (Some(keys), _) => keys,
        (None, Some(auditor)) => auditor.trusted_keys()?,
        (None, None) => TrustedKeys::default(),
    };
    let _ = tables.settle_audit().await;
    let mut attempts = 0;
    loop {
        attempts += 1;
        // Before the state: a newer head would cover records that were not read.
        let head = tables.auditor().map(Auditor::head).transpose()?.flatten();
        let has_head = head.is_some();
        let evidence = LogEvidence { head, ..tables.evidence().await? };
        let result = verify_once(tables, &evidence, &keys).await?;
        let is_final =
            result.is_ok() || attempts == MAX_ATTEMPTS || base(&evidence) == base(&tables.evidence().await?);
        if is_final {
            return Ok(LogVerification { result, keys, has_head });
        }
    }
}

/// The record up to which old records were deleted.
fn base(evidence: &LogEvidence) -> u64 {
    let bases = evidence.checkpoints.iter().filter(|checkpoint| checkpoint.kind == CheckpointKind::Base);
    bases.map(|checkpoint| checkpoint.sequence).max().unwrap_or(0)
}

async fn verify_once(
    tables: &impl AuditTables,
    evidence: &LogEvidence,
    keys: &TrustedKeys,
) -> Result<Result<Option<Summary>, Tampering>, StoreError> {
    let mut verifier = match Verifier::new(evidence, keys) {
        Ok(Some(verifier)) => verifier,
        Ok(None) => {
            let first = tables.batches_after(0).await?;
            let first = first.first().map(|batch| batch.first_sequence);
            return Ok(first.map_or(Ok(None), |first| Err(Tampering::MissingState { first })));
        }
        Err(tampering) => return Ok(Err(tampering)),
    };
    let mut last = 0;
    let mut end: Option<LogEnd> = None;
    loop {
        let page = tables.batches_after(last).await?;
        for batch in &page {
            verifier.push_batch(batch);
            last = last.max(batch.last_sequence).max(batch.first_sequence);
        }
        // The end is valid if no page followed after it was read: records may be appended meanwhile.
        end = match (page.is_empty(), end) {
            (true, Some(_)) => return Ok(verifier.finish(end).map(Some)),
            (true, None) => tables.evidence().await?.end,
            (false, _) => None,
        };
        if page.is_empty() && end.is_none() {
            return Ok(verifier.finish(None).map(Some));
        }
    }
}

/// Writes the whole log. Returns the number of records.
pub(crate) async fn export(
    tables: &impl AuditTables,
    format: ExportFormat,
    out: &mut (dyn Write + Send),
) -> Result<u64, StoreError> {
    let _ = tables.settle_audit().await;
    let evidence = tables.evidence().await?;
    let Some(mut export) = JsonLinesExport::new(&evidence) else {
        // An empty file would hide that records exist.
        return match tables.batches_after(0).await?.first() {
            Some(batch) => Err(missing_state(batch.first_sequence)),
            None => Ok(0),
        };
    };
    let mut text = String::new();
    if format == ExportFormat::JsonLines {
        text = export.header();
    }
    let end = evidence.end.map_or(u64::MAX, |end| end.sequence);
    let mut last = base(&evidence);
    loop {
        let page = tables.batches_after(last).await?;
        for batch in page.iter().filter(|batch| batch.first_sequence <= end) {
            last = last.max(batch.last_sequence).max(batch.first_sequence);
            match (format, evidence.log) {
                (ExportFormat::Ocsf, Some(log)) => export.each_record(batch, |record, hash| {
                    text.push_str(&ocsf_event(&log, record, hash).to_string());
                    text.push('\n');
                }),
                _ => export.push_batch(batch, &mut text),
            }
        }
        out.write_all(text.as_bytes()).map_err(|error| write_error(&error))?;
        text.clear();
        if page.len() < PAGE_BATCHES || last >= end {
            break;
        }
    }
    if format == ExportFormat::JsonLines {
        out.write_all(export.footer().as_bytes()).map_err(|error| write_error(&error))?;
    }
    Ok(export.records())
}

fn missing_state(first: u64) -> StoreError {
    let text = |lang| Tampering::MissingState { first }.localize(lang);
    StoreError(LocalizedText::new(text(Lang::En), text(Lang::Zh)))
}

fn write_error(error: &std::io::Error) -> StoreError {
    StoreError(LocalizedText::new(
        format!("the export could not be written: {error}"),
        format!("无法写入导出文件：{error}"),
    ))
}
