//! The hub: all tools of all sources. The engine routes calls; `discovery` decides which servers must be listed first.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::sync::{OnceCell, Semaphore};
use toolhub_audit::AuditStore;
use toolhub_core::error::UnknownTool;
use toolhub_core::finder::{SearchResult, ToolFinder as _};
use toolhub_core::lang::LocalizedText;
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::ports::{CachedList, HubStore, StoreError, ToolCaller, ToolVersion};
use toolhub_core::shell;
use toolhub_core::{
    BoxFuture, CallBy, Event, EventKind, EventSink, NativeTool, Outcome, ServerId, Source, Tool, ToolCall,
    ToolDefinition, ToolError, ToolName,
};
use toolhub_engine::{Catalog, Engine, Route, RouteRequest, SourceFilter};
use toolhub_mcp_client::config::ServerSpec;
use toolhub_mcp_client::{Server, ServerContext};
use toolhub_mcp_wire::McpError;
use toolhub_native::NativeHost;
use toolhub_skills::SkillRegistry;

use crate::approved::Approved;
#[cfg(feature = "postgres")]
use crate::cluster_reading::replica_status;
use crate::cluster_status::{ClusterError, ClusterStatus};
#[cfg(not(feature = "postgres"))]
use crate::features::replica_status;
use crate::finder::CatalogFinder;
use crate::held_calls::HeldCalls;
use crate::models::Models;
use crate::progress::ProgressCell;
use crate::replica::Replica;
use crate::script::{RunScript, ScriptRuns};
use crate::server_set::ServerSet;
use crate::server_view::ServerView;
use crate::settings::{Paths, ServerExtras, Settings};
use crate::skills::servers::ServerSkills;

/// How long a server may take to stop when the hub is shut down.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The minimum timeout of a call after its servers have been listed.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// All tools of all sources. See the [crate documentation](crate).
pub struct Hub {
    pub(crate) engine: Arc<Engine>,
    /// The cluster that this hub belongs to; taken when the hub is closed.
    pub(crate) replica: Mutex<Option<Replica>>,
    pub(crate) finder: Arc<CatalogFinder>,
    pub(crate) native: Arc<NativeHost>,
    /// `None` if the settings disable scripts.
    pub(crate) scripts: Option<Arc<ScriptRuns>>,
    pub(crate) run_script: Option<Arc<RunScript>>,
    pub(crate) skills: Arc<SkillRegistry>,
    pub(crate) server_skills: Arc<ServerSkills>,
    pub(crate) models: Arc<Models>,
    pub(crate) servers: Arc<ServerSet>,
    /// Servers that a reload has removed or replaced and that have not ended yet.
    pub(crate) replaced_servers: Mutex<Vec<Arc<Server>>>,
    /// The dependencies of servers, for servers that a reloaded configuration adds.
    pub(crate) context: ServerContext,
    /// `[[servers]]` of the settings that the servers were created from.
    pub(crate) server_settings: Mutex<Vec<ServerExtras>>,
    pub(crate) lists: Mutex<HashMap<ServerId, CachedList>>,
    /// The servers whose list is in the catalog, which is updated after `lists`.
    pub(crate) in_catalog: Mutex<HashSet<ServerId>>,
    /// The total number of failure-history changes of all servers at the last check that found nothing to store; `u64::MAX`
    /// forces the next check.
    pub(crate) checked_version: AtomicU64,
    /// Counts changes of lists, tools and routing; receivers rebuild the data that they derive from them.
    pub(crate) lists_version: watch::Sender<u64>,
    /// Limits how many processes are started concurrently for listings.
    pub(crate) starts: Semaphore,
    pub(crate) progress: ProgressCell,
    pub(crate) store: Option<Arc<dyn HubStore>>,
    pub(crate) audit: Option<Arc<dyn AuditStore>>,
    /// Set once the statistics of tools have been read from the store, which happens before the first routing decision that uses
    /// them.
    pub(crate) recalled: OnceCell<()>,
    pub(crate) approved: Mutex<Approved>,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) settings: Settings,
    /// Whether capabilities are declared to servers. Requires a handler for their requests.
    pub(crate) declares: bool,
    /// When the hub was built.
    pub(crate) since: SystemTime,
    pub(crate) paths: Paths,
    pub(crate) notes: Vec<LocalizedText>,
    pub(crate) store_problem: Option<LocalizedText>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("engine", &self.engine)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// Runs a call. Dropping the future cancels it.
    // Boxed, like other large futures of this crate: the code of an async function is generated again in every crate that awaits
    // it, including everything it awaits; that of a boxed future is generated once, where it is boxed.
    pub fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.run_call(&call).await })
    }

    /// Like [`Self::call`], by reference.
    pub(crate) async fn run_call(&self, call: &ToolCall) -> Outcome {
        if self.is_unprepared_script(call) {
            return self.run_script_call(call).await;
        }
        let started = Instant::now();
        let listed_for = self.scoped(request_of(call));
        self.allow_retry(listed_for.source);
        // Rarely needed futures are boxed, which keeps the future of the common path small.
        let lists_suffice = self.all_known() || !self.may_be_on_server(listed_for.source);
        if !lists_suffice {
            Box::pin(self.prepare(listed_for, call.timeout)).await;
        }
        // Cached lists may be outdated: the tool may have been added since.
        let has_unique_tool = self.has_unique_tool(call);
        if !has_unique_tool && !self.catalog_matches(listed_for) && self.may_be_on_server(listed_for.source) {
            Box::pin(self.relist_stale(listed_for.source, call.timeout)).await;
        }
        if !has_unique_tool && self.depends_on_statistics(call.by, call.tool.as_str()) {
            Box::pin(self.load_statistics(call.by, call.tool.as_str())).await;
        }
        // The timeout includes the time for listing servers.
        let listed = started.elapsed();
        let shortened = call.timeout.filter(|_| !lists_suffice).map(|timeout| ToolCall {
            timeout: Some(timeout.saturating_sub(listed).max(MIN_TIMEOUT)),
            ..call.clone()
        });
        let (original, call) = (call, shortened.as_ref().unwrap_or(call));
        let mut outcome = match lists_suffice {
            true => self.engine.run_call(call).await,
            false => Box::pin(self.run_during_listings(self.engine.run_call(call))).await,
        };
        if self.has_unsaved_failures() {
            Box::pin(self.store_failures()).await;
        }
        // The owner may have approved the tool since, in another process.
        if matches!(outcome.result, Err(ToolError::Quarantined { .. }))
            && (Box::pin(self.reload_approvals()).await | Box::pin(self.reload_skills()).await)
        {
            outcome = Box::pin(self.engine.run_call(call)).await;
        }
        if matches!(outcome.result, Err(ToolError::UnknownTool(_) | ToolError::UnknownSource { .. })) {
            outcome.result = outcome.result.map_err(|error| self.name_unlisted(error));
        }
        if let (Err(ToolError::TimedOut { after, .. }), Some(timeout)) =
            (&mut outcome.result, original.timeout)
        {
            *after = (*after).max(timeout);
        }
        outcome
    }

    /// Whether the call is by name and exactly one tool has that name: then routing needs no further information. This is the
    /// fast path.
    fn has_unique_tool(&self, call: &ToolCall) -> bool {
        if call.by != CallBy::Name || call.source.is_some() {
            return false;
        }
        // The gateway has resolved the name already.
        if call.sources.as_ref().is_some_and(|sources| sources.len() == 1) {
            return true;
        }
        let catalog = self.catalog();
        let mut named = catalog.named(call.tool.as_str());
        named.next().is_some() && named.next().is_none()
    }

    /// Whether the catalog has a tool with that name or capability; at the given server, if the request names one.
    fn catalog_matches(&self, request: RouteRequest<'_>) -> bool {
        let catalog = self.catalog();
        let only = request.source.filter(|id| self.servers.contains(id));
        let is_source = |source: &Source| only.is_none_or(|id| source.to_string() == id);
        match request.by {
            CallBy::Name => catalog.named(request.tool).any(|entry| is_source(&entry.tool.source)),
            CallBy::Capability => catalog.tagged(request.tool).any(|(source, ..)| is_source(source)),
        }
    }

    /// The request for listing servers: `server__tool` restricts it to that server, so that no other server is listed.
    fn scoped<'r>(&self, request: RouteRequest<'r>) -> RouteRequest<'r> {
        let unscoped = request.by == CallBy::Name && request.source.is_none() && request.sources.is_none();
        match request.tool.split_once("__").filter(|_| unscoped) {
            Some((id, tool))
                if self.servers.contains(id) && self.catalog().named(request.tool).next().is_none() =>
            {
                RouteRequest { source: Some(id), tool, ..request }
            }
            _ => request,
        }
    }

    /// Whether a call with that source can reach a server: not if the source is `skill` or unknown.
    fn may_be_on_server(&self, source: Option<&str>) -> bool {
        source.is_none_or(|source| {
            let filter = self.engine.policy().source_filter(Some(source));
            !matches!(filter, Err(_) | Ok(SourceFilter::Only(Source::Skill)))
        })
    }

    /// The best tools of the catalog for a query in natural language.
    pub async fn search(&self, request: &str, limit: usize) -> SearchResult {
        self.finder.search(request, limit).await
    }

    /// Like [`Self::search`], among these tools of the catalog: the result is the same as if there were no others.
    pub async fn search_among(&self, request: &str, limit: usize, tools: Arc<Catalog>) -> SearchResult {
        self.finder.search_part(request, limit, Some(tools)).await
    }

    /// The names of all sources: the configured servers, enabled or not, and the built-in sources.
    pub(crate) fn source_ids(&self) -> Vec<String> {
        let built_in = [Source::Native, Source::Skill].into_iter().map(|source| source.to_string());
        built_in.chain(self.servers.load().iter().map(|server| server.id().to_string())).collect()
    }

    /// Identifies a tool: its source, the configuration of that server, and the definition. It changes if the tool may be
    /// another one than before, although it has the same name.
    pub fn tool_identity(&self, tool: &Tool) -> String {
        let server = match &tool.source {
            Source::Server(id) => self.servers.find(id.as_str()),
            Source::Native | Source::Skill => None,
        };
        let configuration = server.map(|server| server.spec().approval_digest()).unwrap_or_default();
        format!("{} {configuration} {}", tool.source, tool.definition.digest())
    }

    /// Routes a call without running it.
    pub async fn explain(&self, request: RouteRequest<'_>) -> Result<Route, ToolError> {
        self.explain_within(request, None).await
    }

    /// Like [`Self::explain`], with a time limit for servers that were never listed.
    pub fn explain_within<'a>(
        &'a self,
        request: RouteRequest<'a>,
        spare: Option<Duration>,
    ) -> BoxFuture<'a, Result<Route, ToolError>> {
        Box::pin(async move {
            let listed_for = self.scoped(request);
            if self.may_be_on_server(listed_for.source) {
                self.prepare(listed_for, spare).await;
            }
            self.load_statistics(request.by, request.tool).await;
            self.engine.route(request).map_err(|error| self.name_unlisted(error))
        })
    }

    /// Adds the servers that could not be listed to an error for an unknown tool. If the call was restricted to one such server,
    /// its failure becomes the error.
    fn name_unlisted(&self, error: ToolError) -> ToolError {
        let unknown = match error {
            ToolError::UnknownTool(unknown) => unknown,
            // A disabled server is not a source, but its name is valid.
            ToolError::UnknownSource { name, .. } if self.servers.contains(&name) => {
                return ToolError::NotStarted {
                    why: LocalizedText::new(
                        format!(
                            "server `{name}` is disabled: enable it with `toolhub servers enable {}`",
                            shell::shell_quote(&name)
                        ),
                        format!(
                            "服务器 `{name}` 已停用：可用 `toolhub servers enable {}` 启用",
                            shell::shell_quote(&name)
                        ),
                    ),
                };
            }
            error => return error,
        };
        if let Some(id) = self.disabled_owner(&unknown) {
            let tool = &unknown.tool;
            return ToolError::NotStarted {
                why: LocalizedText::new(
                    format!(
                        "`{tool}` is a tool of server `{id}`, which is disabled: enable it with `toolhub servers enable {}`",
                        shell::shell_quote(id.as_str())
                    ),
                    format!(
                        "`{tool}` 属于已停用的服务器 `{id}`：可用 `toolhub servers enable {}` 启用",
                        shell::shell_quote(id.as_str())
                    ),
                ),
            };
        }
        let unlisted = self.unlisted();
        let named = unlisted.iter().find(|(server, _)| Some(server.id()) == unknown.server.as_ref());
        if let Some((server, cause)) = named {
            let unreachable =
                McpError::Connect { cause: cause.clone(), stderr: Vec::new(), permanent: false };
            return server.last_error().unwrap_or(unreachable).into_tool_error(server.id());
        }
        let unlisted = match unknown.server {
            Some(_) => Vec::new(),
            None => unlisted.into_iter().map(|(server, cause)| (server.id().clone(), cause)).collect(),
        };
        ToolError::UnknownTool(Box::new(UnknownTool { unlisted, ..*unknown }))
    }

    /// The disabled server whose cached list has the tool; `None` if the tool exists elsewhere.
    fn disabled_owner(&self, unknown: &UnknownTool) -> Option<ServerId> {
        let lists = self.lists();
        let has = |id: &ServerId| {
            let tools = lists.get(id).map(|list| list.tools.as_slice()).unwrap_or_default();
            tools.iter().any(|raw| {
                ToolDefinition::parse(raw.clone()).is_ok_and(|tool| tool.name().as_str() == unknown.tool)
            })
        };
        let servers = self.servers.load();
        let mut disabled = servers.iter().filter(|server| !server.spec().enabled).map(|server| server.id());
        match &unknown.server {
            Some(named) => disabled.find(|id| *id == named).cloned(),
            None if !unknown.elsewhere.is_empty() => None,
            None => disabled.find(|id| has(id)).cloned(),
        }
    }

    /// The current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine.catalog()
    }

    /// Adds a native tool at run time, and replaces one of the same name.
    pub fn add_tool(&self, tool: impl NativeTool) {
        self.native.add(Arc::new(tool));
        self.engine.set_tools(&Source::Native, &self.native.tools());
        self.lists_version.send_modify(|count| *count += 1);
    }

    /// Removes a native tool. Returns whether it existed.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed = self.native.remove(name);
        self.engine.set_tools(&Source::Native, &self.native.tools());
        self.lists_version.send_modify(|count| *count += 1);
        removed
    }

    /// All recorded definitions of a server's tool, newest first.
    pub async fn history_of(&self, server: &ServerId, tool: &str) -> Result<Vec<ToolVersion>, StoreError> {
        match &self.store {
            Some(store) => store.history(server, tool).await,
            None => Ok(Vec::new()),
        }
    }

    /// All configured servers, in configuration order.
    pub fn servers(&self) -> Vec<ServerView> {
        let lists = self.lists();
        let view = |server: &Arc<Server>| ServerView {
            spec: server.spec().clone(),
            state: server.status(),
            list: lists.get(server.id()).cloned(),
            restarts: server.restarts(),
            stderr: server.stderr_tail(),
        };
        self.servers.load().iter().map(view).collect()
    }

    /// A counter that changes with every change of a server's list or tools.
    pub fn server_updates(&self) -> watch::Receiver<u64> {
        self.lists_version.subscribe()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The calls that wait for a decision.
    pub fn held_calls(&self) -> HeldCalls {
        match &self.store {
            Some(store) if store.is_shared() => HeldCalls::in_store(Arc::clone(store)),
            _ => HeldCalls::in_folder(&self.paths.data_dir),
        }
    }

    /// The locations of the files.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Warnings about the configuration or the store.
    pub fn notes(&self) -> &[LocalizedText] {
        &self.notes
    }

    /// The store of the hub.
    pub fn store(&self) -> Option<&Arc<dyn HubStore>> {
        self.store.as_ref()
    }

    /// Why the store is unavailable, if it is; also among the notes.
    pub fn store_problem(&self) -> Option<&LocalizedText> {
        self.store_problem.as_ref()
    }

    /// Whether a store is available.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// How many calls of this run are only in the statistics, because the store failed or keeps a sample.
    pub fn dropped_details(&self) -> u64 {
        self.store.as_ref().map(|store| store.dropped_details()).unwrap_or_default()
    }

    /// Closes every connection, so that no child process is left, and waits until pending writes to the store are done.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.store_failures().await;
            self.stop_scripts().await;
            join_all(self.servers.snapshot().iter().map(|server| server.stop(SHUTDOWN_TIMEOUT))).await;
            self.flush_store(SHUTDOWN_TIMEOUT).await;
        })
    }

    /// Like [`Hub::shutdown`], for good: no server is started again.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.store_failures().await;
            self.stop_scripts().await;
            let replaced = std::mem::take(&mut *self.replaced_servers());
            let servers = self.servers.snapshot();
            join_all(servers.iter().chain(&replaced).map(|server| server.close(SHUTDOWN_TIMEOUT))).await;
            self.flush_store(SHUTDOWN_TIMEOUT).await;
            let replica = self.replica().take();
            if let Some(replica) = replica {
                replica.leave().await;
            }
        })
    }

    fn replica(&self) -> MutexGuard<'_, Option<Replica>> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The other replicas of the cluster of this hub.
    #[cfg(feature = "postgres")]
    pub(crate) fn peers(&self) -> Option<toolhub_cluster::peer::Peers> {
        self.replica().as_ref().map(Replica::peers)
    }

    /// Whether this hub is a replica of a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.replica().is_some()
    }

    /// What does not work in the cluster of this hub.
    pub(crate) fn cluster_problems(&self) -> Vec<LocalizedText> {
        self.replica().as_ref().map(Replica::problems).unwrap_or_default()
    }

    /// The state of the cluster of this hub; `None` if it is not in one.
    pub async fn cluster_status(&self) -> Option<Result<ClusterStatus, ClusterError>> {
        let reading = self.replica().as_ref().map(replica_status)?;
        Some(reading.await)
    }

    async fn stop_scripts(&self) {
        if let Some(runs) = &self.scripts {
            runs.shutdown().await;
        }
    }

    /// Drops the native tools after [`Hub::close`]. They hold references to the hub, so that its store is closed only
    /// afterwards.
    pub fn remove_native_tools(&self) {
        for tool in self.native.tools() {
            self.native.remove(tool.name().as_str());
        }
    }

    /// Tasks of connections that are still running; 0 after [`Hub::shutdown`].
    pub fn tasks_left(&self) -> usize {
        self.servers.load().iter().map(|server| server.tasks_left()).sum()
    }

    pub(crate) fn lists(&self) -> MutexGuard<'_, HashMap<ServerId, CachedList>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_catalog(&self) -> MutexGuard<'_, HashSet<ServerId>> {
        self.in_catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn replaced_servers(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.replaced_servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn server_settings(&self) -> MutexGuard<'_, Vec<ServerExtras>> {
        self.server_settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the catalog from all sources.
    pub(crate) fn refresh_catalog(&self) {
        self.engine.set_tools(&Source::Native, &self.native.tools());
        self.engine.set_tools(&Source::Skill, &self.skills.tools());
        for server in self.servers.load().iter() {
            self.refresh_server(server);
        }
    }

    /// Updates the catalog from the cached list of one server.
    pub(crate) fn refresh_server(&self, server: &Server) {
        if !self.servers.is_current(server) {
            return;
        }
        let spec = server.spec();
        let source = Source::Server(spec.id.clone());
        let (tools, is_listed) = match self.lists().get(&spec.id) {
            Some(list) if spec.enabled => (tools_of(spec, list, &self.approved()), list.listed_at.is_some()),
            _ => (Vec::new(), false),
        };
        for (tool, exposed_name) in self.engine.reserved().renames(&source, &tools).1 {
            self.note_reserved(&spec.id, tool.name(), &exposed_name);
        }
        self.engine.set_tools(&source, &tools);
        let mut in_catalog = self.in_catalog();
        match is_listed {
            true => in_catalog.insert(spec.id.clone()),
            false => in_catalog.remove(&spec.id),
        };
    }

    /// Emits a note that a tool of a server is renamed because its name is reserved.
    fn note_reserved(&self, server: &ServerId, name: &ToolName, exposed_name: &str) {
        let text = LocalizedText::new(
            format!("offers `{name}`, a reserved name: it is called `{exposed_name}` here"),
            format!("提供的工具名 `{name}` 为保留名称，在此处称为 `{exposed_name}`"),
        );
        self.events.emit(Event::now(None, EventKind::ServerNote { server: server.clone(), text }));
    }
}

impl ToolCaller for Hub {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome> {
        Box::pin(Self::call(self, call))
    }

    fn verify<'a>(
        &'a self,
        call: &'a ToolCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Option<OutcomeVerification>> {
        Box::pin(Self::verify(self, call, outcome))
    }
}

/// The routing request of a call.
fn request_of(call: &ToolCall) -> RouteRequest<'_> {
    let (by, source, arguments) = (call.by, call.source.as_deref(), Some(&call.arguments));
    let sources = call.sources.as_deref();
    RouteRequest {
        by,
        source,
        arguments,
        sources,
        coercion: call.coercion,
        ..RouteRequest::named(call.tool.as_str())
    }
}

fn tools_of(spec: &ServerSpec, list: &CachedList, approved: &Approved) -> Vec<Tool> {
    let definitions = list.tools.iter().filter_map(|raw| ToolDefinition::parse(raw.clone()).ok());
    let allowed = definitions.filter(|definition| spec.allows(definition.name().as_str()));
    allowed
        .map(|definition| {
            let name = definition.name().as_str();
            let (owner_hints, tags) = (spec.hints_of(name), spec.tags_of(name));
            let approval = approved.trust(spec, &definition);
            Tool { owner_hints, tags, approval, ..Tool::new(Source::Server(spec.id.clone()), definition) }
        })
        .collect()
}
