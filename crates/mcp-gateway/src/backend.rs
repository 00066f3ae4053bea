//! The interface between the gateway and the hub behind it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::stream::BoxStream;
use toolhub_core::{BoxFuture, CallerHandle, Principal, RawJson, RawObject, ServerId, meta_keys};
use toolhub_mcp_wire::headers::{self, MirroredParam};
use toolhub_mcp_wire::{Era, Offer};

use crate::methods::BackendMethod;
use crate::rpc_error::RpcError;

/// A change that clients may be notified of.
#[derive(Debug, Clone)]
pub enum ChangeNotification {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// A resource has changed.
    Updated {
        /// The server of the resource.
        server: ServerId,
        /// The URI of the resource.
        uri: Arc<str>,
        /// The params of the notification.
        params: RawJson,
    },
}

/// The list of tools, serialized once for all clients.
#[derive(Debug)]
pub struct ToolList {
    /// The result for legacy clients.
    pub(crate) legacy: RawJson,
    /// The result for modern clients, serialized on first use.
    modern: OnceLock<RawJson>,
    /// All definitions, by the name under which they are offered.
    pub(crate) definitions: HashMap<String, RawJson>,
    /// The parameters that must also be sent as headers, by tool.
    pub(crate) mirrored: HashMap<String, Vec<MirroredParam>>,
}

impl PartialEq for ToolList {
    fn eq(&self, other: &Self) -> bool {
        self.legacy.get() == other.legacy.get()
    }
}

/// How long a modern client may cache a list. It is notified of changes nevertheless.
pub(crate) const LIST_TTL_MS: u64 = 60_000;

impl ToolList {
    /// Creates the list of these definitions, each with the name under which it is offered and whether it is listed.
    /// Tools that are not listed can still be described and called.
    pub fn new<'a>(definitions: impl IntoIterator<Item = (&'a str, &'a RawJson, bool)>) -> Self {
        let (mut listed, mut mirrored, mut definitions_by_name) =
            (Vec::new(), HashMap::new(), HashMap::new());
        for (name, definition, is_listed) in definitions {
            if is_listed {
                listed.push(definition.get());
            }
            definitions_by_name.insert(name.to_owned(), definition.clone());
            let marks = definition
                .object()
                .and_then(|members| headers::mirrored(members.get("inputSchema")?).ok())
                .unwrap_or_default();
            if !marks.is_empty() {
                mirrored.insert(name.to_owned(), marks);
            }
        }
        // Lists are long and long-lived, so no spare capacity is kept.
        let legacy = concat_json(&[r#"{"tools":["#, &listed.join(","), "]}"]);
        Self { legacy, modern: OnceLock::new(), definitions: definitions_by_name, mirrored }
    }

    /// Returns the result for legacy clients.
    pub fn as_json(&self) -> &RawJson {
        &self.legacy
    }

    /// Returns the result for modern clients.
    pub(crate) fn modern(&self) -> &RawJson {
        self.modern.get_or_init(|| {
            let inside = self.legacy.get().strip_suffix('}').unwrap_or_default();
            concat_json(&[inside, ",", &modern_list_tail(), "}"])
        })
    }
}

fn concat_json(parts: &[&str]) -> RawJson {
    RawJson::parse(parts.concat()).unwrap_or_else(|_| RawJson::empty_object())
}

/// The members of a modern list beside its items.
fn modern_list_tail() -> String {
    modern_tail(RawObject::default(), LIST_TTL_MS)
}

fn modern_tail(meta: RawObject, ttl_ms: u64) -> String {
    let meta =
        meta.with("io.modelcontextprotocol/serverInfo", RawJson::of(&toolhub_mcp_wire::era::client_info()));
    let meta = meta.into_raw();
    format!(r#""resultType":"complete","ttlMs":{ttl_ms},"cacheScope":"private","_meta":{meta}"#)
}

impl ItemList {
    /// Returns the result of a list request. If the part of a server is missing, the result names that server in `_meta`
    /// and must not be cached.
    pub(crate) fn result(&self, offer: Offer, era: Era) -> RawJson {
        let incomplete = !self.missing.is_empty();
        let missing: Vec<&str> = self.missing.iter().map(ServerId::as_str).collect();
        let meta = match incomplete {
            true => RawObject::default().with(meta_keys::INCOMPLETE, RawJson::of(&missing)),
            false => RawObject::default(),
        };
        let tail = match era {
            Era::Modern => format!(",{}", modern_tail(meta, if incomplete { 0 } else { LIST_TTL_MS })),
            Era::Legacy if incomplete => format!(r#","_meta":{}"#, meta.into_raw()),
            Era::Legacy => String::new(),
        };
        concat_json(&["{\"", offer.key(), "\":", RawJson::of(&self.items).get(), &tail, "}"])
    }
}

/// A list of prompts, resources or resource templates.
#[derive(Debug, Clone, Default)]
pub struct ItemList {
    /// The items, as the servers sent them.
    pub items: Vec<RawJson>,
    /// The servers whose part of the list is unknown.
    pub missing: Vec<ServerId>,
}

/// A tool call of a client.
#[derive(Debug)]
pub struct GatewayCall {
    /// The name under which the tool is offered.
    pub name: String,
    /// The arguments, as received.
    pub arguments: RawJson,
    /// The client that makes the call.
    pub caller: CallerHandle,
}

/// A request that is forwarded to a server.
#[derive(Debug)]
pub struct BackendRequest {
    /// The method.
    pub method: BackendMethod,
    /// The params, without `_meta`.
    pub params: RawObject,
    /// The client that makes the request.
    pub caller: CallerHandle,
}

/// The hub behind a gateway.
pub trait Backend: Send + Sync {
    /// Returns the current list of the tools that the principal may see.
    fn tools(&self, principal: &Arc<Principal>) -> Arc<ToolList>;

    /// Waits until the tools are known, within a short time.
    fn wait_until_listed(&self) -> BoxFuture<'_, ()>;

    /// Returns the instructions for the model.
    fn instructions(&self) -> Option<String>;

    /// Calls a tool. Returns the result of its source, or a tool error that a model can read.
    fn call(&self, call: GatewayCall) -> BoxFuture<'_, Result<RawJson, RpcError>>;

    /// Lists the prompts, resources or resource templates that the principal may see.
    fn offers<'a>(
        &'a self,
        offer: Offer,
        principal: &'a Arc<Principal>,
    ) -> BoxFuture<'a, Result<ItemList, RpcError>>;

    /// Forwards a request to the server that is responsible for it.
    fn forward(&self, request: BackendRequest) -> BoxFuture<'_, Result<RawJson, RpcError>>;

    /// Subscribes to a resource that the principal may read. Returns its server.
    fn subscribe<'a>(
        &'a self,
        uri: &'a str,
        principal: &'a Arc<Principal>,
    ) -> BoxFuture<'a, Result<ServerId, RpcError>>;

    /// Unsubscribes from a resource of a server.
    fn unsubscribe<'a>(&'a self, server: &'a ServerId, uri: &'a str) -> BoxFuture<'a, Result<(), RpcError>>;

    /// Returns the changes of what the principal may see, from now on.
    fn changes(self: Arc<Self>, principal: Arc<Principal>) -> BoxStream<'static, ChangeNotification>;
}
