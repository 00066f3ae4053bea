//! Counts the stored calls in the database of a gateway.
use std::{path::Path, thread, time::Duration};

use anyhow::{Result, ensure};

use crate::run::{self, program};

/// Number of stored calls after the writer has caught up, which may take seconds if the disk is slow.
pub(super) fn wait_until_stored(home: &Path) -> Result<u64> {
    let (mut stored, mut unchanged) = (count(home)?, 0);
    while unchanged < 5 {
        thread::sleep(Duration::from_secs(1));
        let now = count(home)?;
        unchanged = if now == stored { unchanged + 1 } else { 0 };
        stored = now;
    }
    Ok(stored)
}

/// Number of calls stored with their details.
pub(super) fn count(home: &Path) -> Result<u64> {
    query(home, "SELECT (SELECT count(*) FROM calls) + (SELECT coalesce(sum(calls), 0) FROM call_blocks)")
}

/// Number of calls stored with their results. A block of calls has the results of all its calls or of none.
pub(super) fn count_results(home: &Path) -> Result<u64> {
    query(
        home,
        "SELECT (SELECT count(*) FROM results)
            + (SELECT coalesce(sum(calls), 0) FROM call_blocks JOIN block_outputs USING (id))",
    )
}

fn query(home: &Path, sql: &str) -> Result<u64> {
    let script = "import sqlite3, sys
print(sqlite3.connect(sys.argv[1], timeout=60).execute(sys.argv[2]).fetchone()[0])";
    let file = home.join("toolhub.db");
    ensure!(file.exists(), "the gateway has no database");
    let mut python = program("python3");
    python.args(["-c", script]).arg(file).arg(sql);
    Ok(run::read(&mut python)?.trim().parse()?)
}
