//! The subscription stream of a modern server, kept open beside its connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::McpError;

use crate::connection::{Connection, McpRequest};
use crate::transport::Repeat;

/// Pause before a closed stream is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(5);

/// Keeps the subscription stream of a modern server open (2026-07-28, patterns/subscriptions), and reopens it when the set of
/// subscribed resources changes. Stops if the server rejects the request, as without support for it, or if the connection is
/// closed.
pub(crate) async fn keep_subscribed(
    connection: Arc<Connection>,
    mut subscribed_uris: watch::Receiver<BTreeSet<String>>,
) {
    let list_filter = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    let list_filter = list_filter.iter().fold(RawObject::default(), |filter, name| filter.with(*name, true));
    loop {
        let mut filter = list_filter.clone();
        {
            let uris = subscribed_uris.borrow_and_update();
            if !uris.is_empty() {
                filter.set("resourceSubscriptions", RawJson::of(&*uris));
            }
        }
        let params = RawObject::default().with("notifications", filter);
        let listening = connection.request(McpRequest {
            method: "subscriptions/listen".into(),
            params,
            repeat: Repeat::Safe,
            ..McpRequest::default()
        });
        let ended = tokio::select! {
            ended = listening => ended,
            Ok(()) = subscribed_uris.changed() => continue,
        };
        if matches!(ended, Err(McpError::Rpc { .. } | McpError::Http { .. })) || !connection.is_open() {
            return;
        }
        tokio::time::sleep(REOPEN_DELAY).await;
    }
}
