//! What servers tell and ask that belongs to no request of one client: changes are announced to clients, questions are
//! refused, and log messages go to nobody but the owner's log.

use std::sync::Arc;

use tokio::sync::broadcast;
use toolhub_core::{BoxFuture, RawJson, RawObject, ServerId};
use toolhub_mcp::gateway::News;
use toolhub_mcp::{ClientHandler, HandlerAnswer};

/// News that may wait for a slow client; what it misses beyond that it is told in short.
const WAITING: usize = 256;

/// Hears what servers say, and hands it on.
#[derive(Debug, Clone)]
pub struct NotificationBus(broadcast::Sender<(Option<ServerId>, News)>);

impl Default for NotificationBus {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl NotificationBus {
    pub(super) fn hear(&self) -> broadcast::Receiver<(Option<ServerId>, News)> {
        self.0.subscribe()
    }

    fn tell(&self, server: &ServerId, news: News) {
        // Where nobody listens there is nobody to tell.
        let _ = self.0.send((Some(server.clone()), news));
    }
}

impl ClientHandler for NotificationBus {
    /// Everything: a server is told when the client that it concerns cannot be asked.
    fn capabilities(&self) -> RawJson {
        let elicitation =
            RawObject::default().with("form", RawObject::default()).with("url", RawObject::default());
        RawObject::default()
            .with("sampling", RawObject::default())
            .with("elicitation", elicitation)
            .with("roots", RawObject::default())
            .into_raw()
    }

    fn request<'a>(
        &'a self,
        _: &'a ServerId,
        method: String,
        _: Option<RawJson>,
    ) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            Err((-32601, format!("cannot answer `{method}`: it is not certain which client it concerns")))
        })
    }

    fn notification(&self, server: &ServerId, method: &str, params: Option<&RawJson>) {
        // A client could read another address in it than the one it subscribed to.
        let plain = |params: &&RawJson| params.key_problem().is_none();
        let uri = || params.filter(plain)?.object()?.get("uri")?.decode::<String>().ok();
        match method {
            "notifications/prompts/list_changed" => self.tell(server, News::Prompts),
            "notifications/resources/list_changed" => self.tell(server, News::Resources),
            "notifications/resources/updated" => {
                // Every subscriber gets it, so nothing but what they all subscribed to.
                if let Some(uri) = uri() {
                    let params = RawObject::default().with("uri", uri.as_str()).into_raw();
                    self.tell(server, News::Updated { uri: Arc::from(uri), params });
                }
            }
            // That tools changed is told once their new list is known. A log message may be about any client.
            _ => {}
        }
    }
}
