//! Finding skills: folders are looked through within bounds, links included, and what cannot be used is named.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use toolhub_core::lang::Text;

use crate::fault::Fault;
use crate::skill::{Origin, Root, Skill, manifest_in};

/// How deep below a root a skill may lie.
const DEEPEST: usize = 4;
/// Folders that are looked through below one root.
const MOST_FOLDERS: usize = 2_000;
/// Skills of one root; of each, so that a project cannot crowd out its user's.
const MOST_SKILLS: usize = 500;
/// Entries of one folder that are looked at.
const MOST_ENTRIES: usize = 20_000;
/// Folders that hold no skills, and much else.
const PASSED_BY: [&str; 6] = [".git", "node_modules", "__pycache__", ".venv", ".hg", ".svn"];

/// Something that looks like a skill and cannot be used.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// Its file.
    pub file: PathBuf,
    /// Whose folder it was found in.
    pub origin: Origin,
    /// Why.
    pub faults: Vec<Fault>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// The skills, those of earlier roots first.
    pub skills: Vec<Skill>,
    /// Single Python files that may hold tools.
    pub python_files: Vec<(PathBuf, Origin)>,
    /// What cannot be used.
    pub skipped: Vec<Skipped>,
    /// What else is worth knowing, such as bounds that were reached.
    pub notes: Vec<Text>,
}

/// Looks through these folders, in order.
pub(crate) fn discover(roots: &[Root]) -> Found {
    let mut found = Found::default();
    // A folder that can be reached twice, by a link or by two roots, counts where it is met first.
    let mut seen = HashSet::new();
    for root in roots {
        look(root, &mut found, &mut seen);
    }
    found
}

fn look(root: &Root, found: &mut Found, seen: &mut HashSet<PathBuf>) {
    let mut waiting = VecDeque::from([(root.folder.clone(), 0)]);
    let (mut looked_at, before) = (0, found.skills.len());
    while let Some((folder, depth)) = waiting.pop_front() {
        let Ok(real) = folder.canonicalize() else { continue };
        if !real.is_dir() || !seen.insert(real) {
            continue;
        }
        looked_at += 1;
        if looked_at > MOST_FOLDERS {
            let place = root.folder.display();
            found.notes.push(Text::new(
                format!("`{place}` has more than {MOST_FOLDERS} folders: skills in the rest of them were not looked for"),
                format!("`{place}` 中的文件夹超过 {MOST_FOLDERS} 个：其余的未查找技能"),
            ));
            return;
        }
        if depth > 0
            && let Some(file) = manifest_in(&folder)
        {
            if found.skills.len() - before >= MOST_SKILLS {
                let place = root.folder.display();
                found.notes.push(Text::new(
                    format!("`{place}` has more than {MOST_SKILLS} skills: the rest is left out"),
                    format!("`{place}` 中的技能超过 {MOST_SKILLS} 个：其余的未使用"),
                ));
                return;
            }
            match Skill::read(&folder, root.origin) {
                Ok(skill) => found.skills.push(skill),
                Err(faults) => found.skipped.push(Skipped { file, origin: root.origin, faults }),
            }
            continue;
        }
        let (folders, files) = entries(&folder);
        if depth == 0 {
            found.python_files.extend(files.into_iter().map(|file| (file, root.origin)));
        }
        if depth < DEEPEST {
            waiting.extend(folders.into_iter().map(|folder| (folder, depth + 1)));
        }
    }
}

/// The folders and Python files in a folder, by name.
fn entries(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return (Vec::new(), Vec::new()) };
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in entries.flatten().take(MOST_ENTRIES) {
        let path = entry.path();
        let passed_by =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| PASSED_BY.contains(&name));
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
