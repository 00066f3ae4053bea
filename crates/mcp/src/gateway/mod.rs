//! The gateway: serves whatever stands behind it as an MCP server, to clients of both eras. How messages travel is for
//! `http` and `duplex`; what they mean is here.

mod backend;
mod body;
mod budget;
mod client_handle;
mod client_queue;
mod duplex;
mod event_log;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
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
use toolhub_core::{CallerLink, RawJson, RawObject};

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

use self::client_handle::{ClientFacts, ClientHandle, Questions};
use self::level::Level;
use self::message::{Params, Request};
use self::methods::Method;
use self::pending_input::PendingInputs;
use self::running::{Running, Served};
use self::session::{Session, Sessions};
use self::session_ids::SessionIds;
use crate::connection::{INPUT_RESPONSES, REQUEST_STATE};
use crate::era::{Era, client_info};
use crate::listing::Offer;
use crate::scan;

/// The member of `_meta` that relates a message to a task (2025-11-25, basic/utilities/tasks).
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Said to who waits still when everything ends.
const ENDING: i64 = -32000;
const CUT: &str = "the gateway was stopped before this was done; what had begun may have had its effect";

/// Serves a backend to MCP clients.
pub struct Gateway {
    backend: Arc<dyn Backend>,
    sessions: Sessions,
    session_ids: SessionIds,
    rounds: PendingInputs,
    clients: AtomicU64,
    /// What no modern client has: questions that are open beside its requests, and a level that it set.
    never: (Arc<Questions>, Arc<Level>),
    tasks: TaskTracker,
    closing: CancellationToken,
    /// What still runs is given up. Every request waits for it.
    ending: PerWorker<CancellationToken>,
    /// How many requests were.
    cut: AtomicUsize,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// Whose request it is.
struct Client {
    facts: ClientFacts,
    session: Option<Arc<Session>>,
}

/// The same while it is served.
struct RequestState {
    era: Era,
    session: Option<Arc<Session>>,
    link: Arc<ClientHandle>,
}

impl Gateway {
    /// Serves that backend.
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

    /// The same, with sessions that can be resumed with that record. The profile's name keeps them apart from
    /// those of other profiles.
    #[must_use]
    pub fn with_sessions(mut self, profile: &str, record: Arc<SessionRecord>) -> Self {
        self.session_ids = SessionIds::new(profile, record);
        self
    }

    /// How many sessions of legacy clients there are.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Ends streams that would stay open for ever, and waits for what runs beside requests, at most so long.
    pub async fn close(&self, patience: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
    }

    /// Gives up every request that still runs or waits for an answer of its client; servers are told, and so is whoever
    /// still listens.
    pub fn give_up(&self) {
        self.ending.all().for_each(CancellationToken::cancel);
        self.cut.fetch_add(self.rounds.clear(), Ordering::Relaxed);
    }

    /// How many requests were given up so.
    pub fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }

    fn new_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a request.
    fn start(self: &Arc<Self>, request: Request, params: Params, client: Client) -> Running {
        let Client { facts, session } = client;
        let era = facts.era;
        let mut params = params;
        // It may name a task of another principal; requests name their own in `taskId`, where it is checked.
        params.meta.remove(RELATED_TASK);
        let (link, members) = ClientHandle::new(facts, params);
        let wanting = RequestState { era, session, link: Arc::clone(&link) };
        let gateway = Arc::clone(self);
        let Request { id, method } = request;
        let work = boxed(|| async move {
            tokio::select! {
                biased;
                served = gateway.serve(&method, members, wanting) => served,
                () = gateway.ending.here().cancelled() => {
                    gateway.cut.fetch_add(1, Ordering::Relaxed);
                    Err(RpcError::new(ENDING, CUT))
                }
            }
        });
        Running::new(id, link, work)
    }

    /// Does what a request wants.
    async fn serve(&self, method: &str, params: RawObject, wanting: RequestState) -> Served {
        let RequestState { era, session, link } = wanting;
        let caller = |link: Arc<ClientHandle>| CallerLink::new(link as Arc<dyn toolhub_core::Caller>);
        // What is not in the table reaches no server: nothing says whose it would be.
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
            // Its answer is a stream, which `http` and `duplex` open.
            Method::Listen => Err(RpcError::no_method(method)),
            Method::HandOver(handed) => {
                let result = self.hand_over(handed, params, caller(link)).await?;
                let result = completed(result, era);
                let kept = [Handed::ReadResource, Handed::ListSkills, Handed::GetSkill].contains(&handed);
                Ok(if kept { cacheable(result, era) } else { result })
            }
        }
    }

    async fn call(&self, params: &RawObject, caller: CallerLink) -> Served {
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

    /// The definitions of some tools, each once, for clients that are not shown them all.
    fn describe(&self, params: &RawObject, link: &ClientHandle) -> Served {
        let named = params.get("name").and_then(|name| name.decode::<String>().ok());
        let names = params.get("names").and_then(|names| names.decode::<Vec<String>>().ok());
        let names: Vec<String> = names.into_iter().flatten().chain(named).collect();
        if names.is_empty() {
            return Err(RpcError::invalid_params("`name` or `names` must name tools"));
        }
        let tools = self.backend.tools();
        // No more than the profile has, however often one is named.
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

    async fn hand_over(&self, method: Handed, mut params: RawObject, caller: CallerLink) -> Served {
        // A server that ignores the case of keys could read a state there that is not checked, or another name than the one
        // that is.
        let (key, retried) = (method.key(), [INPUT_RESPONSES, REQUEST_STATE].map(folded));
        params.retain(|name| {
            let name_folded = folded(name);
            let alias = key.is_some_and(|key| name != key && name_folded == folded(key));
            !alias && !retried.contains(&name_folded)
        });
        self.backend.hand_over(Handover { method, params, caller }).await
    }
}

/// Takes the length of an answer out of the client's budget of unread answers before it is put together from these parts, so
/// that no short request makes a long answer that is over the budget. Whoever sends the answer takes it out again.
fn reserved<'a>(
    link: &ClientHandle,
    parts: impl IntoIterator<Item = &'a RawJson>,
) -> Result<Option<Permit>, RpcError> {
    let Some(principal) = link.principal_budget() else { return Ok(None) };
    let bytes = parts.into_iter().map(|part| part.get().len()).sum();
    Ok(Some(principal.take(Resource::Unread, bytes)?))
}

/// A result as the era wants it: a modern client is told that there is no more to come. The rest stays as it is.
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

/// An object that says at its end that there is no more to come.
fn closed(result: &RawJson) -> Option<RawJson> {
    let inside = result.get().strip_suffix('}')?.trim_end();
    let comma = if inside == "{" { "" } else { "," };
    scan::put_together([inside, comma, r#""resultType":"complete"}"#].concat())
}

/// A result that says how long it keeps, where a modern client wants to know.
fn cacheable(result: RawJson, era: Era) -> RawJson {
    let kind = || result.object()?.get("resultType")?.decode::<String>().ok();
    // A text that only speaks of it is no question.
    let asks = result.get().contains("input_required") && kind().as_deref() == Some("input_required");
    match era {
        Era::Modern if !asks => {
            result.with_last("ttlMs", &RawJson::from(0)).with_last("cacheScope", &RawJson::from("private"))
        }
        Era::Modern | Era::Legacy => result,
    }
}

/// What we are, to clients.
fn server_info() -> RawObject {
    client_info().with("title", "toolhub")
}

/// What we can do, to clients.
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
        // Whether a call becomes a task is for its server to say, and for its client to allow.
        Era::Modern => {
            let skills = RawObject::default().with("directoryRead", true);
            let extensions = RawObject::default()
                .with("io.modelcontextprotocol/tasks", RawObject::default())
                .with(crate::skills::SKILLS, skills);
            all.with("extensions", extensions)
        }
    }
}

/// Something nobody can guess, as text.
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
        // What it has it keeps, and what only speaks of such members has none.
        check(
            r#"{"ttlMs":5,"x":"input_required and resultType"}"#,
            Era::Modern,
            r#"{"ttlMs":5,"x":"input_required and resultType","resultType":"complete","cacheScope":"private"}"#,
        );
        let question = r#"{"resultType":"input_required","inputRequests":{}}"#;
        check(question, Era::Modern, question);
    }
}
