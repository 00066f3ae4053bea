//! The gateway of the hub: a backend for each profile, and the task that keeps the backends up to date.

mod agent_turns;
mod answers;
mod approved_caller;
mod assigned_names;
mod authorize;
mod backend;
mod caller_login;
mod client_errors;
mod control_tools;
mod direct;
mod ended_scripts;
mod forward;
mod hidden_skills;
mod hold;
mod item_use;
mod list_keys;
mod login_links;
mod login_pages;
mod name_holders;
mod notification_bus;
mod offers;
mod opened_pages;
mod overrides;
mod prepared_call;
mod principal_task;
mod profile_access;
mod profile_check;
mod prompt_names;
mod public_url;
#[cfg(feature = "postgres")]
mod replica_requests;
mod resource_owners;
mod resource_subscriptions;
mod resource_uri;
mod script_caller;
mod script_tool_lists;
mod script_tools;
mod scripts;
mod service;
mod shared_tasks;
mod skills;
mod target_kind;
mod task_table;
mod tasks;
mod thread_time;
mod tool_lookup;
mod uri_permission;
mod uri_template;
mod view;
mod view_cache;
mod visible_changes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use toolhub_core::Lang;
use toolhub_core::audit::{ChangeKind, ChangedObject};
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_mcp_gateway::{
    BudgetLimits, Gateway, KnownClient, PrincipalTable, ReplicaBody, ReplicaLink, ReplicaRequest,
    ReplicaResponse, SessionRecord,
};
use toolhub_mcp_wire::Offer;

pub use agent_turns::{AgentTurn, TurnError};
pub use direct::{DirectAnswer, DirectCall, DirectClient, OfferedLookup, OfferedTool};
pub use notification_bus::NotificationBus;
pub use tool_lookup::ToolUse;

use self::backend::{GatewayState, HubBackend, NamedProfile};
use self::ended_scripts::EndedScripts;
use self::login_links::LoginLinks;
use self::offers::{ListChange, OfferCache};
use self::opened_pages::OpenedPages;
use self::resource_subscriptions::ResourceSubscriptions;
use self::service::CallCounts;
use self::tasks::TaskOwners;
use self::visible_changes::ProfileChange;
use crate::access_control::AccessControl;
use crate::hub::Hub;
use crate::key_changes::KeyChange;
use crate::reload::ServerChanges;
use crate::settings::{AuthSettings, ConfigError, DEFAULT_PROFILE, Paths, Settings};

/// Interval at which skills are checked for changes.
const SKILL_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long logins and hidden refusals wait before they are appended to the audit log.
const AUDIT_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before the shared store is read again after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The gateways of all profiles of a hub.
#[derive(Debug)]
pub struct Gateways {
    hub: Arc<Hub>,
    /// The keys and the ended sessions of all profiles.
    record: Arc<SessionRecord>,
    notifications: NotificationBus,
    offers: Arc<OfferCache>,
    profiles: BTreeMap<String, (Arc<HubBackend>, Arc<Gateway>)>,
    /// Whether all servers that were never listed have been listed or have failed once.
    all_listed: watch::Sender<bool>,
    counts: Arc<CallCounts>,
    access: Arc<AccessControl>,
    login_links: Arc<LoginLinks>,
    ended_scripts: Arc<EndedScripts>,
    /// The budgets of principals whose requests other replicas send here. Their messages are counted there, what they keep busy
    /// here is counted here.
    budgets_of_replicas: PrincipalTable,
    /// The profile of clients that name no profile.
    default: String,
    /// When the gateways were created. Earlier failures are not reported: they may be resolved.
    created_at: SystemTime,
}

impl Gateways {
    /// Creates the gateways of the configured profiles and of the default profile. The hub must have been built with
    /// `notifications` as its handler.
    pub fn new(hub: Arc<Hub>, notifications: NotificationBus, lang: Lang) -> Result<Self, LocalizedText> {
        let counts = Arc::<CallCounts>::default();
        let access = Arc::new(AccessControl::new(&hub.settings().auth)?);
        let login_links = Arc::new(LoginLinks::new(hub.settings().auth.resource.as_deref()));
        let (ended_scripts, opened_pages) = (Arc::<EndedScripts>::default(), Arc::<OpenedPages>::default());
        let mut settings = hub.settings().profiles.clone();
        settings.entry(DEFAULT_PROFILE.to_owned()).or_default();
        let (offers, all_listed) = (Arc::new(OfferCache::new(Arc::clone(&hub))), watch::Sender::new(false));
        let tasks = Arc::new(TaskOwners::of(hub.store(), Arc::clone(&hub.servers)));
        let resource_subscriptions = Arc::<ResourceSubscriptions>::default();
        let session_keys = hub.settings().cluster.session_keys(&|name| std::env::var(name).ok())?;
        let record = match hub.store() {
            Some(store) => SessionRecord::in_folder(&hub.paths().data_dir).with_state(Arc::clone(store) as _),
            None => SessionRecord::in_memory(),
        };
        let record = Arc::new(record.with_keys(session_keys));
        let profiles = settings
            .into_iter()
            .map(|(name, profile)| {
                let parts = GatewayState {
                    offers: Arc::clone(&offers),
                    all_listed: all_listed.subscribe(),
                    counts: Arc::clone(&counts),
                    tasks: Arc::clone(&tasks),
                    resource_subscriptions: Arc::clone(&resource_subscriptions),
                    access: Arc::clone(&access),
                    login_links: Arc::clone(&login_links),
                    ended_scripts: Arc::clone(&ended_scripts),
                    opened_pages: Arc::clone(&opened_pages),
                };
                let profile = NamedProfile { name: Arc::from(name.as_str()), settings: profile };
                let backend = Arc::new(HubBackend::new(Arc::clone(&hub), profile, parts, lang));
                let gateway =
                    Gateway::new(Arc::clone(&backend) as _).with_sessions(&name, Arc::clone(&record));
                let gateway = Arc::new(gateway);
                (name, (backend, gateway))
            })
            .collect();
        let defaults = BudgetLimits::default();
        let limits = BudgetLimits { per_second: None, ..hub.settings().serve.limits_of_callers(&defaults) };
        let budgets_of_replicas = PrincipalTable::new(limits);
        let default = DEFAULT_PROFILE.to_owned();
        let created_at = SystemTime::now();
        let gateways = Self {
            hub,
            record,
            notifications,
            offers,
            profiles,
            all_listed,
            counts,
            access,
            login_links,
            ended_scripts,
            budgets_of_replicas,
            default,
            created_at,
        };
        #[cfg(feature = "postgres")]
        gateways.link_replicas();
        Ok(gateways)
    }

    /// Without PostgreSQL there are no other replicas.
    #[cfg(not(feature = "postgres"))]
    #[expect(clippy::unused_async, reason = "as with PostgreSQL")]
    pub async fn serve_replicas(self: &Arc<Self>, _: tokio_util::sync::CancellationToken) {}

    /// Sets the profile of clients that name no profile.
    #[must_use]
    pub fn with_default_profile(mut self, profile: &str) -> Self {
        profile.clone_into(&mut self.default);
        self
    }

    /// The gateway of a profile, or of the default profile if `name` is `None`.
    pub fn profile(&self, name: Option<&str>) -> Option<Arc<Gateway>> {
        self.profiles.get(name.unwrap_or(&self.default)).map(|(_, gateway)| Arc::clone(gateway))
    }

    /// Number of tools in the default profile.
    pub fn tools(&self) -> usize {
        self.profiles.get(&self.default).map_or(0, |(backend, _)| backend.full_view().targets.len())
    }

    /// The names of the profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The clients that have sent their `clientInfo`, each with its profile.
    pub fn known_clients(&self) -> Vec<(&str, KnownClient)> {
        let mut clients: Vec<(&str, KnownClient)> = Vec::new();
        for (name, (_, gateway)) in &self.profiles {
            clients.extend(gateway.known_clients().into_iter().map(|client| (name.as_str(), client)));
        }
        clients.sort_by_key(|(_, client)| std::cmp::Reverse(client.seen_at));
        clients
    }

    /// The hub behind them.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Records the keys and rules with which the gateway starts.
    async fn record_start(&self) {
        let auth = &self.hub.settings().auth;
        let keys: Vec<&str> = auth.tokens.iter().map(|token| token.name.as_str()).collect();
        let text = format!(
            "gateway started: keys {}; {} rules, digest {:016x}",
            keys.join(", "),
            auth.rules.len(),
            self.access.rules().digest()
        );
        let _ = self.hub.record_change(ChangedObject::Config, &text, ChangeKind::Updated).await;
    }

    /// Signs the states of servers with keys that all replicas have: a client may repeat a request at any of them.
    async fn share_state_keys(&self) {
        if !self.hub.store.as_ref().is_some_and(|store| store.is_shared()) {
            return;
        }
        loop {
            if let Some(seal) = self.record.replica_seal().await {
                return toolhub_mcp_client::share_state_keys(seal.state_keys());
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Keeps all backends up to date and notifies clients of changes while it is polled.
    pub async fn follow(&self) {
        // Removes leftovers of a killed process. Runs concurrently with the rest.
        let swept = tokio::task::spawn_blocking(toolhub_mcp_client::kill_orphans);
        let first = async {
            self.hub.list_missing().await;
            self.all_listed.send_replace(true);
            // Servers that failed or timed out before get their full timeout now.
            self.hub.list_still_missing().await;
            std::future::pending::<()>().await;
        };
        let notify = |change: ListChange| self.notify(&ProfileChange::Fetched(change));
        let ended_sessions = self.profiles.values().map(|(_, gateway)| async move {
            tokio::join!(gateway.follow_ended_sessions(), gateway.follow_adopted_sessions())
        });
        let (_, _, (), (), (), (), (), (), (), (), (), ()) = tokio::join!(
            swept,
            futures_util::future::join_all(ended_sessions),
            self.share_state_keys(),
            self.hub.follow_shared_changes(),
            self.follow_audit(),
            self.ended_scripts.follow(&self.hub),
            first,
            self.hub.follow(),
            self.follow_tools(),
            self.follow_notifications(),
            self.follow_skills(),
            self.offers.follow(|| self.access.has_several_principals(), notify)
        );
    }

    /// Sends a change to the clients of all profiles.
    fn notify(&self, change: &ProfileChange) {
        self.profiles.values().for_each(|(backend, _)| backend.notify(change));
    }

    /// The access control of all profiles.
    pub fn access(&self) -> &Arc<AccessControl> {
        &self.access
    }

    /// Applies changed keys, rules and budgets. Invalid rules change nothing.
    pub async fn reload_access(&self, auth: &AuthSettings) -> Result<(), LocalizedText> {
        let changes = self.access.apply(auth)?;
        for KeyChange { name, change, ends_person, is_revoked } in &changes.keys {
            // A log that fails stops calls; the new keys and rules are in force in any case.
            let _ = self.hub.record_change(ChangedObject::Key, name, *change).await;
            let principal = PrincipalOrigin::Key { name: name.clone() }.to_string();
            if *change != ChangeKind::Created {
                // Another key, perhaps of another person.
                self.login_links.forget_principal(&principal);
            }
            if *ends_person {
                let _ = self.hub.held_calls().withdraw_all(&principal).await;
                let _ = self.hub.forget_logins(&principal).await;
            }
            if let Some(store) = self.hub.store().filter(|_| *is_revoked) {
                let _ = store.delete_responses_of(&principal).await;
            }
        }
        if changes.rules {
            let rules = format!("{} rules, digest {:016x}", auth.rules.len(), self.access.rules().digest());
            let _ = self.hub.record_change(ChangedObject::Rule, &rules, ChangeKind::Updated).await;
            for (backend, _) in self.profiles.values() {
                backend.notify_all();
            }
        }
        Ok(())
    }

    /// Applies the servers of a reloaded configuration (see [`Hub::reload_servers`]) and notifies clients of the changes.
    pub async fn reload_servers(
        &self,
        paths: &Paths,
        settings: &Settings,
    ) -> Result<ServerChanges, ConfigError> {
        let changes = self.hub.reload_servers(paths, settings).await?;
        for (servers, change) in [
            (&changes.added, ChangeKind::Created),
            (&changes.changed, ChangeKind::Updated),
            (&changes.removed, ChangeKind::Deleted),
        ] {
            for server in servers {
                let _ = self.hub.record_change(ChangedObject::Server, server.as_str(), change).await;
            }
        }
        let kinds = [Offer::Prompts, Offer::Resources, Offer::ResourceTemplates];
        for server in changes.added.iter().chain(&changes.changed).chain(&changes.removed) {
            self.offers.note_changed(Some(server), &kinds);
            self.notify(&ProfileChange::Prompts { server: Some(server.clone()) });
            self.notify(&ProfileChange::Resources { server: Some(server.clone()) });
        }
        // The lists of removed servers are not fetched again, so that their difference is known now.
        for (server, offer) in changes.removed.iter().flat_map(|server| kinds.map(|kind| (server, kind))) {
            let (before, after) = (self.offers.fetched(server, offer), Arc::default());
            let server = server.clone();
            self.notify(&ProfileChange::Fetched(ListChange {
                server,
                offer,
                before,
                after,
                is_promised: false,
            }));
        }
        Ok(changes)
    }

    /// Polls for changed skills: those of the hub are files without change notifications. Also lists the skills of servers.
    async fn follow_skills(&self) {
        loop {
            tokio::time::sleep(SKILL_CHECK_INTERVAL).await;
            let learned = self.hub.refresh_server_skills().await;
            if self.hub.refresh_skills().await || learned {
                self.notify(&ProfileChange::Resources { server: None });
            }
        }
    }

    /// Appends logins and hidden refusals to the audit log.
    async fn follow_audit(&self) {
        let Some(audit) = self.hub.audit() else { return };
        self.record_start().await;
        loop {
            tokio::time::sleep(AUDIT_INTERVAL).await;
            self.access.pending_events.drain(audit).await;
        }
    }

    async fn follow_tools(&self) {
        let mut lists_version = self.hub.lists_version.subscribe();
        while lists_version.changed().await.is_ok() {
            let mut pause = Duration::ZERO;
            for (backend, _) in self.profiles.values() {
                backend.rebuild_view();
                self.offers.prefetch(&backend.servers());
                pause = pause.max(backend.pause());
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_notifications(&self) {
        let mut notifications = self.notifications.subscribe();
        loop {
            let change = match notifications.recv().await {
                Ok(change) => change,
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {
                    ProfileChange::Resources { server: None }
                }
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            };
            match &change {
                ProfileChange::Prompts { server } => {
                    self.offers.note_changed(server.as_ref(), &[Offer::Prompts]);
                }
                ProfileChange::Resources { server } => {
                    self.hub.server_skills.forget(server.as_ref());
                    self.offers.note_changed(server.as_ref(), &[Offer::Resources, Offer::ResourceTemplates]);
                }
                ProfileChange::Tools | ProfileChange::Updated { .. } | ProfileChange::Fetched(_) => {}
            }
            self.notify(&change);
        }
    }

    /// Lets other replicas serve the requests of sessions that live there. Only the first link counts.
    pub fn set_replica_link(&self, link: &Arc<dyn ReplicaLink>) {
        self.profiles.values().for_each(|(_, gateway)| gateway.set_link(Arc::clone(link)));
    }

    /// Serves a request that another replica has counted and sent here. Who made it is decided here: what the other replica states
    /// about the principal beside its credentials has no effect.
    pub async fn serve_replica(&self, request: ReplicaRequest) -> ReplicaResponse {
        let gateway = self.profiles.get(&request.profile).map(|(_, gateway)| gateway);
        // The default profile is reached with and without its name.
        let profiles = [None, Some(request.profile.as_str())];
        let profiles = profiles.get(usize::from(request.profile != self.default)..).unwrap_or_default();
        let principal = self.access.decide_again(&request.principal, profiles).await;
        let refused = |status| ReplicaResponse { status, body: ReplicaBody::Json(String::new()) };
        let Some(gateway) = gateway else { return refused(404) };
        // A provider may be unreachable, or a changed key not be in force here yet: 404 would end the session for its client.
        let Some(principal) = principal else { return refused(503) };
        gateway.serve_replica(request, &self.budgets_of_replicas.of(&principal)).await
    }

    /// Cancels all requests in flight.
    pub fn abort_all(&self) {
        self.profiles.values().for_each(|(_, gateway)| gateway.abort_all());
    }

    /// How many requests were cancelled.
    pub fn aborted_requests(&self) -> usize {
        self.profiles.values().map(|(_, gateway)| gateway.aborted_requests()).sum()
    }

    /// Ends long-lived streams and waits up to `timeout` for the remaining requests.
    pub async fn close(&self, timeout: Duration) {
        let closing = self.profiles.values().map(|(_, gateway)| gateway.close(timeout));
        futures_util::future::join_all(closing).await;
        self.ended_scripts.drain(&self.hub).await;
        if let Some(audit) = self.hub.audit() {
            self.access.pending_events.drain(audit).await;
        }
    }
}
