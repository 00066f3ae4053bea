//! Scripts of skills on other machines, both sides: a replica names a tool with its identity, and a worker runs its own tool if that
//! has the same one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::skill_jobs::{PreparedSkill, RunningSkill, SkillJob, SkillRunner, SkillWorkers};
use toolhub_core::{BoxFuture, RawJson, ToolError};

use crate::approval_state::{ApprovalState, SkillApprovals};
use crate::declarations::{Runner, SkillTool};
use crate::identity::{identity, is_variable_set};
use crate::registry::{RegisteredSkill, SkillRegistry};
use crate::script_job::{ConfinedScript, ScriptJob, WorkFolder};
use crate::verification::{blocking, not_run};

/// The folders of skills are not searched again before this time has passed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// The workers of a cluster, and whether this machine runs what they do not take.
#[derive(Clone)]
pub struct SkillPlacement {
    /// The workers.
    pub workers: Arc<dyn SkillWorkers>,
    /// Whether this machine runs what no worker takes, and all scripts that may read or write granted files.
    pub or_here: bool,
}

impl std::fmt::Debug for SkillPlacement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillPlacement").field("or_here", &self.or_here).finish_non_exhaustive()
    }
}

impl SkillPlacement {
    /// Whether a worker may run the scripts of a skill. Granted files are those of the machine on which the script runs.
    pub(crate) fn permits(&self, known: &RegisteredSkill) -> bool {
        !self.or_here || (known.grants.read.is_empty() && known.grants.write.is_empty())
    }
}

/// A call of a tool of a skill.
#[derive(Clone, Copy)]
pub(crate) struct ScriptCall<'a> {
    pub(crate) known: &'a RegisteredSkill,
    pub(crate) script: &'a SkillTool,
    /// The name of the tool in the catalog.
    pub(crate) wire_name: &'a str,
    pub(crate) arguments: &'a RawJson,
}

impl SkillRegistry {
    /// The job for a call, if its skill may be used now.
    pub(crate) async fn worker_job(self: &Arc<Self>, call: ScriptCall<'_>) -> Result<SkillJob, ToolError> {
        let ScriptCall { known, script, wire_name, arguments } = call;
        let (registry, to_check, tool) = (Arc::clone(self), known.clone(), script.clone());
        let identity = blocking(move || {
            let files = match registry.verify_approval(&to_check)? {
                Some(files) => files,
                None => registry.files_of(&to_check.skill).map_err(not_run)?,
            };
            Ok(identity(&to_check, &tool, &files, is_variable_set))
        })
        .await?;
        let (skill, tool) = (known.skill.name.clone(), wire_name.to_owned());
        Ok(SkillJob { skill, tool, identity, arguments: arguments.clone() })
    }
}

/// Reads the approvals of skills that are in force now.
pub trait ApprovalSource: Send + Sync {
    /// The approved digests, by the keys of skills.
    fn approvals(&self) -> BoxFuture<'_, Result<SkillApprovals, LocalizedText>>;
}

/// Runs jobs of replicas with the skills of this machine. Nothing of a job but its arguments reaches a script.
pub struct LocalSkills {
    registry: Arc<SkillRegistry>,
    approvals: Arc<dyn ApprovalSource>,
    refreshed: Mutex<Instant>,
}

impl std::fmt::Debug for LocalSkills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSkills").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// A job that this machine cannot run.
struct JobRefusal {
    why: LocalizedText,
    /// Whether a search for skills may find the tool, or another state of it.
    may_be_outdated: bool,
}

impl JobRefusal {
    fn of(error: &ToolError) -> Self {
        let (en, zh) = (error.localize(Lang::En), error.localize(Lang::Zh));
        let why = LocalizedText::new(format!("on the worker, {en}"), format!("在该工作进程上，{zh}"));
        Self { why, may_be_outdated: false }
    }
}

impl LocalSkills {
    /// Runs skills of a registry that has been filled.
    pub fn new(registry: Arc<SkillRegistry>, approvals: Arc<dyn ApprovalSource>) -> Self {
        Self { registry, approvals, refreshed: Mutex::new(Instant::now()) }
    }

    /// Searches for skills again. `false` if that was done a short time ago.
    async fn refresh(&self) -> bool {
        {
            let mut refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
            if refreshed.elapsed() < REFRESH_INTERVAL {
                return false;
            }
            *refreshed = Instant::now();
        }
        self.registry.refresh().await;
        true
    }

    /// Applies the approvals in force: one may have been revoked since the last job.
    async fn read_approvals(&self) -> Result<(), LocalizedText> {
        let snapshot = self.registry.snapshot();
        if snapshot.skills.iter().all(|known| known.approval == ApprovalState::NotRequired) {
            return Ok(());
        }
        let approvals = self.approvals.approvals().await?;
        let is_changed = {
            let mut known = self.registry.approvals();
            let is_changed = *known != approvals;
            *known = approvals;
            is_changed
        };
        if is_changed {
            self.registry.rebuild_snapshot().await;
        }
        Ok(())
    }

    /// Checks the tool of this machine against a job, and prepares its folder.
    async fn verify(&self, job: &SkillJob) -> Result<VerifiedTool, JobRefusal> {
        self.read_approvals().await.map_err(|why| JobRefusal { why, may_be_outdated: false })?;
        let snapshot = self.registry.snapshot();
        let named = snapshot.with_tool(&job.tool).filter(|(known, _)| known.skill.name == job.skill);
        let Some((known, script)) = named.filter(|(_, script)| script.runner != Runner::Calling) else {
            return Err(JobRefusal { why: unknown_tool(job), may_be_outdated: true });
        };
        let (known, script) = (known.clone(), script.clone());
        let (registry, to_check, tool) = (Arc::clone(&self.registry), known.clone(), script.clone());
        let expected = job.identity.clone();
        let work_folder = blocking(move || {
            let approved = registry.verify_approval(&to_check)?;
            let files = match &approved {
                Some(files) => files.clone(),
                None => registry.files_of(&to_check.skill).map_err(not_run)?,
            };
            if identity(&to_check, &tool, &files, is_variable_set) != expected {
                return Ok(None);
            }
            // Also without an approval the files that were compared are those that run.
            WorkFolder::prepare(&to_check, Some(&files)).map(Some)
        })
        .await
        .map_err(|error| JobRefusal::of(&error))?;
        match work_folder {
            Some(work_folder) => Ok(VerifiedTool { known, script, work_folder }),
            None => Err(JobRefusal { why: other_identity(job), may_be_outdated: true }),
        }
    }
}

/// A tool of this machine with the identity of a job.
struct VerifiedTool {
    known: RegisteredSkill,
    script: SkillTool,
    work_folder: WorkFolder,
}

impl SkillRunner for LocalSkills {
    fn prepare(&self, job: SkillJob) -> BoxFuture<'_, Result<Box<dyn PreparedSkill>, LocalizedText>> {
        Box::pin(async move {
            let verified = match self.verify(&job).await {
                Err(refusal) if refusal.may_be_outdated && self.refresh().await => self.verify(&job).await,
                verified => verified,
            };
            let VerifiedTool { known, script, work_folder } = verified.map_err(|refusal| refusal.why)?;
            let job = ScriptJob::new(&self.registry, &known, &script, work_folder, &job.arguments).await;
            let confined =
                job.and_then(ScriptJob::confine).map_err(|why| JobRefusal::of(&not_run(why)).why)?;
            Ok(Box::new(PreparedScript(confined)) as Box<dyn PreparedSkill>)
        })
    }
}

/// A script that may be started.
struct PreparedScript(ConfinedScript);

impl PreparedSkill for PreparedScript {
    fn start(self: Box<Self>) -> Result<RunningSkill, LocalizedText> {
        let running = self.0.start()?;
        Ok(Box::pin(running.finish()))
    }
}

fn unknown_tool(job: &SkillJob) -> LocalizedText {
    let SkillJob { skill, tool, .. } = job;
    LocalizedText::new(
        format!("the worker has no tool `{tool}` of the skill `{skill}`: give all machines the same skills"),
        format!("该工作进程没有技能 `{skill}` 的工具 `{tool}`：请让所有机器使用相同的技能"),
    )
}

fn other_identity(job: &SkillJob) -> LocalizedText {
    let skill = &job.skill;
    LocalizedText::new(
        format!(
            "the worker has other files, grants or environment variables for the skill `{skill}`: give all machines the same files and configuration"
        ),
        format!("该工作进程上技能 `{skill}` 的文件、授权或环境变量不同：请让所有机器使用相同的文件和配置"),
    )
}
