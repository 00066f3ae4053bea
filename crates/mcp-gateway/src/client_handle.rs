//! Access to a client while one of its requests is running: notifications, progress and requests from the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use toolhub_core::caller::{CLIENT_ANSWER_TIMEOUT, Caller, ClientResponse};
use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::{BoxFuture, Principal, RawJson, RawObject, TraceContext};
use toolhub_mcp_wire::era::{INPUT_RESPONSES, REQUEST_STATE};
use toolhub_mcp_wire::{Era, jsonrpc};

use crate::ABORTED;
use crate::budget::PrincipalHandle;
use crate::client_queue::{ClientQueue, QueuedMessage, ServerRequest};
use crate::level::MinimumLevel;
use crate::message::{self, RequestParams};
use crate::request_context::RequestContext;
use crate::rpc_error::{RpcError, RpcResult};
pub(crate) use toolhub_mcp_wire::era::{CAPABILITIES, INFO, LOG_LEVEL, VERSION};

/// The request needs a capability that the client does not declare.
const MISSING_CAPABILITY: i64 = -32021;

/// The open server requests to a legacy client, by id.
#[derive(Debug, Default)]
pub(crate) struct PendingClientRequests {
    count: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<ClientResponse>>>,
}

impl PendingClientRequests {
    /// Creates an empty table whose ids start after `number`, so that an answer to an earlier request is not matched to a
    /// later one.
    pub(crate) fn starting_after(number: u64) -> Self {
        Self { count: AtomicU64::new(number), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ClientResponse>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an answer to the request that waits for it. Returns false if there is none.
    pub(crate) fn deliver(&self, id: u64, answer: ClientResponse) -> bool {
        let pending = self.open().remove(&id);
        pending.is_some_and(|reply| reply.send(answer).is_ok())
    }

    async fn ask(
        &self,
        client_handle: &ClientHandle,
        method: &str,
        params: Option<&RawJson>,
    ) -> ClientResponse {
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        self.open().insert(id, reply);
        let _guard = PendingRequestGuard { server_requests: self, id };
        let text = jsonrpc::server_request(id, method, params);
        client_handle.queue.push(QueuedMessage::Message(text));
        client_handle.wait_for(answer).await
    }
}

struct PendingRequestGuard<'a> {
    server_requests: &'a PendingClientRequests,
    id: u64,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.server_requests.open().remove(&self.id);
    }
}

/// The properties of a client that all its requests share.
#[derive(Debug, Clone)]
pub(crate) struct ClientInfo {
    /// Unique among all clients.
    pub(crate) number: u64,
    pub(crate) era: Era,
    /// The declared capabilities.
    pub(crate) capabilities: RawJson,
    /// The open server requests to a legacy client.
    pub(crate) server_requests: Arc<PendingClientRequests>,
    /// The log level that a legacy client has set.
    pub(crate) level: Arc<MinimumLevel>,
}

/// Access to the client of one request.
pub(crate) struct ClientHandle {
    info: ClientInfo,
    context: Option<RequestContext>,
    meta: RawObject,
    extras: RawObject,
    /// The progress token of the request, if the client sent one.
    progress: Mutex<Option<RawJson>>,
    /// Whether the client has requested log messages.
    wants_log: bool,
    /// The capability that the server needed and the client does not declare.
    missing_capability: Mutex<Option<String>>,
    pub(crate) queue: ClientQueue,
}

impl ClientHandle {
    /// Creates the handle of a request with these params. Returns it together with the params without `_meta`.
    pub(crate) fn new(
        info: ClientInfo,
        RequestParams { members, mut meta }: RequestParams,
    ) -> (Arc<Self>, RawObject) {
        let progress = Mutex::new(meta.get("progressToken").cloned());
        // A legacy client receives log messages unless it sets a level.
        let legacy = info.era == Era::Legacy;
        let wants_log = legacy || meta.contains(LOG_LEVEL);
        let ours = ["progressToken", VERSION, CAPABILITIES, INFO];
        meta.retain(|name| !(ours.contains(&name) || legacy && name == LOG_LEVEL));
        let mut extras = RawObject::default();
        // Legacy revisions do not have these members, so they are not forwarded from legacy clients.
        for name in [INPUT_RESPONSES, REQUEST_STATE] {
            if let Some(value) = members.get(name).filter(|_| !legacy) {
                extras.set(name, value.clone());
            }
        }
        let (missing_capability, queue) = (Mutex::default(), ClientQueue::default());
        let context = RequestContext::current();
        (
            Arc::new(Self { info, context, meta, extras, progress, wants_log, missing_capability, queue }),
            members,
        )
    }

    /// Returns the principal of the request. Without a context the request has no permissions.
    pub(crate) fn principal(&self) -> &Arc<Principal> {
        static UNKNOWN: LazyLock<Arc<Principal>> = LazyLock::new(|| Arc::new(Principal::of_key("")));
        self.context.as_ref().map_or(&UNKNOWN, |context| context.principal.identity())
    }

    /// Returns the handle of the principal of the request, if known.
    pub(crate) fn principal_budget(&self) -> Option<&PrincipalHandle> {
        self.context.as_ref().map(|context| &context.principal)
    }

    /// Waits for an answer until the client disconnects or the timeout expires.
    async fn wait_for(&self, answer: oneshot::Receiver<ClientResponse>) -> ClientResponse {
        let disconnected = || (-32000, "the client is gone".to_owned());
        tokio::select! {
            answer = tokio::time::timeout(CLIENT_ANSWER_TIMEOUT, answer) => match answer {
                Ok(answer) => answer.map_err(|_| disconnected())?,
                Err(_) => Err((-32000, "the client did not answer in time".to_owned())),
            },
            () = self.queue.closed() => Err(disconnected()),
        }
    }

    /// Replaces the progress token: the client has repeated its request with input responses.
    pub(crate) fn replace_progress_token(&self, token: Option<RawJson>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Returns the final result of the request. If it failed after the server needed a capability that the client does
    /// not declare, the error names that capability (2026-07-28, basic: `_meta`).
    pub(crate) fn finalize(&self, outcome: RpcResult) -> RpcResult {
        let missing_capability =
            self.missing_capability.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(part) = missing_capability else { return outcome };
        match (outcome, self.info.era) {
            (Err(error), _) if error.code == ABORTED => Err(error),
            (Ok(result), _) if !is_error(&result) => Ok(result),
            (_, Era::Modern) => {
                let required = RawObject::default().with(part.clone(), RawObject::default());
                let data = RawObject::default().with("requiredCapabilities", required);
                let why = format!("the request needs `{part}` of its client");
                Err(RpcError::new(MISSING_CAPABILITY, why).with_data(data))
            }
            (Err(mut error), Era::Legacy) => {
                if !error.message.contains(&missing_capability_message(&part)) {
                    error.message = format!("{} ({})", error.message, missing_capability_message(&part));
                }
                Err(error)
            }
            (Ok(result), Era::Legacy) => Ok(with_reason(result, &missing_capability_message(&part))),
        }
    }

    /// Returns whether the client declares the capability that `method` needs.
    fn supports(&self, method: &str) -> bool {
        let (part, _) = method.split_once('/').unwrap_or((method, ""));
        let needs_capability = ["sampling", "elicitation", "roots"].contains(&part);
        let can = !needs_capability || self.info.capabilities.object().is_some_and(|can| can.contains(part));
        // Servers request roots incidentally and can do without them, so a missing `roots` does not explain a failure.
        if !can && part != "roots" {
            *self.missing_capability.lock().unwrap_or_else(PoisonError::into_inner) = Some(part.to_owned());
        }
        can
    }
}

/// The reason why a server request is not sent to the client.
fn missing_capability_message(part: &str) -> String {
    format!("the client does not declare the capability `{part}`")
}

/// Returns whether a result is a tool error.
fn is_error(result: &RawJson) -> bool {
    result.object().is_some_and(|result| result.get("isError").is_some_and(|flag| flag.get() == "true"))
}

/// Adds the reason to a tool error. Most servers repeat the error that they received, and then the result stays
/// unchanged.
fn with_reason(result: RawJson, why: &str) -> RawJson {
    let blocks = || result.object()?.get("content")?.decode::<Vec<RawJson>>().ok();
    let Some(mut blocks) = blocks().filter(|_| !result.get().contains(why)) else { return result };
    blocks.push(RawObject::default().with("type", "text").with("text", why).into_raw());
    result.object().unwrap_or_default().with("content", RawJson::of(&blocks)).into_raw()
}

impl Caller for ClientHandle {
    fn client(&self) -> u64 {
        self.info.number
    }

    fn capabilities(&self) -> RawJson {
        self.info.capabilities.clone()
    }

    fn meta(&self) -> &RawObject {
        &self.meta
    }

    fn extras(&self) -> &RawObject {
        &self.extras
    }

    /// Modern servers send log messages only for requests that carry a level, so the level of a legacy client is added to
    /// each request.
    fn log_level(&self) -> Option<RawJson> {
        (self.info.era == Era::Legacy).then(|| self.info.level.to_json())
    }

    fn accepts_input_requests(&self) -> bool {
        self.info.era == Era::Modern
    }

    fn progress(&self, params: &RawJson) {
        let token = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(token), Some(mut params)) = (token, params.object()) {
            params.set("progressToken", token);
            self.notify("notifications/progress", Some(&params.into_raw()));
        }
    }

    fn notify(&self, method: &str, params: Option<&RawJson>) {
        let is_wanted = self.wants_log && (self.info.era == Era::Modern || self.info.level.admits(params));
        if method == "notifications/message" && !is_wanted {
            return;
        }
        // The queue drops messages if the client does not read; the server never waits for it.
        self.queue.try_push(message::serialize_notification(method, params));
    }

    fn principal_id(&self) -> Option<&str> {
        self.context.as_ref().map(|context| context.principal.as_str())
    }

    fn principal(&self) -> Option<&Arc<Principal>> {
        Some(Self::principal(self))
    }

    fn require_scopes(&self, scopes: Vec<String>) {
        if let Some(context) = &self.context {
            context.step_up.require(scopes);
        }
    }

    fn trace(&self) -> Option<&TraceContext> {
        self.context.as_ref()?.trace.as_ref()
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        Box::pin(async move {
            if !self.supports(&method) {
                let part = method.split('/').next().unwrap_or_default();
                return Err((
                    METHOD_NOT_FOUND,
                    format!("cannot answer `{method}`: {}", missing_capability_message(part)),
                ));
            }
            if self.info.era == Era::Legacy {
                return self.info.server_requests.ask(self, &method, params.as_ref()).await;
            }
            let (reply, answer) = oneshot::channel();
            self.queue.push(QueuedMessage::ServerRequest(Box::new(ServerRequest { method, params, reply })));
            self.wait_for(answer).await
        })
    }
}
