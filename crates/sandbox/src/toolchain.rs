//! What a program needs to read of its own: an interpreter that lives outside the system's folders needs its library.

use std::path::{Path, PathBuf};

/// Folders whose content is the system's; they need no grant.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"];

/// What must be granted for reading so that `program` can run: its file, and the folder that it was installed into
/// (`bin` beside `lib`, as virtual environments, pyenv, nvm and the like have it). Links are followed, since each folder
/// on the way is needed. Nothing for the system's own programs, and never a home folder or the root as a whole.
pub fn toolchain(program: &Path) -> Vec<PathBuf> {
    let mut needed = Vec::new();
    let mut at = program.to_path_buf();
    // A chain of links that is longer than this leads in a circle.
    for _ in 0..16 {
        if SYSTEM.iter().any(|folder| at.starts_with(folder)) || !at.is_absolute() {
            break;
        }
        if at.is_file() {
            needed.push(at.clone());
        }
        needed.extend(installation(&at));
        let Ok(next) = std::fs::read_link(&at) else { break };
        at = at.parent().unwrap_or(Path::new("/")).join(next);
    }
    // Also where a folder on the way, and not the program itself, is a link.
    if let Ok(real) = program.canonicalize()
        && program.is_absolute()
        && !SYSTEM.iter().any(|folder| real.starts_with(folder))
    {
        needed.extend(installation(&real));
        needed.push(real);
    }
    needed.sort();
    needed.dedup();
    needed
}

/// The folder above `bin`, if it holds an installation and nothing else.
fn installation(program: &Path) -> Option<PathBuf> {
    let bin = program.parent()?;
    let root = bin.parent()?;
    let holds_one = root.join("lib").is_dir() || root.join("pyvenv.cfg").is_file();
    let too_much = root.parent().is_none() || std::env::home_dir().is_some_and(|home| home.starts_with(root));
    let is_local = root.ends_with(".local");
    (bin.ends_with("bin") && holds_one && !too_much && !is_local).then(|| root.to_path_buf())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_interpreter_outside_the_system_needs_its_library() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let versions = root.join("versions/3.12");
        for made in ["versions/3.12/bin", "versions/3.12/lib", "venv/bin", "alone"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(versions.join("bin/python3"), "").unwrap();
        fs::write(root.join("alone/tool"), "").unwrap();
        fs::write(root.join("venv/pyvenv.cfg"), "").unwrap();
        symlink("../../versions/3.12/bin/python3", root.join("venv/bin/python")).unwrap();
        let shown = |program: &Path| -> Vec<String> {
            let needed = toolchain(program);
            let inside = needed.iter().map(|path| path.canonicalize().unwrap());
            let mut shown: Vec<String> =
                inside.map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
            shown.sort();
            shown.dedup();
            shown
        };
        assert_eq!(
            shown(&root.join("venv/bin/python")),
            ["venv", "versions/3.12", "versions/3.12/bin/python3"]
        );
        assert_eq!(shown(&root.join("alone/tool")), ["alone/tool"]);
        assert!(toolchain(Path::new("/usr/bin/env")).is_empty());
        assert!(toolchain(Path::new("python3")).is_empty());
    }
}
