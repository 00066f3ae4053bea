//! Migrations: forward only, each applied once, by one hub at a time.

use super::session::{Session, error_text};
use crate::error::OpenError;

/// All steps in order. Never change a released step: add another.
const STEPS: [&str; 14] = [
    include_str!("migrations/0001_all.sql"),
    include_str!("migrations/0002_failures_in_a_row.sql"),
    include_str!("migrations/0003_offers.sql"),
    include_str!("migrations/0004_call_blocks.sql"),
    include_str!("migrations/0005_late_after.sql"),
    include_str!("migrations/0006_principals.sql"),
    include_str!("migrations/0007_audit.sql"),
    include_str!("migrations/0008_calls_by_status.sql"),
    include_str!("migrations/0009_parents.sql"),
    include_str!("migrations/0010_responses.sql"),
    include_str!("migrations/0011_cluster.sql"),
    include_str!("migrations/0012_shared_state.sql"),
    include_str!("migrations/0013_response_cancellations.sql"),
    include_str!("migrations/0014_lost_owners.sql"),
];

/// The key of the advisory lock: arbitrary, but unique.
const MIGRATION_LOCK_KEY: i64 = 0x746f_6f6c_6875_6200;

/// Migrates the database to the newest version.
pub(super) async fn migrate(session: &Session, location: &str) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| OpenError::Postgres {
        location: location.to_owned(),
        cause: format!("its tables could not be made: {}", error_text(&error)),
    };
    let current = version(session).await.map_err(failed)?;
    if current > STEPS.len() {
        return Err(OpenError::Newer { found: current, known: STEPS.len() });
    }
    if current == STEPS.len() {
        return Ok(());
    }
    // If several hubs start together, one migrates, and the others find the migration done.
    let begin = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK_KEY}); CREATE SCHEMA IF NOT EXISTS toolhub;
         CREATE TABLE IF NOT EXISTS migrations (version BIGINT PRIMARY KEY)"
    );
    session.client.batch_execute(&begin).await.map_err(failed)?;
    let current = version(session).await.map_err(failed)?;
    for (index, step) in STEPS.iter().enumerate().skip(current) {
        session.client.batch_execute(step).await.map_err(failed)?;
        let done = format!("INSERT INTO migrations VALUES ({})", index + 1);
        session.client.batch_execute(&done).await.map_err(failed)?;
    }
    session.client.batch_execute("COMMIT").await.map_err(failed)
}

async fn version(session: &Session) -> Result<usize, tokio_postgres::Error> {
    let row = session.client.query_one("SELECT to_regclass('toolhub.migrations') IS NOT NULL", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = session.client.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default())
}
