//! Real faults: killed processes, damaged files, a full disk, an unavailable PostgreSQL server, an untrusted certificate.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]
#![expect(clippy::print_stdout, reason = "the figures of a run")]

mod audit;
mod damaged_file;
mod full_disk;
mod journals;
mod killed;
mod liveness;
mod responses;
mod server_away;
mod tls;

use std::path::Path;
use std::sync::Arc;

use toolhub_core::ports::HubStore;
use toolhub_store::{OpenError, StoreLocation, StoreOptions, open};

/// Opens the store in the folder or at the PostgreSQL URL `location`.
async fn open_at(location: &str) -> Result<Arc<dyn HubStore>, OpenError> {
    open_with(location, None).await
}

/// Like `open_at`, with the journals of a PostgreSQL store in `data`.
async fn open_with_journals(location: &str, data: &Path) -> Result<Arc<dyn HubStore>, OpenError> {
    open_with(location, Some(data)).await
}

async fn open_with(location: &str, data: Option<&Path>) -> Result<Arc<dyn HubStore>, OpenError> {
    open(&place(location), StoreOptions::default(), data).await
}

fn place(location: &str) -> StoreLocation {
    match location.parse() {
        Ok(url) => StoreLocation::Postgres(url),
        Err(_) => StoreLocation::Folder(location.into()),
    }
}
