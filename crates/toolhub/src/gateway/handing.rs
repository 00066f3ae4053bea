//! Handing requests on that are about resources, prompts or what only one server knows.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::{RawJson, RawObject, Say as _, ServerId};
use toolhub_mcp::gateway::{Handover, RpcError};
use toolhub_mcp::{McpError, Offer, Passage, Server};

use super::backend::HubBackend;
use super::offers::{Thing, fits_template};
use super::tasks::Whose;
use super::words::for_clients;

/// How long a request that is handed on may take, questions to the client included.
const PATIENCE: Duration = Duration::from_secs(300);
/// Codes by which a server says that it does not know a resource, or a method.
const NOT_THERE: [i64; 3] = [-32602, -32002, -32601];

impl HubBackend {
    pub(super) async fn handed_over(&self, request: Handover) -> Result<RawJson, RpcError> {
        self.settled_first().await;
        let Handover { method, params, caller } = request;
        let text = |key: &str| params.get(key).and_then(|value| value.decode::<String>().ok());
        let passage = |params: RawObject, name: Option<String>| Passage {
            method: method.clone(),
            params,
            name,
            caller: Some(caller.clone()),
            patience: PATIENCE,
        };
        match method.as_str() {
            "resources/read" => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                if let Some(read) = Box::pin(self.read_skill_file(&uri)).await {
                    return read;
                }
                let servers = self.owners(&uri).await;
                let none = RpcError::invalid_params(format!("Resource not found: {uri}"));
                let none = none.with_data(RawObject::default().with("uri", uri.as_str()));
                first_who_knows(servers, &passage(params.clone(), Some(uri)), none).await
            }
            "skills/list" => Box::pin(self.list_skills(&params)).await,
            "skills/get" => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                Box::pin(self.get_skill(&uri)).await
            }
            "resources/directory/read" => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                if let Some(read) = Box::pin(self.read_skill_folder(&uri)).await {
                    return read;
                }
                let none = RpcError::invalid_params(format!("{uri} is not a directory resource"));
                let serve = |server: &Arc<Server>| server.serves_skills() == Some(true);
                let servers = self.servers().into_iter().filter(serve).collect();
                first_who_knows(servers, &passage(params.clone(), None), none).await
            }
            "prompts/get" => {
                let name = text("name").ok_or_else(|| missing("name"))?;
                let thing = self.prompt(&name).await?;
                let params = params.clone().with("name", thing.key.as_str());
                pass(&thing.server, passage(params, Some(thing.key.clone()))).await
            }
            "completion/complete" => {
                let (server, params) = self.completing(&params).await?;
                pass(&server, passage(params, None)).await
            }
            "tasks/get" | "tasks/update" | "tasks/cancel" => {
                let task = text("taskId").ok_or_else(|| missing("taskId"))?;
                let none = RpcError::invalid_params(format!("Unknown task: {task}"));
                // Where several are let in, nobody may ask around for what another may have made.
                let alone = self.hub.settings().auth.tokens.len() <= 1;
                let servers = match self.tasks.of(&task, caller.principal()) {
                    Whose::At(server) => vec![server],
                    Whose::Unknown if alone => self.servers(),
                    Whose::Unknown | Whose::Anothers => return Err(none),
                };
                first_who_knows(servers, &passage(params.clone(), Some(task)), none).await
            }
            _ => {
                let none = RpcError::no_method(&method);
                let servers = self.servers();
                first_who_knows(servers, &passage(params.clone(), None), none).await
            }
        }
    }

    pub(super) async fn watched(&self, uri: &str, wanted: bool) -> Result<(), RpcError> {
        let Some(server) = self.owners(uri).await.into_iter().next() else {
            return Err(RpcError::invalid_params(format!("Resource not found: {uri}")));
        };
        server.watch_resource(uri, wanted).await.map_err(|error| rpc(error, server.id()))
    }

    async fn settled_first(&self) {
        toolhub_mcp::gateway::Backend::settled(self).await;
    }

    /// The servers that may have a resource: the one that lists it, else whose template it fits, else all that have
    /// any.
    async fn owners(&self, uri: &str) -> Vec<Arc<Server>> {
        let servers = self.servers();
        let listed = self.offers.all(&servers, Offer::Resources).await;
        if let Some(thing) = listed.iter().find(|thing| thing.key == uri) {
            return vec![Arc::clone(&thing.server)];
        }
        let templates = self.offers.all(&servers, Offer::ResourceTemplates).await;
        let fitting = templates.iter().filter(|thing| fits_template(&thing.key, uri));
        let fitting: Vec<_> = fitting.map(|thing| Arc::clone(&thing.server)).collect();
        if !fitting.is_empty() {
            return fitting;
        }
        let mut any: Vec<Arc<Server>> = Vec::new();
        for thing in listed.iter().chain(&templates) {
            if !any.iter().any(|server| server.id() == thing.server.id()) {
                any.push(Arc::clone(&thing.server));
            }
        }
        any
    }

    async fn prompt(&self, name: &str) -> Result<Thing, RpcError> {
        let prompts = self.offers.all(&self.servers(), Offer::Prompts).await;
        let found = prompts.into_iter().find(|thing| thing.shown == name);
        found.ok_or_else(|| RpcError::invalid_params(format!("Unknown prompt: {name}")))
    }

    /// Who completes, and what it is asked: the prompt under its own name.
    async fn completing(&self, params: &RawObject) -> Result<(Arc<Server>, RawObject), RpcError> {
        let reference = params.get("ref").and_then(RawJson::object).ok_or_else(|| missing("ref"))?;
        let text = |key: &str| reference.get(key).and_then(|value| value.decode::<String>().ok());
        if let Some(name) = text("name") {
            let thing = self.prompt(&name).await?;
            let own = reference.clone().with("name", thing.key.as_str());
            return Ok((thing.server, params.clone().with("ref", own)));
        }
        let uri = text("uri").ok_or_else(|| missing("ref.uri"))?;
        let templates = self.offers.all(&self.servers(), Offer::ResourceTemplates).await;
        let named = templates.iter().find(|thing| thing.key == uri).map(|thing| Arc::clone(&thing.server));
        let server = match named {
            Some(server) => Some(server),
            None => self.owners(&uri).await.into_iter().next(),
        };
        let server = server.ok_or_else(|| RpcError::invalid_params(format!("Unknown resource: {uri}")))?;
        Ok((server, params.clone()))
    }
}

fn missing(what: &str) -> RpcError {
    RpcError::invalid_params(format!("`{what}` is missing"))
}

async fn pass(server: &Arc<Server>, passage: Passage) -> Result<RawJson, RpcError> {
    server.pass(passage).await.map_err(|error| rpc(error, server.id()))
}

/// What the first of these says that knows what is asked; where none does, its own refusal if there is but one.
async fn first_who_knows(
    servers: Vec<Arc<Server>>,
    passage: &Passage,
    none: RpcError,
) -> Result<RawJson, RpcError> {
    let alone = servers.len() == 1;
    for server in servers {
        match server.pass(passage.clone()).await {
            Err(McpError::Rpc { code, .. }) if !alone && NOT_THERE.contains(&code) => {}
            Ok(result) => return Ok(result),
            Err(error) => return Err(rpc(error, server.id())),
        }
    }
    Err(none)
}

/// A failure as a client is told it: a server's own error as it was given.
fn rpc(error: McpError, server: &ServerId) -> RpcError {
    match error {
        McpError::Rpc { code, message, data } => {
            RpcError { code, message, data: data.map(|data| data.get().to_owned()) }
        }
        other => {
            let error = other.into_tool_error(server).say(toolhub_core::Lang::En);
            RpcError::new(-32603, for_clients(&error))
        }
    }
}
