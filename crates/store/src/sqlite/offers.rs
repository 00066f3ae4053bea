//! Stored lists of prompts and resources.

use std::time::SystemTime;

use rusqlite::{Connection, Transaction, params};
use toolhub_core::ports::CachedOffers;
use toolhub_core::{RawJson, ServerId};

use crate::retention::LIST_RETENTION;
use crate::rows::{from_millis, millis};

pub(super) fn load(connection: &Connection) -> rusqlite::Result<Vec<(ServerId, CachedOffers)>> {
    let mut statement = connection
        .prepare("SELECT server, fingerprint, kind, listed_at, items FROM offers ORDER BY server, kind")?;
    let rows = statement.query_map([], |row| {
        let items: String = row.get(4)?;
        let offers = CachedOffers {
            fingerprint: row.get(1)?,
            kind: row.get(2)?,
            listed_at: from_millis(row.get(3)?),
            items: serde_json::from_str(&items).unwrap_or_default(),
        };
        Ok((ServerId::new(row.get::<_, String>(0)?), offers))
    })?;
    rows.collect()
}

pub(super) fn save(
    transaction: &Transaction<'_>,
    server: &ServerId,
    offers: &CachedOffers,
) -> rusqlite::Result<()> {
    // Removes the lists of former configurations.
    transaction
        .execute("DELETE FROM offers WHERE listed_at < ?1", [millis(SystemTime::now() - LIST_RETENTION)])?;
    transaction.execute(
        "INSERT OR REPLACE INTO offers VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            server.as_str(),
            offers.fingerprint,
            offers.kind,
            millis(offers.listed_at),
            RawJson::of(&offers.items).get(),
        ],
    )?;
    Ok(())
}

pub(super) fn forget(
    transaction: &Transaction<'_>,
    server: &ServerId,
    fingerprint: &str,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM offers WHERE server = ?1 AND fingerprint = ?2";
    transaction.execute(sql, [server.as_str(), fingerprint]).map(drop)
}
