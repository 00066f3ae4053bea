//! Persistent storage behind the ports of `toolhub_core`: SQLite in the user's data folder, or PostgreSQL by URL.

mod blocks;
mod counted;
mod error;
mod journal;
mod options;
mod owner;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
pub mod private;
mod query;
mod queue;
mod recorder;
mod rows;
mod sqlite;
#[cfg(any(test, not(feature = "postgres")))]
mod without_postgres;
mod write;

pub use error::OpenError;
pub use options::{Detail, Durability, Retention, StoreOptions};
pub use place::{PgUrl, StorePlace, open};
#[cfg(feature = "postgres")]
pub use postgres::PgStore;
pub use sqlite::SqliteStore;
