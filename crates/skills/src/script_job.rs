//! A script of a skill that is ready to run: its verified files, its program, and the sandbox with the grants of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolhub_core::lang::LocalizedText;
use toolhub_core::skill_jobs::{SkillExit, SkillRunError};
use toolhub_core::{RawJson, ToolError, hex};
use toolhub_sandbox::{NetworkAccess, SandboxPolicy, SandboxProgram};

use crate::approval_state::ApprovalState;
use crate::declarations::{Runner, SkillTool};
use crate::file_set::{FileKind, FileSet};
use crate::grants::absolute_grant;
use crate::interpreter::{self, Interpreter};
use crate::registry::{RegisteredSkill, SkillRegistry};
use crate::run::{ConfinedJob, RunningJob, SandboxJob};
use crate::skill::SkillShape;
use crate::skill_file;
use crate::verification::{not_approved, not_run};

/// A script with the folder that it runs from.
pub(crate) struct ScriptJob {
    job: SandboxJob,
    work_folder: WorkFolder,
}

/// A script whose sandbox is prepared.
pub(crate) struct ConfinedScript {
    job: ConfinedJob,
    work_folder: WorkFolder,
}

/// A script that runs. Dropping it kills it.
pub(crate) struct RunningScript {
    job: RunningJob,
    work_folder: WorkFolder,
}

impl ScriptJob {
    /// Chooses the program and the sandbox of a script.
    pub(crate) async fn new(
        registry: &SkillRegistry,
        known: &RegisteredSkill,
        script: &SkillTool,
        work_folder: WorkFolder,
        arguments: &RawJson,
    ) -> Result<Self, LocalizedText> {
        let file = inside(&work_folder.folder, &script.file)?;
        let work = std::env::current_dir().unwrap_or_else(|_| work_folder.folder.clone());
        let (program, arguments_of) = started_by(registry, &file, &script.runner).await?;
        let paths =
            |granted: &[String]| granted.iter().map(|path| absolute_grant(path, &work)).collect::<Vec<_>>();
        let own = vec![match known.skill.shape {
            SkillShape::Folder => work_folder.folder.clone(),
            SkillShape::PythonFile => file.clone(),
        }];
        let (read, write) = (paths(&known.grants.read), paths(&known.grants.write));
        // If the script may access toolhub's working directory, it runs there, so that relative paths mean the same as
        // for the user.
        let at_work =
            own.iter().chain(&read).chain(&write).any(|granted| work.starts_with(granted.as_path()));
        let mut environment: Vec<(String, String)> = known
            .grants
            .environment
            .iter()
            .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
            .collect();
        environment.push(("SKILL_DIR".to_owned(), work_folder.folder.display().to_string()));
        environment.push(("TOOLHUB_WORK".to_owned(), work.display().to_string()));
        let folder = if at_work { work } else { work_folder.folder.clone() };
        let policy = SandboxPolicy {
            read,
            write,
            own,
            // An executable that is started directly is part of the skill, not an additional program.
            programs: Vec::from_iter(Some(program.clone()).filter(|program| program.path != file)),
            protected: registry.options.data.iter().cloned().collect(),
            network: if known.grants.network { NetworkAccess::All } else { NetworkAccess::None },
            environment,
            allow_missing: registry.options.allow_missing.clone(),
            ..SandboxPolicy::default()
        };
        let job = SandboxJob {
            program: program.path,
            arguments: arguments_of,
            folder,
            policy,
            skill: Some(known.skill.name.clone()),
            input: arguments.get().as_bytes().to_vec(),
        };
        Ok(Self { job, work_folder })
    }

    /// Prepares the sandbox. Starts nothing.
    pub(crate) fn confine(self) -> Result<ConfinedScript, LocalizedText> {
        Ok(ConfinedScript { job: self.job.confine()?, work_folder: self.work_folder })
    }
}

impl ConfinedScript {
    /// Starts the script.
    pub(crate) fn start(self) -> Result<RunningScript, LocalizedText> {
        Ok(RunningScript { job: self.job.start()?, work_folder: self.work_folder })
    }
}

impl RunningScript {
    /// Waits for the end of the script.
    pub(crate) async fn finish(self) -> Result<SkillExit, SkillRunError> {
        let exit = self.job.finish().await;
        drop(self.work_folder);
        exit
    }
}

/// Returns the program that runs a file, and its arguments.
async fn started_by(
    registry: &SkillRegistry,
    file: &Path,
    runner: &Runner,
) -> Result<(SandboxProgram, Vec<OsString>), LocalizedText> {
    Ok(match runner {
        Runner::PythonClass(class) => registry.python.run_class(file, class).await?,
        // A script that calls tools is never started as a program.
        Runner::Calling => return Err(LocalizedText::new("it is not a program", "它不是程序")),
        Runner::Script => match interpreter::of(file).map_err(|why| why.text())? {
            Interpreter::Python => registry.python.run_script(file).await?,
            Interpreter::Program(program, mut words) => {
                words.push(file.as_os_str().to_owned());
                (SandboxProgram::of_script(program), words)
            }
            Interpreter::Executable => (SandboxProgram::of_script(file), Vec::new()),
        },
    })
}

/// Returns the canonical path of a skill's file. Rejects symbolic links that lead out of the skill.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, LocalizedText> {
    let file = folder.join(name).canonicalize().map_err(|error| {
        LocalizedText::new(
            format!("`{name}` cannot be opened: {error}"),
            format!("无法打开 `{name}`：{error}"),
        )
    })?;
    if file.starts_with(folder) {
        return Ok(file);
    }
    let shown = file.display();
    Err(LocalizedText::new(
        format!("`{name}` leads out of the skill, to `{shown}`: put the file itself into the skill"),
        format!("`{name}` 指向技能之外的 `{shown}`：请把文件本身放进技能目录"),
    ))
}

/// The folder a script runs from: the skill's own, or a copy if the approval covers specific files.
pub(crate) struct WorkFolder {
    folder: PathBuf,
    _copy: Option<TempDir>,
}

impl WorkFolder {
    pub(crate) fn prepare(known: &RegisteredSkill, approved: Option<&FileSet>) -> Result<Self, ToolError> {
        let skill = &known.skill;
        let folder = skill.folder.canonicalize().unwrap_or_else(|_| skill.folder.clone());
        let Some(files) = approved else { return Ok(Self { folder, _copy: None }) };
        // The files could change between check and start, so exactly the verified bytes are copied and run.
        let failed = |error: std::io::Error| {
            not_run(LocalizedText::new(
                format!("the skill could not be copied: {error}"),
                format!("无法复制技能：{error}"),
            ))
        };
        let copy = tempfile::Builder::new().prefix("toolhub-skill-").tempdir().map_err(failed)?;
        for (path, file) in &files.files {
            if file.kind == FileKind::Link {
                continue;
            }
            let bytes = skill_file::read(&folder, path, u64::MAX - 1)
                .map_err(|error| not_run(error.text().clone()))?;
            if hex::sha256(&bytes) != file.digest {
                return Err(not_approved(known, &ApprovalState::Changed));
            }
            let to = copy.path().join(path);
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent).map_err(failed)?;
            }
            std::fs::write(&to, bytes).map_err(failed)?;
            #[cfg(unix)]
            if file.kind == FileKind::Executable {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
            }
        }
        let folder = copy.path().canonicalize().map_err(failed)?;
        Ok(Self { folder, _copy: Some(copy) })
    }
}
