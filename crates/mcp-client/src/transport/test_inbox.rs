//! An inbox for tests: ignores requests, and forwards the methods of notifications if a test requests them.

use tokio::sync::mpsc;
use toolhub_core::{BoxFuture, RawJson};

use super::ServerMessageHandler;

#[derive(Default)]
pub(super) struct TestInbox {
    /// Whether clients of the gateway have used the connection.
    pub(super) has_clients: bool,
    pub(super) notifications: Option<mpsc::Sender<String>>,
}

impl ServerMessageHandler for TestInbox {
    fn request(
        &self,
        _method: String,
        _params: Option<RawJson>,
        _via: Option<u64>,
    ) -> BoxFuture<'_, Result<RawJson, (i64, String)>> {
        Box::pin(std::future::ready(Ok(RawJson::empty_object())))
    }

    fn notification(&self, method: &str, _params: Option<&RawJson>, _via: Option<u64>) {
        if let Some(sender) = &self.notifications {
            let _ = sender.try_send(method.to_owned());
        }
    }

    fn report_anomaly(&self, _detail: String) {}

    fn has_clients(&self) -> bool {
        self.has_clients
    }
}
