//! Which stores are alive. An open store holds an advisory lock for as long as its write connection exists. The lock is also
//! released when the connection breaks or the server restarts, so that its absence alone proves nothing: a store counts as
//! ended once it was closed, or once the lock has been absent for longer than a living store needs to connect again.
//!
//! The first store that notices the absence writes a row, and the missing store removes it when it returns. So every store sees
//! the same, and only the clock of the database decides.

use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::session::Session;
use crate::owner::OwnerId;

/// How long the lock of a store may be absent while no other store had to connect again, in seconds.
const GRACE_SECONDS: u32 = 2;
/// How long it may be absent in any case. It is longer than one connection attempt and the pause before it: after a restart of
/// the server all stores connect again, some later than others.
const RECONNECT_GRACE_SECONDS: u32 = 10;
/// After how many days the row of an ended store is deleted. If it is asked for later, its end is found again.
const RETENTION_DAYS: u32 = 7;

/// The condition of rows whose owner, which is not `$1`, holds no advisory lock. A lock by a single key is shown as two halves.
const HOLDS_NO_LOCK: &str = "owner <> $1 AND NOT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND ((classid::bigint << 32) | objid::bigint) = owner)";

/// Notes the absence of locks. Each lock is taken while its row is written: a store that takes its own lock afterwards finds
/// the row, and removes it. Absences under an earlier start of the server do not count, since all locks were released then.
const NOTE_ABSENCE: &str = "INSERT INTO lost_owners AS old (id, since, server)
    SELECT id, clock_timestamp(), pg_postmaster_start_time() FROM unnest($1::bigint[]) AS id
        WHERE pg_try_advisory_xact_lock(id)
    ON CONFLICT (id) DO UPDATE SET since = excluded.since, server = excluded.server
        WHERE old.server <> excluded.server AND NOT old.closed";

/// A connection that replaces a broken one, or the first one to this start of the server: other stores may be about to connect.
const NOTE_CONNECTION: &str =
    "INSERT INTO steady_since AS old VALUES (TRUE, pg_postmaster_start_time(), clock_timestamp())
    ON CONFLICT (single) DO UPDATE SET server = excluded.server, since = excluded.since
        WHERE $1 OR old.server <> excluded.server";

const CLOSE: &str = "INSERT INTO lost_owners AS old (id, since, server, closed)
    VALUES ($1, clock_timestamp(), pg_postmaster_start_time(), TRUE)
    ON CONFLICT (id) DO UPDATE SET closed = TRUE";

/// Those of the stores `$1` that have ended.
fn ended() -> String {
    let before = |seconds: u32| format!("since <= clock_timestamp() - interval '{seconds} seconds'");
    let (grace, reconnect_grace) = (before(GRACE_SECONDS), before(RECONNECT_GRACE_SECONDS));
    format!(
        "SELECT id FROM lost_owners WHERE id = ANY($1) AND (closed
            OR (server = pg_postmaster_start_time() AND ({reconnect_grace} OR ({grace} AND EXISTS (
                SELECT 1 FROM steady_since WHERE server = pg_postmaster_start_time() AND {reconnect_grace})))))"
    )
}

/// Whether a connection is the first one of its kind, or replaces a broken one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    First,
    Again,
}

impl Session {
    /// Takes the advisory lock that shows that the owner is alive, for as long as this connection exists. Returns
    /// whether that succeeded; it fails while the server still has an earlier connection of the same owner, which
    /// holds the lock. In any case the owner is not lost any more.
    pub(super) async fn acquire_liveness_lock(&self, owner: OwnerId) -> Result<bool, Error> {
        let id = owner.0;
        let sql = format!("SELECT pg_try_advisory_lock({id}); DELETE FROM lost_owners WHERE id = {id}");
        let answer = self.client.simple_query(&sql).await?;
        Ok(answer
            .iter()
            .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))))
    }

    /// Notes that stores may have to connect again, before this connection is used to find living stores.
    pub(super) async fn note_connection(&self, connection: Connection) -> Result<(), Error> {
        let is_again = connection == Connection::Again;
        self.client.execute(NOTE_CONNECTION, &[&is_again]).await.map(drop)
    }

    /// Notes that an owner is about to be closed.
    pub(super) async fn note_close(&self, owner: OwnerId) -> Result<(), Error> {
        self.client.execute(CLOSE, &[&owner.0]).await.map(drop)
    }

    /// Whether an owner, other than this one, is alive.
    pub(super) async fn is_alive(&self, owner: i64) -> Result<bool, Error> {
        let sql = format!("SELECT {HOLDS_NO_LOCK} FROM (SELECT $2::bigint AS owner) AS asked");
        // No owner has the number that `$1` excludes, unless it is the one that is asked for.
        let row = self.client.query_one(&sql, &[&owner.wrapping_add(1), &owner]).await?;
        match row.try_get::<_, bool>(0)? {
            true => Ok(self.ended(vec![owner]).await?.is_empty()),
            false => Ok(true),
        }
    }

    /// The dead owners among those of the rows `from`, other than `owner`.
    pub(super) async fn dead_owners(&self, from: &str, owner: OwnerId) -> Result<Vec<i64>, Error> {
        let sql = format!("SELECT DISTINCT owner FROM {from} AND {HOLDS_NO_LOCK} ORDER BY owner");
        let rows = self.client.query(&sql, &[&owner.0]).await?;
        let absent = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        self.ended(absent).await
    }

    /// Those of the stores without a lock that have ended. The absence of the others is noted.
    async fn ended(&self, absent: Vec<i64>) -> Result<Vec<i64>, Error> {
        if absent.is_empty() {
            return Ok(absent);
        }
        let rows = self.client.query(&ended(), &[&absent]).await?;
        let ended = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        let others: Vec<i64> = absent.into_iter().filter(|owner| !ended.contains(owner)).collect();
        if !others.is_empty() {
            self.client.execute(NOTE_ABSENCE, &[&others]).await?;
        }
        Ok(ended)
    }
}

/// Those of the dead owners that have not returned meanwhile. They cannot return before the end of the transaction.
pub(super) async fn still_dead(client: &Client, dead: &[i64]) -> Result<Vec<i64>, Error> {
    let sql = "SELECT id FROM lost_owners WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    client.query(sql, &[&dead]).await?.iter().map(|row| row.try_get(0)).collect()
}

/// Deletes rows of stores that ended long ago. Returns how many were deleted.
pub(super) async fn purge(client: &Client) -> Result<u64, Error> {
    let sql =
        format!("DELETE FROM lost_owners WHERE since < clock_timestamp() - interval '{RETENTION_DAYS} days'");
    client.execute(&sql, &[]).await
}
