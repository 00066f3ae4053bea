//! The served hub as the HTTP server knows it: its gateways, how it stands, and what it counts.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use toolhub_core::lane::PerLane;
use toolhub_core::{Lang, Say as _};
use toolhub_mcp::gateway::Gateway;
use toolhub_server::{Health, Site};

use super::Gateways;

/// Counts calls as they end.
#[derive(Debug, Default)]
pub(super) struct CallCounts(PerLane<[AtomicU64; 2]>);

impl CallCounts {
    pub(super) fn count(&self, success: bool) {
        self.0.here()[usize::from(success)].fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, success: bool) -> u64 {
        self.0.all().map(|counts| counts[usize::from(success)].load(Ordering::Relaxed)).sum()
    }
}

impl Site for Gateways {
    fn gateway(&self, profile: Option<&str>) -> Option<Arc<Gateway>> {
        self.profile(profile)
    }

    fn health(&self) -> Health {
        let mut degraded: Vec<String> = self
            .hub
            .servers()
            .into_iter()
            .filter(|view| view.spec.enabled)
            .filter_map(|view| {
                let list = view.list.as_ref()?;
                // What an earlier run met is told when it is met again.
                let new = |at: &SystemTime| *at >= self.since;
                let known = list.failure.as_ref().map(|(at, _)| at).or(list.late_at.as_ref());
                let why = list.trouble().filter(|_| known.is_some_and(new))?;
                Some(format!("server `{}`: {}", view.spec.id, why.say(Lang::En)))
            })
            .collect();
        if !self.hub.has_store() {
            degraded.push("store: nothing can be kept".to_owned());
        }
        Health { ready: true, degraded }
    }

    fn measure(&self, out: &mut String) {
        let _ = writeln!(out, "# TYPE toolhub_tools gauge\ntoolhub_tools {}", self.hub.catalog().len());
        out.push_str("# TYPE toolhub_sessions gauge\n");
        for (name, (_, gateway)) in &self.profiles {
            let _ = writeln!(out, "toolhub_sessions{{profile=\"{}\"}} {}", label(name), gateway.sessions());
        }
        out.push_str("# TYPE toolhub_server_restarts_total counter\n");
        for view in self.hub.servers() {
            let id = label(view.spec.id.as_str());
            let _ = writeln!(out, "toolhub_server_restarts_total{{server=\"{id}\"}} {}", view.restarts);
        }
        out.push_str("# TYPE toolhub_calls_total counter\n");
        for (result, success) in [("succeeded", true), ("failed", false)] {
            let count = self.counts.counted(success);
            let _ = writeln!(out, "toolhub_calls_total{{result=\"{result}\"}} {count}");
        }
    }
}

/// A name as a label's value holds it.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
