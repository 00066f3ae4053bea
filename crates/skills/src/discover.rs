//! Discovers skills: searches folders within limits, follows symbolic links to folders, and reports what cannot be
//! used.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;

use crate::diagnostic::Diagnostic;
use crate::skill::{Skill, SkillOrigin, SkillRoot, manifest_in};

/// Maximum depth of a skill below a root.
const MAX_DEPTH: usize = 4;
/// Maximum number of folders searched below one root.
const MAX_FOLDERS: usize = 2_000;
/// Maximum number of skills per root, so that a project cannot crowd out the user's own.
const MAX_SKILLS: usize = 500;
/// Maximum number of entries read per folder.
const MAX_FOLDER_ENTRIES: usize = 20_000;
/// Folders that are skipped: they contain no skills and many files.
const SKIPPED_FOLDERS: [&str; 6] = [".git", "node_modules", "__pycache__", ".venv", ".hg", ".svn"];

/// A file that looks like a skill but cannot be used.
#[derive(Debug, Clone)]
pub struct SkippedFile {
    /// The file.
    pub file: PathBuf,
    /// The origin of the folder.
    pub origin: SkillOrigin,
    /// The reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// The result of a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discovery {
    /// The skills, in the order of the roots.
    pub skills: Vec<Skill>,
    /// Single Python files that may define tools.
    pub python_files: Vec<(PathBuf, SkillOrigin)>,
    /// Files that cannot be used.
    pub skipped: Vec<SkippedFile>,
    /// Further notes, such as limits that were reached.
    pub notes: Vec<LocalizedText>,
}

/// Searches the roots in order.
pub(crate) fn discover(roots: &[SkillRoot]) -> Discovery {
    let mut found = Discovery::default();
    // A folder that is reachable twice, by a link or by two roots, is only read the first time.
    let mut seen = HashSet::new();
    for root in roots {
        scan_root(root, &mut found, &mut seen);
    }
    found
}

fn scan_root(root: &SkillRoot, found: &mut Discovery, seen: &mut HashSet<PathBuf>) {
    let mut waiting = VecDeque::from([(root.folder.clone(), 0)]);
    let (mut looked_at, before) = (0, found.skills.len());
    while let Some((folder, depth)) = waiting.pop_front() {
        let Ok(real) = folder.canonicalize() else { continue };
        if !real.is_dir() || !seen.insert(real) {
            continue;
        }
        looked_at += 1;
        if looked_at > MAX_FOLDERS {
            let path = root.folder.display();
            found.notes.push(LocalizedText::new(
                format!("`{path}` has more than {MAX_FOLDERS} folders: skills in the rest of them were not looked for"),
                format!("`{path}` 中的目录超过 {MAX_FOLDERS} 个：其余的未查找技能"),
            ));
            return;
        }
        if depth > 0
            && let Some(file) = manifest_in(&folder)
        {
            if found.skills.len() - before >= MAX_SKILLS {
                let path = root.folder.display();
                found.notes.push(LocalizedText::new(
                    format!("`{path}` has more than {MAX_SKILLS} skills: the rest is left out"),
                    format!("`{path}` 中的技能超过 {MAX_SKILLS} 个：其余的未使用"),
                ));
                return;
            }
            match Skill::read(&folder, root.origin) {
                Ok(skill) => found.skills.push(skill),
                Err(diagnostics) => {
                    found.skipped.push(SkippedFile { file, origin: root.origin, diagnostics });
                }
            }
            continue;
        }
        let (folders, files) = entries(&folder);
        if depth == 0 {
            found.python_files.extend(files.into_iter().map(|file| (file, root.origin)));
        }
        if depth < MAX_DEPTH {
            waiting.extend(folders.into_iter().map(|folder| (folder, depth + 1)));
        }
    }
}

/// Returns the folders and the Python files in a folder, sorted by name.
fn entries(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return (Vec::new(), Vec::new()) };
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in entries.flatten().take(MAX_FOLDER_ENTRIES) {
        let path = entry.path();
        let passed_by = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| SKIPPED_FOLDERS.contains(&name));
        let Ok(kind) = entry.file_type() else { continue };
        if passed_by {
            continue;
        }
        if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
            folders.push(path);
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "py") {
            files.push(path);
        }
    }
    folders.sort();
    files.sort();
    (folders, files)
}
