//! What must outlive a run, in SQLite behind core's ports.

mod migrate;
mod sqlite;
mod tool_lists;
mod versions;

pub use sqlite::{OpenError, SqliteStore};
