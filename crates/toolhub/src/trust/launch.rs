//! The files inside a project that a server's command, arguments and variables name: consent is bound to their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use toolhub_core::lang::Text;
use toolhub_mcp::config::{StdioSpec, expand};

use super::files::{self, FileState};

/// The most words of one entry that are looked at.
const MAX_WORDS: usize = 4_096;
/// What separates words inside an argument, as in `sh -c "./a.sh; ./b.sh"` or `--require=./a.js`.
const SEPARATORS: [char; 16] =
    [';', '&', '|', '(', ')', '<', '>', '\'', '"', '`', ',', '=', ':', '{', '}', '$'];
/// What runs if a folder is named, such as `node ./server` or `python ./server`.
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
/// What programs that run a project's own commands read from the folder they are started in.
const RUNNERS: [(&[&str], &[&str]); 5] = [
    (
        &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"],
        &["package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
    ),
    (
        &["uv", "uvx", "poetry", "pdm", "hatch"],
        &["pyproject.toml", "uv.toml", ".python-version", "poetry.toml"],
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
    (&["cargo", "deno", "go"], &["Cargo.toml", "build.rs", ".cargo/config.toml", "deno.json", "deno.jsonc"]),
    (
        &["docker", "docker-compose", "podman"],
        &["Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"],
    ),
];

/// Where an entry is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// The folder that relative paths count from.
    pub(crate) folder: PathBuf,
    /// The top of the project; files below it are bound.
    pub(crate) project: PathBuf,
}

impl Site {
    /// The files of the project that an entry names, each with its state now.
    pub(crate) fn named_files(&self, spec: &StdioSpec) -> Result<BTreeMap<PathBuf, FileState>, Text> {
        let cwd = spec.cwd.as_ref().map(|cwd| self.folder.join(filled(&cwd.to_string_lossy())));
        let work = cwd.unwrap_or_else(|| self.folder.clone());
        let values = spec.env.iter().map(|(_, value)| value);
        let texts: Vec<String> =
            [&spec.command].into_iter().chain(&spec.args).chain(values).map(|text| filled(text)).collect();
        let mut words = BTreeSet::new();
        for text in &texts {
            words.extend(words_of(text));
            if words.len() > MAX_WORDS {
                return Err(Text::new(
                    format!("an entry has more than {MAX_WORDS} words in its arguments"),
                    format!("某个条目的参数超过 {MAX_WORDS} 个词"),
                ));
            }
        }
        let mut candidates: BTreeSet<PathBuf> = BTreeSet::new();
        for word in &words {
            candidates.extend(paths_of(word, &work));
            candidates.extend(paths_of(word, &self.folder));
        }
        let command = texts.first().map(String::as_str).unwrap_or_default();
        candidates.extend(on_path(command, &work));
        let name = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        for (_, read) in RUNNERS.iter().filter(|(runners, _)| runners.contains(&name)) {
            candidates.extend(read.iter().map(|file| work.join(file)));
        }
        self.states(candidates)
    }

    /// The program that a command leads to, if it can be found.
    pub(crate) fn program(&self, spec: &StdioSpec) -> Option<PathBuf> {
        let cwd = spec.cwd.as_ref().map(|cwd| self.folder.join(filled(&cwd.to_string_lossy())));
        let work = cwd.unwrap_or_else(|| self.folder.clone());
        let command = filled(&spec.command);
        let found = match Path::new(&command).components().count() {
            0 | 1 => on_path(&command, &work),
            _ => Some(work.join(&command)),
        };
        found?.canonicalize().ok()
    }

    fn states(&self, candidates: BTreeSet<PathBuf>) -> Result<BTreeMap<PathBuf, FileState>, Text> {
        let mut found = BTreeMap::new();
        for candidate in candidates {
            let named = plain(&candidate);
            let Ok(real) = candidate.canonicalize() else { continue };
            // A link inside the project counts, wherever it leads: the project can change it.
            if !named.starts_with(&self.project) && !real.starts_with(&self.project) {
                continue;
            }
            let inside = if real.is_dir() && real != self.project {
                ENTRY_FILES.iter().map(|name| named.join(name)).collect()
            } else {
                vec![named]
            };
            for file in inside.into_iter().filter(|file| file.is_file()) {
                if let Some(state) = files::hash(&file)? {
                    found.insert(file, state);
                }
            }
        }
        Ok(found)
    }
}

/// The text with its variables filled in; as it stands where one of them is not set.
fn filled(text: &str) -> String {
    expand(text, &|name| std::env::var(name).ok()).unwrap_or_else(|_| text.to_owned())
}

/// The parts of an argument that may be paths.
fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::from([text.to_owned()]);
    words.extend(text.split_once('=').map(|(_, value)| value.to_owned()));
    words.extend(text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)).map(str::to_owned));
    words.retain(|word| !word.is_empty() && word.len() <= 4_096 && !word.contains('\0'));
    words
}

/// The paths that a word may mean from `folder`.
fn paths_of(word: &str, folder: &Path) -> Vec<PathBuf> {
    let mut texts = vec![word];
    texts.extend(word.strip_prefix('@'));
    texts.extend(word.strip_prefix("file://"));
    // A path that is glued to a flag of one letter.
    texts.extend(word.strip_prefix('-').and_then(|rest| rest.get(1..)).filter(|rest| !rest.is_empty()));
    let mut paths: Vec<PathBuf> = texts.iter().map(|text| folder.join(text)).collect();
    let home = word.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest)));
    paths.extend(home);
    // `npx NAME` prefers what the project has installed; `python -m NAME` what lies in the folder.
    if !word.contains('/') {
        paths.push(folder.join("node_modules/.bin").join(word));
        let module = word.replace('.', "/");
        paths.extend([format!("{module}.py"), module].map(|file| folder.join(file)));
    }
    paths
}

/// Where a program without a folder in its name is found.
fn on_path(command: &str, work: &Path) -> Option<PathBuf> {
    if command.is_empty() || command.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| work.join(folder).join(command)).find(|file| file.is_file())
}

/// The path without `.` and `..`, links not followed.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_files_in_commands_flags_shell_words_modules_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in
            ["a.sh", "b.js", "c/index.js", "pkg/__main__.py", "node_modules/.bin/tool", "e.sh", "f.so"]
        {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), file).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/bin/sh", root.join("shell")).unwrap();
        let site = Site { folder: root.clone(), project: root.clone() };
        let check = |command: &str, args: &[&str], expect: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            let env = vec![("LD_PRELOAD".to_owned(), "./f.so".to_owned())];
            let spec = StdioSpec { command: command.to_owned(), args, env, ..StdioSpec::default() };
            let found = site.named_files(&spec).unwrap();
            let names: Vec<String> =
                found.keys().map(|file| file.strip_prefix(&root).unwrap().display().to_string()).collect();
            let mut expect = [expect, &["f.so"]].concat();
            expect.sort_unstable();
            assert_eq!(names, expect, "{command} {args:?}", args = spec.args);
        };
        check("./a.sh", &[], &["a.sh"]);
        check("node", &["--require=./b.js", "c"], &["b.js", "c/index.js"]);
        check("sh", &["-c", "cd . && ./a.sh;./e.sh"], &["a.sh", "e.sh"]);
        check("python3", &["-m", "pkg"], &["pkg/__main__.py"]);
        check("npx", &["-y", "tool"], &["node_modules/.bin/tool"]);
        #[cfg(unix)]
        check("./shell", &[], &["shell"]);
        check("/bin/sh", &["/etc/passwd"], &[]);
    }
}
