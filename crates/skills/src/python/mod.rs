//! Python files whose classes are tools: listed without importing them, cached by file digest, run by `runner.py`.
//! `locate` finds the interpreter.

mod locate;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OnceCell;
use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_core::skill_jobs::SkillRunError;
use toolhub_core::{Consent, Hints, LaunchPermit, Localize as _, RawJson, hex};
use toolhub_private_files::{SyncMode, create_private_parent, replace_private};
use toolhub_sandbox::{SandboxPolicy, SandboxProgram};

use self::locate::{INTERPRETER_TIMEOUT, canonical_place, locate};
use crate::declarations::{Runner, SkillTool};
use crate::diagnostic::{Diagnostic, Severity};
use crate::run::{self, SandboxJob};

/// Lists and runs the classes of a file.
const RUNNER: &str = include_str!("runner.py");
/// Maximum size of an inspected file, in bytes.
const MAX_INSPECTED_BYTES: u64 = 1 << 20;
/// Number of files inspected per process.
const MAX_BATCH: usize = 50;

/// Lists and runs the classes of Python files.
#[derive(Debug)]
pub(crate) struct Python {
    /// The command of the interpreter.
    requested: String,
    /// Must permit each start of a configured interpreter. `None` for the interpreter of the user's own configuration
    /// and for the default.
    consent: Option<Consent>,
    found: OnceCell<Result<SandboxProgram, LocalizedText>>,
    /// The cache file.
    cache_file: Option<PathBuf>,
    cache: Mutex<HashMap<String, Inspection>>,
}

/// The cached result of inspecting a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Inspection {
    classes: Vec<Class>,
    error: Option<String>,
    line: Option<usize>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Class {
    class: String,
    name: String,
    description: String,
    schema: Value,
    hints: Hints,
    tags: Vec<String>,
}

/// The tools and faults of a file.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    pub(crate) tools: Vec<SkillTool>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Which files are inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InspectionMode {
    /// Only those that may define tools.
    Likely,
    /// All, since a file with a syntax error may be intended as a tool.
    Every,
}

impl Python {
    /// Creates it for a command; results are cached in `folder`. `consent` applies only if `requested` is configured
    /// (`Some`).
    pub(crate) fn new(requested: Option<&str>, folder: Option<&Path>, consent: Option<Consent>) -> Self {
        let consent = consent.filter(|_| requested.is_some());
        let cache_file = folder.map(|folder| folder.join("python-skills.json"));
        let read = |file: &PathBuf| serde_json::from_slice(&std::fs::read(file).ok()?).ok();
        let cache = cache_file.as_ref().and_then(read).unwrap_or_default();
        let requested = requested.unwrap_or("python3");
        let home = || Some(std::env::home_dir()?.join(Path::new(requested).strip_prefix("~").ok()?));
        Self {
            requested: home().map_or_else(|| requested.to_owned(), |path| path.display().to_string()),
            consent,
            found: OnceCell::new(),
            cache_file,
            cache: Mutex::new(cache),
        }
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Inspection>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locates the interpreter itself, since `python3` may be a wrapper. Consent is checked on each call, because each
    /// caller starts the interpreter.
    pub(crate) async fn interpreter(&self) -> Result<&SandboxProgram, LocalizedText> {
        let permit = self.consent.as_ref().map(Consent::permit).transpose();
        let permit = permit.map_err(|why| refused(&self.requested, &why))?;
        let rules = permit.as_ref().map(LaunchPermit::rules);
        let excluded = rules.and_then(|rules| rules.excluded.as_deref());
        let found = self.found.get_or_init(|| async { locate(&self.requested, excluded).await }).await;
        found.as_ref().map_err(Clone::clone)
    }

    /// Lists the classes of files. Each version of a file is inspected once.
    pub(crate) async fn classes(&self, files: &[(PathBuf, InspectionMode)]) -> HashMap<PathBuf, Classes> {
        let (mut texts, mut likely) = (HashMap::new(), HashSet::new());
        for (file, inspect) in files {
            let Some((digest, is_likely)) = candidate(file) else { continue };
            if is_likely {
                likely.insert(file.clone());
            }
            if is_likely || *inspect == InspectionMode::Every {
                texts.insert(file.clone(), digest);
            }
        }
        let new: Vec<&PathBuf> = files
            .iter()
            .map(|(file, _)| file)
            .filter(|file| texts.get(*file).is_some_and(|digest| !self.cache().contains_key(digest)))
            .collect();
        let mut trouble = None;
        for some in new.chunks(MAX_BATCH) {
            if let Err(why) = self.inspect(some, &texts).await {
                trouble = Some(why);
                break;
            }
        }
        let mut found = HashMap::new();
        for (file, digest) in &texts {
            let inspection = self.cache().get(digest).cloned();
            // Without an interpreter only likely files are reported, since most other Python files are not tools.
            if inspection.is_none() && !likely.contains(file) {
                continue;
            }
            found.insert(file.clone(), classes_of(file, inspection, trouble.as_ref()));
        }
        found
    }

    async fn inspect(
        &self,
        files: &[&PathBuf],
        digests: &HashMap<PathBuf, String>,
    ) -> Result<(), LocalizedText> {
        let interpreter = self.interpreter().await?;
        let places: Vec<PathBuf> = files.iter().map(|file| canonical_place(file)).collect();
        let own = places.clone();
        let mut arguments: Vec<OsString> = ["-I", "-B", "-c", RUNNER, "list"].map(Into::into).to_vec();
        arguments.extend(places.into_iter().map(PathBuf::into_os_string));
        let job = SandboxJob {
            program: interpreter.path.clone(),
            arguments,
            folder: PathBuf::from("/"),
            policy: SandboxPolicy { own, programs: vec![interpreter.clone()], ..SandboxPolicy::default() },
            skill: None,
            input: Vec::new(),
        };
        let slow = || LocalizedText::new("Python took too long", "Python 用时过长");
        let exit = tokio::time::timeout(INTERPRETER_TIMEOUT, run::run(job)).await.map_err(|_| slow())?;
        let exit = exit.map_err(|error| match error {
            SkillRunError::NotStarted(why)
            | SkillRunError::OutputTooLarge(why)
            | SkillRunError::Lost(why) => why,
        })?;
        let inspection: Vec<Inspection> = serde_json::from_slice(&exit.output).map_err(|error| {
            let message = exit
                .stopped
                .unwrap_or_else(|| LocalizedText::from(format!("{error} {}", exit.stderr_text.trim())));
            LocalizedText::new(
                format!("Python could not look at the files: {message}"),
                format!("Python 无法查看文件：{message}"),
            )
        })?;
        for (file, inspection) in files.iter().zip(inspection) {
            if let Some(digest) = digests.get(*file) {
                self.cache().insert(digest.clone(), inspection);
            }
        }
        self.save_cache();
        Ok(())
    }

    /// Writes the cache to disk; errors are ignored, since the cache can be rebuilt.
    fn save_cache(&self) {
        let Some(file) = &self.cache_file else { return };
        let Ok(text) = serde_json::to_vec(&*self.cache()) else { return };
        let _ = create_private_parent(file).and_then(|()| replace_private(file, &text, SyncMode::None));
    }

    /// Returns program and arguments that run a class of a file.
    pub(crate) async fn run_class(
        &self,
        file: &Path,
        class: &str,
    ) -> Result<(SandboxProgram, Vec<OsString>), LocalizedText> {
        let interpreter = self.interpreter().await?.clone();
        let mut arguments: Vec<OsString> = ["-I", "-B", "-X"].map(Into::into).to_vec();
        arguments.push(no_cache(&interpreter.path));
        arguments.extend(["-c", RUNNER, "run"].map(Into::into));
        arguments.extend([file.as_os_str().to_owned(), class.into()]);
        Ok((interpreter, arguments))
    }

    /// Returns program and arguments that run a script.
    pub(crate) async fn run_script(
        &self,
        file: &Path,
    ) -> Result<(SandboxProgram, Vec<OsString>), LocalizedText> {
        let interpreter = self.interpreter().await?.clone();
        let mut arguments: Vec<OsString> = ["-s", "-B", "-X"].map(Into::into).to_vec();
        arguments.extend([no_cache(&interpreter.path), file.as_os_str().to_owned()]);
        Ok((interpreter, arguments))
    }
}

/// Sets `pycache_prefix` to a folder that cannot exist: `.pyc` files beside a source file are not covered by the
/// approval. On Windows any user can create `\proc` on a drive, so the folder is below the interpreter's own file.
fn no_cache(interpreter: &Path) -> OsString {
    let mut option = OsString::from("pycache_prefix=");
    if cfg!(windows) {
        option.push(interpreter.join("none"));
    } else {
        option.push("/proc/none");
    }
    option
}

fn refused(requested: &str, why: &LocalizedText) -> LocalizedText {
    let (en, zh) = (why.localize(Lang::En), why.localize(Lang::Zh));
    LocalizedText::new(
        format!("the interpreter of `[skills] python = \"{requested}\"` was not started: {en}"),
        format!("未启动 `[skills] python = \"{requested}\"` 指定的解释器：{zh}"),
    )
}

/// Returns the digest of a file, and whether it may define tools.
fn candidate(file: &Path) -> Option<(String, bool)> {
    std::fs::symlink_metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    // It may grow while it is read.
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(MAX_INSPECTED_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_INSPECTED_BYTES {
        return None;
    }
    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    Some((hex::sha256(&bytes), has(b"class ") && has(b"def execute")))
}

fn classes_of(file: &Path, inspection: Option<Inspection>, trouble: Option<&LocalizedText>) -> Classes {
    let diagnostic = |problem: LocalizedText, remedy: LocalizedText| {
        Diagnostic::new(file, Severity::Error, problem, remedy)
    };
    let Some(inspection) = inspection else {
        let why = trouble.cloned().unwrap_or_else(|| LocalizedText::new("it was not looked at", "尚未查看"));
        let remedy = LocalizedText::new(
            "its classes are no tools until then; install Python 3, or name it: `[skills] python = \"…\"`",
            "在此之前其中的类不能用作工具；请安装 Python 3，或用 `[skills] python = \"…\"` 指定",
        );
        return Classes { tools: Vec::new(), diagnostics: vec![diagnostic(why, remedy)] };
    };
    if let Some(error) = inspection.error {
        let problem = LocalizedText::new(
            format!("Python cannot read it: {error}"),
            format!("Python 无法读取：{error}"),
        );
        let diagnostic = diagnostic(problem, LocalizedText::new("correct it", "请改正"));
        let diagnostic = match inspection.line {
            Some(line) => diagnostic.at(line),
            None => diagnostic,
        };
        return Classes { tools: Vec::new(), diagnostics: vec![diagnostic] };
    }
    let tools = inspection.classes.into_iter().map(|class| SkillTool {
        name: class.name,
        description: class.description,
        file: String::new(),
        runner: Runner::PythonClass(class.class),
        schema: RawJson::from(class.schema),
        hints: class.hints,
        tags: class.tags,
    });
    Classes { tools: tools.collect(), diagnostics: Vec::new() }
}
