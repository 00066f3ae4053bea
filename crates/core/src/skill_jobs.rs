//! The port for scripts of skills that run on another machine. A job names a tool of a skill and has its arguments; the code, the
//! grants and the program are those of the machine that runs it.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::lang::LocalizedText;
use crate::ports::{BoxFuture, CallContext};

/// A run of a tool of a skill.
#[derive(Debug, Clone)]
pub struct SkillJob {
    /// The name of the skill.
    pub skill: String,
    /// The name of the tool in the catalog.
    pub tool: String,
    /// The SHA-256 over the files of the skill, its grants, and the file and the runner of the tool. Another machine runs the job
    /// only if its own skill has the same identity.
    pub identity: String,
    /// The arguments, which the script reads from its standard input.
    pub arguments: RawJson,
}

/// The result of a script that exited by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillExit {
    /// Whether the exit status is 0.
    pub success: bool,
    /// Exit status as text.
    pub exit_reason: LocalizedText,
    /// The standard output.
    #[serde(skip)]
    pub output: Vec<u8>,
    /// The end of stderr.
    pub stderr_text: String,
    /// Why the sandbox stopped the script or denied an operation, if it did.
    pub stopped: Option<LocalizedText>,
}

/// Why a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "why", rename_all = "snake_case")]
pub enum SkillRunError {
    /// It was not started.
    NotStarted(LocalizedText),
    /// The output exceeded the limit.
    OutputTooLarge(LocalizedText),
    /// The script ran, but its result is unknown.
    Lost(LocalizedText),
}

/// Why no worker has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillJobError {
    /// No worker has begun the job, and none will. The reason is that of the last worker; `None` if no worker takes jobs.
    NotTaken(Option<LocalizedText>),
    /// The script was begun there, and has no result.
    Run(SkillRunError),
    /// The worker was lost after it may have begun the job.
    WorkerLost(LocalizedText),
}

/// Runs jobs on workers of a cluster.
pub trait SkillWorkers: Send + Sync {
    /// Gives a job to a worker and waits for its end. A job is begun at most once. Dropping the future ends the script.
    fn run<'a>(
        &'a self,
        job: &'a SkillJob,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<SkillExit, SkillJobError>>;
}

/// Runs jobs on this machine for others.
pub trait SkillRunner: Send + Sync {
    /// Checks that the tool of this machine is approved here and has the identity of the job, and prepares its start. After an
    /// error, nothing was started.
    fn prepare(&self, job: SkillJob) -> BoxFuture<'_, Result<Box<dyn PreparedSkill>, LocalizedText>>;
}

/// A script that may be started.
pub trait PreparedSkill: Send {
    /// Starts the script. Dropping the returned future kills it. After an error, nothing was started.
    fn start(self: Box<Self>) -> Result<RunningSkill, LocalizedText>;
}

/// Waits for the end of a script.
pub type RunningSkill = BoxFuture<'static, Result<SkillExit, SkillRunError>>;
