//! The hub as a service of the HTTP server: its gateways, health and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use toolhub_core::worker::PerWorker;
use toolhub_core::{BoxFuture, Lang, Localize as _};
use toolhub_mcp_gateway::Gateway;
use toolhub_server::{Health, HubService, Kind, LoginPage, LoginPageRequest, MetricsText};

use super::Gateways;

/// Counts finished calls, by success.
#[derive(Debug, Default)]
pub(super) struct CallCounts(PerWorker<[AtomicU64; 2]>);

impl CallCounts {
    pub(super) fn count(&self, success: bool) {
        self.0.current()[usize::from(success)].fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, success: bool) -> u64 {
        self.0.all().map(|counts| counts[usize::from(success)].load(Ordering::Relaxed)).sum()
    }
}

impl HubService for Gateways {
    fn gateway(&self, profile: Option<&str>) -> Option<Arc<Gateway>> {
        self.profile(profile)
    }

    fn default_profile(&self) -> &str {
        &self.default
    }

    fn profiles(&self) -> Vec<String> {
        self.profiles.keys().cloned().collect()
    }

    fn health(&self) -> Health {
        let mut degraded: Vec<String> = self
            .hub
            .servers()
            .into_iter()
            .filter(|view| view.spec.enabled)
            .filter_map(|view| {
                let list = view.list.as_ref()?;
                // Failures of an earlier run are reported only if they occur again.
                let new = |at: &SystemTime| *at >= self.since;
                let known = list.failure.as_ref().map(|(at, _)| at).or(list.late_at.as_ref());
                let why = list.known_problem().filter(|_| known.is_some_and(new))?;
                Some(format!("server `{}`: {}", view.spec.id, why.localize(Lang::En)))
            })
            .collect();
        if !self.hub.has_store() {
            degraded.push("store: nothing can be kept".to_owned());
        }
        Health { ready: true, degraded }
    }

    fn login_page(&self, request: LoginPageRequest) -> BoxFuture<'_, Option<LoginPage>> {
        Box::pin(self.show_login_page(request))
    }

    fn write_metrics(&self, out: &mut MetricsText) {
        out.family("toolhub_tools", Kind::Gauge, "Tools in the catalog, those that no profile offers too.")
            .value(self.hub.catalog().len());
        let mut sessions = out.family(
            "toolhub_sessions",
            Kind::Gauge,
            "Sessions of clients that speak 2025-11-25 or older, by profile.",
        );
        for (name, (_, gateway)) in &self.profiles {
            sessions.labelled(("profile", name), gateway.sessions());
        }
        let mut restarts = out.family(
            "toolhub_server_restarts_total",
            Kind::Counter,
            "How often a server was started again.",
        );
        for view in self.hub.servers() {
            restarts.labelled(("server", view.spec.id.as_str()), view.restarts);
        }
        let mut calls = out.family("toolhub_calls_total", Kind::Counter, "Calls of tools, by result.");
        for (result, success) in [("succeeded", true), ("failed", false)] {
            calls.labelled(("result", result), self.counts.counted(success));
        }
        out.family(
            "toolhub_call_details_lost_total",
            Kind::Counter,
            "Calls that are in the statistics and not in the history, because the store failed or stores a sample.",
        )
        .value(self.hub.dropped_details());
    }
}
