//! Totals that are kept in the table `housekeeping`, so that they need not be computed from all rows.

use rusqlite::{Connection, OptionalExtension as _};

/// Bytes of all results.
pub(super) const RESULT_BYTES: &str = "result_bytes";
/// Bytes of all entries of the audit log.
pub(super) const AUDIT_BYTES: &str = "audit_bytes";

/// Adds to a total; negative after deletions.
pub(super) fn add(connection: &Connection, name: &str, amount: i64) -> rusqlite::Result<()> {
    if amount != 0 {
        connection
            .prepare_cached(
                "INSERT INTO housekeeping VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET value = value + excluded.value",
            )?
            .execute((name, amount))?;
    }
    Ok(())
}

/// A total; zero if there is none.
pub(super) fn value(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    let mut select = connection.prepare_cached("SELECT value FROM housekeeping WHERE name = ?1")?;
    Ok(select.query_row([name], |row| row.get(0)).optional()?.unwrap_or_default())
}
