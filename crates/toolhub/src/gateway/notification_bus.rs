//! Notifications and requests of servers that belong to no request of a client: changes are forwarded to clients, requests are
//! refused, and log messages are written only to the owner's log.

use std::sync::Arc;

use tokio::sync::broadcast;
use toolhub_core::{RawJson, RawObject, ServerId};
use toolhub_mcp_client::ClientHandler;

use super::visible_changes::ProfileChange;

/// Capacity of the channel. A receiver that lags further behind gets a summary of the missed notifications.
const NOTIFICATION_CAPACITY: usize = 256;

/// Receives notifications of servers and broadcasts them to the gateways.
#[derive(Debug, Clone)]
pub struct NotificationBus(broadcast::Sender<ProfileChange>);

impl Default for NotificationBus {
    fn default() -> Self {
        Self(broadcast::Sender::new(NOTIFICATION_CAPACITY))
    }
}

impl NotificationBus {
    pub(super) fn subscribe(&self) -> broadcast::Receiver<ProfileChange> {
        self.0.subscribe()
    }

    fn publish(&self, change: ProfileChange) {
        // Sending fails only if there is no receiver.
        let _ = self.0.send(change);
    }
}

impl ClientHandler for NotificationBus {
    /// Declares all capabilities. If the client of a request lacks one, the server receives an error for its request.
    fn capabilities(&self) -> RawJson {
        let elicitation =
            RawObject::default().with("form", RawObject::default()).with("url", RawObject::default());
        RawObject::default()
            .with("sampling", RawObject::default())
            .with("elicitation", elicitation)
            .with("roots", RawObject::default())
            .into_raw()
    }

    fn notification(&self, server: &ServerId, method: &str, params: Option<&RawJson>) {
        // With duplicate keys a client could read a different URI from the one it subscribed to.
        let plain = |params: &&RawJson| params.key_problem().is_none();
        let uri = || params.filter(plain)?.object()?.get("uri")?.decode::<String>().ok();
        match method {
            "notifications/prompts/list_changed" => {
                self.publish(ProfileChange::Prompts { server: Some(server.clone()) });
            }
            "notifications/resources/list_changed" => {
                self.publish(ProfileChange::Resources { server: Some(server.clone()) });
            }
            "notifications/resources/updated" => {
                // Every subscriber receives it, so it contains only the URI that they all subscribed to.
                if let Some(uri) = uri() {
                    let params = RawObject::default().with("uri", uri.as_str()).into_raw();
                    let (server, uri) = (server.clone(), Arc::from(uri));
                    self.publish(ProfileChange::Updated { server, uri, params });
                }
            }
            // `tools/list_changed` is sent once the new list has been fetched. Log messages may concern any client and are not
            // forwarded.
            _ => {}
        }
    }
}
