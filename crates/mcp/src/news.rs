//! The stream on which a modern server tells of changes, kept open beside its connection.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::RawObject;

use crate::connection::{Ask, Connection};
use crate::error::McpError;

/// How long a stream that ended is left before it is opened again.
const FOLLOW_PAUSE: Duration = Duration::from_secs(5);

/// Keeps a modern server's stream of news open (2026-07-28, patterns/subscriptions). One that has none says so,
/// and is left alone.
pub(crate) async fn follow(connection: Arc<Connection>) {
    let wanted = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    let wanted = wanted.iter().fold(RawObject::default(), |filter, name| filter.with(*name, true));
    loop {
        let params = RawObject::default().with("notifications", wanted.clone());
        let ended = connection.ask(Ask { method: "subscriptions/listen", params, ..Ask::default() }).await;
        if matches!(ended, Err(McpError::Rpc { .. } | McpError::Http { .. })) || !connection.is_open() {
            return;
        }
        tokio::time::sleep(FOLLOW_PAUSE).await;
    }
}
