//! Approvals: the definition of a tool that the user has accepted.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};
use toolhub_core::approval::{Approval, Approvals};
use toolhub_core::ports::StoreError;
use toolhub_core::{BoxFuture, Source, ToolName};

use super::{PgStore, replace_nul, run_query};
use crate::query as sql_query;
use crate::rows::unix_micros;
use crate::write::Write;

impl Approvals for PgStore {
    fn approvals(&self) -> BoxFuture<'_, Result<Vec<Approval>, StoreError>> {
        Box::pin(self.read(|session| async move {
            run_query(&session, sql_query::APPROVALS, Vec::new())
                .await?
                .iter()
                .map(sql_query::approval_of)
                .collect()
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
pub(super) async fn approve(client: &Client, approval: &Approval) -> Result<bool, Error> {
    let sql = "INSERT INTO approvals VALUES ($1, $2, $3, $4, $5) ON CONFLICT (source, tool) DO UPDATE SET
        version = excluded.version, definition = excluded.definition, at = excluded.at";
    let source = approval.source.to_string();
    let values: [&(dyn ToSql + Sync); 5] = [
        &replace_nul(&source),
        &replace_nul(approval.tool.as_str()),
        &replace_nul(&approval.version),
        &approval.definition.get(),
        &unix_micros(approval.at),
    ];
    client.execute(sql, &values).await?;
    Ok(true)
}

/// Removes an approval; returns whether there was one.
pub(super) async fn revoke(client: &Client, source: &Source, tool: &ToolName) -> Result<bool, Error> {
    let sql = "DELETE FROM approvals WHERE source = $1 AND tool = $2";
    let source = source.to_string();
    Ok(client.execute(sql, &[&replace_nul(&source), &replace_nul(tool.as_str())]).await? > 0)
}
