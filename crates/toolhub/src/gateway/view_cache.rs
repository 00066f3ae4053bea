//! The names of the tools of a profile, which are the same for all principals, and the views of principals on them. Views are built
//! again if the catalog, the names, the rules or the keys have changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use toolhub_access::Permissions;
use toolhub_core::{ServerId, Source};
use toolhub_engine::{Catalog, RoutingPolicy};
use toolhub_server::Authenticator as _;

use super::assigned_names::{NameInputs, ToolNames};
use super::profile_access::ProfileAccess;
use super::thread_time::cpu_time;
use super::view::{PrincipalCount, View, ViewOptions};
use crate::access_control::AccessControl;
use crate::hub::Hub;
use crate::settings::ProfileSettings;

/// If building a view takes longer than `SLOW_VIEW`, requests use the previous view, and changes of servers rebuild it only after
/// a pause of `VIEW_PAUSE` times the build time.
const SLOW_VIEW: Duration = Duration::from_millis(50);
const VIEW_PAUSE: u32 = 8;
/// Maximum number of cached views of restricted principals.
const MAX_RESTRICTED_VIEWS: usize = 64;

/// The names of the tools of a profile, and what they were assigned from.
struct CachedNames {
    catalog: Arc<Catalog>,
    policy: Arc<RoutingPolicy>,
    names: Arc<ToolNames>,
}

/// A view, and what it was built from.
struct CachedView {
    cached_names: Arc<CachedNames>,
    /// The version of keys and rules.
    access_version: u64,
    view: Arc<View>,
}

/// What views are built from.
pub(super) struct ViewInputs {
    pub(super) hub: Arc<Hub>,
    pub(super) profile: Arc<ProfileSettings>,
    pub(super) access: Arc<AccessControl>,
    /// Whether all servers have been listed, or have failed once.
    pub(super) all_listed: watch::Receiver<bool>,
}

/// The names and views of one profile.
pub(super) struct ViewCache {
    inputs: ViewInputs,
    names: ArcSwapOption<CachedNames>,
    /// The view of principals that are not restricted.
    view: ArcSwapOption<CachedView>,
    /// The views of restricted principals; those with equal permissions share one.
    restricted_views: Mutex<HashMap<Permissions, Arc<CachedView>>>,
    /// The view whose list clients know, or have been notified of.
    announced: Mutex<Option<Arc<View>>>,
    /// How much processor time the last build of the view took. Under load, the time on the clock is a multiple of it.
    build_time: Mutex<Duration>,
    /// Held while names are assigned.
    naming: Mutex<()>,
    /// Held while a view is built.
    building: Mutex<()>,
}

impl ViewCache {
    pub(super) fn new(inputs: ViewInputs) -> Self {
        Self {
            inputs,
            names: ArcSwapOption::empty(),
            view: ArcSwapOption::empty(),
            restricted_views: Mutex::default(),
            announced: Mutex::default(),
            build_time: Mutex::default(),
            naming: Mutex::default(),
            building: Mutex::default(),
        }
    }

    /// Returns the names of the tools of the current catalog, and assigns them if necessary.
    pub(super) fn names(&self) -> Arc<ToolNames> {
        Arc::clone(&self.current_names().names)
    }

    fn current_names(&self) -> Arc<CachedNames> {
        if let Some(cached_names) = self.cached_names() {
            return cached_names;
        }
        let _naming = lock(&self.naming);
        // Another thread may have assigned the names while this one waited for the lock.
        if let Some(cached_names) = self.cached_names() {
            return cached_names;
        }
        let ViewInputs { hub, profile, all_listed, .. } = &self.inputs;
        let previous = self.names.load_full();
        // Before the catalog: it has the tools of every server that is not among these.
        let unlisted = self.unlisted_sources();
        let (catalog, policy, all_listed) = (hub.catalog(), hub.engine.policy(), *all_listed.borrow());
        let names = ToolNames::new(
            &catalog,
            &NameInputs {
                policy: &policy,
                profile,
                sources: hub.source_ids(),
                previous: previous.as_ref().map(|cached_names| &*cached_names.names),
                all_listed,
                unlisted: &unlisted,
            },
        );
        let cached_names = Arc::new(CachedNames { catalog, policy, names: Arc::new(names) });
        self.names.store(Some(Arc::clone(&cached_names)));
        cached_names
    }

    /// Returns the names of the tools of the current catalog if they are already assigned.
    fn cached_names(&self) -> Option<Arc<CachedNames>> {
        let ViewInputs { hub, all_listed, .. } = &self.inputs;
        self.names.load_full().filter(|cached| {
            Arc::ptr_eq(&cached.catalog, &hub.catalog())
                && Arc::ptr_eq(&cached.policy, &hub.engine.policy())
                && (cached.names.all_listed || !*all_listed.borrow())
                && self.still_awaits(&cached.names)
        })
    }

    /// Whether all servers are still unlisted for which an override waits.
    fn still_awaits(&self, names: &ToolNames) -> bool {
        let mut awaited =
            names.awaited_overrides.iter().flat_map(|awaited_override| &awaited_override.sources).peekable();
        if awaited.peek().is_none() {
            return true;
        }
        let unlisted = self.unlisted_sources();
        awaited.all(|source| unlisted.contains(source))
    }

    /// The sources of this profile whose tools are not in the catalog yet.
    fn unlisted_sources(&self) -> Vec<Source> {
        let ids = self.inputs.hub.not_in_catalog().into_iter();
        ids.filter(|id| self.inputs.profile.has_source(id.as_str())).map(Source::Server).collect()
    }

    /// Returns the view of the current catalog and builds it if necessary.
    pub(super) fn view(&self, access: &ProfileAccess) -> Arc<View> {
        if let Some(view) = self.current_view(access) {
            return view;
        }
        let _building = lock(&self.building);
        // Another thread may have built the view while this one waited for the lock.
        if let Some(view) = self.current_view(access) {
            return view;
        }
        let began = cpu_time();
        let access_version = self.inputs.access.version();
        let cached_names = self.current_names();
        // Rules may use the names that the owner assigned: those of the same catalog count.
        let access = access.with_names(&cached_names.names);
        let principals = self.principals();
        let options = ViewOptions { profile: &self.inputs.profile, access: &access, principals };
        let view = Arc::new(View::new(Arc::clone(&cached_names.catalog), &cached_names.names, &options));
        let cached_view = Arc::new(CachedView { cached_names, access_version, view: Arc::clone(&view) });
        match access.permissions() {
            None => {
                lock(&self.announced).get_or_insert_with(|| Arc::clone(&view));
                self.view.store(Some(cached_view));
            }
            Some(permissions) => {
                let mut views = lock(&self.restricted_views);
                views.retain(|_, other| {
                    Arc::ptr_eq(&other.cached_names, &cached_view.cached_names)
                        && other.access_version == access_version
                });
                if views.len() >= MAX_RESTRICTED_VIEWS {
                    views.clear();
                }
                views.insert(permissions.clone(), cached_view);
            }
        }
        *lock(&self.build_time) = cpu_time().saturating_sub(began);
        view
    }

    /// Notes the view whose list clients are notified of, and returns the one before.
    pub(super) fn announce(&self, view: &Arc<View>) -> Option<Arc<View>> {
        lock(&self.announced).replace(Arc::clone(view))
    }

    /// Returns the view for a request. If views are slow to build, an outdated view is returned once all servers have been
    /// listed, so that a server that changes a long list repeatedly does not delay other requests. A later call of
    /// [`Self::view`] builds the next view.
    pub(super) fn for_request(&self, access: &ProfileAccess) -> Arc<View> {
        if let Some(view) = self.current_view(access) {
            return view;
        }
        // Restricted views are not rebuilt in the background.
        let cached_view = access.permissions().is_none().then(|| self.view.load_full()).flatten();
        match cached_view {
            Some(cached_view)
                if cached_view.access_version == self.inputs.access.version()
                    && cached_view.cached_names.names.all_listed
                    && *lock(&self.build_time) > SLOW_VIEW =>
            {
                Arc::clone(&cached_view.view)
            }
            _ => self.view(access),
        }
    }

    /// How long to wait before the view is rebuilt for another change: a multiple of the build time if views are slow to build.
    pub(super) fn pause(&self) -> Duration {
        let build_time = *lock(&self.build_time);
        if build_time > SLOW_VIEW { build_time.saturating_mul(VIEW_PAUSE) } else { Duration::ZERO }
    }

    /// Returns the view of the current catalog if it is already built.
    fn current_view(&self, access: &ProfileAccess) -> Option<Arc<View>> {
        let names = self.cached_names()?;
        let current = |cached_view: &CachedView| {
            let is_current = Arc::ptr_eq(&cached_view.cached_names, &names)
                && cached_view.access_version == self.inputs.access.version();
            is_current.then(|| Arc::clone(&cached_view.view))
        };
        match access.permissions() {
            None => current(self.view.load().as_ref()?),
            Some(permissions) => current(lock(&self.restricted_views).get(permissions)?),
        }
    }

    /// How many principals the gateway distinguishes.
    pub(super) fn principals(&self) -> PrincipalCount {
        if self.inputs.access.has_several_principals() {
            PrincipalCount::Several
        } else {
            PrincipalCount::One
        }
    }

    /// The servers of this profile that were never listed, or not with their current configuration.
    pub(super) fn never_listed(&self) -> Vec<ServerId> {
        let unlisted = self.inputs.hub.unlisted().into_iter().map(|(server, _)| server.id().clone());
        unlisted.filter(|id| self.inputs.profile.has_source(id.as_str())).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
