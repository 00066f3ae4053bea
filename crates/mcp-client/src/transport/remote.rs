//! The transport to a server that another process of a cluster runs (see `crate::remote`).

use std::sync::Arc;

use toolhub_core::caller::ClientResponse;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson, ServerId};
use toolhub_mcp_wire::McpError;

use super::dynamic_threshold_semaphore::DynamicThresholdSemaphore;
use super::{OutgoingRequest, Repeat, RequestObserver, ServerMessageHandler, Transport};
use crate::connection::ServerInfo;
use crate::relay::{Forwarding, Welcome};
use crate::remote::{
    RemoteConnection, RemoteEvents, RemoteFailure, RemoteLink, RemoteRequest, reported_error,
};

/// Maximum number of requests in flight; others wait.
const MAX_IN_FLIGHT: usize = 1024;

/// The transport over a link to another process.
pub(crate) struct RemoteTransport {
    link: Arc<dyn RemoteLink>,
    inbox: Arc<dyn ServerMessageHandler>,
    server: ServerId,
    in_flight: DynamicThresholdSemaphore,
}

impl RemoteTransport {
    /// Creates the transport. Also returns the server's description of itself.
    pub(crate) fn new(
        opened: RemoteConnection,
        server: ServerId,
        inbox: Arc<dyn ServerMessageHandler>,
    ) -> Result<(Self, ServerInfo), McpError> {
        let RemoteConnection { description, link } = opened;
        let described = description.decode::<Welcome>().ok().and_then(Welcome::server_info);
        let server_info = described.ok_or_else(|| {
            McpError::permanent(LocalizedText::new(
                "the worker describes it in an unknown way: run the same version of toolhub on all machines",
                "工作进程对它的描述无法识别：请在所有机器上运行相同版本的 toolhub",
            ))
        })?;
        Ok((
            Self { link, inbox, server, in_flight: DynamicThresholdSemaphore::new(MAX_IN_FLIGHT) },
            server_info,
        ))
    }
}

impl Transport for RemoteTransport {
    fn request<'a>(&'a self, request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        let forwarding = RawJson::of(&Forwarding {
            name: request.name.map(str::to_owned),
            headers: request.headers.to_vec(),
            repeatable: request.repeat == Repeat::Safe,
        });
        Box::pin(async move {
            let _permit = self.in_flight.take(request.principal).await;
            let OutgoingRequest { id, listener, principal, client, body, .. } = request;
            let events = Events { id, listener, inbox: &self.inbox };
            let request = RemoteRequest { message: body, forwarding, principal, client };
            match self.link.request(request, &events).await {
                Ok(result) => Ok(result),
                Err(RemoteFailure::Error(error)) => Err(error),
                Err(RemoteFailure::Reported(failure)) => Err(reported_error(&failure, &self.server)),
            }
        })
    }

    /// Notifications belong to the handshake, which the other process has completed.
    fn notify(&self, _body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }
}

/// What happens during one request.
struct Events<'a> {
    id: u64,
    listener: Option<&'a Arc<dyn RequestObserver>>,
    inbox: &'a Arc<dyn ServerMessageHandler>,
}

impl RemoteEvents for Events<'_> {
    fn on_send(&self) {
        if let Some(listener) = self.listener {
            listener.on_send();
        }
    }

    fn notification(&self, method: &str, params: Option<&RawJson>) {
        match (method, self.listener, params) {
            ("notifications/progress", Some(listener), Some(params)) => listener.progress(params),
            ("notifications/progress", _, _) => {}
            _ => self.inbox.notification(method, params, Some(self.id)),
        }
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        self.inbox.request(method, params, Some(self.id))
    }
}
