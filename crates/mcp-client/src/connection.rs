//! One connection to one server: sends requests in the form of the server's era, and answers `input_required` results in
//! further rounds.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use toolhub_core::{RawJson, RawObject, ToolDefinition, TraceContext};
use toolhub_mcp_wire::era::{INPUT_RESPONSES, REQUEST_STATE};
use toolhub_mcp_wire::jsonrpc::{self, ModernMeta, RequestContent, RequestMeta};
use toolhub_mcp_wire::{Era, McpError, headers};

use crate::request_origin::{InFlightRequests, RequestOrigin};
use crate::request_state::StateTarget;
use crate::server_requests::ServerRequests;
use crate::task_support::requires_task;
use crate::transport::{OutgoingRequest, Repeat, RequestObserver, StderrRing, Transport};

/// The JSON-RPC error code "Invalid params".
const INVALID_PARAMS: i64 = -32602;
/// Number of channels created in this process.
static CHANNELS: AtomicU64 = AtomicU64::new(0);
/// Number of channels with distinct request ids: beyond that, ids would exceed the integers that JSON carries exactly (2^53).
const MAX_CHANNELS: u64 = 1 << 21;

/// Maximum number of `input_required` results for one request.
const MAX_ROUNDS: usize = 10;

/// A transport and the request ids used on it.
pub(crate) struct Channel {
    transport: Box<dyn Transport>,
    ids: AtomicU64,
    in_flight: Arc<InFlightRequests>,
}

/// A request without an id.
#[derive(Clone, Default)]
pub(crate) struct McpRequest {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: RawObject,
    /// The value of the `Mcp-Name` header for modern servers: the name of the tool, the URI of a resource.
    pub(crate) name: Option<Arc<str>>,
    /// The `arguments` of a tool call, written together with `name` before the other params.
    pub(crate) arguments: Option<RawJson>,
    pub(crate) headers: Vec<(String, String)>,
    /// Notified when the request is sent and of its progress.
    pub(crate) listener: Option<Arc<dyn RequestObserver>>,
    /// The client behind the request, if it can receive requests of the server.
    pub(crate) origin: Option<RequestOrigin>,
    /// Whether a hub of the cluster sends it on its own behalf. Then `origin` only carries messages and is no user of the
    /// connection.
    pub(crate) is_of_hub: bool,
    /// Under which conditions it may be sent a second time.
    pub(crate) repeat: Repeat,
}

impl Channel {
    pub(crate) fn new(transport: Box<dyn Transport>, server_requests: &ServerRequests) -> Self {
        // No two channels share a request id, so that a response never matches a request of another channel, whichever
        // connection it arrives on.
        let number = CHANNELS.fetch_add(1, Ordering::Relaxed) % MAX_CHANNELS;
        Self {
            transport,
            ids: AtomicU64::new((number << 32) + 1),
            in_flight: Arc::clone(&server_requests.in_flight),
        }
    }

    /// Sends the request unchanged; `meta` holds the members of `_meta` that the era requires.
    pub(crate) async fn request(
        &self,
        request: &McpRequest,
        mut meta: RequestMeta<'_>,
    ) -> Result<RawJson, McpError> {
        let McpRequest { method, params, name, arguments, headers, listener, origin, is_of_hub, repeat } =
            request;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        meta.progress = listener.is_some().then_some(id);
        let mut guard = match origin {
            Some(origin) if !is_of_hub => Some(self.in_flight.register(id, origin.clone())),
            Some(_) | None => {
                if method == "tools/call" {
                    self.in_flight.register_owner();
                }
                None
            }
        };
        let name = name.as_deref();
        let body = jsonrpc::serialize_request(
            id,
            RequestContent { method, call: name.zip(arguments.as_ref()), params },
            &meta,
        );
        drop(meta);
        let listener = listener.as_ref();
        let repeat = *repeat;
        let principal = origin.as_ref().and_then(|origin| origin.link.principal_id());
        let client = origin.as_ref().map(|origin| origin.link.client());
        let request =
            OutgoingRequest { id, method, name, body, headers, listener, repeat, principal, client };
        let answer = self.transport.request(request).await;
        if let (Some(guard), Ok(_) | Err(McpError::Rpc { .. })) = (&mut guard, &answer) {
            guard.answered = true;
        }
        answer
    }

    pub(crate) async fn notify(&self, method: &str) -> Result<(), McpError> {
        self.transport.notify(jsonrpc::notification(method, &RawObject::default())).await
    }
}

/// The server's description of itself, from `initialize` or `server/discover`.
#[derive(Debug, Clone)]
pub(crate) struct ServerInfo {
    pub(crate) era: Era,
    /// Whether the era is uncertain, because the server was slow to start and did not answer the probe in time.
    pub(crate) era_uncertain: bool,
    pub(crate) version: String,
    /// Name and version, as the server reports them.
    pub(crate) peer: String,
    /// The capabilities, as the server reports them.
    pub(crate) capabilities: RawObject,
    /// The instructions for the model.
    pub(crate) instructions: Option<String>,
}

/// A connected server.
pub(crate) struct Connection {
    channel: Channel,
    pub(crate) server_info: ServerInfo,
    stderr: StderrRing,
    server_requests: Arc<ServerRequests>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server_info", &self.server_info).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        channel: Channel,
        server_info: ServerInfo,
        stderr: StderrRing,
        server_requests: Arc<ServerRequests>,
    ) -> Self {
        Self { channel, server_info, stderr, server_requests }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.channel.transport.is_open()
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Sends a request in the form of the server's era, and answers the input requests of a modern server.
    pub(crate) async fn request(&self, mut request: McpRequest) -> Result<RawJson, McpError> {
        if let Some(origin) = &request.origin
            && !origin.link.extras().is_empty()
        {
            let forwarded = self.retry_params(&request, origin)?;
            forwarded.into_iter().for_each(|(key, value)| request.params.set(key, value));
        }
        if let Some(trace) = request.origin.as_ref().and_then(|origin| origin.trace.as_ref()) {
            request.headers.extend(trace_members(trace).map(|(key, value)| (key.to_owned(), value)));
        }
        let Era::Modern = self.server_info.era else {
            let forwarded = strip_protocol_members(forwarded(request.origin.as_ref()));
            return self.channel.request(&request, RequestMeta { forwarded, ..RequestMeta::default() }).await;
        };
        let forwards_input =
            request.origin.as_ref().is_some_and(|origin| origin.link.accepts_input_requests());
        for _ in 0..MAX_ROUNDS {
            let capabilities = request.origin.as_ref().map(|origin| origin.link.capabilities());
            let capabilities = capabilities.unwrap_or_else(|| self.server_requests.capabilities());
            let modern = Some(ModernMeta {
                version: &self.server_info.version,
                capabilities,
                log_level: log_level(request.origin.as_ref()),
            });
            let meta = RequestMeta { forwarded: forwarded(request.origin.as_ref()), modern, progress: None };
            let result = self.channel.request(&request, meta).await?;
            let Some(input_required) = InputRequired::of(&result) else { return Ok(result) };
            if forwards_input {
                return Ok(self.seal_state(&request, result, input_required.request_state.as_ref()));
            }
            request.params.remove(INPUT_RESPONSES);
            request.params.remove(REQUEST_STATE);
            if !input_required.input_requests.is_empty() {
                request.params.set(
                    INPUT_RESPONSES,
                    self.server_requests
                        .answer_input_requests(&input_required.input_requests, request.origin.as_ref())
                        .await?,
                );
            }
            if let Some(state) = input_required.request_state {
                request.params.set(REQUEST_STATE, state);
            }
        }
        Err(McpError::unreadable(format!("the server asked for input {MAX_ROUNDS} times without an end")))
    }

    /// The params that a client adds when it retries a request. A state is passed on only if this server issued it to the same
    /// principal for the same request. Legacy servers support neither member.
    fn retry_params(
        &self,
        request: &McpRequest,
        origin: &RequestOrigin,
    ) -> Result<Vec<(&'static str, RawJson)>, McpError> {
        let (extras, modern) = (origin.link.extras(), self.server_info.era == Era::Modern);
        let mut forwarded = Vec::new();
        if let Some(token) = extras.get(REQUEST_STATE).filter(|token| token.get() != "null") {
            let state = self.state_target(request).open(token).filter(|_| modern);
            forwarded.push((REQUEST_STATE, state.ok_or_else(unknown_state)?));
        }
        if let Some(responses) = extras.get(INPUT_RESPONSES).filter(|_| modern) {
            forwarded.push((INPUT_RESPONSES, responses.clone()));
        }
        Ok(forwarded)
    }

    /// An `input_required` result with a sealed token in place of the server's state.
    fn seal_state(&self, request: &McpRequest, result: RawJson, state: Option<&RawJson>) -> RawJson {
        match (state, result.object()) {
            (Some(state), Some(members)) => {
                members.with(REQUEST_STATE, self.state_target(request).seal(state)).into_raw()
            }
            _ => result,
        }
    }

    fn state_target<'a>(&'a self, request: &'a McpRequest) -> StateTarget<'a> {
        StateTarget {
            principal: request.origin.as_ref().and_then(|origin| origin.link.principal_id()),
            server: self.server_requests.server.as_str(),
            method: &request.method,
            name: request.name.as_deref(),
        }
    }

    /// Whether the server answers a request that every server of its era supports; an error is an answer too.
    pub(crate) async fn responds(&self, timeout: Duration) -> bool {
        let method = match self.server_info.era {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let probe =
            self.request(McpRequest { method: method.into(), repeat: Repeat::Safe, ..McpRequest::default() });
        match tokio::time::timeout(timeout, probe).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => !matches!(error, McpError::Lost { .. } | McpError::Connect { .. }),
            Err(_) => false,
        }
    }

    /// Calls a tool and returns the raw result.
    pub(crate) async fn call_tool(
        &self,
        tool: &ToolDefinition,
        arguments: &RawJson,
        options: &CallOptions,
    ) -> Result<RawJson, McpError> {
        let headers = match self.server_info.era {
            Era::Modern if tool.marks_headers() => {
                headers::param_headers(&headers::mirrored(tool.input_schema()).unwrap_or_default(), arguments)
            }
            Era::Legacy | Era::Modern => Vec::new(),
        };
        let request = McpRequest {
            method: "tools/call".into(),
            params: RawObject::default(),
            name: Some(tool.wire_name().shared()),
            arguments: Some(arguments.clone()),
            headers,
            listener: Some(Arc::clone(&options.listener)),
            origin: options.origin.clone(),
            is_of_hub: false,
            repeat: options.repeat,
        };
        // A client of the gateway creates and polls tasks itself.
        match options.origin.is_none() && requires_task(tool) {
            true => Box::pin(self.call_as_task(request)).await,
            false => self.request(request).await,
        }
    }
}

/// The error for a state that was not issued for this request; nothing is sent. Another server with the same tool may have
/// issued it, so the code is one after which the next server is tried.
fn unknown_state() -> McpError {
    let message =
        "`requestState` is not known for this request: make the request again without it".to_owned();
    McpError::Rpc { code: INVALID_PARAMS, message, data: None }
}

/// The listener and origin of a call, and whether it may be repeated.
pub(crate) struct CallOptions {
    pub(crate) listener: Arc<dyn RequestObserver>,
    pub(crate) origin: Option<RequestOrigin>,
    pub(crate) repeat: Repeat,
}

/// The `_meta` of a request: the members that the client sent, and the trace context (2026-07-28, basic: trace context).
fn forwarded(origin: Option<&RequestOrigin>) -> Cow<'_, RawObject> {
    let Some(origin) = origin else { return Cow::Owned(RawObject::default()) };
    let mut meta = Cow::Borrowed(origin.link.meta());
    if let Some(trace) = &origin.trace {
        let meta = meta.to_mut();
        // The client's `tracestate` belongs to its own trace context.
        meta.remove("tracestate");
        for (key, value) in trace_members(trace) {
            meta.set(key, value);
        }
    }
    meta
}

/// The log level that the client has set for all its requests.
fn log_level(origin: Option<&RequestOrigin>) -> Option<RawJson> {
    origin?.link.log_level()
}

/// The trace context as `_meta` members and HTTP headers.
fn trace_members(trace: &TraceContext) -> impl Iterator<Item = (&'static str, String)> {
    let state = trace.state().map(|state| ("tracestate", state.to_owned()));
    [("traceparent", trace.to_string())].into_iter().chain(state)
}

/// Removes the protocol members of `_meta`, which the client addressed to the gateway.
fn strip_protocol_members(mut meta: Cow<'_, RawObject>) -> Cow<'_, RawObject> {
    let is_protocol_member = |key: &str| key.starts_with("io.modelcontextprotocol/");
    if meta.iter().any(|(key, _)| is_protocol_member(key)) {
        meta.to_mut().retain(|key| !is_protocol_member(key));
    }
    meta
}

/// An `input_required` result (2026-07-28, patterns/mrtr).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired {
    #[serde(default)]
    input_requests: RawObject,
    #[serde(default)]
    request_state: Option<RawJson>,
}

impl InputRequired {
    fn of(result: &RawJson) -> Option<Self> {
        // Most results are not `input_required`; a substring search avoids parsing them twice.
        if !result.get().contains("input_required") {
            return None;
        }
        let kind = result.object()?.get("resultType")?.decode::<String>().ok()?;
        (kind == "input_required").then(|| result.decode().ok()).flatten()
    }
}
