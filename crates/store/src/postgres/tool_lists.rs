//! The tool lists of servers, and the version history of their tools.

use std::time::{Duration, SystemTime};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};
use toolhub_core::ports::{CachedList, CachedOffers, StoreError, ToolListStore, ToolVersion, ToolVersions};
use toolhub_core::{BoxFuture, RawJson, ServerId, ToolDefinition};

use super::{PgStore, offers, replace_nul, run_query};
use crate::query::SqlValue;
use crate::retention::{LIST_RETENTION, MAX_TOOL_VERSIONS};
use crate::rows::{Columns as _, from_millis, json_text, millis, millis_of, stored_json};
use crate::write::Write;

impl ToolListStore for PgStore {
    fn load(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedList)>, StoreError>> {
        Box::pin(self.read(|session| async move {
            let sql =
                "SELECT server, fingerprint, era, peer, listed_at, ttl_ms, skipped, failed_at, failure, tools,
                    failures, late_at, late_after_ms FROM tool_lists ORDER BY server";
            run_query(&session, sql, Vec::new()).await?.iter().map(list_of).collect()
        }))
    }

    fn save<'a>(
        &'a self,
        server: &'a ServerId,
        list: &'a CachedList,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let write = Write::SaveList(server.clone(), Box::new(list.clone()));
        Box::pin(async { self.write(write).await.map(drop) })
    }

    fn load_offers(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedOffers)>, StoreError>> {
        Box::pin(self.read(|session| async move { offers::load(&session).await }))
    }

    fn save_offers<'a>(
        &'a self,
        server: &'a ServerId,
        offers: &'a CachedOffers,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let write = Write::SaveOffers(server.clone(), Box::new(offers.clone()));
        Box::pin(async { self.write(write).await.map(drop) })
    }

    fn forget<'a>(
        &'a self,
        server: &'a ServerId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let write = Write::ForgetList(server.clone(), fingerprint.to_owned());
        Box::pin(async { self.write(write).await.map(drop) })
    }
}

impl ToolVersions for PgStore {
    fn history<'a>(
        &'a self,
        server: &'a ServerId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ToolVersion>, StoreError>> {
        let names = vec![SqlValue::Text(server.as_str().to_owned()), SqlValue::Text(tool.to_owned())];
        Box::pin(self.read(move |session| {
            let names = names.clone();
            async move {
                let sql = "SELECT version, definition, first_seen, last_seen FROM tool_versions
                    WHERE server = $1 AND name = $2 ORDER BY last_seen DESC, first_seen DESC";
                let version = |row: &Row| {
                    Ok(ToolVersion {
                        version: row.text(0)?,
                        definition: stored_json(row.text(1)?),
                        first_seen: from_millis(row.int(2)?),
                        last_seen: from_millis(row.int(3)?),
                    })
                };
                run_query(&session, sql, names).await?.iter().map(version).collect()
            }
        }))
    }
}

fn list_of(row: &Row) -> Result<(ServerId, CachedList), Error> {
    let failed_at = row.maybe_int(7)?.map(from_millis);
    let failure = row.maybe_text(8)?.and_then(|failure| serde_json::from_str(&failure).ok());
    let tools: Vec<String> = row.try_get(9)?;
    let list = CachedList {
        fingerprint: row.text(1)?,
        era: row.text(2)?,
        peer: row.text(3)?,
        listed_at: row.maybe_int(4)?.map(from_millis),
        ttl: row.maybe_int(5)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        tools: tools.into_iter().filter_map(|tool| RawJson::parse(tool).ok()).collect(),
        skipped: serde_json::from_str(&row.text(6)?).unwrap_or_default(),
        failure: failed_at.zip(failure),
        failures: u32::try_from(row.int(10)?).unwrap_or(u32::MAX),
        late_at: row.maybe_int(11)?.map(from_millis),
        late_after: row.maybe_int(12)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
    };
    Ok((ServerId::new(row.text(0)?), list))
}

/// Stores a server's list; replaces the previous one.
pub(super) async fn save(client: &Client, server: &ServerId, list: &CachedList) -> Result<(), Error> {
    // Removes the lists of former configurations.
    let old = millis(SystemTime::now() - LIST_RETENTION);
    let sweep = "DELETE FROM tool_lists WHERE coalesce(listed_at, failed_at, late_at, 0) < $1";
    client.execute(sweep, &[&old]).await?;
    let sql = "INSERT INTO tool_lists VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (server, fingerprint) DO UPDATE SET era = excluded.era, peer = excluded.peer,
            listed_at = excluded.listed_at, ttl_ms = excluded.ttl_ms, skipped = excluded.skipped,
            failed_at = excluded.failed_at, failure = excluded.failure, tools = excluded.tools,
            failures = excluded.failures, late_at = excluded.late_at, late_after_ms = excluded.late_after_ms";
    let (failed_at, failure) =
        list.failure.as_ref().map(|(at, failure)| (millis(*at), json_text(failure))).unzip();
    let ttl = list.ttl.map(millis_of);
    let tools: Vec<&str> = list.tools.iter().map(RawJson::get).collect();
    let values: [&(dyn ToSql + Sync); 13] = [
        &replace_nul(server.as_str()),
        &replace_nul(&list.fingerprint),
        &replace_nul(&list.era),
        &replace_nul(&list.peer),
        &list.listed_at.map(millis),
        &ttl,
        &json_text(&list.skipped),
        &failed_at,
        &failure,
        &tools,
        &i64::from(list.failures),
        &list.late_at.map(millis),
        &list.late_after.map(millis_of),
    ];
    client.execute(sql, &values).await?;
    match list.listed_at.filter(|_| list.failure.is_none()) {
        Some(listed_at) => note_versions(client, server, &list.tools, listed_at).await,
        None => Ok(()),
    }
}

/// Deletes a list; returns whether there was one.
pub(super) async fn forget(client: &Client, server: &ServerId, fingerprint: &str) -> Result<bool, Error> {
    offers::forget(client, server, fingerprint).await?;
    let sql = "DELETE FROM tool_lists WHERE server = $1 AND fingerprint = $2";
    let deleted = client.execute(sql, &[&replace_nul(server.as_str()), &replace_nul(fingerprint)]).await?;
    Ok(deleted > 0)
}

/// Stores the definitions of a new list as versions, in one statement.
async fn note_versions(
    client: &Client,
    server: &ServerId,
    tools: &[RawJson],
    now: SystemTime,
) -> Result<(), Error> {
    let definitions: Vec<ToolDefinition> =
        tools.iter().filter_map(|tool| ToolDefinition::parse(tool.clone()).ok()).collect();
    let server = replace_nul(server.as_str());
    let names: Vec<_> =
        definitions.iter().map(|definition| replace_nul(definition.name().as_str())).collect();
    let versions: Vec<&str> = definitions.iter().map(ToolDefinition::version).collect();
    let raws: Vec<&str> = definitions.iter().map(|definition| definition.raw().get()).collect();
    // A list may contain a tool twice, but one statement must not update a row twice.
    let insert = "INSERT INTO tool_versions
        SELECT DISTINCT ON (name, version) $1, name, version, definition, $5, $5
        FROM unnest($2::text[], $3::text[], $4::text[]) AS new (name, version, definition)
        ORDER BY name, version
        ON CONFLICT (server, name, version) DO UPDATE SET last_seen = excluded.last_seen";
    let now = millis(now);
    client.execute(insert, &[&server, &names, &versions, &raws, &now]).await?;
    let prune = "DELETE FROM tool_versions USING (
            SELECT name, version, row_number() OVER (PARTITION BY name ORDER BY last_seen DESC) AS place
            FROM tool_versions WHERE server = $1 AND name = ANY($2::text[])) AS ranked
        WHERE tool_versions.server = $1 AND tool_versions.name = ranked.name
            AND tool_versions.version = ranked.version AND ranked.place > $3";
    client.execute(prune, &[&server, &names, &MAX_TOOL_VERSIONS]).await?;
    Ok(())
}
