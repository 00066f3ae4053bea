//! Servers of the owner's own configuration in the folder of a project. Whatever resolves against the current folder is chosen by
//! that folder: an entry that depends on it is not started there, and the others start in an empty folder, unless the current one
//! contains only data. In a trusted folder they start in it as long as the files that they load are those that were reviewed. Each
//! start decides again, since the folder may have changed.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toolhub_client_config::{StdioSpec, variable_references};
use toolhub_core::ServerId;
use toolhub_core::consent::{StartFolder, StartRules, WorkFolder};
use toolhub_core::lang::LocalizedText;

use super::binding::UserServerBinding;
use super::steering;
use crate::trust::launch_form::entry_text::expand_if_set;

/// Variables that contain the current folder, or the one before it.
const FOLDER_VARIABLES: [&str; 3] = ["PWD", "OLDPWD", "INIT_CWD"];
/// Separators of words inside an argument, and of folders in the value of a variable.
const SEPARATORS: [char; 9] = [';', '&', '|', '(', ')', '\'', '"', '`', ','];

/// The consequence of an untrusted current folder for a server of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Restriction {
    /// It starts in an empty folder, because of this file.
    Moved { file: String },
    /// It is not started, because of this word of its entry. In a trusted folder, the trust does not cover what it loads.
    Refused { word: String, trusted: bool },
}

impl Restriction {
    /// Why the server `id` is not started because of `word`, and what to do.
    pub(crate) fn refusal(id: &str, word: &str, trusted: bool) -> LocalizedText {
        if trusted {
            return LocalizedText::new(
                format!(
                    "`{id}` is not started in this folder: `{word}` in its entry depends on the current folder, and what it loads from there changed since you trusted the folder, or was not shown then: run `toolhub trust`, write absolute paths in the entry, or use `--trust` for one run"
                ),
                format!(
                    "`{id}` 在此目录中不启动：其配置中的 `{word}` 取决于当前目录，而它从中加载的内容在你信任之后有改动，或当时没有显示。请运行 `toolhub trust`，在配置中写绝对路径，或用 `--trust` 仅信任一次"
                ),
            );
        }
        LocalizedText::new(
            format!(
                "`{id}` is not started in this folder: `{word}` in its entry depends on the current folder, which is not trusted: run `toolhub trust` if you trust this folder, or write absolute paths in the entry"
            ),
            format!(
                "`{id}` 在此目录中不启动：其配置中的 `{word}` 取决于当前目录，而当前目录未受信任。若信任当前目录，请运行 `toolhub trust`，或在配置中写绝对路径"
            ),
        )
    }
}

/// A server of the owner's own configuration in the folder of a project.
pub(in crate::trust) struct UserServerEntry {
    pub(in crate::trust) id: ServerId,
    pub(in crate::trust) stdio: StdioSpec,
    pub(in crate::trust) here: PathBuf,
    pub(in crate::trust) home_dir: Option<PathBuf>,
    /// The root of the project, whose programs are not found by `PATH`.
    pub(in crate::trust) project: PathBuf,
    /// The folder in which the empty folders are created.
    pub(in crate::trust) neutral: PathBuf,
    /// The reviewed state of a trusted folder; `None` if it is not trusted.
    pub(in crate::trust) binding: Option<UserServerBinding>,
}

impl StartFolder for UserServerEntry {
    fn start_folder(&self) -> Result<StartRules, LocalizedText> {
        // Once only: every file of the project may have to be read.
        if self.is_reviewed() {
            return Ok(StartRules::default());
        }
        match self.restriction_without_trust(self.steering_file()) {
            None => Ok(StartRules { folder: None, excluded: self.excluded() }),
            Some(Restriction::Moved { .. }) => {
                let folder = WorkFolder::Fresh(self.neutral.clone().into());
                Ok(StartRules { folder: Some(folder), excluded: self.excluded() })
            }
            Some(Restriction::Refused { word, trusted }) => {
                Err(Restriction::refusal(self.id.as_str(), &word, trusted))
            }
        }
    }
}

impl UserServerEntry {
    /// The file of the current folder that can change what a program runs; `None` if it contains only data.
    pub(in crate::trust) fn steering_file(&self) -> Option<String> {
        steering::find_in(&self.here, self.home_dir.as_deref())
    }

    /// The consequence for this entry, if `steering` is such a file, unless the folder is trusted and what the entry loads from it
    /// is unchanged.
    pub(in crate::trust) fn restriction(&self, steering: Option<String>) -> Option<Restriction> {
        self.restriction_without_trust(steering).filter(|_| !self.is_reviewed())
    }

    /// Whether the folder is trusted, and what the entry loads from it is unchanged.
    fn is_reviewed(&self) -> bool {
        self.binding.as_ref().is_some_and(|binding| binding.covers(&self.stdio))
    }

    /// The root of the project, unless it contains the user's home, whose programs are the user's own.
    fn excluded(&self) -> Option<Arc<Path>> {
        let is_above_home = self.home_dir.as_ref().is_some_and(|home| home.starts_with(&self.project));
        (!is_above_home).then(|| self.project.clone().into())
    }

    /// The consequence for this entry in a folder that is not trusted.
    pub(in crate::trust) fn restriction_without_trust(
        &self,
        steering: Option<String>,
    ) -> Option<Restriction> {
        let words = self.dependences();
        // The folder above one with nothing but data was not checked.
        let leads_up = |text: &&String| {
            let filled = expand_if_set(text);
            pieces(&filled)
                .any(|piece| Path::new(piece).components().any(|part| part == Component::ParentDir))
        };
        let word = match &steering {
            Some(_) => words.first(),
            None => words.iter().find(leads_up),
        };
        match (word, steering) {
            (Some(word), _) => {
                Some(Restriction::Refused { word: word.clone(), trusted: self.binding.is_some() })
            }
            (None, Some(file)) if self.stdio.cwd.is_none() => Some(Restriction::Moved { file }),
            (None, _) => None,
        }
    }

    /// The words of the entry that have another meaning in each current folder.
    fn dependences(&self) -> Vec<String> {
        let stdio = &self.stdio;
        let mut found = Vec::new();
        if let Some(cwd) = stdio.cwd.as_ref().map(|cwd| cwd.to_string_lossy())
            && (self.refers_to_folder(&cwd) || Path::new(&expand_if_set(&cwd)).is_relative())
        {
            found.push(cwd.into_owned());
        }
        // Relative paths count from the configured folder, if there is one.
        let counts_from_here = stdio.cwd.is_none();
        let command = expand_if_set(&stdio.command);
        let is_path = Path::new(&command).components().count() > 1;
        if counts_from_here && is_path && Path::new(&command).is_relative() {
            found.push(stdio.command.clone());
        }
        let values = stdio.env.iter().map(|(_, value)| value);
        let texts = [&stdio.command].into_iter().chain(&stdio.args).chain(values);
        let depends = |text: &&String| {
            self.refers_to_folder(text)
                || (counts_from_here && pieces(&expand_if_set(text)).any(is_relative_path))
        };
        found.extend(texts.filter(depends).cloned());
        let is_folder = |name: &&String| FOLDER_VARIABLES.contains(&name.as_str());
        found.extend(stdio.env_pass.iter().filter(is_folder).cloned());
        found
    }

    /// Whether a text names the current folder by a variable, or by a variable whose value is a path in it.
    fn refers_to_folder(&self, text: &str) -> bool {
        // A path in an ancestor of the home folder, such as `/`, says nothing.
        let above_home = self.home_dir.as_ref().is_some_and(|home| home.starts_with(&self.here));
        variable_references(text).iter().any(|name| {
            let leads_here = |value: std::ffi::OsString| {
                let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
                let inside = |path: PathBuf| real(path).starts_with(&self.here);
                !above_home && std::env::split_paths(&value).filter(|path| path.is_absolute()).any(inside)
            };
            FOLDER_VARIABLES.contains(&name.as_str())
                || (name != "PATH" && std::env::var_os(name).is_some_and(leads_here))
        })
    }
}

/// The parts of an argument or value that may be paths: the text itself, what follows `=`, and the words of a list or of code.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c));
    // A single dot among other words is a command of a shell, not a folder.
    let words = words.flat_map(|word| word.split(['=', ':'])).filter(|word| ![".", ".."].contains(word));
    let value = text.split_once('=').map(|(_, value)| value);
    [text].into_iter().chain(value).chain(words)
}

/// Whether a word is a path that counts from the current folder.
fn is_relative_path(word: &str) -> bool {
    let heads = ["./", "../", ".\\", "..\\", "~+", "~-"];
    [".", ".."].contains(&word) || heads.iter().any(|head| word.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(stdio: StdioSpec) -> UserServerEntry {
        let folder = |path: &str| PathBuf::from(path);
        UserServerEntry {
            id: ServerId::new("a"),
            stdio,
            here: folder("/clone"),
            project: folder("/clone"),
            home_dir: None,
            neutral: folder("/neutral"),
            binding: None,
        }
    }

    #[test]
    fn entries_that_depend_on_the_current_folder_are_refused() {
        let stdio = |command: &str, args: &[&str], env: &[(&str, &str)], cwd: Option<&str>| StdioSpec {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: cwd.map(PathBuf::from),
            ..StdioSpec::default()
        };
        for (spec, word) in [
            (stdio("./run.sh", &[], &[], None), Some("./run.sh")),
            (stdio("sub/run.sh", &[], &[], None), Some("sub/run.sh")),
            (stdio("run", &[], &[], Some(".")), Some(".")),
            (stdio("run", &[], &[], Some("sub")), Some("sub")),
            (stdio("run", &[], &[], Some("${PWD}")), Some("${PWD}")),
            (
                stdio("run", &[], &[], Some("${TOOLHUB_UNSET_FOLDER:-sub}")),
                Some("${TOOLHUB_UNSET_FOLDER:-sub}"),
            ),
            (stdio("${PWD:-.}/run.sh", &[], &[], Some("/opt")), Some("${PWD:-.}/run.sh")),
            (stdio("node", &["${PWD:-.}/server.js"], &[], None), Some("${PWD:-.}/server.js")),
            (stdio("node", &["${OLDPWD}/server.js"], &[], None), Some("${OLDPWD}/server.js")),
            (stdio("node", &["."], &[], None), Some(".")),
            (stdio("node", &["--require=./a.js", "/opt/s.js"], &[], None), Some("--require=./a.js")),
            (stdio("sh", &["-c", "exec ./run.sh"], &[], None), Some("exec ./run.sh")),
            (stdio("node", &["/opt/s.js"], &[("NODE_PATH", "/opt:./lib")], None), Some("/opt:./lib")),
            // Controls: nothing of these is found through the current folder.
            (stdio("node", &["/opt/s.js"], &[("A", "b")], None), None),
            (stdio("sh", &["-c", ". /etc/profile; exec server"], &[], None), None),
            (stdio("./run.sh", &["./a", "."], &[], Some("/opt")), None),
            (stdio("npx", &["-y", "@acme/server@1.0.0", "https://example.org/./a"], &[], None), None),
        ] {
            let found = entry(spec.clone()).restriction(Some("x.py".to_owned()));
            let expected = word.map(|word| Restriction::Refused { word: word.to_owned(), trusted: false });
            let moved = (spec.cwd.is_none()).then(|| Restriction::Moved { file: "x.py".to_owned() });
            assert_eq!(found, expected.or(moved), "{spec:?} {:?}", spec.args);
        }
        // In a folder with nothing but data, they start; not if a path leads out of it.
        assert_eq!(entry(stdio("node", &["./s"], &[], Some("."))).restriction(None), None);
        assert!(entry(stdio("run", &[], &[], Some(".."))).restriction(None).is_some());
        let passed = StdioSpec { env_pass: vec!["PWD".to_owned()], ..stdio("run", &[], &[], None) };
        assert!(matches!(entry(passed).restriction(Some(String::new())), Some(Restriction::Refused { .. })));
    }
}
