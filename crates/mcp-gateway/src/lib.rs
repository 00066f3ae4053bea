//! The gateway: serves a [`Backend`] as an MCP server, to clients of both eras. The transports are in `http` and
//! `duplex`; the semantics of messages are here.

mod backend;
mod body;
mod budget;
mod client_handle;
mod client_queue;
mod duplex;
mod event_log;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod header_lookup;
mod http;
mod legacy;
mod level;
mod listen;
mod message;
mod methods;
mod modern;
mod outbox;
mod pending_input;
mod portable;
mod request_context;
mod running;
mod session;
mod session_ids;
mod session_record;
mod streams;
mod subscriptions;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::json::folded;
use toolhub_core::ports::boxed;
use toolhub_core::worker::PerWorker;
use toolhub_core::{CallerHandle, RawJson, RawObject};
use toolhub_mcp_wire::era::{INPUT_RESPONSES, REQUEST_STATE, client_info};
use toolhub_mcp_wire::{Era, Offer, scan};

pub use backend::{Backend, GatewayCall, Handover, News, Offered, RpcError, ToolList};
pub use body::Body;
pub use budget::{Exhausted, Limits, Permit, Principal, Principals, Resource, TooFast};
pub use duplex::Duplex;
pub use header_lookup::{HeaderLookup, PROTOCOL_VERSION, SESSION_ID, printable};
pub use http::{Events, Reply};
pub use methods::Handed;
pub use outbox::Outbound;
pub use portable::{NotPortable, portable, portable_offer};
pub use request_context::RequestContext;
pub use session_record::SessionRecord;

use crate::client_handle::{ClientFacts, ClientHandle, Questions};
use crate::level::Level;
use crate::message::{Params, Request};
use crate::methods::Method;
use crate::pending_input::PendingInputs;
use crate::running::{Running, Served};
use crate::session::{Session, Sessions};
use crate::session_ids::SessionIds;

/// The member of `_meta` that relates a message to a task (2025-11-25, basic/utilities/tasks).
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The error of requests that are still running when the gateway stops.
const ENDING: i64 = -32000;
const CUT: &str = "the gateway was stopped before this was done; what had begun may have had its effect";

/// Serves a backend to MCP clients.
pub struct Gateway {
    backend: Arc<dyn Backend>,
    sessions: Sessions,
    session_ids: SessionIds,
    rounds: PendingInputs,
    clients: AtomicU64,
    /// Placeholders that all modern clients share: they receive server requests as results, and have no session with a log
    /// level.
    never: (Arc<Questions>, Arc<Level>),
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Cancelled when the remaining requests are aborted. Every request waits for it.
    ending: PerWorker<CancellationToken>,
    /// The number of requests aborted that way.
    cut: AtomicUsize,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// The client that a request belongs to.
struct Client {
    facts: ClientFacts,
    session: Option<Arc<Session>>,
}

/// The state of a request that is being served.
struct RequestState {
    era: Era,
    session: Option<Arc<Session>>,
    link: Arc<ClientHandle>,
}

impl Gateway {
    /// Creates a gateway for a backend.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            sessions: Sessions::default(),
            session_ids: SessionIds::new("", Arc::new(SessionRecord::in_memory())),
            rounds: PendingInputs::default(),
            clients: AtomicU64::new(1),
            never: Default::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            ending: PerWorker::with(CancellationToken::new),
            cut: AtomicUsize::new(0),
        }
    }

    /// Makes sessions resumable by means of `record`. The profile name separates them from the sessions of other
    /// profiles.
    #[must_use]
    pub fn with_sessions(mut self, profile: &str, record: Arc<SessionRecord>) -> Self {
        self.session_ids = SessionIds::new(profile, record);
        self
    }

    /// Returns the number of sessions of legacy clients.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Ends long-lived streams, and waits for background tasks, at most `patience`.
    pub async fn close(&self, patience: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
    }

    /// Aborts every request that is running or waits for input of its client. Servers receive a cancellation, and
    /// connected clients an error.
    pub fn give_up(&self) {
        self.ending.all().for_each(CancellationToken::cancel);
        self.cut.fetch_add(self.rounds.clear(), Ordering::Relaxed);
    }

    /// Returns the number of requests aborted by [`Self::give_up`].
    pub fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }

    fn new_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a request.
    fn start(self: &Arc<Self>, request: Request, params: Params, client: Client) -> Running {
        let Client { facts, session } = client;
        let era = facts.era;
        let mut params = params;
        // It may name a task of another principal. Requests name their task in `taskId`, which is checked.
        params.meta.remove(RELATED_TASK);
        let (link, members) = ClientHandle::new(facts, params);
        let wanting = RequestState { era, session, link: Arc::clone(&link) };
        let gateway = Arc::clone(self);
        let Request { id, method } = request;
        let work = boxed(|| async move {
            tokio::select! {
                biased;
                served = gateway.serve(&method, members, wanting) => served,
                () = gateway.ending.current().cancelled() => {
                    gateway.cut.fetch_add(1, Ordering::Relaxed);
                    Err(RpcError::new(ENDING, CUT))
                }
            }
        });
        Running::new(id, link, work)
    }

    /// Executes a request.
    async fn serve(&self, method: &str, params: RawObject, wanting: RequestState) -> Served {
        let RequestState { era, session, link } = wanting;
        let caller = |link: Arc<ClientHandle>| CallerHandle::new(link as Arc<dyn toolhub_core::Caller>);
        // Unknown methods are not forwarded: nothing determines which server would be responsible.
        let Some(known) = Method::named(method, era) else { return Err(RpcError::no_method(method)) };
        match known {
            Method::CallTool => self.call(&params, caller(link)).await.map(|result| completed(result, era)),
            Method::ListTools => {
                self.backend.settled().await;
                let tools = self.backend.tools();
                Ok(if era == Era::Legacy { tools.legacy.clone() } else { tools.modern().clone() })
            }
            Method::DescribeTools => self.describe(&params, &link).map(|result| completed(result, era)),
            Method::ListResources => self.offers(Offer::Resources, era, &link).await,
            Method::ListTemplates => self.offers(Offer::ResourceTemplates, era, &link).await,
            Method::ListPrompts => self.offers(Offer::Prompts, era, &link).await,
            Method::Discover => Ok(modern::discovered(self.backend.instructions())),
            Method::Ping => Ok(RawJson::empty_object()),
            Method::SetLevel => legacy::set_level(session.as_deref(), &params),
            Method::Subscribe => self.watch(session.as_deref(), &params).await,
            Method::Unsubscribe => self.unwatch(session.as_deref(), &params).await,
            Method::Initialize => {
                Err(RpcError::new(backend::INVALID_REQUEST, "this session is initialized already"))
            }
            // The response is a stream, which `http` and `duplex` open.
            Method::Listen => Err(RpcError::no_method(method)),
            Method::HandOver(handed) => {
                let result = self.hand_over(handed, params, caller(link)).await?;
                let result = completed(result, era);
                let kept = [Handed::ReadResource, Handed::ListSkills, Handed::GetSkill].contains(&handed);
                Ok(if kept { cacheable(result, era) } else { result })
            }
        }
    }

    async fn call(&self, params: &RawObject, caller: CallerHandle) -> Served {
        let name = params.get("name").and_then(RawJson::text).map(Cow::into_owned);
        let name = name.ok_or_else(|| RpcError::invalid_params("`name` must be the name of a tool"))?;
        let arguments = match params.get("arguments") {
            None => RawJson::empty_object(),
            Some(given) if given.get() == "null" => RawJson::empty_object(),
            Some(given) if given.is_object() => given.clone(),
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        self.backend.call(GatewayCall { name, arguments, caller }).await
    }

    /// Returns the definitions of the named tools, each once, for clients to which not all tools are listed.
    fn describe(&self, params: &RawObject, link: &ClientHandle) -> Served {
        let named = params.get("name").and_then(|name| name.decode::<String>().ok());
        let names = params.get("names").and_then(|names| names.decode::<Vec<String>>().ok());
        let names: Vec<String> = names.into_iter().flatten().chain(named).collect();
        if names.is_empty() {
            return Err(RpcError::invalid_params("`name` or `names` must name tools"));
        }
        let tools = self.backend.tools();
        // Repeated names do not repeat the definition, so that the result is never longer than the complete list.
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for name in &names {
            let unknown = || RpcError::invalid_params(format!("unknown tool: {name}"));
            let definition = tools.definitions.get(name).ok_or_else(unknown)?;
            if seen.insert(name) {
                found.push(definition);
            }
        }
        let _reserved = reserved(link, found.iter().copied())?;
        Ok(RawObject::default().with("tools", RawJson::of(&found)).into_raw())
    }

    async fn offers(&self, offer: Offer, era: Era, link: &ClientHandle) -> Served {
        let offered = self.backend.offers(offer).await?;
        let _reserved = reserved(link, &offered.items)?;
        Ok(offered.result(offer, era))
    }

    async fn hand_over(&self, method: Handed, mut params: RawObject, caller: CallerHandle) -> Served {
        // Removes `inputResponses` and `requestState` in any case (they are forwarded as extras), and aliases of the checked
        // key that differ only in case: a server that ignores the case of keys could read an unchecked state or name.
        let (key, retried) = (method.key(), [INPUT_RESPONSES, REQUEST_STATE].map(folded));
        params.retain(|name| {
            let name_folded = folded(name);
            let alias = key.is_some_and(|key| name != key && name_folded == folded(key));
            !alias && !retried.contains(&name_folded)
        });
        self.backend.hand_over(Handover { method, params, caller }).await
    }
}

/// Reserves the length of a response in the budget of unread bytes before the response is assembled from these parts, so
/// that a short request cannot produce a long response beyond the budget. The transport reserves it again when it sends
/// the response.
fn reserved<'a>(
    link: &ClientHandle,
    parts: impl IntoIterator<Item = &'a RawJson>,
) -> Result<Option<Permit>, RpcError> {
    let Some(principal) = link.principal_budget() else { return Ok(None) };
    let bytes = parts.into_iter().map(|part| part.get().len()).sum();
    Ok(Some(principal.take(Resource::Unread, bytes)?))
}

/// Adds `"resultType": "complete"` for modern clients if it is missing. The rest stays unchanged.
fn completed(result: RawJson, era: Era) -> RawJson {
    match era {
        Era::Legacy => result,
        Era::Modern => match scan::has_member(result.get(), "resultType") {
            Some(true) => result,
            Some(false) => closed(&result).unwrap_or(result),
            None => result.with_last("resultType", &RawJson::from("complete")),
        },
    }
}

/// Appends `"resultType": "complete"` to an object.
fn closed(result: &RawJson) -> Option<RawJson> {
    let inside = result.get().strip_suffix('}')?.trim_end();
    let comma = if inside == "{" { "" } else { "," };
    scan::put_together([inside, comma, r#""resultType":"complete"}"#].concat())
}

/// Adds the caching members that modern clients expect in the result.
fn cacheable(result: RawJson, era: Era) -> RawJson {
    let kind = || result.object()?.get("resultType")?.decode::<String>().ok();
    // A text that merely contains the word is not a request for input.
    let asks = result.get().contains("input_required") && kind().as_deref() == Some("input_required");
    match era {
        Era::Modern if !asks => {
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
fn capabilities(era: Era) -> RawObject {
    let changing = || RawObject::default().with("listChanged", true);
    let all = RawObject::default()
        .with("tools", changing())
        .with("resources", changing().with("subscribe", true))
        .with("prompts", changing())
        .with("completions", RawObject::default())
        .with("logging", RawObject::default());
    match era {
        Era::Legacy => all,
        // The server decides whether a call becomes a task, and the client whether that is allowed.
        Era::Modern => {
            let skills = RawObject::default().with("directoryRead", true);
            let extensions = RawObject::default()
                .with("io.modelcontextprotocol/tasks", RawObject::default())
                .with(toolhub_mcp_wire::era::SKILLS, skills);
            all.with("extensions", extensions)
        }
    }
}

/// Returns 128 random bits as hexadecimal digits. `None` if the system has no randomness.
pub fn secret() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_to_and_not_changed() {
        let check = |given: &str, era: Era, expect: &str| {
            let result = completed(RawJson::parse(given).unwrap(), era);
            assert_eq!(cacheable(result, era).get(), expect);
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
        let question = r#"{"resultType":"input_required","inputRequests":{}}"#;
        check(question, Era::Modern, question);
    }
}
