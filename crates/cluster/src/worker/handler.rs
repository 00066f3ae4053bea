//! What servers send that belongs to no request: notifications go to all replicas, requests are refused.

use std::sync::OnceLock;

use tokio::sync::mpsc;
use toolhub_core::cluster::InstanceKey;
use toolhub_core::{RawJson, ServerId};
use toolhub_mcp_client::ClientHandler;

use crate::bus::Bus;
use crate::cluster_protocol::{self, ClusterEvent, Subjects};

/// A notification that waits to be published.
pub(super) struct QueuedEvent {
    key: InstanceKey,
    epoch: i64,
    method: String,
    params: Option<RawJson>,
}

/// The handler of one instance.
pub(super) struct InstanceHandler {
    key: InstanceKey,
    /// Set before the server is connected.
    epoch: OnceLock<i64>,
    events: mpsc::Sender<QueuedEvent>,
    capabilities: RawJson,
}

impl InstanceHandler {
    pub(super) fn new(key: InstanceKey, events: mpsc::Sender<QueuedEvent>, capabilities: RawJson) -> Self {
        Self { key, epoch: OnceLock::new(), events, capabilities }
    }

    pub(super) fn set_epoch(&self, epoch: i64) {
        let _ = self.epoch.set(epoch);
    }
}

impl ClientHandler for InstanceHandler {
    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn notification(&self, _: &ServerId, method: &str, params: Option<&RawJson>) {
        // Log messages may concern any client, and stay here.
        if method == "notifications/message" {
            return;
        }
        if let Some(epoch) = self.epoch.get().copied() {
            let (key, method, params) = (self.key.clone(), method.to_owned(), params.cloned());
            // Lists are also read again after a time, so that a dropped notification only delays a change.
            let _ = self.events.try_send(QueuedEvent { key, epoch, method, params });
        }
    }
}

/// Publishes the notifications of all instances.
pub(super) async fn publish_events(bus: &Bus, mut events: mpsc::Receiver<QueuedEvent>) {
    let subject = Subjects(bus).events();
    while let Some(QueuedEvent { key, epoch, method, params }) = events.recv().await {
        let event = ClusterEvent::Notification { key: (&key).into(), epoch, method };
        let body = params.as_ref().map(RawJson::get).unwrap_or_default();
        let _ = bus.publish(&subject, cluster_protocol::write(&event, body.as_bytes())).await;
    }
    std::future::pending::<()>().await;
}
