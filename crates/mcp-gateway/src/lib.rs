//! The gateway: serves a [`Backend`] as an MCP server, to clients of both eras. The transports are in `http` and
//! `duplex`; the semantics of messages are here.

mod backend;
mod body;
mod budget;
mod client_handle;
mod client_queue;
mod duplex;
mod ended_session;
mod event_log;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod header_lookup;
mod http;
mod in_flight;
mod known_clients;
mod legacy;
mod level;
mod listen;
mod message;
mod methods;
mod modern;
mod outbox;
mod pending_input;
mod portable;
mod replays;
mod replica_link;
mod replica_seal;
mod reply;
mod request_context;
mod rpc_error;
mod session;
mod session_ids;
mod session_lookup;
mod session_owner;
mod session_record;
mod session_seal;
mod shared_sessions;
mod streams;
mod subscriptions;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::io_thread::PerIoThread;
use toolhub_core::json::fold_key;
use toolhub_core::ports::boxed;
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::text::truncate;
use toolhub_core::{CallerHandle, RawJson, RawObject, hex};
use toolhub_mcp_wire::era::{INPUT_RESPONSES, REQUEST_STATE, client_info};
use toolhub_mcp_wire::{Era, Offer, scan};

pub use backend::{Backend, BackendRequest, ChangeNotification, GatewayCall, ItemList, ToolList};
pub use body::ResponseBody;
pub use budget::{
    BudgetLimits, BudgetPermit, BudgetedResource, PrincipalHandle, PrincipalTable, QuotaExceeded,
    RateLimitExceeded,
};
pub use duplex::Duplex;
pub use header_lookup::{HeaderLookup, PROTOCOL_VERSION, SESSION_ID, printable_text};
pub use known_clients::KnownClient;
pub use methods::{BackendMethod, method_names, uri_methods};
pub use outbox::OutboundMessage;
pub use portable::{PortabilityError, make_portable, portable_offer};
pub use replica_link::{LinkError, ReplicaBody, ReplicaLink, ReplicaRequest, ReplicaResponse, RequestMethod};
pub use replica_seal::{ReplicaSeal, ResponseSeal};
pub use reply::{HttpReply, SseEvents};
pub use request_context::{RequestContext, StepUp};
pub use rpc_error::RpcError;
pub use session_record::SessionRecord;
pub use session_seal::SessionKey;

use crate::client_handle::{ClientHandle, ClientInfo, PendingClientRequests};
use crate::in_flight::InFlightRequest;
use crate::known_clients::KnownClients;
use crate::level::MinimumLevel;
use crate::message::{ClientRequest, RequestParams};
use crate::methods::Method;
use crate::pending_input::PendingInputs;
use crate::rpc_error::RpcResult;
use crate::session::{Session, Sessions};
use crate::session_ids::SessionIds;
use crate::session_owner::SessionOwners;

/// The member of `_meta` that relates a message to a task (2025-11-25, basic/utilities/tasks).
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Maximum length of an unknown name in an error, in characters.
const MAX_SHOWN_CHARS: usize = 100;
/// The error of requests that are still running when the gateway stops.
const ABORTED: i64 = -32000;
const ABORTED_MESSAGE: &str =
    "the gateway was stopped before this was done; what had begun may have had its effect";

/// Serves a backend to MCP clients.
pub struct Gateway {
    backend: Arc<dyn Backend>,
    sessions: Sessions,
    session_ids: SessionIds,
    session_owners: SessionOwners,
    /// The way to other replicas.
    link: OnceLock<Arc<dyn ReplicaLink>>,
    pending_inputs: PendingInputs,
    clients: AtomicU64,
    known_clients: KnownClients,
    /// Placeholders that all modern clients share: they receive server requests as results, and have no session with a log
    /// level.
    placeholders: (Arc<PendingClientRequests>, Arc<MinimumLevel>),
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Cancelled when the remaining requests are aborted. Every request waits for it.
    abort_tokens: PerIoThread<CancellationToken>,
    /// The number of requests aborted that way.
    aborted_requests: AtomicUsize,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// The client that a request belongs to.
struct RequestClient {
    info: ClientInfo,
    session: Option<Arc<Session>>,
}

/// The state of a request that is being served.
struct RequestState {
    era: Era,
    session: Option<Arc<Session>>,
    client_handle: Arc<ClientHandle>,
}

impl Gateway {
    /// Creates a gateway for a backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            sessions: Sessions::default(),
            session_ids: SessionIds::new("", Arc::new(SessionRecord::in_memory())),
            session_owners: SessionOwners::default(),
            link: OnceLock::new(),
            pending_inputs: PendingInputs::at(ReplicaId(0)),
            clients: AtomicU64::new(1),
            known_clients: KnownClients::default(),
            placeholders: Default::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            abort_tokens: PerIoThread::with(CancellationToken::new),
            aborted_requests: AtomicUsize::new(0),
        }
    }

    /// Makes sessions resumable by means of `record`. The profile name separates them from the sessions of other
    /// profiles.
    #[must_use]
    pub fn with_sessions(mut self, profile: &str, record: Arc<SessionRecord>) -> Self {
        self.pending_inputs = PendingInputs::at(record.replica());
        self.session_ids = SessionIds::new(profile, record);
        self
    }

    /// Lets other replicas serve the requests of sessions that live there. Only the first link counts.
    pub fn set_link(&self, link: Arc<dyn ReplicaLink>) {
        let _ = self.link.set(link);
    }

    /// Returns the number of sessions of legacy clients.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the clients that have sent their `clientInfo`, the latest one first.
    pub fn known_clients(&self) -> Vec<KnownClient> {
        self.known_clients.all()
    }

    /// Ends long-lived streams, and waits for background tasks, at most `timeout`.
    pub async fn close(&self, timeout: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(timeout, self.tasks.wait()).await;
    }

    /// Aborts every request that is running or waits for input of its client. Servers receive a cancellation, and
    /// connected clients an error.
    pub fn abort_all(&self) {
        self.abort_tokens.all().for_each(CancellationToken::cancel);
        self.aborted_requests.fetch_add(self.pending_inputs.clear(), Ordering::Relaxed);
    }

    /// Returns the number of requests aborted by [`Self::abort_all`].
    pub fn aborted_requests(&self) -> usize {
        self.aborted_requests.load(Ordering::Relaxed)
    }

    fn new_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a request.
    fn start(
        self: &Arc<Self>,
        request: ClientRequest,
        params: RequestParams,
        client: RequestClient,
    ) -> InFlightRequest {
        let RequestClient { info, session } = client;
        let era = info.era;
        let mut params = params;
        // It may name a task of another principal. Requests name their task in `taskId`, which is checked.
        // Other letter cases, and what follows a NUL, are the same key for some servers.
        params.meta.retain(|name| {
            !name.get(..RELATED_TASK.len()).is_some_and(|start| start.eq_ignore_ascii_case(RELATED_TASK))
        });
        let (client_handle, members) = ClientHandle::new(info, params);
        let state = RequestState { era, session, client_handle: Arc::clone(&client_handle) };
        let gateway = Arc::clone(self);
        let ClientRequest { id, method } = request;
        let work = boxed(|| async move {
            tokio::select! {
                biased;
                outcome = gateway.serve(&method, members, state) => outcome,
                () = gateway.abort_tokens.current().cancelled() => {
                    gateway.aborted_requests.fetch_add(1, Ordering::Relaxed);
                    Err(RpcError::new(ABORTED, ABORTED_MESSAGE))
                }
            }
        });
        InFlightRequest::new(id, client_handle, work)
    }

    /// Executes a request.
    async fn serve(&self, method: &str, params: RawObject, state: RequestState) -> RpcResult {
        let RequestState { era, session, client_handle } = state;
        let caller = |client_handle: Arc<ClientHandle>| {
            CallerHandle::new(client_handle as Arc<dyn toolhub_core::Caller>)
        };
        // Unknown methods are not forwarded: nothing determines which server would be responsible.
        let Some(known_method) = Method::named(method, era) else { return Err(RpcError::no_method(method)) };
        known_method.check_name_length(&params)?;
        match known_method {
            Method::CallTool => {
                self.call(&params, caller(client_handle)).await.map(|result| with_result_type(result, era))
            }
            Method::ListTools => {
                self.backend.wait_until_listed().await;
                let tools = self.backend.tools(client_handle.principal());
                Ok(if era == Era::Legacy { tools.legacy.clone() } else { tools.modern().clone() })
            }
            Method::DescribeTools => {
                self.describe(&params, &client_handle).map(|result| with_result_type(result, era))
            }
            Method::ListResources => self.offers(Offer::Resources, era, &client_handle).await,
            Method::ListTemplates => self.offers(Offer::ResourceTemplates, era, &client_handle).await,
            Method::ListPrompts => self.offers(Offer::Prompts, era, &client_handle).await,
            Method::Discover => Ok(modern::discover_result(self.backend.instructions())),
            Method::Ping => Ok(RawJson::empty_object()),
            Method::SetLevel => legacy::set_level(session.as_deref(), &params),
            Method::Subscribe => self.subscribe_session(session.as_deref(), &params).await,
            Method::Unsubscribe => self.unsubscribe_session(session.as_deref(), &params).await,
            Method::Initialize => {
                Err(RpcError::new(rpc_error::INVALID_REQUEST, "this session is initialized already"))
            }
            // The response is a stream, which `http` and `duplex` open.
            Method::Listen => Err(RpcError::no_method(method)),
            Method::Forward(backend_method) => {
                let result = self.forward(backend_method, params, caller(client_handle)).await?;
                let result = with_result_type(result, era);
                let cacheable =
                    [BackendMethod::ReadResource, BackendMethod::ListSkills, BackendMethod::GetSkill]
                        .contains(&backend_method);
                Ok(if cacheable { with_cache_members(result, era) } else { result })
            }
        }
    }

    async fn call(&self, params: &RawObject, caller: CallerHandle) -> RpcResult {
        let name = params.get("name").and_then(RawJson::text).map(Cow::into_owned);
        let name = name.ok_or_else(|| RpcError::invalid_params("`name` must be the name of a tool"))?;
        let arguments = match params.get("arguments") {
            None => RawJson::empty_object(),
            Some(input) if input.get() == "null" => RawJson::empty_object(),
            Some(input) if input.is_object() => input.clone(),
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        self.backend.call(GatewayCall { name, arguments, caller }).await
    }

    /// Returns the definitions of the named tools, each once, for clients to which not all tools are listed.
    fn describe(&self, params: &RawObject, client_handle: &ClientHandle) -> RpcResult {
        let named = params.get("name").and_then(|name| name.decode::<String>().ok());
        let names = params.get("names").and_then(|names| names.decode::<Vec<String>>().ok());
        let names: Vec<String> = names.into_iter().flatten().chain(named).collect();
        if names.is_empty() {
            return Err(RpcError::invalid_params("`name` or `names` must name tools"));
        }
        let tools = self.backend.tools(client_handle.principal());
        // Repeated names do not repeat the definition, so that the result is never longer than the complete list.
        let (mut definitions, mut seen) = (Vec::new(), HashSet::new());
        for name in &names {
            let unknown = || {
                let shown = truncate(name, MAX_SHOWN_CHARS).unwrap_or_else(|| name.clone());
                RpcError::invalid_params(format!("unknown tool: {shown}"))
            };
            let definition = tools.definitions.get(name).ok_or_else(unknown)?;
            if seen.insert(name) {
                definitions.push(definition);
            }
        }
        let _reserved = reserve_unread(client_handle, definitions.iter().copied())?;
        Ok(RawObject::default().with("tools", RawJson::of(&definitions)).into_raw())
    }

    async fn offers(&self, offer: Offer, era: Era, client_handle: &ClientHandle) -> RpcResult {
        let offered = self.backend.offers(offer, client_handle.principal()).await?;
        let _reserved = reserve_unread(client_handle, &offered.items)?;
        Ok(offered.result(offer, era))
    }

    async fn forward(&self, method: BackendMethod, mut params: RawObject, caller: CallerHandle) -> RpcResult {
        // Removes `inputResponses` and `requestState` in any case (they are forwarded as extras), and aliases of the checked
        // key that differ only in case: a server that ignores the case of keys could read an unchecked state or name.
        let (key, retried) = (method.key(), [INPUT_RESPONSES, REQUEST_STATE].map(fold_key));
        params.retain(|name| {
            let name_folded = fold_key(name);
            let alias = key.is_some_and(|key| name != key && name_folded == fold_key(key));
            !alias && !retried.contains(&name_folded)
        });
        self.backend.forward(BackendRequest { method, params, caller }).await
    }
}

/// Reserves the length of a response in the budget of unread bytes before the response is assembled from these parts, so
/// that a short request cannot produce a long response beyond the budget. The transport reserves it again when it sends
/// the response.
fn reserve_unread<'a>(
    client_handle: &ClientHandle,
    parts: impl IntoIterator<Item = &'a RawJson>,
) -> Result<Option<BudgetPermit>, RpcError> {
    let Some(principal) = client_handle.principal_budget() else { return Ok(None) };
    let bytes = parts.into_iter().map(|part| part.get().len()).sum();
    Ok(Some(principal.take(BudgetedResource::Unread, bytes)?))
}

/// Adds `"resultType": "complete"` for modern clients if it is missing. The rest stays unchanged.
fn with_result_type(result: RawJson, era: Era) -> RawJson {
    match era {
        Era::Legacy => result,
        Era::Modern => match scan::has_member(result.get(), "resultType") {
            Some(true) => result,
            Some(false) => append_result_type(&result).unwrap_or(result),
            None => result.with_last("resultType", &RawJson::from("complete")),
        },
    }
}

/// Appends `"resultType": "complete"` to an object.
fn append_result_type(result: &RawJson) -> Option<RawJson> {
    let inside = result.get().strip_suffix('}')?.trim_end();
    let comma = if inside == "{" { "" } else { "," };
    scan::assembled_json([inside, comma, r#""resultType":"complete"}"#].concat())
}

/// Adds the caching members that modern clients expect in the result.
fn with_cache_members(result: RawJson, era: Era) -> RawJson {
    let kind = || result.object()?.get("resultType")?.decode::<String>().ok();
    // A text that merely contains the word is not a request for input.
    let needs_input = result.get().contains("input_required") && kind().as_deref() == Some("input_required");
    match era {
        Era::Modern if !needs_input => {
            result.with_last("ttlMs", &RawJson::from(0)).with_last("cacheScope", &RawJson::from("private"))
        }
        Era::Modern | Era::Legacy => result,
    }
}

/// The `serverInfo` of the gateway.
fn server_info() -> RawObject {
    client_info().with("title", "toolhub")
}

/// The capabilities of the gateway.
fn gateway_capabilities(era: Era) -> RawObject {
    let changing = || RawObject::default().with("listChanged", true);
    let capabilities = RawObject::default()
        .with("tools", changing())
        .with("resources", changing().with("subscribe", true))
        .with("prompts", changing())
        .with("completions", RawObject::default())
        .with("logging", RawObject::default());
    match era {
        Era::Legacy => capabilities,
        // The server decides whether a call becomes a task, and the client whether that is allowed.
        Era::Modern => {
            let skills = RawObject::default().with("directoryRead", true);
            let extensions = RawObject::default()
                .with("io.modelcontextprotocol/tasks", RawObject::default())
                .with(toolhub_mcp_wire::era::SKILLS, skills);
            capabilities.with("extensions", extensions)
        }
    }
}

/// Returns 128 random bits as hexadecimal digits. `None` if the system has no randomness.
pub fn random_token() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_result_members_without_changing_the_rest() {
        let check = |input: &str, era: Era, expect: &str| {
            let result = with_result_type(RawJson::parse(input).unwrap(), era);
            assert_eq!(with_cache_members(result, era).get(), expect);
        };
        let big = r#"{"z":1e2,"a":123456789012345678901234567890}"#;
        check(big, Era::Legacy, big);
        let tail = r#""resultType":"complete","ttlMs":0,"cacheScope":"private"}"#;
        check(big, Era::Modern, &format!("{},{tail}", &big[..big.len() - 1]));
        check("{}", Era::Modern, &format!("{{{tail}"));
        check("{ }", Era::Modern, &format!("{{{tail}"));
        check(r#"{"\u0061":1 }"#, Era::Modern, &format!(r#"{{"\u0061":1,{tail}"#));
        // Existing members are kept, and words inside of strings are not mistaken for members.
        check(
            r#"{"ttlMs":5,"x":"input_required and resultType"}"#,
            Era::Modern,
            r#"{"ttlMs":5,"x":"input_required and resultType","resultType":"complete","cacheScope":"private"}"#,
        );
        let server_request = r#"{"resultType":"input_required","inputRequests":{}}"#;
        check(server_request, Era::Modern, server_request);
    }
}
