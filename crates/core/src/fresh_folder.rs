//! New empty folders in which programs are started.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of names that are tried: others may exist from a process with the same id.
const MAX_ATTEMPTS: usize = 10_000;
/// The number of folders that this process has created.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Creates a folder with a new name in `parent`, which only the current user can read. Removes empty folders of processes that
/// have ended; files that a program has left are kept.
pub(crate) fn create(parent: &Path) -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(parent)?;
    remove_unused(parent);
    builder.recursive(false);
    for _ in 0..MAX_ATTEMPTS {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{}-{number}", std::process::id()));
        // Fails if the name exists, also as a symbolic link.
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("`{}` has too many folders", parent.display())))
}

fn remove_unused(parent: &Path) {
    // Without procfs it is not known whether a process has ended.
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // Fails if it is not empty.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_new_empty_and_private() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("work");
        let first = create(&parent).unwrap();
        fs::write(first.join("json.py"), "").unwrap();
        // The next name is taken, by a link to a folder with files.
        let next = COUNT.load(Ordering::Relaxed);
        #[cfg(unix)]
        for number in next..next + 64 {
            let name = format!("{}-{number}", std::process::id());
            let _ = std::os::unix::fs::symlink(&first, parent.join(name));
        }
        let second = create(&parent).unwrap();
        assert_ne!(first, second);
        assert!(
            second.symlink_metadata().unwrap().is_dir() && fs::read_dir(&second).unwrap().next().is_none()
        );
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&second).unwrap()) & 0o777, 0o700);
        #[cfg(target_os = "linux")]
        {
            fs::create_dir(parent.join("4294967295-0")).unwrap();
            create(&parent).unwrap();
            assert!(!parent.join("4294967295-0").exists() && first.join("json.py").exists());
        }
    }
}
