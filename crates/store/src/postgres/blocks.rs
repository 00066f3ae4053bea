//! Blocks of finished calls in the database.

use futures_util::future::{try_join, try_join_all};
use tokio_postgres::{Client, Error, Statement};
use toolhub_core::call_log::{CallQuery, CallRecord, RecordId};

use super::session::Session;
use super::{replace_nul, run_query};
use crate::blocks::Block;
use crate::blocks::scan::{self, BlockRow, BlockScan};
use crate::owner::OwnerId;
use crate::query::Dialect;

/// Idempotent: after a broken connection it is unknown whether the block was stored.
const INSERT: &str =
    "INSERT INTO call_blocks (first, last, began_first, began_last, statuses, tools, sources,
        conversations, principals, parents, calls, owner, segment, segment_start, segment_end, bytes, entries)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    ON CONFLICT (first) DO NOTHING RETURNING id";
const OUTPUTS: &str = "INSERT INTO block_outputs VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING";

/// The prepared statements.
pub(super) struct Statements {
    insert: Statement,
    outputs: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let (insert, outputs) = try_join(client.prepare(INSERT), client.prepare(OUTPUTS)).await?;
        Ok(Self { insert, outputs })
    }
}

/// Stores blocks. Returns the new ones.
pub(super) async fn insert<'a>(
    client: &Client,
    statements: &Statements,
    blocks: &[&'a Block],
    owner: OwnerId,
) -> Result<Vec<&'a Block>, Error> {
    let stored =
        try_join_all(blocks.iter().map(|block| insert_one(client, statements, block, owner))).await?;
    Ok(blocks.iter().zip(stored).filter(|(_, new)| *new).map(|(block, _)| *block).collect())
}

async fn insert_one(
    client: &Client,
    statements: &Statements,
    block: &Block,
    owner: OwnerId,
) -> Result<bool, Error> {
    let summary = &block.summary;
    let range = block.journal.as_ref();
    let column = |names: Option<String>| names.map(|names| replace_nul(&names).into_owned());
    let rows = client
        .query(
            &statements.insert,
            &[
                &replace_nul(summary.first.as_str()),
                &replace_nul(summary.last.as_str()),
                &summary.began_first,
                &summary.began_last,
                &summary.statuses,
                &column(summary.tools()),
                &column(summary.sources()),
                &column(summary.conversations()),
                &column(summary.principals()),
                &column(summary.parents()),
                &i64::try_from(block.calls).unwrap_or(i64::MAX),
                &owner.0,
                &range.map(|range| i64::from(range.segment.number())),
                &range.map(|range| range.start.cast_signed()),
                &range.map(|range| range.end.cast_signed()),
                &i64::try_from(block.entries.len()).unwrap_or(i64::MAX),
                &block.entries,
            ],
        )
        .await?;
    let Some(row) = rows.first() else { return Ok(false) };
    if !block.outputs.is_empty() {
        let id: i64 = row.try_get(0)?;
        let bytes = i64::try_from(block.outputs.len()).unwrap_or(i64::MAX);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&id, &summary.began_last, &bytes, &block.outputs];
        client.execute(&statements.outputs, &values).await?;
    }
    Ok(true)
}

/// Merges the matching calls in blocks with `rows`, those stored as rows.
pub(super) async fn merge(
    session: &Session,
    call_query: CallQuery,
    rows: Vec<CallRecord>,
) -> Result<Vec<CallRecord>, Error> {
    let mut scan = BlockScan::new(call_query, rows);
    while let Some((sql, values)) = scan.page(Dialect::Postgres) {
        let rows = run_query(session, &sql, values).await?;
        let blocks = rows
            .iter()
            .map(|row| Ok(BlockRow { id: row.try_get(0)?, last: row.try_get(1)?, entries: row.try_get(2)? }))
            .collect::<Result<Vec<BlockRow>, Error>>()?;
        scan.add(blocks);
    }
    Ok(scan.finish())
}

/// The output of a call in a block.
pub(super) async fn output(session: &Session, record: &RecordId) -> Result<Option<String>, Error> {
    let (sql, values) = scan::output(Dialect::Postgres, record);
    for row in run_query(session, &sql, values).await? {
        let (entries, outputs): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(output) = scan::output_in(record, entries, outputs) {
            return Ok(Some(output));
        }
    }
    Ok(None)
}

/// The ranges of a journal file of `owner` that the database contains as blocks: offsets of the first byte and after
/// the last.
pub(super) async fn stored_ranges(
    session: &Session,
    owner: OwnerId,
    segment: u32,
) -> Result<Vec<(u64, u64)>, Error> {
    let select = "SELECT segment_start, segment_end FROM call_blocks WHERE owner = $1 AND segment = $2";
    let rows = session.client.query(select, &[&owner.0, &i64::from(segment)]).await?;
    rows.iter()
        .map(|row| Ok((row.try_get::<_, i64>(0)?.unsigned_abs(), row.try_get::<_, i64>(1)?.unsigned_abs())))
        .collect()
}
