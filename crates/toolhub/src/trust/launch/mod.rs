//! The files inside a project that a server's command, arguments and variables name. Consent is bound to their contents.

mod first_line;
mod named_folders;
mod packages;
mod python_files;
pub(super) mod tree;
mod virtual_environments;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toolhub_client_config::StdioSpec;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::config::find_executable;

use self::python_files::Folders;
use self::tree::{Omitted, TreeError};
use crate::trust::files::{self, FileState};
use crate::trust::launch_form::assignments::{Assignment, launch_assignments, path_of, search_paths};
use crate::trust::launch_form::entry_text::{expand_if_set, normalize_path, without_folder_variable};
use crate::trust::launch_form::programs::{VERSION_FILES, is_known, name_of};
use crate::trust::launch_form::words::{LaunchContext, MAX_WORD_BYTES};
use crate::trust::launch_form::{LaunchScope, is_narrow_first_line, scope_of};
use crate::trust::location::FolderLocation;

/// The maximum number of words in an entry.
const MAX_WORDS: usize = 4_096;
/// Separators of words inside an argument, as in `sh -c "./a.sh; ./b.sh"` or `--require=./a.js`.
const SEPARATORS: [char; 16] =
    [';', '&', '|', '(', ')', '<', '>', '\'', '"', '`', ',', '=', ':', '{', '}', '$'];
/// Files that run if a folder is named, such as `node ./server` or `python ./server`.
const ENTRY_FILES: [&str; 8] = [
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.py",
    "__main__.py",
    "__init__.py",
];
/// Package runners, and the files that they read from their working directory.
const RUNNERS: [(&[&str], &[&str]); 8] = [
    (
        &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"],
        &[
            "package.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".pnpmfile.mjs",
            "pnpm-workspace.yaml",
            "bunfig.toml",
            ".env",
            ".env.local",
            ".env.development",
            ".env.development.local",
            ".env.production",
            ".env.production.local",
        ],
    ),
    (
        &["uv", "uvx", "pipx", "poetry", "pdm", "hatch"],
        &["pyproject.toml", "uv.toml", "setup.py", "setup.cfg", "poetry.toml"],
    ),
    (
        &["make", "gmake", "just", "task", "rake"],
        &[
            "GNUmakefile",
            "makefile",
            "Makefile",
            "justfile",
            "Justfile",
            ".justfile",
            "Taskfile.yml",
            "Rakefile",
        ],
    ),
    (
        &["cargo", "deno", "go"],
        &[
            "Cargo.toml",
            "build.rs",
            ".cargo/config.toml",
            "deno.json",
            "deno.jsonc",
            "deno.lock",
            "package.json",
        ],
    ),
    (&["R", "Rscript"], &[".Rprofile", ".Renviron"]),
    (&["node", "nodejs"], &["node.config.json"]),
    (&["tsx", "ts-node"], &["tsconfig.json"]),
    (
        &["docker", "docker-compose", "podman"],
        &["Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
    ),
];

/// File extensions that Node.js and Python append to a name.
const ENDINGS: [&str; 6] = ["js", "mjs", "cjs", "ts", "json", "py"];
/// The maximum number of folders that relative paths are resolved against, and of nested `cd` steps.
const MAX_BASES: usize = 64;
const MAX_STEPS: usize = 3;
/// The maximum number of interpreters that are scripts themselves.
const MAX_INTERPRETERS: usize = 4;
/// Words that change the working directory to the next word.
const FOLDER_WORDS: [&str; 8] = ["cd", "pushd", "-C", "--directory", "--chdir", "--cwd", "--prefix", "--dir"];

/// The location where an entry is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchSite {
    /// The folder that relative paths are resolved against.
    pub(crate) folder: PathBuf,
    /// The root of the project; files below it are bound.
    pub(crate) project: PathBuf,
}

/// A path that an entry may refer to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    path: PathBuf,
    /// Whether it is relative to a folder of the project: then it is bound even if it leads outside.
    relative: bool,
}

/// What an entry loads from the project.
#[derive(Debug)]
pub(crate) struct LaunchFiles {
    /// The files, each with its current state.
    pub(crate) files: BTreeMap<PathBuf, FileState>,
    pub(crate) scope: LaunchScope,
    /// The variables that the launch sets.
    pub(in crate::trust) assignments: Vec<Assignment>,
}

/// The first lines (`#!`) of the scripts of a launch.
struct FirstLines {
    /// The words of each line, each line once.
    lines: Vec<Vec<String>>,
    /// Whether the list is complete: no limit was reached.
    complete: bool,
}

/// The folders that relative paths of an entry may be resolved against.
struct Bases {
    folders: Vec<PathBuf>,
    /// Whether the list is complete: no limit was reached.
    complete: bool,
}

impl LaunchSite {
    /// Entries that are started in a folder.
    pub(crate) fn of(location: &FolderLocation) -> Self {
        Self { folder: location.folder.clone(), project: location.project.clone() }
    }

    /// The files of the project that an entry loads, each with its current state.
    pub(crate) fn named_files(
        &self,
        spec: &StdioSpec,
    ) -> Result<BTreeMap<PathBuf, FileState>, LocalizedText> {
        self.launch_files(spec).map(|launch| launch.files)
    }

    /// The files of the project that an entry loads. If the entry is of no known form, or exceeds a limit, every file of the
    /// project is included, and every file of folders outside that it refers to.
    pub(crate) fn launch_files(&self, spec: &StdioSpec) -> Result<LaunchFiles, LocalizedText> {
        self.find_files(spec, Omitted::Nothing).map_err(TreeError::of_project)
    }

    /// The files of the project that an entry of the owner's own configuration loads. A program from elsewhere that is no
    /// interpreter does not run names and messages of `git`, so that a commit does not count as a change.
    pub(super) fn user_server_files(&self, spec: &StdioSpec) -> Result<LaunchFiles, LocalizedText> {
        let is_elsewhere = |file: &PathBuf| {
            !file.starts_with(&self.project)
                && ![&spec.command, &file.to_string_lossy().into_owned()]
                    .into_iter()
                    .any(|word| is_known(&name_of(word)))
        };
        let omitted = match self.program(spec).as_ref().is_some_and(is_elsewhere) {
            true => Omitted::GitTexts,
            false => Omitted::Nothing,
        };
        self.find_files(spec, omitted).map_err(TreeError::of_owner)
    }

    /// The files that an entry loads, without those that are omitted if it may load every file of the project.
    fn find_files(&self, spec: &StdioSpec, omitted: Omitted) -> Result<LaunchFiles, TreeError> {
        let work = self.work(spec);
        let texts = texts_of(spec);
        let mut words = BTreeSet::new();
        for text in &texts {
            words.extend(words_of(text));
            if words.len() > MAX_WORDS {
                return Err(TreeError::Unreadable(LocalizedText::new(
                    format!("an entry has more than {MAX_WORDS} words in its arguments"),
                    format!("某个条目的参数超过 {MAX_WORDS} 个词"),
                )));
            }
        }
        let Bases { folders: bases, complete } = self.bases(&work, &words, &texts)?;
        let mut assigned = launch_assignments(spec, &[]);
        let search_paths = search_paths(spec, &assigned);
        let path_folders = path_folders(&search_paths, &bases);
        let mut candidates: BTreeSet<Candidate> = BTreeSet::new();
        for word in &words {
            for base in &bases {
                candidates.extend(paths_of(word, base));
            }
            let programs = on_path(word, &path_folders).into_iter();
            candidates.extend(programs.map(|path| Candidate { path, relative: false }));
        }
        candidates.extend(self.files_on_path(&path_folders));
        let stems: BTreeSet<&str> = words.iter().filter_map(|word| stem(word)).collect();
        // Package runners search the parent folders, too.
        let mut searched = bases.clone();
        searched.extend(bases.iter().flat_map(|base| self.parents(base)));
        for (_, read) in RUNNERS.iter().filter(|(runners, _)| runners.iter().any(|name| stems.contains(name)))
        {
            let files = searched.iter().flat_map(|base| read.iter().map(|file| base.join(file)));
            candidates.extend(files.map(|path| Candidate { path, relative: true }));
        }
        // Links of version managers start what these files choose, whatever the name of the program is.
        let versions = searched.iter().flat_map(|base| VERSION_FILES.iter().map(|file| base.join(file)));
        candidates.extend(versions.map(|path| Candidate { path, relative: true }));
        let environments = virtual_environments::files(&words, &searched, &stems, &self.project);
        candidates.extend(environments.into_iter().map(|path| Candidate { path, relative: true }));
        let mut found = self.states(candidates)?;
        let packages = packages::folders(&words, &stems, &searched);
        tree::add(packages, Omitted::Packages, &mut found)?;
        tree::add(named_folders::of_options(spec, &work, &self.project), Omitted::Installed, &mut found)?;
        let named = named_folders::of_variables(&assigned, &bases, &self.project);
        tree::add(named, Omitted::Nothing, &mut found)?;
        let first_lines = self.add_interpreters(&bases, &mut found)?;
        let of_entry = assigned.len();
        assigned = launch_assignments(spec, &first_lines.lines);
        if assigned.len() > of_entry {
            let named = named_folders::of_variables(&assigned, &bases, &self.project);
            tree::add(named, Omitted::Nothing, &mut found)?;
        }
        let path = joined(&search_paths);
        let context = LaunchContext {
            folders: &bases,
            project: &self.project,
            path: path.as_deref(),
            has_values: true,
        };
        let mut scope = if complete { scope_of(spec, &context) } else { LaunchScope::Project };
        let are_narrow = || first_lines.lines.iter().all(|line| is_narrow_first_line(line, &context));
        if scope == LaunchScope::Named && !(first_lines.complete && are_narrow()) {
            scope = LaunchScope::Project;
        }
        let outside = || bases.iter().filter(|base| !base.starts_with(&self.project)).cloned();
        let omitted = match scope {
            LaunchScope::Named => return Ok(LaunchFiles { files: found, scope, assignments: assigned }),
            LaunchScope::Tasks => Omitted::Installed,
            LaunchScope::Project => omitted,
        };
        tree::add(outside().chain([self.project.clone()]), omitted, &mut found)?;
        Ok(LaunchFiles { files: found, scope, assignments: assigned })
    }

    /// The parents of a folder of the project, up to its root.
    fn parents(&self, folder: &Path) -> Vec<PathBuf> {
        let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.project));
        above.map(Path::to_path_buf).collect()
    }

    /// Adds the interpreters that the first lines (`#!`) of the files name.
    fn add_interpreters(
        &self,
        bases: &[PathBuf],
        found: &mut BTreeMap<PathBuf, FileState>,
    ) -> Result<FirstLines, LocalizedText> {
        let mut waiting: Vec<PathBuf> = found.keys().cloned().collect();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for _ in 0..MAX_INTERPRETERS {
            let mut candidates = BTreeSet::new();
            let new: BTreeSet<Vec<String>> =
                waiting.iter().filter_map(|file| first_line::words(file)).collect();
            for line in new.into_iter().filter(|line| !lines.contains(line)).collect::<Vec<_>>() {
                for word in &line {
                    candidates.extend(bases.iter().flat_map(|base| paths_of(word, base)));
                }
                lines.push(line);
            }
            let mut added = self.states(candidates)?;
            added.retain(|file, _| !found.contains_key(file));
            if added.is_empty() {
                return Ok(FirstLines { lines, complete: true });
            }
            waiting = added.keys().cloned().collect();
            found.append(&mut added);
        }
        Ok(FirstLines { lines, complete: false })
    }

    /// The program that a command resolves to, if it is found.
    pub(crate) fn program(&self, spec: &StdioSpec) -> Option<PathBuf> {
        let work = self.work(spec);
        let command = expand_if_set(&spec.command);
        let found = match Path::new(&command).components().count() {
            0 | 1 => {
                let path: Vec<OsString> = path_of(spec).into_iter().collect();
                on_path(&command, &path_folders(&path, std::slice::from_ref(&work))).into_iter().next()
            }
            _ => Some(work.join(&command)),
        };
        found?.canonicalize().ok()
    }

    /// The working directory of an entry.
    fn work(&self, spec: &StdioSpec) -> PathBuf {
        let cwd = spec.cwd.as_ref().map(|cwd| self.folder.join(expand_if_set(&cwd.to_string_lossy())));
        cwd.unwrap_or_else(|| self.folder.clone())
    }

    /// The folders that relative paths may be resolved against: the working directory, and folders that the entry names, as in
    /// `cd server` or `make -C server`. Folders outside of the project are included if a relative path leads there.
    fn bases(&self, work: &Path, words: &BTreeSet<String>, texts: &[String]) -> Result<Bases, LocalizedText> {
        let mut folders = vec![work.to_owned()];
        if work != self.folder {
            folders.push(self.folder.clone());
        }
        let mut complete = true;
        let mut newest = folders.clone();
        for step in 0..=MAX_STEPS {
            let mut next = Vec::new();
            for base in &newest {
                let named = words.iter().flat_map(|word| paths_of(word, base));
                for Candidate { path, relative } in named.filter(|named| named.path.is_dir()) {
                    let Ok(real) = path.canonicalize() else { continue };
                    let known = folders.contains(&real) || next.contains(&real);
                    let inside = real.starts_with(&self.project);
                    if !known && (inside || (relative && step == 0)) {
                        next.push(real);
                    }
                }
            }
            let is_outside = |folder: &PathBuf| !folder.starts_with(&self.project);
            if (step == MAX_STEPS && !next.is_empty()) || folders.len() + next.len() > MAX_BASES {
                complete = false;
                next.retain(is_outside);
            }
            // From a folder outside, only `cd` is followed: otherwise `..` would lead up to the root.
            newest = next.iter().filter(|folder| !is_outside(folder)).cloned().collect();
            folders.extend(next);
        }
        for folder in folders_in_order(work, texts) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        // Beyond the limit, the project is bound as a whole; this is not possible for folders outside.
        match folders.len() <= 2 * MAX_BASES {
            true => Ok(Bases { complete: complete && folders.len() <= MAX_BASES, folders }),
            false => Err(LocalizedText::new(
                format!("an entry names more than {MAX_BASES} folders outside of the project"),
                format!("某个条目提到了项目之外的 {MAX_BASES} 个以上的目录"),
            )),
        }
    }

    /// All files in those folders of `PATH` that lie in the project, whether the launch sets it or inherits it: a program that is
    /// started may start others by their names.
    fn files_on_path(&self, path_folders: &[PathBuf]) -> BTreeSet<Candidate> {
        let is_inside =
            |folder: &&PathBuf| folder.canonicalize().is_ok_and(|real| real.starts_with(&self.project));
        let folders = path_folders.iter().filter(is_inside);
        let entries = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
        files.map(|path| Candidate { path, relative: true }).collect()
    }

    fn states(&self, candidates: BTreeSet<Candidate>) -> Result<BTreeMap<PathBuf, FileState>, LocalizedText> {
        let (mut found, mut folders) = (BTreeMap::new(), Folders::default());
        let inside = |path: &Path| path.starts_with(&self.project);
        for Candidate { path, relative } in candidates {
            let real = path.canonicalize().ok();
            // The file that is opened: `..` after a symbolic link resolves differently from the text.
            let named = normalize_path(&path);
            let named = if named.canonicalize().ok() == real { named } else { path };
            // A symbolic link inside the project is included, wherever it leads: the project can change it.
            if !relative && !inside(&named) && !real.as_deref().is_some_and(inside) {
                continue;
            }
            let mut files = Vec::new();
            if real.is_some_and(|real| real.is_dir()) {
                let modules = ["__init__.py", "__main__.py"].map(|name| named.join(name));
                files.extend(modules.iter().flat_map(|module| folders.shadowing_files(module)));
                files.extend(entry_files(&named));
            } else if named.extension().is_some_and(|ending| ending == "py") {
                // Also without a source file: Python loads a native module, too.
                files.extend(folders.shadowing_files(&named));
            }
            files.push(named);
            for file in files.into_iter().filter(|file| file.is_file()) {
                if let Some(state) = files::hash(&file)? {
                    found.insert(file, state);
                }
            }
        }
        Ok(found)
    }
}

/// Command, arguments and values of variables, after variable expansion.
fn texts_of(spec: &StdioSpec) -> Vec<String> {
    let values = spec.env.iter().map(|(_, value)| value);
    [&spec.command].into_iter().chain(&spec.args).chain(values).map(|text| expand_if_set(text)).collect()
}

/// The folders that an entry changes to one after another, as in `cd a && cd b`.
fn folders_in_order(work: &Path, texts: &[String]) -> Vec<PathBuf> {
    let separates = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
    let texts = texts.iter().map(|text| without_folder_variable(text)).collect::<Vec<_>>();
    let mut words = texts.iter().flat_map(|text| text.split(separates)).filter(|word| !word.is_empty());
    let (mut folder, mut found) = (work.to_owned(), Vec::new());
    while let Some(word) = words.next() {
        if !FOLDER_WORDS.contains(&word) {
            continue;
        }
        let Some(next) = words.next().map(Path::new).filter(|next| next.is_relative()) else { continue };
        if let Ok(real) = folder.join(next).canonicalize()
            && real.is_dir()
        {
            folder = real;
            found.push(folder.clone());
        }
    }
    found
}

/// The parts of an argument that may be paths.
fn words_of(text: &str) -> BTreeSet<String> {
    let text = without_folder_variable(text);
    let mut words = BTreeSet::from([text.clone()]);
    words.extend(text.split_once('=').map(|(_, value)| value.to_owned()));
    words.extend(text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)).map(str::to_owned));
    words.retain(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES && !word.contains('\0'));
    words
}

fn stem(word: &str) -> Option<&str> {
    Path::new(word).file_stem().and_then(|name| name.to_str())
}

/// The paths that a word may refer to, relative to `folder`.
fn paths_of(word: &str, folder: &Path) -> Vec<Candidate> {
    let mut texts = vec![word];
    texts.extend(word.strip_prefix('@'));
    texts.extend(word.strip_prefix("file://"));
    // A path that directly follows a single-letter flag.
    texts.extend(word.strip_prefix('-').and_then(|rest| rest.get(1..)).filter(|rest| !rest.is_empty()));
    let from = |text: &str| Candidate { path: folder.join(text), relative: Path::new(text).is_relative() };
    let mut paths: Vec<Candidate> = texts.iter().map(|text| from(text)).collect();
    // `node dist/index` resolves to `dist/index.js`.
    for text in &texts {
        paths.extend(ENDINGS.map(|ending| from(&format!("{text}.{ending}"))));
    }
    let home = word.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest)));
    paths.extend(home.map(|path| Candidate { path, relative: false }));
    // `npx NAME` and `node -r NAME` prefer packages installed in the project; `python -m NAME` prefers modules and packages in
    // the folder.
    if !word.contains('/') {
        paths.extend([from(&format!("node_modules/.bin/{word}")), from(&format!("node_modules/{word}"))]);
        let module = word.replace('.', "/");
        paths.extend([from(&format!("{module}.py")), from(&module)]);
        let packages = Path::new(&module).ancestors().filter(|part| !part.as_os_str().is_empty());
        paths.extend(packages.map(|part| from(&part.join("__init__.py").to_string_lossy())));
    }
    paths
}

/// The files that run if a folder is named.
fn entry_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ENTRY_FILES.iter().map(|name| folder.join(name)).collect();
    let package = files::read(&folder.join("package.json")).ok().flatten();
    let package = package.and_then(|(bytes, _)| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let bin = package.as_ref().and_then(|package| package.get("bin"));
    let targets = bin.into_iter().flat_map(|bin| match bin {
        serde_json::Value::Object(targets) => targets.values().collect::<Vec<_>>(),
        other => vec![other],
    });
    files.extend(targets.filter_map(|target| Some(folder.join(target.as_str()?))));
    if let Some(main) = package.as_ref().and_then(|package| package.get("main")?.as_str()) {
        let main = folder.join(main);
        let ending = |ending: &str| PathBuf::from(format!("{}.{ending}", main.display()));
        files.extend(ENDINGS.map(ending));
        files.extend([main.join("index.js"), main]);
    }
    files
}

/// The folders of these `PATH`s, each once. Relative ones count from every folder that the launch may be in.
fn path_folders(paths: &[OsString], bases: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for part in paths.iter().flat_map(std::env::split_paths) {
        for folder in bases.iter().map(|base| base.join(&part)) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders
}

/// One `PATH` with the folders of all; `None` without any.
fn joined(paths: &[OsString]) -> Option<OsString> {
    let parts = paths.iter().flat_map(std::env::split_paths);
    if paths.is_empty() { None } else { std::env::join_paths(parts).ok() }
}

/// The programs of a name without a folder, in the order in which they are found.
fn on_path(command: &str, path_folders: &[PathBuf]) -> Vec<PathBuf> {
    if command.is_empty() || command.contains('/') {
        return Vec::new();
    }
    let by_extension =
        cfg!(windows).then(|| find_executable(command, &std::env::join_paths(path_folders).ok()?)).flatten();
    let named = path_folders.iter().map(|folder| folder.join(command)).filter(|file| file.is_file());
    by_extension.into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests;
