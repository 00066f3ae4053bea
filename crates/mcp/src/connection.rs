//! One connection to one server: requests in the form its era wants, in as many rounds as they need.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use toolhub_core::{RawJson, RawObject, ToolDefinition, TraceContext};

use crate::era::Era;
use crate::error::McpError;
use crate::headers;
use crate::request_origin::{InFlightRequests, RequestOrigin};
use crate::request_state::StateTarget;
use crate::server_requests::ServerRequests;
use crate::task_call::requires_task;
use crate::transport::{Listener, OutgoingRequest, Repeat, StderrRing, Transport};
use crate::wire::{self, Meta, Modern, Said};

/// The JSON-RPC error code of params that are wrong.
const INVALID_PARAMS: i64 = -32602;
/// Numbers the channels of this process.
static CHANNELS: AtomicU64 = AtomicU64::new(0);
/// Channels whose ids differ: beyond that, ids would not fit into the integers that JSON carries exactly (2^53).
const MAX_CHANNELS: u64 = 1 << 21;

/// The members by which a client retries a request that was answered with a question (2026-07-28, patterns/mrtr).
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";
pub(crate) const REQUEST_STATE: &str = "requestState";

/// How often one request may be answered with a question.
const MAX_ROUNDS: usize = 10;

/// A transport and the ids of what is sent over it.
pub(crate) struct Channel {
    transport: Box<dyn Transport>,
    ids: AtomicU64,
    in_flight: Arc<InFlightRequests>,
}

/// A request before it has an id.
#[derive(Clone, Default)]
pub(crate) struct Ask {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: RawObject,
    /// What it is about, as a modern server wants it in a header: the tool's name, a resource's uri.
    pub(crate) name: Option<Arc<str>>,
    /// What is called by that name with what, where that is what it is about: it goes before the other params.
    pub(crate) arguments: Option<RawJson>,
    pub(crate) headers: Vec<(String, String)>,
    /// Who hears of it on its way.
    pub(crate) listener: Option<Arc<dyn Listener>>,
    /// Who wants it, where they can be asked.
    pub(crate) origin: Option<RequestOrigin>,
    /// When it may be sent a second time.
    pub(crate) repeat: Repeat,
}

impl Channel {
    pub(crate) fn new(transport: Box<dyn Transport>, server_requests: &ServerRequests) -> Self {
        // No two channels share an id, so that an answer for one is never taken for an answer to another, whatever
        // connection it comes over.
        let number = CHANNELS.fetch_add(1, Ordering::Relaxed) % MAX_CHANNELS;
        Self {
            transport,
            ids: AtomicU64::new((number << 32) + 1),
            in_flight: Arc::clone(&server_requests.in_flight),
        }
    }

    /// Asks as it stands; `meta` is what the era adds.
    pub(crate) async fn ask(&self, ask: &Ask, mut meta: Meta<'_>) -> Result<RawJson, McpError> {
        let Ask { method, params, name, arguments, headers, listener, origin, repeat } = ask;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        meta.progress = listener.is_some().then_some(id);
        let mut known = match origin {
            Some(origin) => Some(self.in_flight.enter(id, origin.clone())),
            None => {
                if method == "tools/call" {
                    self.in_flight.enter_owner();
                }
                None
            }
        };
        let name = name.as_deref();
        let body = wire::request(id, Said { method, call: name.zip(arguments.as_ref()), params }, &meta);
        drop(meta);
        let listener = listener.as_ref();
        let repeat = *repeat;
        let principal = origin.as_ref().and_then(|origin| origin.link.principal());
        let request = OutgoingRequest { id, method, name, body, headers, listener, repeat, principal };
        let answer = self.transport.request(request).await;
        if let (Some(known), Ok(_) | Err(McpError::Rpc { .. })) = (&mut known, &answer) {
            known.answered = true;
        }
        answer
    }

    pub(crate) async fn notify(&self, method: &str) -> Result<(), McpError> {
        self.transport.notify(wire::notification(method, &RawObject::default())).await
    }
}

/// What a server said of itself when it was met.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) era: Era,
    /// Whether the era may be another one, as a server that was slow to start did not answer the question for it in time.
    pub(crate) doubtful: bool,
    pub(crate) version: String,
    /// Name and version, as it gives them.
    pub(crate) peer: String,
    /// What it can do, as it says it.
    pub(crate) capabilities: RawObject,
    /// How it wants to be used.
    pub(crate) instructions: Option<String>,
}

/// A server that is connected.
pub(crate) struct Connection {
    channel: Channel,
    pub(crate) greeting: Greeting,
    stderr: StderrRing,
    server_requests: Arc<ServerRequests>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        channel: Channel,
        greeting: Greeting,
        stderr: StderrRing,
        server_requests: Arc<ServerRequests>,
    ) -> Self {
        Self { channel, greeting, stderr, server_requests }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.channel.transport.is_open()
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Asks in the form the server's era wants, and answers what a modern server asks back.
    pub(crate) async fn ask(&self, mut ask: Ask) -> Result<RawJson, McpError> {
        if let Some(origin) = &ask.origin
            && !origin.link.extras().is_empty()
        {
            let given = self.retried(&ask, origin)?;
            given.into_iter().for_each(|(key, value)| ask.params.set(key, value));
        }
        if let Some(trace) = ask.origin.as_ref().and_then(|origin| origin.trace.as_ref()) {
            ask.headers.extend(said_of(trace).map(|(key, value)| (key.to_owned(), value)));
        }
        let Era::Modern = self.greeting.era else {
            let given = without_protocol(given(ask.origin.as_ref()));
            return self.channel.ask(&ask, Meta { given, ..Meta::default() }).await;
        };
        let hands_on = ask.origin.as_ref().is_some_and(|origin| origin.link.takes_questions_as_results());
        for _ in 0..MAX_ROUNDS {
            let can = ask.origin.as_ref().map(|origin| origin.link.capabilities());
            let can = can.unwrap_or_else(|| self.server_requests.capabilities());
            let modern =
                Some(Modern { version: &self.greeting.version, can, hears: hears(ask.origin.as_ref()) });
            let meta = Meta { given: given(ask.origin.as_ref()), modern, progress: None };
            let result = self.channel.ask(&ask, meta).await?;
            let Some(wanted) = InputRequired::of(&result) else { return Ok(result) };
            if hands_on {
                return Ok(self.sealed(&ask, result, wanted.request_state.as_ref()));
            }
            ask.params.remove(INPUT_RESPONSES);
            ask.params.remove(REQUEST_STATE);
            if !wanted.input_requests.is_empty() {
                ask.params.set(
                    INPUT_RESPONSES,
                    self.server_requests.inputs(&wanted.input_requests, ask.origin.as_ref()).await?,
                );
            }
            if let Some(state) = wanted.request_state {
                ask.params.set(REQUEST_STATE, state);
            }
        }
        Err(McpError::unreadable(format!("the server asked for input {MAX_ROUNDS} times without an end")))
    }

    /// What a client that retries a request adds to its params. A state is passed on only if this server issued it to the
    /// same principal for the same request. Legacy servers know neither member.
    fn retried(&self, ask: &Ask, origin: &RequestOrigin) -> Result<Vec<(&'static str, RawJson)>, McpError> {
        let (extras, modern) = (origin.link.extras(), self.greeting.era == Era::Modern);
        let mut given = Vec::new();
        if let Some(token) = extras.get(REQUEST_STATE).filter(|token| token.get() != "null") {
            let state = self.state_target(ask).open(token).filter(|_| modern);
            given.push((REQUEST_STATE, state.ok_or_else(unknown_state)?));
        }
        if let Some(responses) = extras.get(INPUT_RESPONSES).filter(|_| modern) {
            given.push((INPUT_RESPONSES, responses.clone()));
        }
        Ok(given)
    }

    /// A result that asks a client for input, with a token in place of the server's state.
    fn sealed(&self, ask: &Ask, result: RawJson, state: Option<&RawJson>) -> RawJson {
        match (state, result.object()) {
            (Some(state), Some(members)) => {
                members.with(REQUEST_STATE, self.state_target(ask).seal(state)).into_raw()
            }
            _ => result,
        }
    }

    fn state_target<'a>(&'a self, ask: &'a Ask) -> StateTarget<'a> {
        StateTarget {
            principal: ask.origin.as_ref().and_then(|origin| origin.link.principal()),
            server: self.server_requests.server.as_str(),
            method: &ask.method,
            name: ask.name.as_deref(),
        }
    }

    /// Whether the server answers a request that every server of its era knows; an error is an answer too.
    pub(crate) async fn answers(&self, patience: Duration) -> bool {
        let method = match self.greeting.era {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let probe = self.ask(Ask { method: method.into(), repeat: Repeat::Safe, ..Ask::default() });
        match tokio::time::timeout(patience, probe).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => !matches!(error, McpError::Lost { .. } | McpError::Connect { .. }),
            Err(_) => false,
        }
    }

    /// Calls a tool; gives its result as it was sent.
    pub(crate) async fn call_tool(
        &self,
        tool: &ToolDefinition,
        arguments: &RawJson,
        heard: &Heard,
    ) -> Result<RawJson, McpError> {
        let headers = match self.greeting.era {
            Era::Modern if tool.marks_headers() => {
                headers::of_arguments(&headers::mirrored(tool.input_schema()).unwrap_or_default(), arguments)
            }
            Era::Legacy | Era::Modern => Vec::new(),
        };
        let ask = Ask {
            method: "tools/call".into(),
            params: RawObject::default(),
            name: Some(tool.wire_name().shared()),
            arguments: Some(arguments.clone()),
            headers,
            listener: Some(Arc::clone(&heard.listener)),
            origin: heard.origin.clone(),
            repeat: heard.repeat,
        };
        // A client of the gateway creates and follows tasks itself.
        match heard.origin.is_none() && requires_task(tool) {
            true => Box::pin(self.call_as_task(ask)).await,
            false => self.ask(ask).await,
        }
    }
}

/// Refuses a state that was not issued for this request; nothing is sent. Another server that offers the same may have issued
/// it, so the code is one after which the next server is asked.
fn unknown_state() -> McpError {
    let message =
        "`requestState` is not known for this request: make the request again without it".to_owned();
    McpError::Rpc { code: INVALID_PARAMS, message, data: None }
}

/// Who hears of a call on its way, and whether it may be sent twice.
pub(crate) struct Heard {
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) origin: Option<RequestOrigin>,
    pub(crate) repeat: Repeat,
}

/// What goes along with a request: what its client sent, and which trace it is part of (2026-07-28, basic: trace context).
fn given(origin: Option<&RequestOrigin>) -> Cow<'_, RawObject> {
    let Some(origin) = origin else { return Cow::Owned(RawObject::default()) };
    let mut meta = Cow::Borrowed(origin.link.meta());
    if let Some(trace) = &origin.trace {
        let meta = meta.to_mut();
        // What was added to another trace is not for this one.
        meta.remove("tracestate");
        for (key, value) in said_of(trace) {
            meta.set(key, value);
        }
    }
    meta
}

/// What its client wants to hear of logs, where it says that once for all its requests.
fn hears(origin: Option<&RequestOrigin>) -> Option<RawJson> {
    origin?.link.hears()
}

/// A trace as requests name it, in `_meta` and in the headers of HTTP.
fn said_of(trace: &TraceContext) -> impl Iterator<Item = (&'static str, String)> {
    let state = trace.state().map(|state| ("tracestate", state.to_owned()));
    [("traceparent", trace.to_string())].into_iter().chain(state)
}

/// What a client sent along, without what it said of itself to us.
fn without_protocol(mut meta: Cow<'_, RawObject>) -> Cow<'_, RawObject> {
    let of_protocol = |key: &str| key.starts_with("io.modelcontextprotocol/");
    if meta.iter().any(|(key, _)| of_protocol(key)) {
        meta.to_mut().retain(|key| !of_protocol(key));
    }
    meta
}

/// A question back (2026-07-28, patterns/mrtr).
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
        // Most results are none, and one look at the text spares them being read twice.
        if !result.get().contains("input_required") {
            return None;
        }
        let kind = result.object()?.get("resultType")?.decode::<String>().ok()?;
        (kind == "input_required").then(|| result.decode().ok()).flatten()
    }
}
