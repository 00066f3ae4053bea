//! Tools and calls of the gateway for an application in the same process, such as the console. Access is decided as for MCP
//! clients: by the same views and the same rules.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::caller::{Caller, ClientResponse};
use toolhub_core::error::METHOD_NOT_FOUND;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{
    BoxFuture, CallerHandle, Lang, Principal, RawJson, RawObject, Source, ToolError, ToolName,
};
use toolhub_engine::CatalogEntry;
use toolhub_mcp_gateway::{Backend as _, GatewayCall, RpcError};

use super::Gateways;
use super::assigned_names::would_offer;
use super::backend::HubBackend;
use super::profile_access::ProfileAccess;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::ToolTarget;
use crate::audit_trail::role_refusal;

/// Numbers of callers, apart from those of MCP clients.
static NEXT_CALLER: AtomicU64 = AtomicU64::new(1 << 62);

/// A tool as a profile offers it to a principal.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The name in this profile.
    pub name: String,
    /// The name in the catalog.
    pub tool: ToolName,
    /// The sources that may serve it and that the principal may use.
    pub sources: Arc<[Source]>,
    /// The definition as the principal sees it: rules may narrow its schema.
    pub definition: RawJson,
}

impl OfferedTool {
    fn new(name: &str, target: &ToolTarget) -> Self {
        Self {
            name: name.to_owned(),
            tool: target.tool.clone(),
            sources: Arc::clone(&target.sources),
            definition: target.definition.clone(),
        }
    }
}

/// A tool that a principal names, and what for.
#[derive(Debug, Clone, Copy)]
pub struct OfferedLookup<'a> {
    /// What the principal does with it.
    pub tool_use: ToolUse,
    /// The name in the profile.
    pub name: &'a str,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct DirectCall {
    /// The principal that makes it.
    pub principal: Arc<Principal>,
    /// The profile; `None` for the default profile.
    pub profile: Option<String>,
    /// The name of the tool in that profile.
    pub name: String,
    /// The arguments.
    pub arguments: RawJson,
    /// The language in which to describe the outcome; `None` if its description is not needed.
    pub described_in: Option<Lang>,
}

/// The answer to a call.
#[derive(Debug)]
pub struct DirectAnswer {
    /// Whether the call waits for an approval or was denied one, so that nothing was run.
    pub is_held: bool,
    /// The result as an MCP client would receive it.
    pub result: Result<RawJson, RpcError>,
    /// The outcome as `toolhub call --json` shows it, without the output; `None` if it was not requested, or nothing was run.
    pub outcome: Option<RawObject>,
}

impl Gateways {
    /// The tools that a profile offers to a principal, sorted by name. Returns `None` if the principal may not use the profile
    /// or there is no such profile.
    pub fn offered_tools(
        &self,
        profile: Option<&str>,
        principal: &Arc<Principal>,
    ) -> Option<Vec<OfferedTool>> {
        let backend = self.usable_backend(profile, principal)?;
        let view = backend.view(&backend.access_of(principal));
        let mut tools: Vec<OfferedTool> =
            view.targets.iter().map(|(name, target)| OfferedTool::new(name, target)).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Some(tools)
    }

    /// The tool that a profile offers to a principal under a name, once the servers have been listed. Returns `None` if there is
    /// none; the use of one that is hidden from the principal is recorded.
    pub async fn find_offered_tool(
        &self,
        profile: Option<&str>,
        principal: &Arc<Principal>,
        lookup: OfferedLookup<'_>,
    ) -> Option<OfferedTool> {
        let backend = self.usable_backend(profile, principal)?;
        let OfferedLookup { tool_use, name } = lookup;
        let access = backend.access_of(principal);
        let mut view = backend.view(&access);
        if !view.targets.contains_key(name) {
            // It may belong to a server that has not been listed yet.
            backend.wait_until_listed().await;
            view = backend.view(&access);
        }
        let Some(target) = view.targets.get(name) else {
            backend.note_if_hidden(&view, &access, &ToolLookup::named(tool_use, name));
            return None;
        };
        Some(OfferedTool::new(name, target))
    }

    /// Records that a principal was refused an operation on a resource of the hub because of its roles, if the audit log is on.
    pub fn note_refused_operation(&self, principal: &Arc<Principal>, operation: &str, resource: &str) {
        if self.hub().audit().is_some() {
            self.access.pending_events.push(role_refusal(principal.id(), operation, resource));
        }
    }

    /// The tools whose definitions are held back and that a profile would offer to the principal otherwise. A principal that
    /// neither profiles nor rules restrict gets all of them.
    pub fn held_back_tools(&self, principal: &Arc<Principal>) -> Vec<Arc<CatalogEntry>> {
        let usable: Vec<(&Arc<HubBackend>, ProfileAccess)> = self
            .profiles
            .iter()
            .filter(|(name, _)| principal.may_use_profile(name))
            .map(|(_, (backend, _))| (backend, backend.access_of(principal)))
            .collect();
        let is_unrestricted =
            principal.profiles.is_none() && usable.iter().all(|(_, access)| access.permissions().is_none());
        let catalog = self.hub().catalog();
        let held_back = catalog.iter().filter(|entry| entry.tool.approval == ApprovalStatus::Quarantined);
        let is_offered = |entry: &&Arc<CatalogEntry>| {
            usable
                .iter()
                .any(|(backend, access)| would_offer(&backend.profile, entry) && access.sees_tool(entry))
        };
        held_back.filter(|entry| is_unrestricted || is_offered(entry)).cloned().collect()
    }

    /// The names of the arguments that a profile fixes for a tool of the catalog. Clients do not see them.
    pub fn fixed_arguments(&self, tool: &str) -> Vec<String> {
        let is_of_tool = |key: &str, assigned_name: Option<&str>| {
            key == tool
                || assigned_name == Some(tool)
                || key.strip_suffix(tool).is_some_and(|rest| rest.ends_with("__"))
        };
        let overrides = self.profiles.values().flat_map(|(backend, _)| &backend.profile.overrides);
        overrides
            .filter(|(key, overridden)| is_of_tool(key, overridden.name.as_deref()))
            .flat_map(|(_, overridden)| overridden.arguments.keys().cloned())
            .collect()
    }

    /// The arguments that a call would send: with those that the profile fixes. `None` if the tool is not offered.
    pub fn sent_arguments(
        &self,
        profile: Option<&str>,
        principal: &Arc<Principal>,
        name: &str,
        arguments: RawJson,
    ) -> Option<RawJson> {
        let backend = self.usable_backend(profile, principal)?;
        let view = backend.view(&backend.access_of(principal));
        Some(view.target(name)?.with_fixed(arguments))
    }

    /// The list of tools that a legacy client of a profile receives, as JSON.
    pub fn listed_tools(&self, profile: Option<&str>, principal: &Arc<Principal>) -> Option<RawJson> {
        let backend = self.usable_backend(profile, principal)?;
        Some(backend.view(&backend.access_of(principal)).list.as_json().clone())
    }

    /// Waits until the servers have been listed once, for a short time after the start.
    pub async fn wait_until_listed(&self) {
        if let Some((backend, _)) = self.profiles.get(&self.default) {
            backend.wait_until_listed().await;
        }
    }

    /// Calls a tool for a principal. Returns `None` if the principal may not use the profile. Dropping the future cancels the
    /// call.
    pub async fn call_directly(&self, call: DirectCall) -> Option<DirectAnswer> {
        self.call_for(call, Arc::new(SilentClient)).await
    }

    /// Like [`Gateways::call_directly`], for a client that receives notifications and answers requests of servers.
    pub async fn call_for(&self, call: DirectCall, client: Arc<dyn DirectClient>) -> Option<DirectAnswer> {
        let DirectCall { principal, profile, name, arguments, described_in } = call;
        let backend = Arc::clone(self.usable_backend(profile.as_deref(), &principal)?);
        let direct = Arc::new(DirectCaller { described_in, ..DirectCaller::new(principal, client) });
        let caller = CallerHandle::new(Arc::<DirectCaller>::clone(&direct));
        let result = backend.call(GatewayCall { name, arguments, caller }).await;
        let outcome = direct.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_held = direct.is_held.load(Ordering::Acquire);
        Some(DirectAnswer { is_held, result, outcome })
    }

    /// Checks arguments against the schema of a tool, without a call. Returns `None` if the principal does not see the tool.
    pub fn check_arguments(&self, call: &DirectCall) -> Option<Result<(), ToolError>> {
        let backend = self.usable_backend(call.profile.as_deref(), &call.principal)?;
        let view = backend.view(&backend.access_of(&call.principal));
        let target = view.target(&call.name)?;
        Some(backend.final_arguments(target, &call.arguments).map(drop))
    }

    pub(super) fn usable_backend(
        &self,
        profile: Option<&str>,
        principal: &Principal,
    ) -> Option<&Arc<HubBackend>> {
        let profile = profile.unwrap_or(&self.default);
        let (backend, _) = self.profiles.get(profile)?;
        principal.may_use_profile(profile).then_some(backend)
    }
}

/// The caller of calls for a principal, without a client that receives messages.
pub(super) fn silent_caller(principal: Arc<Principal>) -> CallerHandle {
    CallerHandle::new(Arc::new(DirectCaller::new(principal, Arc::new(SilentClient))))
}

/// The client of a direct call.
pub trait DirectClient: Send + Sync {
    /// Its capabilities: an object such as `{"elicitation": {}}`.
    fn capabilities(&self) -> RawJson;

    /// Receives a progress notification.
    fn progress(&self, params: &RawJson);

    /// Receives another notification of the call.
    fn notify(&self, method: &str, params: Option<&RawJson>);

    /// Answers a request of a server.
    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse>;
}

/// A client that receives no notifications and answers no requests.
struct SilentClient;

impl DirectClient for SilentClient {
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    fn progress(&self, _: &RawJson) {}

    fn notify(&self, _: &str, _: Option<&RawJson>) {}

    fn ask(&self, method: String, _: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        let unsupported = format!("this client does not support {method}");
        Box::pin(std::future::ready(Err((METHOD_NOT_FOUND, unsupported))))
    }
}

struct DirectCaller {
    client: Arc<dyn DirectClient>,
    number: u64,
    principal: Arc<Principal>,
    none: RawObject,
    described_in: Option<Lang>,
    /// The outcome of the last call; `call_tool` and logins may cause several.
    outcome: Mutex<Option<RawObject>>,
    /// Whether the call was held and not run.
    is_held: AtomicBool,
}

impl DirectCaller {
    fn new(principal: Arc<Principal>, client: Arc<dyn DirectClient>) -> Self {
        Self {
            number: NEXT_CALLER.fetch_add(1, Ordering::Relaxed),
            principal,
            client,
            none: RawObject::default(),
            described_in: None,
            outcome: Mutex::new(None),
            is_held: AtomicBool::new(false),
        }
    }
}

/// The members of a rendered outcome that repeat the output.
const OUTPUT_MEMBERS: [&str; 3] = ["result", "content", "structuredContent"];

impl Caller for DirectCaller {
    fn client(&self) -> u64 {
        self.number
    }

    fn capabilities(&self) -> RawJson {
        self.client.capabilities()
    }

    fn meta(&self) -> &RawObject {
        &self.none
    }

    fn extras(&self) -> &RawObject {
        &self.none
    }

    fn accepts_input_requests(&self) -> bool {
        false
    }

    fn progress(&self, params: &RawJson) {
        self.client.progress(params);
    }

    fn notify(&self, method: &str, params: Option<&RawJson>) {
        self.client.notify(method, params);
    }

    fn principal(&self) -> Option<&Arc<Principal>> {
        Some(&self.principal)
    }

    fn report_held(&self) {
        self.is_held.store(true, Ordering::Release);
    }

    fn report_outcome(&self, render: &dyn Fn(Lang) -> RawObject) {
        if let Some(lang) = self.described_in {
            let mut outcome = render(lang);
            outcome.retain(|name| !OUTPUT_MEMBERS.contains(&name));
            *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        }
    }

    fn ask(&self, method: String, params: Option<RawJson>) -> BoxFuture<'_, ClientResponse> {
        self.client.ask(method, params)
    }
}
