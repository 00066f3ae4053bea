//! Puts load on a store: for tests that kill it or fill its disk, and for benchmarks. The first argument selects the mode.

#![expect(clippy::unwrap_used, reason = "a test program: failures must be visible")]
#![expect(clippy::print_stdout, reason = "the program reports on stdout")]

mod calls;
mod full_disk;
mod hammer;
mod measure;
mod responses;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhub_core::ports::HubStore;
use toolhub_store::{StoreLocation, StoreOptions, open};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["hammer", location, data] => block_on(hammer::run(location, data, None)),
        ["hammer", location, data, key] => block_on(hammer::run(location, data, Some(key))),
        ["respond", location, data] => block_on(responses::run(location, data)),
        ["full-disk", folder] => block_on(full_disk::run(folder)),
        ["measure", location] => measure::run(location),
        ["measure-intents", location] => measure::intents(location),
        ["record", folder, calls] => block_on(measure::record(folder, calls.parse().unwrap(), None)),
        ["record", folder, calls, key] => {
            block_on(measure::record(folder, calls.parse().unwrap(), Some(key)));
        }
        _ => println!(
            "usage: store-load hammer PLACE DATA [KEY] | respond PLACE DATA | full-disk FOLDER | measure PLACE | measure-intents PLACE | record PLACE CALLS [KEY]"
        ),
    }
}

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

/// Opens the store in the folder or at the PostgreSQL URL `location`.
async fn store(location: &str, options: StoreOptions) -> Arc<dyn HubStore> {
    store_with(location, options, None).await
}

/// Like `store`, with the journals of a PostgreSQL store in `data`.
async fn store_with(location: &str, options: StoreOptions, data: Option<&Path>) -> Arc<dyn HubStore> {
    open(&place(location), options, data).await.unwrap()
}

fn place(location: &str) -> StoreLocation {
    match location.parse() {
        Ok(url) => StoreLocation::Postgres(url),
        Err(_) => StoreLocation::Folder(PathBuf::from(location)),
    }
}
