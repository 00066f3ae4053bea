//! Stored tool lists of servers.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, Transaction, params};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::ports::{CachedList, CachedOffers, StoreError, ToolListStore};
use toolhub_core::{BoxFuture, RawJson, ServerId};

use super::{SqliteStore, offers, versions};
use crate::retention::LIST_RETENTION;
use crate::rows::{from_millis, millis, millis_of};
use crate::write::Write;

const DELETE: &str = "DELETE FROM tool_lists WHERE server = ?1 AND fingerprint = ?2";
/// Deletes lists that are older than a time.
const SWEEP: &str = "DELETE FROM tool_lists WHERE coalesce(listed_at, failed_at, late_at, 0) < ?1";

impl ToolListStore for SqliteStore {
    fn load(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedList)>, StoreError>> {
        Box::pin(self.run(|connection| load(connection)))
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
        Box::pin(self.run(|connection| offers::load(connection)))
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

pub(super) fn forget(
    transaction: &Transaction<'_>,
    server: &ServerId,
    fingerprint: &str,
) -> rusqlite::Result<bool> {
    offers::forget(transaction, server, fingerprint)?;
    transaction.execute(DELETE, [server.as_str(), fingerprint]).map(|count| count > 0)
}

fn load(connection: &Connection) -> rusqlite::Result<Vec<(ServerId, CachedList)>> {
    let mut lists = connection.prepare(
        "SELECT server, fingerprint, era, peer, listed_at, ttl_ms, skipped, failed_at, failure, failure_zh, failures,
            late_at, late_after_ms
         FROM tool_lists ORDER BY server",
    )?;
    let mut tools = connection.prepare(
        "SELECT definition FROM listed_tools WHERE server = ?1 AND fingerprint = ?2 ORDER BY position",
    )?;
    let mut loaded_lists = Vec::new();
    let mut rows = lists.query([])?;
    while let Some(row) = rows.next()? {
        let (server, fingerprint): (String, String) = (row.get(0)?, row.get(1)?);
        let definitions = tools
            .query_map([&server, &fingerprint], |row| row.get::<_, String>(0))?
            .filter_map(|text| text.map(|text| RawJson::parse(text).ok()).transpose())
            .collect::<rusqlite::Result<Vec<RawJson>>>()?;
        let skipped: String = row.get(6)?;
        let failed_at = row.get::<_, Option<i64>>(7)?.map(from_millis);
        let (failure, failure_zh): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
        let failure = failure.map(|en| match failure_zh {
            Some(zh) => LocalizedText::new(en, zh),
            None => LocalizedText::from(en),
        });
        let list = CachedList {
            fingerprint,
            era: row.get(2)?,
            peer: row.get(3)?,
            listed_at: row.get::<_, Option<i64>>(4)?.map(from_millis),
            ttl: row.get::<_, Option<i64>>(5)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
            tools: definitions,
            skipped: read_texts(&skipped),
            failure: failed_at.zip(failure),
            failures: row.get(10)?,
            late_at: row.get::<_, Option<i64>>(11)?.map(from_millis),
            late_after: row.get::<_, Option<i64>>(12)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        };
        loaded_lists.push((ServerId::new(server), list));
    }
    Ok(loaded_lists)
}

pub(super) fn save(
    transaction: &Transaction<'_>,
    server: &ServerId,
    list: &CachedList,
) -> rusqlite::Result<()> {
    let server = server.as_str();
    transaction.execute(DELETE, [server, &list.fingerprint])?;
    // Removes the lists of former configurations.
    let old = millis(SystemTime::now() - LIST_RETENTION);
    transaction.execute(SWEEP, [old])?;
    let failed_at = list.failure.as_ref().map(|(at, _)| millis(*at));
    let failure = |lang| list.failure.as_ref().map(|(_, why)| why.localize(lang));
    let skipped: Vec<[String; 2]> =
        list.skipped.iter().map(|text| [text.localize(Lang::En), text.localize(Lang::Zh)]).collect();
    transaction.execute(
        "INSERT INTO tool_lists VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            server,
            list.fingerprint,
            list.era,
            list.peer,
            list.listed_at.map(millis),
            list.ttl.map(millis_of),
            RawJson::of(&skipped).get(),
            failed_at,
            failure(Lang::En),
            failure(Lang::Zh),
            list.failures,
            list.late_at.map(millis),
            list.late_after.map(millis_of),
        ],
    )?;
    {
        let mut insert = transaction.prepare("INSERT INTO listed_tools VALUES (?1, ?2, ?3, ?4)")?;
        for (position, tool) in list.tools.iter().enumerate() {
            insert.execute(params![
                server,
                list.fingerprint,
                i64::try_from(position).unwrap_or(i64::MAX),
                tool.get()
            ])?;
        }
    }
    if let Some(listed_at) = list.listed_at.filter(|_| list.failure.is_none()) {
        versions::note(transaction, server, &list.tools, listed_at)?;
    }
    Ok(())
}

/// Parses the reasons for skipped tools: pairs of both languages, or single texts of an older version.
fn read_texts(json_text: &str) -> Vec<LocalizedText> {
    match serde_json::from_str::<Vec<[String; 2]>>(json_text) {
        Ok(pairs) => pairs.into_iter().map(|[en, zh]| LocalizedText::new(en, zh)).collect(),
        Err(_) => {
            let texts: Vec<String> = serde_json::from_str(json_text).unwrap_or_default();
            texts.into_iter().map(LocalizedText::from).collect()
        }
    }
}
