//! Blocks of finished calls in the database; a small block is stored as one row per call.

use std::collections::HashSet;

use rusqlite::{Connection, params, params_from_iter};
use toolhub_core::call_log::{CallQuery, CallRecord, RecordId};

use super::calls;
use super::sums::Sums;
use crate::blocks::scan::{self, BlockRow, BlockScan};
use crate::blocks::{Block, MIN_BLOCK_CALLS, decode_all};
use crate::owner::{CallOrigin, OwnerId};
use crate::query::Dialect;

/// Stores a block. Calls that the database already contains are neither stored nor counted again.
pub(super) fn store(
    connection: &Connection,
    block: &Block,
    owner: OwnerId,
    sums: &mut Sums,
) -> rusqlite::Result<()> {
    if block.calls < MIN_BLOCK_CALLS {
        let origin = CallOrigin { owner, audit: block.records.is_some() };
        for note in block.finished_calls() {
            calls::note(connection, &note, origin, sums)?;
        }
        return Ok(());
    }
    let summary = &block.summary;
    let range = block.journal.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO call_blocks (first, last, began_first, began_last, statuses, tools, sources, conversations,
                 principals, parents, calls, owner, segment, segment_start, segment_end, bytes, entries)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            summary.first.as_str(),
            summary.last.as_str(),
            summary.began_first,
            summary.began_last,
            summary.statuses,
            summary.tools(),
            summary.sources(),
            summary.conversations(),
            summary.principals(),
            summary.parents(),
            block.calls as i64,
            owner.0,
            range.map(|range| range.segment.number()),
            range.map(|range| range.start.cast_signed()),
            range.map(|range| range.end.cast_signed()),
            block.entries.len() as i64,
            block.entries,
        ])?;
    sums.entry_bytes += block.entries.len() as i64;
    if !block.outputs.is_empty() {
        connection.prepare_cached("INSERT INTO block_outputs VALUES (?1, ?2, ?3, ?4)")?.execute(params![
            connection.last_insert_rowid(),
            summary.began_last,
            block.outputs.len() as i64,
            block.outputs
        ])?;
        sums.output_bytes += block.outputs.len() as i64;
    }
    sums.counted.add(block.counted.clone());
    if let Some(records) = &block.records {
        sums.audit.append(records);
    }
    Ok(())
}

/// Merges the matching calls in blocks with `rows`, those stored as rows.
pub(super) fn merge(
    connection: &Connection,
    query: CallQuery,
    rows: Vec<CallRecord>,
) -> rusqlite::Result<Vec<CallRecord>> {
    let mut scan = BlockScan::new(query, rows);
    while let Some((sql, values)) = scan.page(Dialect::Sqlite) {
        let mut select = connection.prepare_cached(&sql)?;
        let blocks = select
            .query_map(params_from_iter(values), |row| {
                Ok(BlockRow { id: row.get(0)?, last: row.get(1)?, entries: row.get(2)? })
            })?
            .collect::<rusqlite::Result<Vec<BlockRow>>>()?;
        scan.add(blocks);
    }
    Ok(scan.finish())
}

/// The output of a call in a block.
pub(super) fn output(connection: &Connection, record: &RecordId) -> rusqlite::Result<Option<String>> {
    let (sql, values) = scan::output(Dialect::Sqlite, record);
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let (entries, outputs) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        if let Some(output) = scan::output_in(record, entries, outputs) {
            return Ok(Some(output));
        }
    }
    Ok(None)
}

/// The ranges of a journal file of `owner` that the database contains as blocks: offsets of the first byte and after
/// the last.
pub(super) fn stored_ranges(
    connection: &Connection,
    owner: OwnerId,
    segment: u32,
) -> rusqlite::Result<Vec<(u64, u64)>> {
    let mut select = connection.prepare_cached(
        "SELECT segment_start, segment_end FROM call_blocks WHERE owner = ?1 AND segment = ?2",
    )?;
    let offsets = select.query_map(params![owner.0, segment], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    offsets.collect()
}

/// The calls of `owner` from `first` on that were journaled as intents and are stored in blocks.
pub(super) fn stored_intents(
    connection: &Connection,
    owner: OwnerId,
    first: &RecordId,
) -> rusqlite::Result<HashSet<RecordId>> {
    let mut select = connection.prepare_cached(
        "SELECT entries FROM call_blocks WHERE owner = ?1 AND segment IS NULL AND last >= ?2",
    )?;
    let mut rows = select.query(params![owner.0, first.as_str()])?;
    let mut records = HashSet::new();
    while let Some(row) = rows.next()? {
        records.extend(decode_all(row.get_ref(0)?.as_blob()?).map(|entry| entry.start.record));
    }
    Ok(records)
}
