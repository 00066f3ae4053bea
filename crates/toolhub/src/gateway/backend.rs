//! The gateway [`Backend`] of one profile of the hub.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::BoxStream;
use tokio::sync::{broadcast, watch};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{StoreError, boxed};
use toolhub_core::{
    BoxFuture, CallId, CallerHandle, Coercion, Event, EventKind, Lang, Localize as _, Outcome, Principal,
    RawJson, ServerId, Source, ToolCall, ToolError, TraceContext,
};
use toolhub_engine::{MAX_SUGGESTIONS, similar_names};
use toolhub_mcp_client::Server;
use toolhub_mcp_gateway::{
    Backend, BackendRequest, ChangeNotification, GatewayCall, ItemList, RpcError, ToolList, portable_offer,
};
use toolhub_mcp_wire::Offer;

use super::answers::{CallRefusal, call_response, tool_error};
use super::approved_caller::ApprovedCaller;
use super::ended_scripts::EndedScripts;
use super::login_links::{CallerLogin, LoginLinks};
use super::offers::{OfferCache, OfferedItems};
use super::opened_pages::OpenedPages;
use super::prepared_call::{PreparedCall, ScriptRole, without_nulls};
use super::profile_access::ProfileAccess;
use super::prompt_names::{OfferedItem, PromptNames};
use super::resource_subscriptions::ResourceSubscriptions;
use super::service::{CallCounts, CallOutcome};
use super::target_kind::TargetKind;
use super::tasks::TaskOwners;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::{PrincipalCount, ToolTarget, View};
use super::view_cache::{ViewCache, ViewInputs};
use super::visible_changes::{ProfileChange, Visibility, visible_changes};
use crate::access_control::AccessControl;
use crate::hub::Hub;
use crate::settings::ProfileSettings;

/// How long after the start `tools/list` waits for servers that were never listed.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Capacity of the notification channel of a profile.
const PROFILE_NOTIFICATION_CAPACITY: usize = 256;
/// JSON-RPC error code for an unknown tool (2025-11-25 and 2026-07-28, server/tools: error handling).
const UNKNOWN_TOOL: i64 = -32602;

/// State shared by the backends of all profiles.
pub(super) struct GatewayState {
    pub(super) offers: Arc<OfferCache>,
    pub(super) all_listed: watch::Receiver<bool>,
    pub(super) counts: Arc<CallCounts>,
    pub(super) tasks: Arc<TaskOwners>,
    pub(super) resource_subscriptions: Arc<ResourceSubscriptions>,
    pub(super) access: Arc<AccessControl>,
    pub(super) login_links: Arc<LoginLinks>,
    pub(super) ended_scripts: Arc<EndedScripts>,
    pub(super) opened_pages: Arc<OpenedPages>,
}

/// A profile and its name.
pub(super) struct NamedProfile {
    pub(super) name: Arc<str>,
    pub(super) settings: ProfileSettings,
}

/// The hub as seen through one profile.
pub(super) struct HubBackend {
    pub(super) hub: Arc<Hub>,
    pub(super) profile: Arc<ProfileSettings>,
    profile_name: Arc<str>,
    /// Whether the profile assigns names to tools.
    has_name_overrides: bool,
    pub(super) access: Arc<AccessControl>,
    pub(super) login_links: Arc<LoginLinks>,
    pub(super) ended_scripts: Arc<EndedScripts>,
    pub(super) opened_pages: Arc<OpenedPages>,
    pub(super) offers: Arc<OfferCache>,
    pub(super) lang: Lang,
    pub(super) tasks: Arc<TaskOwners>,
    pub(super) resource_subscriptions: Arc<ResourceSubscriptions>,
    pub(super) counts: Arc<CallCounts>,
    /// The names of the prompts, which are the same for all principals.
    pub(super) prompt_names: PromptNames,
    /// The names of the tools, and what principals see of them.
    views: ViewCache,
    all_listed: watch::Receiver<bool>,
    created_at: Instant,
    changes: broadcast::Sender<ProfileChange>,
}

impl std::fmt::Debug for HubBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubBackend").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl HubBackend {
    pub(super) fn new(hub: Arc<Hub>, profile: NamedProfile, shared: GatewayState, lang: Lang) -> Self {
        let GatewayState {
            offers,
            all_listed,
            counts,
            tasks,
            resource_subscriptions,
            access,
            login_links,
            ended_scripts,
            opened_pages,
        } = shared;
        let has_name_overrides = profile.settings.overrides.values().any(|changes| changes.name.is_some());
        let changes = broadcast::Sender::new(PROFILE_NOTIFICATION_CAPACITY);
        let settings = Arc::new(profile.settings);
        let views = ViewCache::new(ViewInputs {
            hub: Arc::clone(&hub),
            profile: Arc::clone(&settings),
            access: Arc::clone(&access),
            all_listed: all_listed.clone(),
        });
        Self {
            hub,
            has_name_overrides,
            profile: settings,
            profile_name: profile.name,
            access,
            login_links,
            ended_scripts,
            opened_pages,
            offers,
            lang,
            tasks,
            resource_subscriptions,
            counts,
            prompt_names: PromptNames::default(),
            views,
            all_listed,
            created_at: Instant::now(),
            changes,
        }
    }

    /// What a principal may see and use through this profile.
    pub(super) fn access_of(&self, principal: &Arc<Principal>) -> ProfileAccess {
        let (permissions, profile) = (self.access.permissions(principal), Arc::clone(&self.profile_name));
        let names = (permissions.is_some() && self.has_name_overrides).then(|| self.views.names());
        ProfileAccess::new(permissions, profile, principal, names)
    }

    /// The name of the profile.
    pub(super) fn profile_name(&self) -> &Arc<str> {
        &self.profile_name
    }

    /// What the caller of a request may see and use. A request without a principal may use nothing.
    pub(super) fn access_of_caller(&self, caller: &CallerHandle) -> ProfileAccess {
        match caller.principal() {
            Some(principal) => self.access_of(principal),
            None => self.access_of(&Arc::new(Principal::of_key(""))),
        }
    }

    /// Returns the view of all tools of the profile, whatever the rules permit.
    pub(super) fn full_view(&self) -> Arc<View> {
        self.view(&self.access_of(&Arc::new(Principal::local())).unrestricted())
    }

    /// Returns the view of the current catalog and builds it if necessary.
    pub(super) fn view(&self, access: &ProfileAccess) -> Arc<View> {
        self.views.view(access)
    }

    /// How long to wait before the view is rebuilt for another change.
    pub(super) fn pause(&self) -> Duration {
        self.views.pause()
    }

    /// How many principals the gateway distinguishes.
    pub(super) fn principals(&self) -> PrincipalCount {
        self.views.principals()
    }

    /// Rebuilds the view, and lets each client compare its list of tools if any list may differ from the one announced last: a
    /// request may have built the view before, of which other clients do not know. A restricted list may change while the full
    /// one, in which tools are only searched, does not.
    pub(super) fn rebuild_view(&self) {
        let now = self.full_view();
        let is_same = self.views.announce(&now).is_some_and(|before| {
            *before.list == *now.list
                && (!self.access.has_rules() || Arc::ptr_eq(before.catalog(), now.catalog()))
        });
        if !is_same {
            let _ = self.changes.send(ProfileChange::Tools);
        }
    }

    /// Lets clients know that what they may see may have changed.
    pub(super) fn notify_all(&self) {
        for change in ProfileChange::ALL_LISTS {
            let _ = self.changes.send(change);
        }
    }

    /// Sends a change to the clients of this profile if its server belongs to the profile.
    pub(super) fn notify(&self, change: &ProfileChange) {
        // A server may only send updates of its own resources.
        let is_foreign = match change {
            ProfileChange::Updated { server, uri, .. } => !self.resource_subscriptions.has(server, uri),
            _ => false,
        };
        let is_included = change.server().is_none_or(|server| self.profile.has_source(server.as_str()));
        if !is_foreign && is_included {
            let _ = self.changes.send(change.clone());
        }
    }

    /// The enabled servers of this profile that have been listed, in configuration order.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        let lists = self.hub.lists();
        let is_listed = |server: &&Arc<Server>| {
            let id = server.id();
            server.spec().enabled
                && self.profile.has_source(id.as_str())
                && lists.get(id).is_some_and(|list| list.listed_at.is_some())
        };
        self.hub.servers.load().iter().filter(is_listed).cloned().collect()
    }

    /// Counts a finished call.
    fn count(&self, caller: Option<&CallerHandle>, is_success: bool) {
        self.counts.count(is_success);
        if let Some(principal) = caller.and_then(|caller| caller.principal()) {
            let outcome = if is_success { CallOutcome::Succeeded } else { CallOutcome::Failed };
            self.counts.by_principal.count(principal.id(), outcome);
        }
    }

    /// Runs a call of a tool that the profile shows. Every call by name goes through this function.
    pub(super) async fn dispatch(
        &self,
        view: &View,
        target: &ToolTarget,
        call: GatewayCall,
    ) -> Result<RawJson, RpcError> {
        match target.kind {
            TargetKind::Plain => self.call_target(view, target, call).await,
            _ => Box::pin(self.control(view, target, call)).await,
        }
    }

    /// Runs a call and counts it.
    async fn run_and_count(&self, tool_call: &ToolCall) -> Outcome {
        let trace = tool_call.caller.as_ref().and_then(|caller| caller.trace());
        let guard = AbandonGuard::new(&self.hub, &tool_call.id, trace);
        let outcome = self.hub.run_call(tool_call).await;
        guard.disarm();
        self.count(tool_call.caller.as_ref(), outcome.success());
        outcome
    }

    pub(super) async fn call_target(
        &self,
        view: &View,
        target: &ToolTarget,
        call: GatewayCall,
    ) -> Result<RawJson, RpcError> {
        self.run(view, target, self.prepared(target, call)).await
    }

    /// The call with the arguments that the tool receives.
    pub(super) fn prepared(&self, target: &ToolTarget, call: GatewayCall) -> PreparedCall {
        let arguments = if target.is_native() { without_nulls(call.arguments) } else { call.arguments };
        let call = GatewayCall { arguments: target.with_fixed(arguments), ..call };
        let coercion = if self.profile.coerce_arguments { Coercion::On } else { Coercion::Off };
        PreparedCall { call, coercion, script: ScriptRole::default() }
    }

    /// Decides about a call, and runs it if it is allowed.
    pub(super) async fn run(
        &self,
        view: &View,
        target: &ToolTarget,
        prepared: PreparedCall,
    ) -> Result<RawJson, RpcError> {
        let caller = prepared.call.caller.clone();
        match self.run_for_outcome(view, target, prepared).await {
            Ok(outcome) => {
                caller.report_outcome(&|lang| outcome.to_json(lang));
                call_response(outcome.result, self.lang)
            }
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Decides about a call, and runs it if it is allowed; else returns the response. Every call of a tool goes through this
    /// function.
    pub(super) async fn run_for_outcome(
        &self,
        view: &View,
        target: &ToolTarget,
        prepared: PreparedCall,
    ) -> Result<Outcome, CallRefusal> {
        let PreparedCall { call, coercion, script } = self.coerce_before_rules(target, prepared);
        let authorized = self.authorize(target, &call, &script).await?;
        let mut tool_call = ToolCall::of(target.tool.clone(), call.arguments);
        (tool_call.nested, tool_call.parent) = (script.nested, script.parent);
        tool_call.budget = script.budget;
        tool_call.coercion = coercion;
        tool_call.sources = Some(authorized.sources);
        tool_call.caller = Some(match authorized.authorization.approver {
            Some(_) => ApprovedCaller::of(call.caller.clone()),
            None => call.caller.clone(),
        });
        tool_call.authorization = authorized.authorization;
        let mut outcome = self.run_and_count(&tool_call).await;
        if let Err(ToolError::LoginNeeded { server }) = &outcome.result {
            match Box::pin(self.log_in_caller(server, &call.caller)).await {
                // Nothing was run, so that the call may be repeated. It is another record.
                Some(CallerLogin::Done) => {
                    tool_call.id = CallId::generate();
                    outcome = Box::pin(self.run_and_count(&tool_call)).await;
                }
                Some(CallerLogin::Needed(text)) => return Err(CallRefusal::ToolError(tool_error(&text))),
                None => {}
            }
        }
        if let (Ok(output), Some(Source::Server(id))) = (&outcome.result, outcome.source()) {
            let maker = tool_call.caller.as_ref().and_then(|caller| caller.principal_id());
            let noted = self.tasks.note(output.raw(), maker, || self.hub.servers.find(id.as_str())).await;
            // The client could never reach the task, and other principals could not be kept from it.
            noted.map_err(|error| {
                CallRefusal::ToolError(tool_error(&task_not_recorded(&error).localize(self.lang)))
            })?;
        }
        // The tool was removed after the view was built. The error must not suggest names that this profile does not show.
        if let Err(ToolError::UnknownTool(_)) = &outcome.result {
            return Err(CallRefusal::Rpc(self.unknown(view, &call.name)));
        }
        Ok(outcome)
    }
}

fn task_not_recorded(error: &StoreError) -> LocalizedText {
    LocalizedText::new(
        format!(
            "the tool has begun a task that could not be recorded, so that it cannot be followed; it may take effect: {}",
            error.localize(Lang::En)
        ),
        format!("工具已开始一个任务，但无法登记，因此无法跟踪；它可能已生效：{}", error.localize(Lang::Zh)),
    )
}

impl Backend for HubBackend {
    fn tools(&self, principal: &Arc<Principal>) -> Arc<ToolList> {
        Arc::clone(&self.views.for_request(&self.access_of(principal)).list)
    }

    fn wait_until_listed(&self) -> BoxFuture<'_, ()> {
        let mut all_listed = self.all_listed.clone();
        Box::pin(async move {
            if !*all_listed.borrow() {
                let remaining_time = FIRST_LIST_TIMEOUT.saturating_sub(self.created_at.elapsed());
                let _ =
                    tokio::time::timeout(remaining_time, all_listed.wait_for(|all_listed| *all_listed)).await;
            }
        })
    }

    fn instructions(&self) -> Option<String> {
        None
    }

    fn call(&self, call: GatewayCall) -> BoxFuture<'_, Result<RawJson, RpcError>> {
        boxed(|| async move {
            let access = self.access_of_caller(&call.caller);
            let mut view = self.views.for_request(&access);
            let mut target = view.target(&call.name);
            if target.is_none() {
                // The tool may belong to a server that has not been listed yet.
                self.wait_until_listed().await;
                view = self.view(&access);
                target = view.target(&call.name);
            }
            match target {
                Some(target) => self.dispatch(&view, target, call).await,
                None => {
                    let lookup = ToolLookup::named(ToolUse::Call, &call.name);
                    self.note_if_hidden(&view, &access, &lookup);
                    Err(self.unknown(&view, &call.name))
                }
            }
        })
    }

    fn offers<'a>(
        &'a self,
        offer: Offer,
        principal: &'a Arc<Principal>,
    ) -> BoxFuture<'a, Result<ItemList, RpcError>> {
        Box::pin(async move {
            self.wait_until_listed().await;
            let access = self.access_of(principal);
            let servers = self.servers();
            let is_visible = |entry: &OfferedItem| access.sees_item(offer, entry);
            let mut offered = self.offers.all(&servers, offer, &self.prompt_names, is_visible).await;
            if offer == Offer::Resources {
                // Several servers may list a URI, which is of a hidden skill at one of them only.
                let mut listing = servers.clone();
                listing.retain(|server| !self.offers.fetched(server.id(), offer).is_empty());
                let skills = self.hidden_skills(&listing, &access).await;
                let is_shown = |entry: &OfferedItem| {
                    is_visible(entry) && !self.hides_listed(&skills, entry.server.id(), &entry.key, &access)
                };
                offered = self.offers.all(&servers, offer, &self.prompt_names, is_shown).await;
            }
            let OfferedItems { entries, mut missing } = offered;
            missing.extend(self.views.never_listed());
            // The names of servers are visible only if something of theirs might be.
            missing.retain(|server| access.sees_source(offer, server));
            let hub_items =
                if offer == Offer::Resources { self.skill_resources(&access).await } else { Vec::new() };
            let server_items =
                entries.into_iter().filter(|entry| !hub_items.iter().any(|(uri, _)| *uri == entry.key));
            let lossless = self.profile.lossless;
            let offered = |item: RawJson| if lossless { Some(item) } else { portable_offer(offer, &item) };
            let server_items: Vec<RawJson> = server_items.filter_map(|entry| offered(entry.item)).collect();
            Ok(ItemList {
                items: hub_items.iter().map(|(_, item)| item.clone()).chain(server_items).collect(),
                missing,
            })
        })
    }

    fn forward(&self, request: BackendRequest) -> BoxFuture<'_, Result<RawJson, RpcError>> {
        Box::pin(self.forward_request(request))
    }

    fn subscribe<'a>(
        &'a self,
        uri: &'a str,
        principal: &'a Arc<Principal>,
    ) -> BoxFuture<'a, Result<ServerId, RpcError>> {
        Box::pin(async move { self.add_subscription(uri, &self.access_of(principal)).await })
    }

    fn unsubscribe<'a>(&'a self, server: &'a ServerId, uri: &'a str) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(self.remove_subscription(server, uri))
    }

    fn changes(self: Arc<Self>, principal: Arc<Principal>) -> BoxStream<'static, ChangeNotification> {
        let receiver = self.changes.subscribe();
        let (backend, other) = (Arc::clone(&self), Arc::clone(&principal));
        let access = move || backend.access_of(&other);
        let tools = move || self.tools(&principal);
        visible_changes(receiver, Visibility { access, tools })
    }
}

impl HubBackend {
    pub(super) fn unknown(&self, view: &View, name: &str) -> RpcError {
        let similar = similar_names(name, view.targets.keys().map(String::as_str), MAX_SUGGESTIONS);
        let similar = similar.iter().map(|similar| format!("`{similar}`")).collect::<Vec<_>>().join(", ");
        let hint = if similar.is_empty() { String::new() } else { format!("; did you mean {similar}?") };
        RpcError::new(UNKNOWN_TOOL, format!("Unknown tool: {name}{hint}"))
    }
}

/// Emits `CallAbandoned` if it is dropped before the call ends, which happens when the client disconnects: the engine emits no
/// event then.
struct AbandonGuard<'a> {
    hub: &'a Hub,
    call: Option<CallId>,
}

impl<'a> AbandonGuard<'a> {
    fn new(hub: &'a Hub, call: &CallId, trace: Option<&TraceContext>) -> Self {
        let call = (!hub.events.is_disabled()).then(|| call.clone());
        if let (Some(trace), Some(call)) = (trace, &call) {
            let kind = EventKind::Traced { source: None, trace: trace.clone() };
            hub.events.emit(Event::now(Some(call.clone()), kind));
        }
        Self { hub, call }
    }

    fn disarm(mut self) {
        self.call = None;
    }
}

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.hub.events.emit(Event::now(Some(call), EventKind::CallAbandoned));
        }
    }
}
