//! The version history of tools: each definition of a server, with the times it was first and last seen.

use rusqlite::{Transaction, params};
use toolhub_core::ports::{StoreError, ToolVersion, ToolVersions};
use toolhub_core::{BoxFuture, RawJson, ServerId, ToolDefinition};

use super::SqliteStore;
use crate::retention::MAX_TOOL_VERSIONS;
use crate::rows::{from_millis, millis};

impl ToolVersions for SqliteStore {
    fn history<'a>(
        &'a self,
        server: &'a ServerId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ToolVersion>, StoreError>> {
        let (server, tool) = (server.as_str().to_owned(), tool.to_owned());
        Box::pin(self.run(move |connection| {
            let mut select = connection.prepare(
                "SELECT version, definition, first_seen, last_seen FROM tool_versions
                 WHERE server = ?1 AND name = ?2 ORDER BY last_seen DESC, first_seen DESC",
            )?;
            let rows = select.query_map([&server, &tool], |row| {
                let definition: String = row.get(1)?;
                Ok(ToolVersion {
                    version: row.get(0)?,
                    definition: RawJson::parse(definition).unwrap_or_else(|_| RawJson::null()),
                    first_seen: from_millis(row.get(2)?),
                    last_seen: from_millis(row.get(3)?),
                })
            })?;
            rows.collect()
        }))
    }
}

/// Stores the definitions of a new list as versions.
pub(super) fn note(
    transaction: &Transaction<'_>,
    server: &str,
    tools: &[RawJson],
    now: std::time::SystemTime,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT INTO tool_versions VALUES (?1, ?2, ?3, ?4, ?5, ?5)
         ON CONFLICT (server, name, version) DO UPDATE SET last_seen = excluded.last_seen",
    )?;
    let mut prune = transaction.prepare(
        "DELETE FROM tool_versions WHERE server = ?1 AND name = ?2 AND version NOT IN (
             SELECT version FROM tool_versions WHERE server = ?1 AND name = ?2 ORDER BY last_seen DESC LIMIT ?3)",
    )?;
    let now = millis(now);
    for raw in tools {
        let Ok(definition) = ToolDefinition::parse(raw.clone()) else { continue };
        let name = definition.name().as_str();
        insert.execute(params![server, name, definition.version(), raw.get(), now])?;
        prune.execute(params![server, name, MAX_TOOL_VERSIONS])?;
    }
    Ok(())
}
