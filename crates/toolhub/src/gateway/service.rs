//! The hub as a service of the HTTP server: its gateways, health and metrics.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use toolhub_core::io_thread::PerIoThread;
use toolhub_core::{BoxFuture, Lang, Localize as _, Principal, Role, Roles, ServerId, Source};
use toolhub_mcp_gateway::Gateway;
use toolhub_server::{Health, HubService, LoginPage, LoginPageRequest, MetricKind, MetricsText};

use super::Gateways;

/// Counts finished calls, by success.
#[derive(Debug, Default)]
pub(super) struct CallCounts {
    all: PerIoThread<[AtomicU64; 2]>,
    pub(super) by_principal: PrincipalCounts,
}

impl CallCounts {
    pub(super) fn count(&self, success: bool) {
        self.all.current()[usize::from(success)].fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, success: bool) -> u64 {
        self.all.all().map(|counts| counts[usize::from(success)].load(Ordering::Relaxed)).sum()
    }
}

/// Maximum number of principals that are counted apart. The calls of others are counted together.
const MAX_COUNTED_PRINCIPALS: usize = 200;
/// The label of principals that are not counted apart. No principal has this id.
const OTHER: &str = "other";

/// The outcome of a call in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Failed,
    Succeeded,
    /// Not run, because of rules, roles, missing scopes or the daily budget.
    Refused,
}

impl CallOutcome {
    const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Refused];

    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::Refused => "refused",
        }
    }
}

/// Counts calls by principal and outcome, for a bounded number of principals.
#[derive(Debug, Default)]
pub(super) struct PrincipalCounts {
    counts_by_principal: RwLock<HashMap<Arc<str>, OutcomeCounts>>,
    others: OutcomeCounts,
}

type OutcomeCounts = [AtomicU64; 3];

impl PrincipalCounts {
    pub(super) fn count(&self, principal: &Arc<str>, outcome: CallOutcome) {
        let add = |counts: &OutcomeCounts| counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(counts) =
            self.counts_by_principal.read().unwrap_or_else(PoisonError::into_inner).get(principal)
        {
            add(counts);
            return;
        }
        let mut counts_by_principal =
            self.counts_by_principal.write().unwrap_or_else(PoisonError::into_inner);
        if counts_by_principal.len() < MAX_COUNTED_PRINCIPALS || counts_by_principal.contains_key(principal) {
            add(counts_by_principal.entry(Arc::clone(principal)).or_default());
        } else {
            add(&self.others);
        }
    }

    /// Writes the counts of the principals that a reader may see.
    fn write(&self, out: &mut MetricsText, is_visible: impl Fn(&str) -> bool) {
        let mut family = out.family(
            "toolhub_principal_calls_total",
            MetricKind::Counter,
            "Calls of tools, by principal and outcome.",
        );
        let mut write = |principal: &str, counts: &OutcomeCounts| {
            for outcome in CallOutcome::ALL {
                let count = counts[outcome as usize].load(Ordering::Relaxed);
                family.labelled_by(&[("principal", principal), ("outcome", outcome.name())], count);
            }
        };
        let counts_by_principal = self.counts_by_principal.read().unwrap_or_else(PoisonError::into_inner);
        let visible = counts_by_principal.iter().filter(|(principal, _)| is_visible(principal));
        visible.for_each(|(principal, counts)| write(principal, counts));
        if is_visible(OTHER) && self.others.iter().any(|count| count.load(Ordering::Relaxed) > 0) {
            write(OTHER, &self.others);
        }
    }
}

/// A part of the hub that does not work.
struct HealthProblem {
    /// The server; `None` if it concerns the whole hub.
    server: Option<ServerId>,
    text: String,
}

/// The servers that a principal may know of.
enum KnownServers {
    All,
    /// Those of which it sees a tool.
    Only(HashSet<Source>),
}

impl KnownServers {
    fn contains(&self, server: &ServerId) -> bool {
        match self {
            Self::All => true,
            Self::Only(sources) => sources.contains(&Source::Server(server.clone())),
        }
    }
}

/// Whether a principal manages or audits the hub, and so knows of all servers, profiles and principals.
fn manages_or_audits(principal: &Principal) -> bool {
    let managers: Roles = [Role::Operator, Role::Auditor, Role::Owner].into_iter().collect();
    principal.roles.intersects(managers)
}

impl Gateways {
    fn known_servers(&self, principal: &Arc<Principal>) -> KnownServers {
        // Without rules and profiles, nothing is hidden from a principal with a role.
        let is_unrestricted =
            principal.profiles.is_none() && !principal.roles.is_empty() && !self.access.has_rules();
        if is_unrestricted || manages_or_audits(principal) {
            return KnownServers::All;
        }
        let usable = self.profiles.iter().filter(|(name, _)| principal.may_use_profile(name));
        let views = usable.map(|(_, (backend, _))| backend.view(&backend.access_of(principal)));
        KnownServers::Only(views.flat_map(|view| view.sources().cloned().collect::<Vec<_>>()).collect())
    }

    fn problems(&self) -> Vec<HealthProblem> {
        let mut problems: Vec<HealthProblem> = self
            .hub
            .servers()
            .into_iter()
            .filter(|view| view.spec.enabled)
            .filter_map(|view| {
                let list = view.list.as_ref()?;
                // Failures of an earlier run are reported only if they occur again.
                let new = |at: &SystemTime| *at >= self.created_at;
                let last_failure = list.failure.as_ref().map(|(at, _)| at).or(list.late_at.as_ref());
                let why = list.known_problem().filter(|_| last_failure.is_some_and(new))?;
                let text = format!("server `{}`: {}", view.spec.id, why.localize(Lang::En));
                Some(HealthProblem { server: Some(view.spec.id.clone()), text })
            })
            .collect();
        let of_hub = |text: String| HealthProblem { server: None, text };
        let cluster_problems = self.hub.cluster_problems();
        problems.extend(
            cluster_problems.iter().map(|why| of_hub(format!("cluster: {}", why.localize(Lang::En)))),
        );
        if !self.hub.has_store() {
            problems.push(of_hub("store: nothing can be kept".to_owned()));
        }
        problems
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
        let degraded = self.problems().into_iter().map(|problem| problem.text).collect();
        Health { ready: true, degraded }
    }

    fn visible_problems(&self, principal: &Arc<Principal>) -> Vec<String> {
        let known_servers = self.known_servers(principal);
        let is_visible = |problem: &HealthProblem| match &problem.server {
            Some(server) => known_servers.contains(server),
            None => matches!(known_servers, KnownServers::All),
        };
        self.problems().into_iter().filter(is_visible).map(|problem| problem.text).collect()
    }

    fn login_page(&self, request: LoginPageRequest) -> BoxFuture<'_, Option<LoginPage>> {
        Box::pin(self.show_login_page(request))
    }

    fn write_metrics(&self, principal: &Arc<Principal>, out: &mut MetricsText) {
        let (known_servers, knows_callers) = (self.known_servers(principal), manages_or_audits(principal));
        // The number of all tools tells how many are hidden.
        if matches!(known_servers, KnownServers::All) {
            out.family(
                "toolhub_tools",
                MetricKind::Gauge,
                "Tools in the catalog, those that no profile offers too.",
            )
            .value(self.hub.catalog().len());
        }
        let mut sessions = out.family(
            "toolhub_sessions",
            MetricKind::Gauge,
            "Sessions of clients that speak 2025-11-25 or older, by profile.",
        );
        for (name, (_, gateway)) in self.profiles.iter().filter(|(name, _)| principal.may_use_profile(name)) {
            sessions.labelled("profile", name, gateway.sessions());
        }
        let mut restarts = out.family(
            "toolhub_server_restarts_total",
            MetricKind::Counter,
            "How often a server was started again.",
        );
        for view in self.hub.servers().iter().filter(|view| known_servers.contains(&view.spec.id)) {
            restarts.labelled("server", view.spec.id.as_str(), view.restarts);
        }
        let mut calls = out.family("toolhub_calls_total", MetricKind::Counter, "Calls of tools, by result.");
        for (result, success) in [("succeeded", true), ("failed", false)] {
            calls.labelled("result", result, self.counts.counted(success));
        }
        self.counts.by_principal.write(out, |counted| knows_callers || counted == &**principal.id());
        out.family(
            "toolhub_call_details_lost_total",
            MetricKind::Counter,
            "Calls that are in the statistics and not in the history, because the store failed or stores a sample.",
        )
        .value(self.hub.dropped_details());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_very_many_principals_need_bounded_labels() {
        let counts = PrincipalCounts::default();
        for number in 0..1_000 {
            let principal: Arc<str> = Arc::from(format!("oidc:https://idp.example#{number}"));
            counts.count(&principal, CallOutcome::Succeeded);
            counts.count(&principal, CallOutcome::Refused);
        }
        let mut out = MetricsText::default();
        counts.write(&mut out, |_| true);
        let text = out.into_text();
        assert_eq!(
            text.lines().filter(|line| !line.starts_with('#')).count(),
            3 * (MAX_COUNTED_PRINCIPALS + 1)
        );
        for sample in [
            r#"{principal="other",outcome="succeeded"} 800"#,
            r#"{principal="other",outcome="refused"} 800"#,
            r#"{principal="oidc:https://idp.example#0",outcome="failed"} 0"#,
            r#"{principal="oidc:https://idp.example#199",outcome="succeeded"} 1"#,
        ] {
            assert!(text.contains(&format!("toolhub_principal_calls_total{sample}")), "{sample}\n{text}");
        }
    }

    #[test]
    fn counts_of_other_principals_are_not_written() {
        let counts = PrincipalCounts::default();
        for number in 0..=MAX_COUNTED_PRINCIPALS {
            counts.count(&Arc::from(format!("key:{number}")), CallOutcome::Succeeded);
        }
        let mut out = MetricsText::default();
        counts.write(&mut out, |principal| principal == "key:7");
        let text = out.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(samples.len() == 3 && samples.iter().all(|line| line.contains(r#""key:7""#)), "{text}");
    }
}
