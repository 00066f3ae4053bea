//! Forwards requests about resources, prompts, skills and tasks to the server that owns them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolhub_access::Action;
use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_core::{CallerHandle, Localize as _, RawJson, RawObject, ServerId};
use toolhub_mcp_client::{ForwardedRequest, Server};
use toolhub_mcp_gateway::{BackendMethod, BackendRequest, RpcError};
use toolhub_mcp_wire::{McpError, Offer};

use super::backend::HubBackend;
use super::client_errors::error_for_clients;
use super::item_use::{ItemUse, ResultSource, SourcedResult};
use super::login_links::CallerLogin;
use super::principal_task::TaskLocation;
use super::profile_access::ProfileAccess;
use super::prompt_names::OfferedItem;
use super::view::PrincipalCount;

/// Timeout of a forwarded request, including requests from the server to the client.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of `tasks/get` for one task of a list.
const TASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Page size of `tasks/list`.
const TASKS_PER_PAGE: usize = 50;
/// Members of a task in `tasks/list` (2025-11-25, schema: Task).
const TASK_FIELDS: [&str; 9] = [
    "taskId",
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttl",
    "ttlMs",
    "pollInterval",
    "pollIntervalMs",
];
/// JSON-RPC error codes of a server for an unknown resource or method.
const NOT_FOUND_CODES: [i64; 3] = [-32602, -32002, METHOD_NOT_FOUND];

/// JSON-RPC error code of a request that failed at the server.
const FAILED: i64 = -32603;

impl HubBackend {
    /// Forwards a request. What a principal read or got is in the audit log before it receives it.
    pub(super) async fn forward_request(&self, request: BackendRequest) -> Result<RawJson, RpcError> {
        self.wait_until_settled().await;
        let used = self.hub.audit().and_then(|_| ItemUse::of(&request));
        let caller = request.caller.clone();
        let access = self.access_of_caller(&caller);
        let SourcedResult { result, source } = self.answer_request(request, &access).await?;
        if let (Some(used), Some(principal)) = (used, caller.principal()) {
            let recorded = self.hub.record_use(principal.id(), used.event(&source, &access)).await;
            recorded.map_err(|error| RpcError::new(FAILED, error.localize(self.lang)))?;
        }
        Ok(result)
    }

    async fn answer_request(
        &self,
        request: BackendRequest,
        access: &ProfileAccess,
    ) -> Result<SourcedResult, RpcError> {
        let BackendRequest { method, params, caller } = request;
        let text = |key: &str| params.get(key).and_then(|value| value.decode::<String>().ok());
        let forwarded = |params: RawObject, name: Option<String>| ForwardedRequest {
            method: method.name().to_owned(),
            params,
            name,
            caller: Some(caller.clone()),
            timeout: FORWARD_TIMEOUT,
        };
        match method {
            BackendMethod::ReadResource => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                let request = forwarded(params.clone(), Some(uri.clone()));
                self.read_resource(&uri, &request, access).await
            }
            BackendMethod::ListSkills => {
                Box::pin(self.list_skills(&params, access)).await.map(SourcedResult::of_hub)
            }
            BackendMethod::GetSkill => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                Box::pin(self.get_skill(&uri, access)).await
            }
            BackendMethod::ReadDirectory => {
                let uri = text("uri").ok_or_else(|| missing("uri"))?;
                let request = forwarded(params.clone(), None);
                self.read_directory(&uri, &request, access).await
            }
            BackendMethod::GetPrompt => {
                let name = text("name").ok_or_else(|| missing("name"))?;
                let entry = self.prompt(&name, access, Action::GetPrompt).await?;
                let params = params.clone().with("name", entry.key.as_str());
                let answer =
                    self.forward_to(&entry.server, &forwarded(params, Some(entry.key.clone()))).await?;
                Ok(SourcedResult { source: ResultSource::Prompt(Box::new(entry)), ..answer })
            }
            BackendMethod::Complete => {
                let (server, params) = self.completion_target(&params, access).await?;
                self.forward_to(&server, &forwarded(params, None)).await
            }
            BackendMethod::GetTask
            | BackendMethod::UpdateTask
            | BackendMethod::CancelTask
            | BackendMethod::TaskResult => {
                let task = text("taskId").ok_or_else(|| missing("taskId"))?;
                // The error is the same for a task of another principal and for a task that does not exist.
                let none = RpcError::invalid_params(format!("Unknown task: {task}"));
                let locations = self.task_locations(&task, caller.principal_id()).await?;
                let servers: Vec<_> =
                    locations.iter().filter_map(|location| location.server().cloned()).collect();
                if let (true, Some(location)) = (servers.is_empty(), locations.first()) {
                    return self.unreachable_task(&task, method, location).map(SourcedResult::of_hub);
                }
                self.first_found(servers, &forwarded(params.clone(), Some(task)), none).await
            }
            BackendMethod::ListTasks => self.list_tasks(&params, &caller).await.map(SourcedResult::of_hub),
        }
    }

    /// Reads a resource: a file of the hub's skills, or from the servers that may own the URI.
    async fn read_resource(
        &self,
        uri: &str,
        request: &ForwardedRequest,
        access: &ProfileAccess,
    ) -> Result<SourcedResult, RpcError> {
        if let Some(read) = Box::pin(self.read_skill_file(uri, access)).await {
            return read;
        }
        let servers = self.owners(uri, access, Action::Read).await;
        if servers.is_empty() {
            self.note_hidden_resource(uri, access, "read").await;
        }
        let none = RpcError::invalid_params(format!("Resource not found: {uri}"));
        let none = none.with_data(RawObject::default().with("uri", uri));
        let read = self.first_found(servers, request, none.clone()).await;
        read.map_err(|error| like_hidden(error, none, access))
    }

    /// Lists a directory: of the hub's skills, or of servers with skills.
    async fn read_directory(
        &self,
        uri: &str,
        request: &ForwardedRequest,
        access: &ProfileAccess,
    ) -> Result<SourcedResult, RpcError> {
        if let Some(read) = Box::pin(self.read_skill_folder(uri, access)).await {
            return read;
        }
        let none = RpcError::invalid_params(format!("{uri} is not a directory resource"));
        let mut servers = self.servers();
        servers.retain(|server| server.supports_skills() == Some(true));
        let servers = self.permitted_folders(servers, uri, access).await;
        if servers.is_empty() {
            self.note_hidden_resource(uri, access, "read").await;
        }
        let read = self.first_found(servers.clone(), request, none.clone()).await;
        let mut answer = read.map_err(|error| like_hidden(error, none, access))?;
        let is_source =
            |server: &&Arc<Server>| matches!(&answer.source, ResultSource::Server(id) if id == server.id());
        if let Some(server) = servers.iter().find(is_source) {
            answer.result = self.visible_content(answer.result, server, access).await;
        }
        Ok(answer)
    }

    /// Where a task may be: at the servers where the caller's principal created it. With a single principal every task belongs
    /// to it, so all servers are tried if none is recorded: the task may have been created before the hub started.
    async fn task_locations(
        &self,
        task: &str,
        principal: Option<&str>,
    ) -> Result<Vec<TaskLocation>, RpcError> {
        let servers = self.servers();
        let is_admitted = |server: &Arc<Server>| servers.iter().any(|admitted| admitted.id() == server.id());
        let tasks = self.tasks.find(task, principal).await.map_err(|error| tasks_unavailable(&error))?;
        let mut locations: Vec<TaskLocation> = tasks.into_iter().map(|task| task.location).collect();
        locations.retain(|location| location.server().is_none_or(is_admitted));
        if locations.is_empty() && self.principals() == PrincipalCount::One {
            return Ok(servers.into_iter().map(TaskLocation::Here).collect());
        }
        Ok(locations)
    }

    /// The response about a task at a child process of another hub.
    fn unreachable_task(
        &self,
        task: &str,
        method: BackendMethod,
        location: &TaskLocation,
    ) -> Result<RawJson, RpcError> {
        let why = match location {
            TaskLocation::EndedHub => LocalizedText::new(
                "the replica of the hub that ran this task has ended: it is unknown whether the task took effect",
                "执行此任务的 hub 副本已终止：无法确定任务是否已生效",
            ),
            TaskLocation::Here(_) | TaskLocation::OtherHub => LocalizedText::new(
                "this task runs at a program that another replica of the hub has started: ask again until that replica answers",
                "此任务由另一 hub 副本启动的程序执行：请重试，直到由该副本应答",
            ),
        };
        let why = why.localize(self.lang);
        if method != BackendMethod::GetTask || !matches!(location, TaskLocation::EndedHub) {
            return Err(RpcError::new(FAILED, why));
        }
        Ok(RawObject::default()
            .with("taskId", task)
            .with("status", "failed")
            .with("statusMessage", why)
            .with("ttl", RawJson::null())
            .into_raw())
    }

    /// `tasks/list` (2025-11-25): the tasks that the caller's principal created, each with its current state from its server.
    async fn list_tasks(&self, params: &RawObject, caller: &CallerHandle) -> Result<RawJson, RpcError> {
        let start = match params.get("cursor").and_then(RawJson::text) {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| RpcError::invalid_params(format!("`{cursor}` is no cursor of this list")))?,
        };
        let servers = self.servers();
        let recorded =
            self.tasks.all(caller.principal_id()).await.map_err(|error| tasks_unavailable(&error))?;
        let reachable = recorded.iter().filter_map(|task| Some((task.location.server()?, &task.task)));
        let listed: Vec<_> = reachable
            .filter(|(server, _)| servers.iter().any(|admitted| admitted.id() == server.id()))
            .collect();
        let requested = listed.iter().skip(start).take(TASKS_PER_PAGE).map(|(server, task)| {
            server.forward(ForwardedRequest {
                method: BackendMethod::GetTask.name().to_owned(),
                params: RawObject::default().with("taskId", &***task),
                name: Some(task.to_string()),
                caller: Some(caller.clone()),
                timeout: TASK_TIMEOUT,
            })
        });
        // Omits tasks that their server no longer has.
        let received = join_all(requested).await.into_iter().filter_map(|received| received.ok()?.object());
        let tasks: Vec<RawObject> = received
            .map(|mut task| {
                task.retain(|name| TASK_FIELDS.contains(&name));
                task
            })
            .collect();
        let result = RawObject::default().with("tasks", RawJson::of(&tasks));
        let next = start.saturating_add(TASKS_PER_PAGE);
        Ok(match next < listed.len() {
            true => result.with("nextCursor", next.to_string()).into_raw(),
            false => result.into_raw(),
        })
    }

    /// Subscribes one client to a resource, and returns its server. The server receives only the first subscription.
    pub(super) async fn add_subscription(
        &self,
        uri: &str,
        access: &ProfileAccess,
    ) -> Result<ServerId, RpcError> {
        let servers = self.servers();
        let subscribed_server = self.resource_subscriptions.server(&servers, uri).cloned();
        let permitted_server = match subscribed_server {
            Some(server) => self.permitted_servers(vec![server], uri, access, Action::Subscribe).await.pop(),
            None => None,
        };
        let server = match permitted_server {
            Some(server) => Some(server),
            None => self.owners(uri, access, Action::Subscribe).await.into_iter().next(),
        };
        let Some(server) = server else {
            self.note_hidden_resource(uri, access, "subscribe").await;
            return Err(RpcError::invalid_params(format!("Resource not found: {uri}")));
        };
        let id = server.id().clone();
        if !self.resource_subscriptions.add(&server, uri) {
            return Ok(id);
        }
        match server.watch_resource(uri, true).await {
            Ok(()) => Ok(id),
            Err(error) => {
                self.resource_subscriptions.remove(&id, uri);
                Err(rpc(error, &id))
            }
        }
    }

    /// Unsubscribes one client from a resource of a server. The server receives only the last unsubscription.
    pub(super) async fn remove_subscription(&self, server: &ServerId, uri: &str) -> Result<(), RpcError> {
        if !self.resource_subscriptions.remove(server, uri) {
            return Ok(());
        }
        // A server that was removed from the configuration has no subscriptions to end.
        let Some(server) = self.hub.servers.find(server.as_str()) else { return Ok(()) };
        server.watch_resource(uri, false).await.map_err(|error| rpc(error, server.id()))
    }

    async fn wait_until_settled(&self) {
        toolhub_mcp_gateway::Backend::wait_until_listed(self).await;
    }

    /// The prompts of all servers of the profile, under their names in the profile.
    async fn all_prompts(&self) -> Vec<OfferedItem> {
        let servers = self.servers();
        self.offers.all(&servers, Offer::Prompts, &self.prompt_names, |_| true).await.entries
    }

    /// The prompt of that name, also if the principal must not see it.
    pub(super) async fn prompt_named(&self, name: &str) -> Option<OfferedItem> {
        let prompts = self.all_prompts().await;
        self.prompt_names.find(name, prompts)
    }

    async fn prompt(
        &self,
        name: &str,
        access: &ProfileAccess,
        action: Action<'_>,
    ) -> Result<OfferedItem, RpcError> {
        let permitted_prompt = self
            .prompt_named(name)
            .await
            .filter(|entry| access.sees_item(Offer::Prompts, entry) && access.gets_prompt(entry, action));
        if permitted_prompt.is_none() {
            let operation = if action == Action::Complete { "complete" } else { "get prompt" };
            self.note_hidden_prompt(name, access, operation).await;
        }
        permitted_prompt.ok_or_else(|| RpcError::invalid_params(format!("Unknown prompt: {name}")))
    }

    /// Records the use of a resource if a server or skill has it, and the principal may not use it. Unknown resources take as
    /// long as hidden ones.
    async fn note_hidden_resource(&self, uri: &str, access: &ProfileAccess, operation: &'static str) {
        if !self.records_refusals(access) {
            return;
        }
        let owners = self.owners(uri, &access.unrestricted(), Action::Read).await;
        if !owners.is_empty() || self.belongs_to_skill(uri) {
            self.note_hidden(access, operation, uri);
        }
    }

    /// Records the use of a prompt if a server has it, and the principal may not use it.
    async fn note_hidden_prompt(&self, name: &str, access: &ProfileAccess, operation: &'static str) {
        if !self.records_refusals(access) {
            return;
        }
        let prompts = self.all_prompts().await;
        if prompts.iter().any(|entry| entry.exposed_name == name || entry.key == name) {
            self.note_hidden(access, operation, name);
        }
    }

    /// Resolves `completion/complete`: the server, and the parameters with the prompt's name at that server.
    async fn completion_target(
        &self,
        params: &RawObject,
        access: &ProfileAccess,
    ) -> Result<(Arc<Server>, RawObject), RpcError> {
        let reference = params.get("ref").and_then(RawJson::object).ok_or_else(|| missing("ref"))?;
        let text = |key: &str| reference.get(key).and_then(|value| value.decode::<String>().ok());
        // Only the checked member is forwarded: a server could read another one.
        let kind = text("type").unwrap_or_default();
        let checked = |key: &'static str, value: &str| {
            RawObject::default().with("type", kind.as_str()).with(key, value)
        };
        if kind == "ref/prompt" || (kind.is_empty() && !reference.contains("uri")) {
            let name = text("name").ok_or_else(|| missing("ref.name"))?;
            let entry = self.prompt(&name, access, Action::Complete).await?;
            return Ok((entry.server, params.clone().with("ref", checked("name", &entry.key))));
        }
        let uri = text("uri").ok_or_else(|| missing("ref.uri"))?;
        let params = params.clone().with("ref", checked("uri", &uri));
        let server = match completed_values(&params).iter().any(|value| access.forbids_dot_dot(value)) {
            true => None,
            false => self.completing_server(&uri, access).await,
        };
        if server.is_none() {
            self.note_hidden_resource(&uri, access, "complete").await;
        }
        let server = server.ok_or_else(|| RpcError::invalid_params(format!("Unknown resource: {uri}")))?;
        Ok((server, params))
    }

    /// The server that completes the variables of a resource template, or a resource.
    async fn completing_server(&self, uri: &str, access: &ProfileAccess) -> Option<Arc<Server>> {
        let servers = self.servers();
        let templates = self.offers.keys(&servers, Offer::ResourceTemplates).await;
        let named = servers.into_iter().zip(templates).filter(|(_, templates)| templates.contains(uri));
        let named = named.map(|(server, _)| server).collect();
        match self.permitted_servers(named, uri, access, Action::Complete).await.into_iter().next() {
            Some(server) => Some(server),
            None => self.owners(uri, access, Action::Complete).await.into_iter().next(),
        }
    }
}

impl HubBackend {
    async fn forward_to(
        &self,
        server: &Arc<Server>,
        forwarded: &ForwardedRequest,
    ) -> Result<SourcedResult, RpcError> {
        let result = self.forward_once(server, forwarded).await?;
        result
            .map(|result| SourcedResult::of_server(result, server.id()))
            .map_err(|error| rpc(error, server.id()))
    }

    /// Forwards a request. If its caller has to log in to the server first, it may do so now.
    async fn forward_once(
        &self,
        server: &Arc<Server>,
        forwarded: &ForwardedRequest,
    ) -> Result<Result<RawJson, McpError>, RpcError> {
        let result = server.forward(forwarded.clone()).await;
        let (Err(McpError::LoginNeeded { .. }), Some(caller)) = (&result, &forwarded.caller) else {
            return Ok(result);
        };
        match Box::pin(self.log_in_caller(server.id(), caller)).await {
            Some(CallerLogin::Done) => Ok(server.forward(forwarded.clone()).await),
            Some(CallerLogin::Needed(text)) => Err(RpcError::new(FAILED, text)),
            None => Ok(result),
        }
    }

    /// Returns the first response that is not an error for an unknown resource or task. If there is only one server, its error
    /// is returned; otherwise `none`.
    async fn first_found(
        &self,
        servers: Vec<Arc<Server>>,
        forwarded: &ForwardedRequest,
        none: RpcError,
    ) -> Result<SourcedResult, RpcError> {
        let alone = servers.len() == 1;
        for server in servers {
            match self.forward_once(&server, forwarded).await? {
                Err(McpError::Rpc { code, .. }) if !alone && NOT_FOUND_CODES.contains(&code) => {}
                Ok(result) => return Ok(SourcedResult::of_server(result, server.id())),
                Err(error) => return Err(rpc(error, server.id())),
            }
        }
        Err(none)
    }
}

/// The values of a completion that a server inserts into its resource template: the one to complete, and earlier ones.
fn completed_values(params: &RawObject) -> Vec<String> {
    let object = |members: &RawObject, key: &str| members.get(key).and_then(RawJson::object);
    let earlier = object(params, "context").and_then(|context| object(&context, "arguments"));
    let earlier = earlier.unwrap_or_default();
    let value = object(params, "argument").and_then(|argument| argument.get("value").cloned());
    let values = value.iter().chain(earlier.iter().map(|(_, value)| value));
    values.filter_map(|value| Some(value.text()?.into_owned())).collect()
}

/// The error for a principal that not all resources are visible to: an unknown resource is answered like a hidden one.
fn like_hidden(error: RpcError, none: RpcError, access: &ProfileAccess) -> RpcError {
    match access.permissions().is_some() && NOT_FOUND_CODES.contains(&error.code) {
        true => none,
        false => error,
    }
}

/// The error if the tasks of principals cannot be read: none is reached then.
fn tasks_unavailable(error: &StoreError) -> RpcError {
    RpcError::new(FAILED, error.localize(toolhub_core::Lang::En))
}

fn missing(what: &str) -> RpcError {
    RpcError::invalid_params(format!("`{what}` is missing"))
}

/// Converts a failure to a JSON-RPC error. An error of the server is forwarded unchanged.
fn rpc(error: McpError, server: &ServerId) -> RpcError {
    match error {
        McpError::Rpc { code, message, data } => {
            RpcError { code, message, data: data.map(|data| data.get().to_owned()) }
        }
        other => {
            let error = other.into_tool_error(server);
            RpcError::new(FAILED, error_for_clients(&error, toolhub_core::Lang::En))
        }
    }
}
