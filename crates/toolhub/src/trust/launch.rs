//! The files inside a project that a server's command, arguments and variables name: consent is bound to their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use toolhub_core::lang::Text;
use toolhub_mcp::config::{StdioSpec, expand, with_ending};

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

/// Shells whose `-c` is code.
const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell"];
/// Characters of shell code, beside letters and digits, that stand for themselves or only separate commands.
const PLAIN_CODE: &str = " _-./:=,@%+&;|\n\t";
const INTERPRETERS: [&str; 9] = ["python", "node", "perl", "ruby", "php", "deno", "bun", "lua", "osascript"];
/// Flags by which interpreters take code.
const INLINE_FLAGS: [&str; 8] = ["-c", "-e", "-E", "--eval", "-p", "--print", "-r", "-pe"];
/// Programs that start others for what they find or read.
const STARTERS: [&str; 8] = ["find", "xargs", "awk", "gawk", "mawk", "sed", "parallel", "entr"];
/// Endings that Node.js and Python add to a name.
const ENDINGS: [&str; 6] = ["js", "mjs", "cjs", "ts", "json", "py"];
/// The most folders of an entry that relative paths are looked up in, and how deep `cd` is followed.
const MAX_BASES: usize = 64;
const MAX_STEPS: usize = 3;
/// The most files of a project that is bound as a whole, and their most bytes.
const MAX_TREE_FILES: usize = 10_000;
const MAX_TREE_BYTES: u64 = 256 << 20;
/// What is written beside files, and nothing runs from.
const IGNORED: [&str; 1] = [".git"];

/// Where an entry is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// The folder that relative paths count from.
    pub(crate) folder: PathBuf,
    /// The top of the project; files below it are bound.
    pub(crate) project: PathBuf,
}

/// A path that an entry may mean.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    path: PathBuf,
    /// Whether it counts from a folder of the project: then it is bound wherever it leads.
    relative: bool,
}

impl Site {
    /// The files of the project that an entry names, each with its state now. If its shell code hides which files it
    /// runs, every file of the folder counts.
    pub(crate) fn named_files(&self, spec: &StdioSpec) -> Result<BTreeMap<PathBuf, FileState>, Text> {
        let work = self.work(spec);
        let texts = texts_of(spec);
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
        let bases = self.bases(&work, &words);
        let mut candidates: BTreeSet<Candidate> = BTreeSet::new();
        for word in &words {
            for base in &bases {
                candidates.extend(paths_of(word, base));
            }
            let found = on_path(word, (&work, spec));
            candidates.extend(found.map(|path| Candidate { path, relative: false }));
        }
        let stems: BTreeSet<&str> = words.iter().filter_map(|word| stem(word)).collect();
        for (_, read) in RUNNERS.iter().filter(|(runners, _)| runners.iter().any(|name| stems.contains(name)))
        {
            let files = bases.iter().flat_map(|base| read.iter().map(|file| base.join(file)));
            candidates.extend(files.map(|path| Candidate { path, relative: true }));
        }
        let mut found = self.states(candidates)?;
        if hides_files(spec) {
            self.add_tree(&mut found)?;
        }
        Ok(found)
    }

    /// The program that a command leads to, if it can be found.
    pub(crate) fn program(&self, spec: &StdioSpec) -> Option<PathBuf> {
        let work = self.work(spec);
        let command = filled(&spec.command);
        let found = match Path::new(&command).components().count() {
            0 | 1 => on_path(&command, (&work, spec)),
            _ => Some(work.join(&command)),
        };
        found?.canonicalize().ok()
    }

    /// The folder that an entry starts in.
    fn work(&self, spec: &StdioSpec) -> PathBuf {
        let cwd = spec.cwd.as_ref().map(|cwd| self.folder.join(filled(&cwd.to_string_lossy())));
        cwd.unwrap_or_else(|| self.folder.clone())
    }

    /// The folders that relative paths may count from: where it starts, and folders that it names, as in `cd server` or
    /// `make -C server`.
    fn bases(&self, work: &Path, words: &BTreeSet<String>) -> Vec<PathBuf> {
        let mut bases = vec![work.to_owned()];
        if work != self.folder {
            bases.push(self.folder.clone());
        }
        let mut newest = bases.clone();
        for _ in 0..MAX_STEPS {
            let mut next = Vec::new();
            for base in &newest {
                let named =
                    words.iter().flat_map(|word| paths_of(word, base)).map(|candidate| candidate.path);
                for folder in named.filter(|path| path.is_dir()) {
                    let Ok(real) = folder.canonicalize() else { continue };
                    let known = bases.contains(&real) || next.contains(&real);
                    if !known && real.starts_with(&self.project) && bases.len() + next.len() < MAX_BASES {
                        next.push(real);
                    }
                }
            }
            bases.extend(next.iter().cloned());
            newest = next;
        }
        bases
    }

    fn states(&self, candidates: BTreeSet<Candidate>) -> Result<BTreeMap<PathBuf, FileState>, Text> {
        let mut found = BTreeMap::new();
        for Candidate { path, relative } in candidates {
            let Ok(real) = path.canonicalize() else { continue };
            // The file that is opened: a `..` behind a link leads elsewhere than the text says.
            let named = plain(&path);
            let named = if named.canonicalize().is_ok_and(|other| other == real) { named } else { path };
            // A link inside the project counts, wherever it leads: the project can change it.
            if !relative && !named.starts_with(&self.project) && !real.starts_with(&self.project) {
                continue;
            }
            let inside = if real.is_dir() { entry_files(&named) } else { vec![named] };
            for file in inside.into_iter().filter(|file| file.is_file()) {
                if let Some(state) = files::hash(&file)? {
                    found.insert(file, state);
                }
            }
        }
        Ok(found)
    }

    /// Adds every file of the project.
    fn add_tree(&self, found: &mut BTreeMap<PathBuf, FileState>) -> Result<(), Text> {
        let (mut waiting, mut bytes) = (vec![self.project.clone()], 0_u64);
        while let Some(folder) = waiting.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|error| files::unreadable(&folder, &error))?;
            for entry in entries.flatten() {
                let path = entry.path();
                let ignored = entry.file_name().to_str().is_some_and(|name| IGNORED.contains(&name));
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    waiting.extend((!ignored).then_some(path));
                } else if kind.is_symlink() && path.is_dir() {
                    // What it leads to is bound as far as it is of the project; that it leads there, in any case.
                    let state = files::link(&path);
                    found.insert(path, state);
                } else if path.is_file() {
                    bytes = bytes.saturating_add(entry.metadata().map_or(0, |about| about.len()));
                    if found.len() >= MAX_TREE_FILES || bytes > MAX_TREE_BYTES {
                        return Err(too_large());
                    }
                    if let Some(state) = files::hash(&path)? {
                        found.insert(path, state);
                    }
                }
            }
        }
        Ok(())
    }
}

fn too_large() -> Text {
    let size = MAX_TREE_BYTES >> 20;
    Text::new(
        format!(
            "an entry runs shell code that hides which files it starts, and the folder has more than {MAX_TREE_FILES} files or {size} MiB: name the program and its script without `$`, globs and backslashes"
        ),
        format!(
            "某个条目运行的 shell 代码看不出会启动哪些文件，而文件夹超过 {MAX_TREE_FILES} 个文件或 {size} MiB：请直接写出程序和脚本，不使用 `$`、通配符和反斜杠"
        ),
    )
}

/// Command, arguments and values of variables, with variables filled in.
fn texts_of(spec: &StdioSpec) -> Vec<String> {
    let values = spec.env.iter().map(|(_, value)| value);
    [&spec.command].into_iter().chain(&spec.args).chain(values).map(|text| filled(text)).collect()
}

/// Whether it runs code whose words do not tell which files it runs: that of a shell, unless it is made from plain words
/// alone; that of an interpreter; and programs that start others for what they find.
fn hides_files(spec: &StdioSpec) -> bool {
    let texts = texts_of(spec);
    let names: BTreeSet<String> = texts
        .iter()
        .flat_map(|text| words_of(text))
        .filter_map(|word| {
            stem(&word).map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
        })
        .collect();
    let has = |programs: &[&str]| programs.iter().any(|name| names.contains(*name));
    let is_plain = |text: &String| {
        let text = without_folder_variable(text);
        text.chars().all(|c| c.is_alphanumeric() || PLAIN_CODE.contains(c))
            && !text.split(|c: char| !c.is_alphanumeric()).any(|word| ["eval", "source"].contains(&word))
    };
    let inline = || spec.args.iter().any(|arg| INLINE_FLAGS.contains(&arg.as_str()));
    (has(&SHELLS) && !texts.iter().all(is_plain)) || (has(&INTERPRETERS) && inline()) || has(&STARTERS)
}

/// The text without `$PWD`, which is the folder that a shell starts in.
fn without_folder_variable(text: &str) -> String {
    text.replace("${PWD}", ".").replace("$PWD", ".")
}

/// The text with its variables filled in; as it stands where one of them is not set.
fn filled(text: &str) -> String {
    expand(text, &|name| std::env::var(name).ok()).unwrap_or_else(|_| text.to_owned())
}

/// The parts of an argument that may be paths.
fn words_of(text: &str) -> BTreeSet<String> {
    let text = without_folder_variable(text);
    let mut words = BTreeSet::from([text.clone()]);
    words.extend(text.split_once('=').map(|(_, value)| value.to_owned()));
    words.extend(text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)).map(str::to_owned));
    words.retain(|word| !word.is_empty() && word.len() <= 4_096 && !word.contains('\0'));
    words
}

fn stem(word: &str) -> Option<&str> {
    Path::new(word).file_stem().and_then(|name| name.to_str())
}

/// The paths that a word may mean from `folder`.
fn paths_of(word: &str, folder: &Path) -> Vec<Candidate> {
    let mut texts = vec![word];
    texts.extend(word.strip_prefix('@'));
    texts.extend(word.strip_prefix("file://"));
    // A path that is glued to a flag of one letter.
    texts.extend(word.strip_prefix('-').and_then(|rest| rest.get(1..)).filter(|rest| !rest.is_empty()));
    let from = |text: &str| Candidate { path: folder.join(text), relative: Path::new(text).is_relative() };
    let mut paths: Vec<Candidate> = texts.iter().map(|text| from(text)).collect();
    // `node dist/index` finds `dist/index.js`.
    for text in &texts {
        paths.extend(ENDINGS.map(|ending| from(&format!("{text}.{ending}"))));
    }
    let home = word.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest)));
    paths.extend(home.map(|path| Candidate { path, relative: false }));
    // `npx NAME` prefers what the project has installed; `python -m NAME` what lies in the folder, with its packages.
    if !word.contains('/') {
        paths.push(from(&format!("node_modules/.bin/{word}")));
        let module = word.replace('.', "/");
        paths.extend([from(&format!("{module}.py")), from(&module)]);
        let packages = Path::new(&module).ancestors().filter(|part| !part.as_os_str().is_empty());
        paths.extend(packages.map(|part| from(&part.join("__init__.py").to_string_lossy())));
    }
    paths
}

/// What runs if a folder is named.
fn entry_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ENTRY_FILES.iter().map(|name| folder.join(name)).collect();
    let package = files::read(&folder.join("package.json")).ok().flatten();
    let package = package.and_then(|(bytes, _)| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    if let Some(main) = package.as_ref().and_then(|package| package.get("main")?.as_str()) {
        let main = folder.join(main);
        let ending = |ending: &str| PathBuf::from(format!("{}.{ending}", main.display()));
        files.extend(ENDINGS.map(ending));
        files.extend([main.join("index.js"), main]);
    }
    files
}

/// Where a program without a folder in its name is found: by the `PATH` that it is started with.
fn on_path(command: &str, (work, spec): (&Path, &StdioSpec)) -> Option<PathBuf> {
    if command.is_empty() || command.contains('/') {
        return None;
    }
    let own = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = own.map(|(_, value)| OsString::from(filled(value))).or_else(|| std::env::var_os("PATH"))?;
    if let Some(file) = cfg!(windows).then(|| with_ending(command, &path)).flatten() {
        return Some(file);
    }
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

    /// What is hashed is what is started, however the entry says it.
    #[cfg(unix)]
    #[test]
    fn binds_the_file_that_is_started() {
        let outer = tempfile::tempdir().unwrap();
        let top = outer.path().canonicalize().unwrap();
        let root = top.join("project");
        for file in [
            "run.py",
            "a/run.py",
            "a/b/x",
            "bin/python3",
            "dist/index.js",
            "index.js",
            "srv/package.json",
            "srv/lib/m.js",
            "sub/run.py",
            "sub/src/run.py",
            "sub/Makefile",
            "package.json",
            "pkg/__init__.py",
            "pkg/srv.py",
            "my run.py",
            "../out.py",
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), r#"{"main": "lib/m"}"#).unwrap();
        }
        std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
        let site = Site { folder: root.clone(), project: root.clone() };
        let path = [("PATH", "./bin:/usr/bin:/bin")];
        for (command, args, env, started) in [
            ("link/../run.py", vec![], vec![], "a/run.py"),
            ("python3", vec!["link/../run.py"], vec![], "a/run.py"),
            ("python3", vec!["x.py"], path.to_vec(), "bin/python3"),
            ("env", vec!["python3"], path.to_vec(), "bin/python3"),
            ("node", vec!["dist/index"], vec![], "dist/index.js"),
            ("node", vec!["."], vec![], "index.js"),
            ("node", vec!["srv"], vec![], "srv/lib/m.js"),
            ("sh", vec!["-c", "cd sub && exec ./run.py"], vec![], "sub/run.py"),
            ("sh", vec!["-c", "cd sub && exec python3 src/run.py"], vec![], "sub/src/run.py"),
            ("sh", vec!["-c", "exec \"$PWD/run.py\""], vec![], "run.py"),
            ("sh", vec!["-c", "./su?/ru?.py"], vec![], "sub/run.py"),
            ("bash", vec!["-lc", "./my\\ run.py"], vec![], "my run.py"),
            ("env", vec!["-C", "sub", "./run.py"], vec![], "sub/run.py"),
            ("make", vec!["-s", "-C", "sub"], vec![], "sub/Makefile"),
            ("env", vec!["npm", "start"], vec![], "package.json"),
            ("sh", vec!["-c", "npm -s start"], vec![], "package.json"),
            ("python3", vec!["-m", "pkg.srv"], vec![], "pkg/__init__.py"),
            ("../out.py", vec![], vec![], "../out.py"),
            ("sh", vec!["-c", "exec ./r'u'n.py"], vec![], "run.py"),
            ("bash", vec!["-c", "exec ~+/run.py"], vec![], "run.py"),
            ("python3", vec!["-c", "import os; os.execv('run' + '.py', [])"], vec![], "run.py"),
            ("perl", vec!["-e", "do 'ru' . 'n.py'"], vec![], "run.py"),
            ("find", vec![".", "-name", "r*.py", "-exec", "python3", "{}", "+"], vec![], "run.py"),
        ] {
            let spec = StdioSpec {
                command: command.to_owned(),
                args: args.into_iter().map(str::to_owned).collect(),
                env: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                ..StdioSpec::default()
            };
            let before = site.named_files(&spec).unwrap();
            let file = root.join(started);
            std::fs::write(&file, "changed").unwrap();
            assert_ne!(site.named_files(&spec).unwrap(), before, "{spec:?}");
            std::fs::write(&file, r#"{"main": "lib/m"}"#).unwrap();
            assert_eq!(site.named_files(&spec).unwrap(), before, "{spec:?}");
            // Control: a file that is not named may change.
            std::fs::write(root.join("a/b/x"), "other").unwrap();
            if !hides_files(&spec) {
                assert_eq!(site.named_files(&spec).unwrap(), before, "{spec:?}");
            }
            std::fs::write(root.join("a/b/x"), r#"{"main": "lib/m"}"#).unwrap();
        }
        let spec = StdioSpec {
            command: "python3".to_owned(),
            env: vec![("PATH".to_owned(), "./bin".to_owned())],
            ..StdioSpec::default()
        };
        assert_eq!(site.program(&spec), Some(root.join("bin/python3")), "the review names what is started");
    }
}
