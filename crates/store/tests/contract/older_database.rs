//! Databases as an older version created them, with one call in a block and one as a row.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::database::Database;

/// A database of an older version: its calls are `r1`, in a block, and `r2`, a row.
pub(crate) struct OlderDatabase {
    /// The number of migrations of that version.
    pub(crate) sqlite_steps: usize,
    pub(crate) postgres_steps: usize,
    /// The call `r1` in the block format of that version.
    pub(crate) entry: &'static [u8],
}

impl OlderDatabase {
    /// Creates the tables and the calls in an empty database.
    pub(crate) async fn create_in(&self, database: &Database) {
        let (block, insert_block) = (self.block(), self.insert_block());
        match database {
            Database::Sqlite(_) => {
                let connection = rusqlite::Connection::open(database.file().unwrap()).unwrap();
                for statement in statements("sqlite", self.sqlite_steps) {
                    connection.execute_batch(&statement).unwrap();
                }
                connection.execute(&insert_block, [block]).unwrap();
                connection.pragma_update(None, "user_version", self.sqlite_steps as i64).unwrap();
            }
            Database::Postgres(url) => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                let mut driver = tokio::task::JoinSet::new();
                driver.spawn(connection);
                let steps = self.postgres_steps;
                let begin = format!(
                    "CREATE SCHEMA toolhub; SET search_path TO toolhub;
                     CREATE TABLE migrations (version BIGINT PRIMARY KEY);
                     INSERT INTO migrations SELECT generate_series(1, {steps})"
                );
                client.batch_execute(&begin).await.unwrap();
                for statement in statements("postgres", steps) {
                    client.batch_execute(&statement).await.unwrap();
                }
                client.execute(&insert_block, &[&block]).await.unwrap();
            }
        }
    }

    fn block(&self) -> Vec<u8> {
        let mut entries = u32::try_from(self.entry.len()).unwrap().to_le_bytes().to_vec();
        entries.extend_from_slice(self.entry);
        entries
    }

    /// The statement that inserts the block; its parameter is the block's content.
    fn insert_block(&self) -> String {
        let (now, bytes) = (micros_now(), self.block().len());
        format!(
            "INSERT INTO call_blocks (first, last, began_first, began_last, statuses, tools, calls, owner, bytes, entries)
             VALUES ('r1', 'r1', {now}, {now}, 2, NULL, 1, 1, {bytes}, $1)"
        )
    }
}

fn micros_now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

/// The first migrations, and the statement that inserts a call as a row.
fn statements(database: &str, steps: usize) -> Vec<String> {
    let folder = format!("{}/src/{database}/migrations", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    let mut statements: Vec<String> =
        files[..steps].iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let now = micros_now();
    statements.push(format!(
        "INSERT INTO calls (record, call, tool, arguments, arguments_hash, strategy, candidates, may_change, began,
             status, owner, took, sources, attempts, places)
         VALUES ('r2', 'c2', 't', '{{}}', 1, 'first', '[]', 1, {now}, 'succeeded', 1, 5, '[]', '[]', '')"
    ));
    statements
}
