//! Stored lists of prompts and resources.

use std::time::SystemTime;

use tokio_postgres::{Client, Error, Row};
use toolhub_core::ports::CachedOffers;
use toolhub_core::{RawJson, ServerId};

use super::session::Session;
use super::{replace_nul, run_query};
use crate::retention::LIST_RETENTION;
use crate::rows::{Columns as _, from_millis, millis};

pub(super) async fn load(session: &Session) -> Result<Vec<(ServerId, CachedOffers)>, Error> {
    let sql = "SELECT server, fingerprint, kind, listed_at, items FROM offers ORDER BY server, kind";
    let offers = |row: &Row| {
        let offers = CachedOffers {
            fingerprint: row.text(1)?,
            kind: row.text(2)?,
            listed_at: from_millis(row.int(3)?),
            items: serde_json::from_str(&row.text(4)?).unwrap_or_default(),
        };
        Ok((ServerId::new(row.text(0)?), offers))
    };
    run_query(session, sql, Vec::new()).await?.iter().map(offers).collect()
}

pub(super) async fn save(client: &Client, server: &ServerId, offers: &CachedOffers) -> Result<(), Error> {
    // Removes the lists of former configurations.
    let old = millis(SystemTime::now() - LIST_RETENTION);
    client.execute("DELETE FROM offers WHERE listed_at < $1", &[&old]).await?;
    let sql = "INSERT INTO offers VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (server, fingerprint, kind) DO UPDATE SET listed_at = excluded.listed_at, items = excluded.items";
    let (server, fingerprint) = (replace_nul(server.as_str()), replace_nul(&offers.fingerprint));
    let (kind, listed_at, items) =
        (replace_nul(&offers.kind), millis(offers.listed_at), RawJson::of(&offers.items));
    client.execute(sql, &[&server, &fingerprint, &kind, &listed_at, &items.get()]).await?;
    Ok(())
}

pub(super) async fn forget(client: &Client, server: &ServerId, fingerprint: &str) -> Result<(), Error> {
    let sql = "DELETE FROM offers WHERE server = $1 AND fingerprint = $2";
    client.execute(sql, &[&replace_nul(server.as_str()), &replace_nul(fingerprint)]).await?;
    Ok(())
}
