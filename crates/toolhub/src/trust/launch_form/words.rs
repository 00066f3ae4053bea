//! The words of a launch, and the files and programs that they may refer to at its location.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::entry_text::normalize_path;
use super::programs::{VERSION_FILES, VERSION_MANAGERS, is_known, name_of};
use crate::trust::files;

/// The maximum length of a word; no path is longer.
pub(in crate::trust) const MAX_WORD_BYTES: usize = 4_096;
/// Characters, besides letters and digits, that have no special meaning to any program.
pub(super) const PLAIN: &str = "_-./:=,@%+~#^ ";
/// Further characters that are allowed in URLs.
const IN_ADDRESSES: &str = "?&*!$()[];{}";

/// The location of a launch, for words whose meaning depends on it.
pub(in crate::trust) struct LaunchContext<'a> {
    /// The folders that relative paths may be resolved against, the working directory first.
    pub(in crate::trust) folders: &'a [PathBuf],
    pub(in crate::trust) project: &'a Path,
    /// The `PATH` of the launch.
    pub(in crate::trust) path: Option<&'a OsStr>,
    /// Whether the words contain the values of their variables.
    pub(in crate::trust) has_values: bool,
}

/// What a word starts.
pub(super) enum Started {
    /// A file of the project, which is bound.
    OfProject,
    /// Programs of these names.
    Known(BTreeSet<String>),
    Unknown,
}

impl LaunchContext<'_> {
    /// The files that a word may start, as they are named.
    pub(super) fn files_of(&self, word: &str) -> Vec<PathBuf> {
        let word = word.rsplit('=').next().unwrap_or(word);
        if word.is_empty() || word.starts_with('-') || word.contains("://") {
            return Vec::new();
        }
        let in_path = || self.path.into_iter().flat_map(std::env::split_paths);
        let on_path =
            |base: &PathBuf| in_path().map(|folder| base.join(folder).join(word)).collect::<Vec<_>>();
        let named = |base: &PathBuf| vec![base.join(word)];
        // Absolute folders of `PATH` are the same for each base.
        let files: BTreeSet<PathBuf> = self
            .folders
            .iter()
            .flat_map(|base| if word.contains('/') { named(base) } else { on_path(base) })
            .collect();
        files.into_iter().filter(|file| file.is_file()).collect()
    }

    /// Whether a path lies in the project, or leads into it.
    pub(super) fn is_in_project(&self, path: &Path) -> bool {
        self.folders.iter().map(|folder| folder.join(path)).any(|path| {
            normalize_path(&path).starts_with(self.project)
                || path.canonicalize().is_ok_and(|real| real.starts_with(self.project))
        })
    }

    /// The programs that a word starts. A link of the project counts as the program behind it; a program elsewhere, which the
    /// project cannot change, by its own name or by that of the file behind links.
    pub(super) fn started(&self, word: &str) -> Started {
        let own = name_of(word);
        let found = self.files_of(word);
        if found.is_empty() {
            let is_missing_file = word.contains('/') && Path::new(word).is_relative();
            return match (is_known(&own), is_missing_file) {
                (true, _) => Started::Known(BTreeSet::from([own])),
                // If it appears, the launch names another file.
                (false, true) => Started::OfProject,
                (false, false) => Started::Unknown,
            };
        }
        let mut names = BTreeSet::new();
        for file in found {
            let Ok(real) = file.canonicalize() else { return Started::Unknown };
            if real.starts_with(self.project) {
                continue;
            }
            let behind = name_of(&real.file_name().unwrap_or_default().to_string_lossy());
            let is_link_of_project = normalize_path(&file).starts_with(self.project);
            let is_managed = VERSION_MANAGERS.contains(&behind.as_str()) && self.has_any(&VERSION_FILES);
            match (is_known(&own), is_known(&behind)) {
                (true, true) if is_link_of_project => names.extend([own.clone(), behind]),
                (true, _) if !is_link_of_project && !is_managed => drop(names.insert(own.clone())),
                (false, true) => drop(names.insert(behind)),
                _ => return Started::Unknown,
            }
        }
        if names.is_empty() { Started::OfProject } else { Started::Known(names) }
    }

    /// Whether a word of an argument is the name or the path of a program outside of the project.
    pub(super) fn is_program(&self, word: &str) -> bool {
        let is_executable = |file: &PathBuf| {
            !self.is_in_project(file)
                && std::fs::metadata(file).is_ok_and(|about| files::is_executable(&about))
        };
        is_known(&name_of(word)) || self.files_of(word).iter().any(is_executable)
    }

    /// Whether a script is a file of the project, whether it exists or not.
    pub(super) fn is_script_of_project(&self, script: &str) -> bool {
        let path = Path::new(script);
        let found: Vec<PathBuf> =
            self.folders.iter().filter_map(|folder| folder.join(path).canonicalize().ok()).collect();
        match found.is_empty() {
            true => path.is_relative() && !script.starts_with('~') && !script.contains("://"),
            false => found.iter().all(|real| real.starts_with(self.project)),
        }
    }

    /// Whether a module of Python is one of the project.
    pub(super) fn has_module(&self, module: &str) -> bool {
        let path = module.replace('.', "/");
        let top = module.split('.').next().unwrap_or_default();
        let files = [format!("{path}.py"), path, format!("{top}.py"), top.to_owned()];
        self.folders
            .iter()
            .filter(|folder| folder.starts_with(self.project))
            .any(|folder| files.iter().any(|file| folder.join(file).exists()))
    }

    /// The existing files of this name in the folders and their parents up to the root of the project.
    pub(super) fn searched(&self, name: &str) -> BTreeSet<PathBuf> {
        let parents = |folder: &'_ PathBuf| {
            let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(self.project));
            std::iter::once(folder.clone()).chain(above.map(Path::to_path_buf)).collect::<Vec<_>>()
        };
        let files = self.folders.iter().flat_map(parents).map(|folder| folder.join(name));
        files.filter(|file| file.symlink_metadata().is_ok()).collect()
    }

    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| !self.searched(name).is_empty())
    }

    /// Whether the version files of the folder choose an installed version, and not a path.
    pub(super) fn has_plain_versions(&self) -> bool {
        let is_plain = |file: &PathBuf| match files::read(file) {
            Ok(Some((bytes, _))) => {
                let text = String::from_utf8_lossy(&bytes);
                !["path:", "..", "./", "=/"].iter().any(|part| text.contains(part)) && !text.starts_with('/')
            }
            Ok(None) | Err(_) => false,
        };
        let names = VERSION_FILES
            .iter()
            .filter(|name| name.ends_with("-version") || [".nvmrc", ".tool-versions"].contains(name));
        names.into_iter().all(|name| self.searched(name).iter().all(is_plain))
    }
}

/// Whether all words are plain.
pub(super) fn are_plain(words: &[String], context: &LaunchContext<'_>) -> bool {
    words.iter().all(|word| is_plain_word(word, context))
}

/// Whether a word has no special meaning to a shell or another program.
pub(super) fn is_plain_word(word: &str, context: &LaunchContext<'_>) -> bool {
    let is_data_address = word.split('=').any(|part| part.starts_with("data:"));
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c) || (cfg!(windows) && c == '\\');
    !is_data_address && (word.chars().all(is_plain) || is_address(word, context) || is_json(word))
}

/// Whether a word is a URL. Not if the folder has an entry named like its scheme (`https:`): then the word is also a path, which
/// a shell could expand.
pub(super) fn is_address(word: &str, context: &LaunchContext<'_>) -> bool {
    let Some((scheme, _)) = word.split_once("://") else { return false };
    let scheme = scheme.rsplit('=').next().unwrap_or(scheme);
    let is_scheme =
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '-');
    is_scheme
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || (c != ' ' && PLAIN.contains(c)) || IN_ADDRESSES.contains(c))
        && !context.folders.iter().any(|folder| folder.join(format!("{scheme}:")).exists())
}

fn is_json(word: &str) -> bool {
    word.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(word).is_ok()
}
