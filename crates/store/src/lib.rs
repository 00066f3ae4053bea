//! Persistent storage behind the ports of `toolhub_core`: SQLite in the user's data folder, or PostgreSQL by URL.

mod audit;
mod blocks;
mod error;
mod folded_text;
mod journal;
mod location;
mod options;
mod owner;
mod pending_statistics;
#[cfg(feature = "postgres")]
mod postgres;
pub mod private_file;
mod query;
mod queue;
mod recorder;
mod responses;
mod retention;
mod rows;
mod sqlite;
mod state;
#[cfg(any(test, not(feature = "postgres")))]
mod without_postgres;
mod write;

pub use error::OpenError;
pub use location::{AuditedStore, PgUrl, StoreLocation, open, open_with_audit};
pub use options::{AuditOptions, DetailLevel, Durability, Retention, StoreOptions};
#[cfg(feature = "postgres")]
pub use postgres::{PgCluster, PgStore};
pub use sqlite::SqliteStore;
