//! Notices the changes of other replicas: a connection of its own waits for notifications and reads the versions of all parts.
//! The versions are also read periodically, so that a lost notification delays a change and hides none.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use toolhub_core::shared_state::ChangeVersions;

use super::session::Address;
use super::state::{CHANNEL, read_versions};

/// Interval at which the versions are read without a notification.
const POLL_INTERVAL: Duration = Duration::from_millis(900);
/// Pause before another connection is tried.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of reading the versions.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The versions as the listener has read them last; `None` before that.
pub(super) type KnownVersions = watch::Sender<Option<ChangeVersions>>;

/// Publishes the versions until the store is closed. Connects when the first caller waits for a change.
pub(super) async fn listen(address: Address, known_versions: KnownVersions, mut closed: watch::Receiver<()>) {
    tokio::select! {
        () = follow(&address, &known_versions) => {}
        // The sender is dropped with the store.
        _ = closed.changed() => {}
    }
}

async fn follow(address: &Address, known_versions: &KnownVersions) {
    loop {
        if known_versions.receiver_count() > 0 {
            let _ = follow_connection(address, known_versions).await;
            sleep(RECONNECT_INTERVAL).await;
        } else {
            sleep(RECONNECT_INTERVAL / 4).await;
        }
    }
}

/// Publishes the versions until the connection breaks.
async fn follow_connection(address: &Address, known_versions: &KnownVersions) -> Result<(), String> {
    // One pending notification is enough: all versions are read after it.
    let (sender, mut notified) = mpsc::channel(1);
    let session = address.connect_with_notifications(sender).await?;
    session.client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(|error| error.to_string())?;
    loop {
        let reading =
            timeout(READ_TIMEOUT, read_versions(&session)).await.map_err(|error| error.to_string())?;
        let now = reading.map_err(|error| error.to_string())?;
        known_versions.send_if_modified(|before| {
            let is_new = before.as_ref() != Some(&now);
            *before = Some(now);
            is_new
        });
        // `None`: the connection has ended, which the next statement reports.
        let _ = timeout(POLL_INTERVAL, notified.recv()).await;
    }
}
