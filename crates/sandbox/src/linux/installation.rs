//! The files that a program may read of its own: its executable, and the program and library folders of a recognised
//! installation.

use std::path::{Path, PathBuf};

use super::path_handle::PathHandle;
use super::{syscalls, system_files};
use crate::program::{NamedBy, ProgramRefusal, SandboxProgram};

/// Maximum length of a chain of symbolic links; a longer one is treated as a cycle.
const MAX_LINKS: usize = 16;
/// Folders that are never an installation, and never granted through a link.
const SHARED_FOLDERS: &[&str] = &[
    "/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/srv",
    "/sys", "/tmp", "/var", "/var/lib", "/var/tmp", "/Users",
];
/// The magic number of a native executable.
const ELF: &[u8] = b"\x7fELF";

/// A recognised installation, and the only entries of it that are granted.
struct Layout {
    /// Entries that must exist; a trailing `*` in the last component matches any suffix.
    proofs: &'static [&'static str],
    entries: &'static [&'static str],
}

const LAYOUTS: &[Layout] = &[
    // Python, virtual environments and Conda.
    Layout { proofs: &["lib/python3*/os.py"], entries: COMMON },
    Layout { proofs: &["lib64/python3*/os.py"], entries: COMMON },
    Layout { proofs: &["pyvenv.cfg", "lib/python3*/site-packages"], entries: COMMON },
    // Node.js.
    Layout { proofs: &["include/node/node.h"], entries: COMMON },
    Layout { proofs: &["lib/node_modules/npm/package.json"], entries: COMMON },
    // Ruby, Perl, PHP, R, Julia.
    Layout { proofs: &["lib/ruby"], entries: COMMON },
    Layout { proofs: &["lib/perl5"], entries: COMMON },
    Layout { proofs: &["lib/5*/strict.pm"], entries: COMMON },
    Layout { proofs: &["lib/php"], entries: COMMON },
    Layout { proofs: &["lib/R"], entries: COMMON },
    Layout { proofs: &["lib/julia"], entries: COMMON },
    // Java and Go keep more than libraries beside `bin`.
    Layout { proofs: &["lib/modules", "release"], entries: &["bin", "lib", "conf", "release"] },
    Layout {
        proofs: &["src/runtime", "pkg/tool"],
        entries: &["bin", "lib", "src", "pkg", "VERSION", "go.env"],
    },
    // Homebrew: `lib` and `bin` are links into `Cellar`.
    Layout { proofs: &["Cellar", "bin/brew"], entries: &["bin", "lib", "opt", "Cellar", "share", "libexec"] },
];
/// An installation that only the user may name, since any project may have this layout.
const OF_OWNER: &[Layout] = &[Layout { proofs: &["lib"], entries: COMMON }];
const COMMON: &[&str] = &[
    "bin",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "include",
    "share",
    "pyvenv.cfg",
    "ssl/cert.pem",
    "ssl/cacert.pem",
];

/// The readable paths of a program, and the links that lead to it.
#[derive(Debug, Default)]
pub(super) struct RequiredPaths {
    /// Open paths, each with the name that the program uses.
    pub(super) read: Vec<(PathHandle, PathBuf)>,
    /// A link and its target. It grants nothing: the target needs a grant of its own.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

/// Folders that no grant for a program may contain.
#[derive(Debug)]
pub(super) struct ExcludedFolders {
    /// The home folder, the folder for temporary files and the data folders.
    outside: Vec<PathHandle>,
    /// Folders in which no interpreter is accepted.
    protected: Vec<PathHandle>,
}

impl ExcludedFolders {
    pub(super) fn new(protected: &[PathBuf]) -> Self {
        let open = |path: &PathBuf| PathHandle::follow(path).ok();
        let usual = [std::env::home_dir(), Some(std::env::temp_dir())].into_iter().flatten();
        let outside = usual.chain(protected.iter().cloned()).filter_map(|path| open(&path)).collect();
        Self { outside, protected: protected.iter().filter_map(open).collect() }
    }

    /// Whether a folder is a shared system folder, or contains one of the private folders.
    pub(super) fn is_too_wide(&self, folder: &PathHandle) -> bool {
        let path = folder.path();
        SHARED_FOLDERS.iter().any(|shared| path == Path::new(shared))
            || self.outside.iter().any(|one| one.path().starts_with(path) || is_below(one, folder))
    }

    fn holds(&self, program: &PathHandle) -> bool {
        self.protected.iter().any(|folder| program.path().starts_with(folder.path()))
    }
}

/// Whether `folder` is `inner` or an ancestor of it, by device and inode: a bind mount has another path.
fn is_below(inner: &PathHandle, folder: &PathHandle) -> bool {
    let mut at = match inner.identity() == folder.identity() {
        true => return true,
        false => inner.parent().ok(),
    };
    while let Some(one) = at {
        if one.identity() == folder.identity() {
            return true;
        }
        at = if one.path() == Path::new("/") { None } else { one.parent().ok() };
    }
    false
}

/// Returns the readable paths of a program, or why it is refused.
pub(super) fn needs(
    program: &SandboxProgram,
    private: &ExcludedFolders,
) -> Result<RequiredPaths, ProgramRefusal> {
    SandboxProgram::check_name(&program.path)?;
    let missing = |error: std::io::Error| ProgramRefusal::Missing(error.to_string());
    let file = PathHandle::follow(&program.path).map_err(missing)?;
    // Checks the target of symbolic links, too.
    SandboxProgram::check_name(file.path())?;
    if !file.is_file() {
        return Err(ProgramRefusal::NotFile);
    }
    if !file.is_executable() {
        return Err(ProgramRefusal::NotExecutable);
    }
    let mut needs = RequiredPaths::default();
    let link_chain = link_chain(&program.path, &mut needs).map_err(missing)?;
    let of_system = is_system(file.path());
    if program.named_by == NamedBy::Script && !of_system && private.holds(&file) {
        return Err(ProgramRefusal::Protected);
    }
    let search = Search { named_by: program.named_by, private };
    let mut recognised = false;
    for hop in link_chain.iter().chain([&file.path().to_path_buf()]).filter(|hop| !is_system_name(hop)) {
        recognised |= search.around(hop, &mut needs)?;
    }
    for prefix in &program.prefixes {
        if let Ok(root) = PathHandle::follow(prefix)
            && !is_system(root.path())
        {
            search.installation(&root, prefix, &mut needs);
        }
    }
    if of_system {
        return Ok(needs);
    }
    if program.named_by == NamedBy::Script {
        if file.is_replaceable(syscalls::effective_ids().0) {
            return Err(ProgramRefusal::Replaceable);
        }
        if !recognised && !file.starts_with(ELF) {
            return Err(ProgramRefusal::NotNative);
        }
    }
    let at = file.path().to_path_buf();
    needs.read.push((file, at));
    Ok(needs)
}

/// The names of a program: the given one, then each link target.
fn link_chain(path: &Path, needs: &mut RequiredPaths) -> std::io::Result<Vec<PathBuf>> {
    let mut link_chain = vec![path.to_path_buf()];
    let mut at = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = std::fs::read_link(&at) else { break };
        let folder = at.parent().unwrap_or(Path::new("/")).canonicalize()?;
        if !is_system_name(&at) {
            needs.links.push((at.clone(), target.clone()));
        }
        // `..` after a link refers to the parent of the link's target.
        let next = folder.join(target);
        let (Some(parent), Some(name)) = (next.parent(), next.file_name()) else { break };
        at = parent.canonicalize()?.join(name);
        link_chain.push(at.clone());
    }
    Ok(link_chain)
}

/// Finds the installations of a program.
struct Search<'a> {
    named_by: NamedBy,
    private: &'a ExcludedFolders,
}

impl Search<'_> {
    /// Grants the installation around `ROOT/bin/NAME`. Returns `false` if it is none.
    fn around(&self, program: &Path, needs: &mut RequiredPaths) -> Result<bool, ProgramRefusal> {
        let Some((bin, name)) = program.parent().zip(program.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(false);
        };
        let Ok(folder) = PathHandle::follow(bin) else { return Ok(false) };
        if !folder.is_folder() || !folder.path().ends_with("bin") || is_system(folder.path()) {
            return Ok(false);
        }
        let (Ok(root), Ok(entry)) = (folder.parent(), folder.child(name)) else { return Ok(false) };
        if root.child("bin").ok().map(|again| again.identity()) != Some(folder.identity()) {
            return Err(ProgramRefusal::Changed);
        }
        let user = syscalls::effective_ids().0;
        let replaceable = [&root, &folder].iter().any(|one| one.is_replaceable(user));
        if self.named_by == NamedBy::Script && (replaceable || !(entry.is_file() || entry.is_link())) {
            return Ok(false);
        }
        let named = bin.parent().unwrap_or(Path::new("/")).to_path_buf();
        Ok(self.installation(&root, &named, needs))
    }

    /// Grants the entries of an installation. Returns `false` if `root` is none.
    fn installation(&self, root: &PathHandle, named: &Path, needs: &mut RequiredPaths) -> bool {
        // `~/.local` contains the user's programs, but also other data.
        if !root.is_folder() || root.path().ends_with(".local") || self.private.is_too_wide(root) {
            return false;
        }
        let of_owner = if self.named_by == NamedBy::Owner { OF_OWNER } else { &[] };
        let proven = |layout: &&Layout| layout.proofs.iter().all(|proof| has(root, proof));
        let Some(layout) = LAYOUTS.iter().chain(of_owner).find(proven) else { return false };
        for name in layout.entries {
            let Some(entry) = within(root, name) else { continue };
            if entry.is_link() {
                // `lib64` is often a link to `lib`. A link to any other place grants nothing.
                let target = std::fs::read_link(root.path().join(name)).unwrap_or_default();
                if layout.entries.iter().any(|other| target == Path::new(other)) {
                    needs.links.push((root.path().join(name), target));
                }
            } else if (entry.is_folder() && !self.private.is_too_wide(&entry)) || entry.is_file() {
                needs.read.push((entry, named.join(name)));
            }
        }
        true
    }
}

/// Opens an entry below a folder; a link on the way ends the search.
fn within(root: &PathHandle, path: &str) -> Option<PathHandle> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let entry = root.child(first).ok()?;
    match rest {
        "" => Some(entry),
        rest if entry.is_folder() => within(&entry, rest),
        _ => None,
    }
}

/// Whether a folder has an entry at this path, without links on the way.
fn has(root: &PathHandle, proof: &str) -> bool {
    let (first, rest) = proof.split_once('/').map_or((proof, None), |(first, rest)| (first, Some(rest)));
    let names = match first.strip_suffix('*') {
        Some(start) => root.names().into_iter().filter(|name| name.starts_with(start)).collect(),
        None => vec![first.to_owned()],
    };
    let entries = names.iter().filter_map(|name| root.child(name).ok());
    let mut entries = entries.filter(|entry| entry.is_folder() || (entry.is_file() && rest.is_none()));
    entries.any(|entry| rest.is_none_or(|rest| has(&entry, rest)))
}

/// Whether a canonical path is in a system folder, which is readable anyway.
pub(super) fn is_system(path: &Path) -> bool {
    system_files::PROGRAMS.iter().any(|folder| path.starts_with(folder))
}

/// As `is_system`, for a path that may contain links of the system.
fn is_system_name(path: &Path) -> bool {
    is_system(path)
        && path.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|real| is_system(&real))
}
