//! Migrations: forward only, each applied once, in one transaction.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;

/// All steps in order. Never change a released step: add another.
const STEPS: [&str; 16] = [
    include_str!("migrations/0001_tool_lists.sql"),
    include_str!("migrations/0002_tool_versions.sql"),
    include_str!("migrations/0003_reasons_in_both_languages.sql"),
    include_str!("migrations/0004_memory.sql"),
    include_str!("migrations/0005_failures_in_a_row.sql"),
    include_str!("migrations/0006_offers.sql"),
    include_str!("migrations/0007_call_blocks.sql"),
    include_str!("migrations/0008_late_after.sql"),
    include_str!("migrations/0009_principals.sql"),
    include_str!("migrations/0010_audit.sql"),
    include_str!("migrations/0011_calls_by_status.sql"),
    include_str!("migrations/0012_statistics_totals.sql"),
    include_str!("migrations/0013_parents.sql"),
    include_str!("migrations/0014_responses.sql"),
    include_str!("migrations/0015_shared_state.sql"),
    include_str!("migrations/0016_response_cancellations.sql"),
];

/// Migrates the database to the newest version.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    if version(connection)? == STEPS.len() {
        return Ok(());
    }
    // `IMMEDIATE`: if two hubs start together, one migrates, and the other finds the migration done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let current = version(&transaction)?;
    if current > STEPS.len() {
        return Err(OpenError::Newer { found: current, known: STEPS.len() });
    }
    for step in &STEPS[current..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> Result<usize, OpenError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or_default())
}
