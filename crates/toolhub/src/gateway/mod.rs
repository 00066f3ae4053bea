//! The gateway of the hub: a backend for each profile, and the task that keeps the backends up to date.

mod backend;
mod client_errors;
mod finders;
mod forward;
mod notification_bus;
mod offers;
mod profile_check;
mod service;
mod skills;
mod tasks;
mod view;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use toolhub_core::{Lang, ServerId};
use toolhub_mcp_gateway::{Gateway, News, SessionRecord};
use toolhub_mcp_wire::Offer;

pub use notification_bus::NotificationBus;

use self::backend::{HubBackend, Shared};
use self::offers::OfferBook;
use self::service::CallCounts;
use self::tasks::TaskOwners;
use self::watches::Watches;
use crate::hub::Hub;
use crate::reload::ServerChanges;
use crate::settings::{ConfigError, DEFAULT_PROFILE, Places, Settings};

/// Interval at which skills are checked for changes.
const SKILLS_KEEP: Duration = Duration::from_secs(5);

/// The gateways of all profiles of a hub.
#[derive(Debug)]
pub struct Gateways {
    hub: Arc<Hub>,
    notifications: NotificationBus,
    offers: Arc<OfferBook>,
    profiles: BTreeMap<String, (Arc<HubBackend>, Arc<Gateway>)>,
    /// Whether all servers that were never listed have been listed or have failed once.
    settled: watch::Sender<bool>,
    counts: Arc<CallCounts>,
    /// The profile of clients that name no profile.
    default: String,
    /// When the gateways were created. Earlier failures are not reported: they may be resolved.
    since: SystemTime,
}

impl Gateways {
    /// Creates the gateways of the configured profiles and of the default profile. The hub must have been built with
    /// `notifications` as its handler.
    pub fn new(hub: Arc<Hub>, notifications: NotificationBus, lang: Lang) -> Self {
        let counts = Arc::<CallCounts>::default();
        let mut settings = hub.settings().profiles.clone();
        settings.entry(DEFAULT_PROFILE.to_owned()).or_default();
        let (offers, settled) = (Arc::new(OfferBook::new(Arc::clone(&hub))), watch::Sender::new(false));
        let (tasks, watches) = (Arc::<TaskOwners>::default(), Arc::<Watches>::default());
        let record = Arc::new(match hub.has_store() {
            true => SessionRecord::in_folder(&hub.places().home),
            false => SessionRecord::in_memory(),
        });
        let profiles = settings
            .into_iter()
            .map(|(name, profile)| {
                let parts = Shared {
                    offers: Arc::clone(&offers),
                    settled: settled.subscribe(),
                    counts: Arc::clone(&counts),
                    tasks: Arc::clone(&tasks),
                    watches: Arc::clone(&watches),
                };
                let backend = Arc::new(HubBackend::new(Arc::clone(&hub), profile, parts, lang));
                let gateway =
                    Gateway::new(Arc::clone(&backend) as _).with_sessions(&name, Arc::clone(&record));
                let gateway = Arc::new(gateway);
                (name, (backend, gateway))
            })
            .collect();
        let default = DEFAULT_PROFILE.to_owned();
        Self { hub, notifications, offers, profiles, settled, counts, default, since: SystemTime::now() }
    }

    /// Sets the profile of clients that name no profile.
    #[must_use]
    pub fn by_default(mut self, profile: &str) -> Self {
        profile.clone_into(&mut self.default);
        self
    }

    /// The gateway of a profile, or of the default profile if `name` is `None`.
    pub fn profile(&self, name: Option<&str>) -> Option<Arc<Gateway>> {
        self.profiles.get(name.unwrap_or(&self.default)).map(|(_, gateway)| Arc::clone(gateway))
    }

    /// Number of tools in the default profile.
    pub fn tools(&self) -> usize {
        self.profiles.get(&self.default).map_or(0, |(backend, _)| backend.view().targets.len())
    }

    /// The names of the profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The hub behind them.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Keeps all backends up to date and notifies clients of changes while it is polled.
    pub async fn follow(&self) {
        // Removes leftovers of a killed process. Runs concurrently with the rest.
        let swept = tokio::task::spawn_blocking(toolhub_mcp_client::sweep_left_behind);
        let first = async {
            self.hub.list_missing().await;
            self.settled.send_replace(true);
            // Servers that failed or timed out before get their full timeout now.
            self.hub.list_still_missing().await;
            std::future::pending::<()>().await;
        };
        let tell = |server: &ServerId, news: News| {
            self.profiles.values().for_each(|(backend, _)| backend.tell(Some(server), &news));
        };
        let (_, (), (), (), (), (), ()) = tokio::join!(
            swept,
            first,
            self.hub.follow(),
            self.follow_tools(),
            self.follow_tidings(),
            self.follow_skills(),
            self.offers.follow(tell)
        );
    }

    /// Applies the servers of a reloaded configuration (see [`Hub::reload_servers`]) and notifies clients of the changes.
    pub async fn reload_servers(
        &self,
        places: &Places,
        settings: &Settings,
    ) -> Result<ServerChanges, ConfigError> {
        let changes = self.hub.reload_servers(places, settings).await?;
        let kinds = [Offer::Prompts, Offer::Resources, Offer::ResourceTemplates];
        for server in changes.added.iter().chain(&changes.changed).chain(&changes.removed) {
            self.offers.note_changed(Some(server), &kinds);
            for (backend, _) in self.profiles.values() {
                backend.tell(Some(server), &News::Prompts);
                backend.tell(Some(server), &News::Resources);
            }
        }
        Ok(changes)
    }

    /// Polls for changed skills: those of the hub are files without change notifications. Also lists the skills of servers.
    async fn follow_skills(&self) {
        loop {
            tokio::time::sleep(SKILLS_KEEP).await;
            let learned = self.hub.learn_server_skills().await;
            if self.hub.refresh_skills().await || learned {
                self.profiles.values().for_each(|(backend, _)| backend.tell(None, &News::Resources));
            }
        }
    }

    async fn follow_tools(&self) {
        let mut kept = self.hub.lists_kept.subscribe();
        while kept.changed().await.is_ok() {
            let mut pause = Duration::ZERO;
            for (backend, _) in self.profiles.values() {
                backend.look_again();
                self.offers.prefetch(&backend.servers());
                pause = pause.max(backend.pause());
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_tidings(&self) {
        let mut notifications = self.notifications.hear();
        loop {
            let (server, news) = match notifications.recv().await {
                Ok(told) => told,
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => (None, News::Resources),
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            };
            match &news {
                News::Prompts => self.offers.note_changed(server.as_ref(), &[Offer::Prompts]),
                News::Resources => {
                    self.hub.server_skills.forget(server.as_ref());
                    self.offers.note_changed(server.as_ref(), &[Offer::Resources, Offer::ResourceTemplates]);
                }
                News::Tools | News::Updated { .. } => {}
            }
            for (backend, _) in self.profiles.values() {
                backend.tell(server.as_ref(), &news);
            }
        }
    }

    /// Cancels all requests in flight.
    pub fn give_up(&self) {
        self.profiles.values().for_each(|(_, gateway)| gateway.give_up());
    }

    /// How many requests were cancelled.
    pub fn cut(&self) -> usize {
        self.profiles.values().map(|(_, gateway)| gateway.cut()).sum()
    }

    /// Ends long-lived streams and waits up to `patience` for the remaining requests.
    pub async fn close(&self, patience: Duration) {
        let closing = self.profiles.values().map(|(_, gateway)| gateway.close(patience));
        futures_util::future::join_all(closing).await;
    }
}
