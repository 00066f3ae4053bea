//! The location of a store: a folder, or a PostgreSQL server by URL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhub_audit::AuditStore;
use toolhub_core::ports::HubStore;

use crate::error::OpenError;
use crate::options::{AuditOptions, StoreOptions};
#[cfg(feature = "postgres")]
use crate::postgres::PgStore;
#[cfg(feature = "postgres")]
pub use crate::postgres::PgUrl;
use crate::sqlite::SqliteStore;
#[cfg(not(feature = "postgres"))]
pub use crate::without_postgres::PgUrl;

/// The location of a store.
#[derive(Debug, Clone)]
pub enum StoreLocation {
    /// `toolhub.db` in this folder.
    Folder(PathBuf),
    /// A PostgreSQL database.
    Postgres(PgUrl),
}

/// Opens the store at `location`. Connecting to PostgreSQL times out after ten seconds; calls that are not yet in its
/// database are kept in journals under `data`, if given, and survive the end of the process.
pub async fn open(
    location: &StoreLocation,
    options: StoreOptions,
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "for PostgreSQL alone"))]
    data: Option<&Path>,
) -> Result<Arc<dyn HubStore>, OpenError> {
    Ok(match location {
        StoreLocation::Folder(folder) => Arc::new(SqliteStore::open_with(folder, options)?),
        #[cfg(feature = "postgres")]
        StoreLocation::Postgres(url) => Arc::new(PgStore::connect(url, options, data).await?),
        #[cfg(not(feature = "postgres"))]
        StoreLocation::Postgres(url) => url.absurd(),
    })
}

/// A store with its audit log; both are the same open store.
#[derive(Clone)]
pub struct AuditedStore {
    /// The store.
    pub store: Arc<dyn HubStore>,
    /// Its audit log.
    pub audit: Arc<dyn AuditStore>,
}

impl std::fmt::Debug for AuditedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditedStore").finish_non_exhaustive()
    }
}

impl AuditedStore {
    fn of<S: HubStore + AuditStore + 'static>(store: S) -> Self {
        let store = Arc::new(store);
        Self { store: Arc::<S>::clone(&store), audit: store }
    }
}

/// Like [`open`], with the audit log on: every call of this store enters the log.
pub async fn open_with_audit(
    location: &StoreLocation,
    options: StoreOptions,
    audit: &AuditOptions,
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "for PostgreSQL alone"))]
    data: Option<&Path>,
) -> Result<AuditedStore, OpenError> {
    Ok(match location {
        StoreLocation::Folder(folder) => {
            AuditedStore::of(SqliteStore::open_with_audit(folder, options, audit)?)
        }
        #[cfg(feature = "postgres")]
        StoreLocation::Postgres(url) => {
            AuditedStore::of(PgStore::connect_with_audit(url, options, audit, data).await?)
        }
        #[cfg(not(feature = "postgres"))]
        StoreLocation::Postgres(url) => url.absurd(),
    })
}
