//! Real faults: killed processes, damaged files, a full disk, an unavailable PostgreSQL server, an untrusted certificate.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod damaged_file;
mod full_disk;
mod journals;
mod killed;
mod server_away;
mod tls;

use std::path::Path;
use std::sync::Arc;

use toolhub_core::ports::HubStore;
use toolhub_store::{OpenError, StoreLocation, StoreOptions, open};

/// Opens the store in the folder or at the PostgreSQL URL `place`.
async fn open_at(place: &str) -> Result<Arc<dyn HubStore>, OpenError> {
    open_with(place, None).await
}

/// Like `open_at`, with the journals of a PostgreSQL store in `data`.
async fn open_with_journals(place: &str, data: &Path) -> Result<Arc<dyn HubStore>, OpenError> {
    open_with(place, Some(data)).await
}

async fn open_with(place: &str, data: Option<&Path>) -> Result<Arc<dyn HubStore>, OpenError> {
    let place = match place.parse() {
        Ok(url) => StoreLocation::Postgres(url),
        Err(_) => StoreLocation::Folder(place.into()),
    };
    open(&place, StoreOptions::default(), data).await
}
