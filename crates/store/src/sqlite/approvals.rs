//! Approvals: the definition of a tool that the user has accepted.

use rusqlite::{Connection, params};
use toolhub_core::approval::{Approval, Approvals};
use toolhub_core::ports::StoreError;
use toolhub_core::{BoxFuture, Source, ToolName};

use super::SqliteStore;
use crate::query;
use crate::rows::unix_micros;
use crate::write::Write;

impl Approvals for SqliteStore {
    fn approvals(&self) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>> {
        Box::pin(self.run(|connection| {
            let mut select = connection.prepare_cached(query::APPROVALS)?;
            let rows = select.query_map([], |row| query::approval_of(row))?;
            rows.collect()
        }))
    }

    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Write::Approve(approval)).await.map(drop) })
    }

    fn revoke<'a>(
        &'a self,
        source: &'a Source,
        tool: &'a ToolName,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.write(Write::Revoke(source.clone(), tool.clone())))
    }
}

/// Stores an approval; replaces the previous one.
pub(super) fn approve(connection: &Connection, approval: &Approval) -> rusqlite::Result<bool> {
    connection.prepare_cached("INSERT OR REPLACE INTO approvals VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
        params![
            approval.source.to_string(),
            approval.tool.as_str(),
            approval.version,
            approval.definition.get(),
            unix_micros(approval.at)
        ],
    )?;
    Ok(true)
}

/// Removes an approval; returns whether there was one.
pub(super) fn revoke(connection: &Connection, source: &Source, tool: &ToolName) -> rusqlite::Result<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM approvals WHERE source = ?1 AND tool = ?2")?
        .execute([&source.to_string(), tool.as_str()])?;
    Ok(deleted > 0)
}
