//! Scripts of skills for other machines, executed in the real sandbox: what a worker runs, and what it refuses.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::NullSink;
use toolhub_core::skill_jobs::{SkillExit, SkillJob, SkillJobError, SkillRunner as _, SkillWorkers};
use toolhub_core::{
    BoxFuture, CallContext, CallId, Effect, Lang, Localize as _, RawJson, ToolError, ToolHost as _,
    ToolOutput,
};
use toolhub_skills::{
    ApprovalSource, LocalSkills, RemoteSkill, SkillApprovals, SkillFetcher, SkillGrants, SkillHost,
    SkillOptions, SkillOrigin, SkillPlacement, SkillRegistry, SkillRoot,
};

struct NoFetch;

impl SkillFetcher for NoFetch {
    fn fetch<'a>(
        &'a self,
        _: &'a RemoteSkill,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<u8>, LocalizedText>> {
        Box::pin(async { Err(LocalizedText::new("nowhere", "无")) })
    }
}

/// The approvals of a shared store.
#[derive(Default)]
struct Approvals(Mutex<SkillApprovals>);

impl ApprovalSource for Approvals {
    fn approvals(&self) -> BoxFuture<'_, Result<SkillApprovals, LocalizedText>> {
        let approvals = self.0.lock().unwrap().clone();
        Box::pin(async move { Ok(approvals) })
    }
}

/// A worker in the same process: the jobs that it was given, and the answer it gives instead of running them.
struct Workers {
    runner: LocalSkills,
    jobs: Mutex<Vec<SkillJob>>,
    answer: Mutex<Option<SkillJobError>>,
}

impl SkillWorkers for Workers {
    fn run<'a>(
        &'a self,
        job: &'a SkillJob,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<SkillExit, SkillJobError>> {
        Box::pin(async move {
            context.sending();
            self.jobs.lock().unwrap().push(job.clone());
            if let Some(error) = self.answer.lock().unwrap().clone() {
                return Err(error);
            }
            let prepared = self.runner.prepare(job.clone()).await;
            let prepared = prepared.map_err(|why| SkillJobError::NotTaken(Some(why)))?;
            let running = prepared.start().map_err(|why| SkillJobError::NotTaken(Some(why)))?;
            running.await.map_err(SkillJobError::Run)
        })
    }
}

/// A folder with the skill `sums` of one machine.
struct Machine {
    folder: tempfile::TempDir,
    registry: Arc<SkillRegistry>,
}

impl Machine {
    async fn new(origin: SkillOrigin, grants: SkillGrants) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sums");
        fs::create_dir_all(own.join("scripts")).unwrap();
        let text = "---\nname: sums\ndescription: For tests\nmetadata:\n  toolhub:\n    tools:\n      \
            - {name: sum, description: d, script: scripts/sum.sh}\n      \
            - {name: fail, description: d, script: scripts/fail.sh}\n---\nDo it.\n";
        fs::write(own.join("SKILL.md"), text).unwrap();
        let sum = "read -r line || true\nprintf '{\"dir\":\"%s\",\"given\":%s}' \"$SKILL_DIR\" \"$line\"\n";
        fs::write(own.join("scripts/sum.sh"), sum).unwrap();
        fs::write(own.join("scripts/fail.sh"), "echo broken >&2\nexit 3\n").unwrap();
        let options = SkillOptions {
            roots: vec![SkillRoot { folder: folder.path().to_owned(), origin }],
            grants: [("sums".to_owned(), grants)].into(),
            ..SkillOptions::default()
        };
        let registry = Arc::new(SkillRegistry::new(options));
        registry.refresh().await;
        Self { folder, registry }
    }

    fn skill(&self) -> PathBuf {
        self.folder.path().join("sums").canonicalize().unwrap()
    }

    /// The approval of the skill as it is now.
    fn approvals(&self) -> SkillApprovals {
        let snapshot = self.registry.snapshot();
        let skill = &snapshot.skills[0].skill;
        [(skill.key(), self.registry.files_of(skill).unwrap().digest())].into()
    }

    fn runner(&self, approvals: &Arc<Approvals>) -> LocalSkills {
        LocalSkills::new(Arc::clone(&self.registry), Arc::clone(approvals) as Arc<dyn ApprovalSource>)
    }
}

async fn call(host: &SkillHost, registry: &SkillRegistry, tool: &str) -> Result<ToolOutput, ToolError> {
    let tools = registry.tools();
    let tool = tools.iter().find(|one| one.name().as_str() == tool).unwrap();
    let context = CallContext {
        call: CallId::generate(),
        conversation: None,
        caller: None,
        events: Arc::new(NullSink),
        nested: None,
    };
    host.call(tool, &RawJson::parse("{\"n\":1}").unwrap(), &context).await
}

/// A replica and a worker with the same skill.
struct Pair {
    replica: Machine,
    worker: Machine,
    workers: Arc<Workers>,
}

impl Pair {
    async fn new(grants: SkillGrants) -> Self {
        let (replica, worker) = (
            Machine::new(SkillOrigin::User, grants.clone()).await,
            Machine::new(SkillOrigin::User, grants).await,
        );
        let runner = worker.runner(&Arc::default());
        let workers = Arc::new(Workers { runner, jobs: Mutex::default(), answer: Mutex::default() });
        Self { replica, worker, workers }
    }

    async fn call(&self, or_here: bool, tool: &str) -> Result<ToolOutput, ToolError> {
        let registry = &self.replica.registry;
        let workers = Arc::clone(&self.workers) as Arc<dyn SkillWorkers>;
        let host = SkillHost::new(Arc::clone(registry), Arc::new(NoFetch))
            .with_placement(Some(SkillPlacement { workers, or_here }));
        call(&host, registry, tool).await
    }

    fn jobs(&self) -> usize {
        self.workers.jobs.lock().unwrap().len()
    }
}

fn ran_in(output: &ToolOutput, folder: &Path) -> bool {
    output.raw().get().contains(&format!("{}", folder.display()))
}

/// A worker runs a copy of the files that it has verified.
fn ran_in_copy(output: &ToolOutput) -> bool {
    output.raw().get().contains("toolhub-skill-")
}

#[tokio::test]
async fn file_that_changes_after_the_check_is_not_run() {
    let pair = Pair::new(SkillGrants::default()).await;
    assert!(ran_in_copy(&pair.call(false, "sum").await.unwrap()));
    let job = pair.workers.jobs.lock().unwrap()[0].clone();
    let prepared = pair.workers.runner.prepare(job).await.map_err(|_| ()).unwrap();
    fs::write(pair.worker.skill().join("scripts/sum.sh"), "echo changed\n").unwrap();
    let exit = prepared.start().map_err(|_| ()).unwrap().await.map_err(|_| ()).unwrap();
    let output = String::from_utf8(exit.output).unwrap();
    assert!(output.contains("\"given\"") && !output.contains("changed"), "{output}");
}

#[tokio::test]
async fn runs_only_the_tool_that_was_verified() {
    let pair = Pair::new(SkillGrants::default()).await;
    let output = pair.call(false, "sum").await.unwrap();
    assert!(ran_in_copy(&output), "{output:?}");
    let job = pair.workers.jobs.lock().unwrap()[0].clone();
    let refusal = async |job: SkillJob| match pair.workers.runner.prepare(job).await {
        Ok(_) => panic!("it is prepared"),
        Err(why) => {
            assert!(!why.localize(Lang::Zh).is_empty());
            why.localize(Lang::En)
        }
    };
    let other = |change: fn(&mut SkillJob)| {
        let mut job = job.clone();
        change(&mut job);
        job
    };
    assert!(refusal(other(|job| job.identity = "0".repeat(64))).await.contains("other files, grants"));
    // Its identity is that of `sum`.
    assert!(refusal(other(|job| job.tool = "fail".to_owned())).await.contains("other files, grants"));
    assert!(
        refusal(other(|job| job.tool = "use_skill".to_owned())).await.contains("has no tool `use_skill`")
    );
    assert!(refusal(other(|job| job.skill = "other".to_owned())).await.contains("has no tool `sum`"));
    assert!(pair.workers.runner.prepare(job.clone()).await.is_ok());
    fs::write(pair.worker.skill().join("notes.md"), "new").unwrap();
    assert!(refusal(job).await.contains("other files, grants"));
}

#[tokio::test]
async fn replica_runs_what_no_worker_takes_only_if_it_may() {
    let pair = Pair::new(SkillGrants::default()).await;
    // A failure of the script is an answer.
    let (there, here) = (pair.call(true, "fail").await.unwrap_err(), {
        let registry = &pair.replica.registry;
        let host = SkillHost::new(Arc::clone(registry), Arc::new(NoFetch));
        call(&host, registry, "fail").await.unwrap_err()
    });
    assert_eq!(there.to_string(), here.to_string());
    assert_eq!(pair.jobs(), 1);

    let answer = |error: SkillJobError| *pair.workers.answer.lock().unwrap() = Some(error);
    answer(SkillJobError::NotTaken(None));
    let output = pair.call(true, "sum").await.unwrap();
    assert!(ran_in(&output, &pair.replica.skill()), "{output:?}");
    let error = pair.call(false, "sum").await.unwrap_err();
    assert_eq!(error.effect(), Effect::None);
    assert!(
        error.to_string().contains("no worker runs skills: start one that has the skill `sums`"),
        "{error}"
    );
    assert!(error.localize(Lang::Zh).contains("工作进程"), "{error}");
    answer(SkillJobError::WorkerLost(LocalizedText::new("its worker was lost", "失去联系")));
    for or_here in [false, true] {
        let error = pair.call(or_here, "sum").await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), ("worker_lost", Effect::Unknown));
        assert_eq!(error.to_string(), "its worker was lost; whether it took effect is unknown");
    }
}

#[tokio::test]
async fn granted_files_are_those_of_the_replica_unless_only_workers_run_skills() {
    for write in [false, true] {
        let files = tempfile::tempdir().unwrap();
        let granted = vec![files.path().display().to_string()];
        let grants = match write {
            true => SkillGrants { write: granted, ..SkillGrants::default() },
            false => SkillGrants { read: granted, ..SkillGrants::default() },
        };
        let pair = Pair::new(grants).await;
        let output = pair.call(true, "sum").await.unwrap();
        assert!(ran_in(&output, &pair.replica.skill()) && pair.jobs() == 0, "{output:?}");
        let output = pair.call(false, "sum").await.unwrap();
        assert!(ran_in_copy(&output) && pair.jobs() == 1, "{output:?}");
    }
}

#[tokio::test]
async fn worker_checks_the_approval_itself() {
    let machine = Machine::new(SkillOrigin::Project, SkillGrants::default()).await;
    let approvals = Arc::new(Approvals::default());
    let runner = machine.runner(&approvals);
    *approvals.0.lock().unwrap() = machine.approvals();
    // The replica has the same folder, so that its job has the right identity.
    let replica = Arc::new(SkillRegistry::new(SkillOptions {
        roots: vec![SkillRoot { folder: machine.folder.path().to_owned(), origin: SkillOrigin::Project }],
        ..SkillOptions::default()
    }));
    replica.refresh().await;
    *replica.approvals() = machine.approvals();
    replica.rebuild_snapshot().await;
    let runner_of_pair = machine.runner(&approvals);
    let workers =
        Arc::new(Workers { runner: runner_of_pair, jobs: Mutex::default(), answer: Mutex::default() });
    let host = SkillHost::new(Arc::clone(&replica), Arc::new(NoFetch)).with_placement(Some(SkillPlacement {
        workers: Arc::clone(&workers) as Arc<dyn SkillWorkers>,
        or_here: false,
    }));
    let output = call(&host, &replica, "sum").await.unwrap();
    // Approved files run from a copy.
    assert!(output.raw().get().contains("toolhub-skill-"), "{output:?}");
    let job = workers.jobs.lock().unwrap()[0].clone();
    assert!(runner.prepare(job.clone()).await.is_ok());
    // A revoked approval counts at once.
    approvals.0.lock().unwrap().clear();
    let why = runner.prepare(job.clone()).await.err().unwrap().localize(Lang::En);
    assert!(why.contains("on the worker, the skill `sums` is held back: not approved yet"), "{why}");
    *approvals.0.lock().unwrap() = machine.approvals();
    assert!(runner.prepare(job.clone()).await.is_ok());
    fs::write(machine.skill().join("scripts/sum.sh"), "echo evil\n").unwrap();
    let why = runner.prepare(job).await.err().unwrap().localize(Lang::En);
    assert!(why.contains("changed since it was approved"), "{why}");
}
