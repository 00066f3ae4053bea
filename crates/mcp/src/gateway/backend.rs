//! What the gateway needs of whatever stands behind it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;
use toolhub_core::{BoxFuture, CallerLink, RawJson, RawObject, ServerId};

use super::methods::Handed;
use crate::era::Era;
use crate::headers::{self, Mirrored};
use crate::listing::Offer;

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// What went wrong.
    pub message: String,
    /// More, where there is more; JSON.
    pub data: Option<String>,
}

/// No such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The params are wrong.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The message is wrong.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The message is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;

impl RpcError {
    /// An error without more.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The params are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// No such method.
    pub fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// The same with more said.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<RawJson>) -> Self {
        self.data = Some(data.into().get().to_owned());
        self
    }
}

/// Something that clients may want to hear of.
#[derive(Debug, Clone)]
pub enum News {
    /// Other tools are offered.
    Tools,
    /// Other prompts are offered.
    Prompts,
    /// Other resources are offered.
    Resources,
    /// A resource has changed.
    Updated {
        /// Which.
        uri: Arc<str>,
        /// The params of the notification.
        params: RawJson,
    },
}

/// The tools that are offered, written once for all who ask.
#[derive(Debug)]
pub struct ToolList {
    /// As a result for a legacy client.
    pub(crate) legacy: RawJson,
    /// As a result for a modern client, once one has asked.
    modern: OnceLock<RawJson>,
    /// Each definition by the name it is offered under.
    pub(crate) definitions: HashMap<String, RawJson>,
    /// The parameters that must stand in headers too, of those tools that have some.
    pub(crate) mirrored: HashMap<String, Vec<Mirrored>>,
}

impl PartialEq for ToolList {
    fn eq(&self, other: &Self) -> bool {
        self.legacy.get() == other.legacy.get()
    }
}

/// How long a modern client may take a list for fresh. It is told of changes all the same.
pub(crate) const LIST_TTL_MS: u64 = 60_000;
/// Where a list that is not complete names the servers whose part is missing.
const INCOMPLETE: &str = "toolhub/incomplete";

impl ToolList {
    /// The list of these definitions, each with the name it is offered under and whether it is listed; those that are
    /// not can be described and called all the same.
    pub fn new<'a>(definitions: impl IntoIterator<Item = (&'a str, &'a RawJson, bool)>) -> Self {
        let (mut listed, mut mirrored, mut all) = (Vec::new(), HashMap::new(), HashMap::new());
        for (name, definition, is_listed) in definitions {
            if is_listed {
                listed.push(definition.get());
            }
            all.insert(name.to_owned(), definition.clone());
            let marks = definition
                .object()
                .and_then(|members| headers::mirrored(members.get("inputSchema")?).ok())
                .unwrap_or_default();
            if !marks.is_empty() {
                mirrored.insert(name.to_owned(), marks);
            }
        }
        // Lists are long and kept, so none has more room than it needs.
        let legacy = whole(&[r#"{"tools":["#, &listed.join(","), "]}"]);
        Self { legacy, modern: OnceLock::new(), definitions: all, mirrored }
    }

    /// As a result for a modern client.
    pub(crate) fn modern(&self) -> &RawJson {
        self.modern.get_or_init(|| {
            let inside = self.legacy.get().strip_suffix('}').unwrap_or_default();
            whole(&[inside, ",", &modern_list_tail(), "}"])
        })
    }
}

fn whole(parts: &[&str]) -> RawJson {
    RawJson::parse(parts.concat()).unwrap_or_else(|_| RawJson::empty_object())
}

/// What a modern list has beside its items.
fn modern_list_tail() -> String {
    modern_tail(RawObject::default(), LIST_TTL_MS)
}

fn modern_tail(meta: RawObject, ttl_ms: u64) -> String {
    let meta = meta.with("io.modelcontextprotocol/serverInfo", RawJson::of(&crate::era::client_info()));
    let meta = meta.into_raw();
    format!(r#""resultType":"complete","ttlMs":{ttl_ms},"cacheScope":"private","_meta":{meta}"#)
}

impl Offered {
    /// The result of a list request. A list that lacks a server's part names the server in `_meta`, and is not to be cached.
    pub(crate) fn result(&self, offer: Offer, era: Era) -> RawJson {
        let incomplete = !self.missing.is_empty();
        let missing: Vec<&str> = self.missing.iter().map(ServerId::as_str).collect();
        let meta = match incomplete {
            true => RawObject::default().with(INCOMPLETE, RawJson::of(&missing)),
            false => RawObject::default(),
        };
        let tail = match era {
            Era::Modern => format!(",{}", modern_tail(meta, if incomplete { 0 } else { LIST_TTL_MS })),
            Era::Legacy if incomplete => format!(r#","_meta":{}"#, meta.into_raw()),
            Era::Legacy => String::new(),
        };
        whole(&["{\"", offer.key(), "\":", RawJson::of(&self.items).get(), &tail, "}"])
    }
}

/// A list of what is offered beside tools.
#[derive(Debug, Clone, Default)]
pub struct Offered {
    /// The items, as they were given.
    pub items: Vec<RawJson>,
    /// The servers whose part of the list is not known.
    pub missing: Vec<ServerId>,
}

/// A call of a tool by a client.
#[derive(Debug)]
pub struct GatewayCall {
    /// The name under which it is offered.
    pub name: String,
    /// The arguments, as they were given.
    pub arguments: RawJson,
    /// Who calls.
    pub caller: CallerLink,
}

/// A request that is handed on to a server.
#[derive(Debug)]
pub struct Handover {
    /// The method.
    pub method: Handed,
    /// The params, without `_meta`.
    pub params: RawObject,
    /// Who wants it.
    pub caller: CallerLink,
}

/// Whatever stands behind a gateway: what it offers, and who does it.
pub trait Backend: Send + Sync {
    /// The tools as they are offered now.
    fn tools(&self) -> Arc<ToolList>;

    /// Waits until the tools are known, as far as they can be soon.
    fn settled(&self) -> BoxFuture<'_, ()>;

    /// How the whole is to be used, in words for a model.
    fn instructions(&self) -> Option<String>;

    /// Calls a tool; the result as its source gave it, or as a tool's error that a model can read.
    fn call(&self, call: GatewayCall) -> BoxFuture<'_, Result<RawJson, RpcError>>;

    /// What is offered beside tools.
    fn offers(&self, offer: Offer) -> BoxFuture<'_, Result<Offered, RpcError>>;

    /// Hands a request on to the server that it concerns.
    fn hand_over(&self, request: Handover) -> BoxFuture<'_, Result<RawJson, RpcError>>;

    /// Wants to hear when a resource changes, or no longer.
    fn watch<'a>(&'a self, uri: &'a str, wanted: bool) -> BoxFuture<'a, Result<(), RpcError>>;

    /// What servers tell.
    fn news(&self) -> broadcast::Receiver<News>;
}
