//! The skills that a worker of a cluster runs for replicas: those of its own configuration, with the approvals of the shared store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use toolhub_cluster::SkillOffer;
use toolhub_core::BoxFuture;
use toolhub_core::lang::LocalizedText;
use toolhub_skills::{ApprovalSource, LocalSkills, SkillApprovals};
use toolhub_store::PgCluster;

use crate::server_hosts::limits_of;
use crate::settings::{Paths, RunLocation, Settings};
use crate::skills::skill_registry;

/// A script may take at least this long: a caller may allow more time than the limit of calls.
const MIN_MAX_TIME: Duration = Duration::from_secs(3600);

/// What the worker offers; `None` if the settings let it run no skills. Searches for skills.
pub(crate) async fn skill_offer(
    settings: &Settings,
    paths: &Paths,
    slots: usize,
    database: Arc<PgCluster>,
) -> Option<SkillOffer> {
    if slots == 0 || !settings.skills.enabled || settings.cluster.skills == RunLocation::Replica {
        return None;
    }
    // A tool of a project's skill whose name a replica has changed for a built-in tool is not found here, and refused.
    let registry = Arc::new(skill_registry(settings, paths, BTreeSet::new()));
    registry.refresh().await;
    let runner = Arc::new(LocalSkills::new(registry, Arc::new(StoredApprovals(database))));
    Some(SkillOffer { runner, slots, max_time: limits_of(settings).cap.max(MIN_MAX_TIME) })
}

/// The approvals in the shared store, read for each job: what was revoked does not run.
struct StoredApprovals(Arc<PgCluster>);

impl ApprovalSource for StoredApprovals {
    fn approvals(&self) -> BoxFuture<'_, Result<SkillApprovals, LocalizedText>> {
        Box::pin(async {
            let approvals = self.0.skill_approvals().await;
            approvals.map(|approvals| approvals.into_iter().collect()).map_err(|error| {
                LocalizedText::new(
                    format!("the worker cannot read which skills are approved: {error}"),
                    format!("该工作进程无法读取技能的批准记录：{error}"),
                )
            })
        })
    }
}
