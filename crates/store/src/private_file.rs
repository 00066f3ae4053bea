//! The private files of the data folder: they are checked when the folder is first used.
//!
//! On other systems than Unix, files are created with default permissions: the user's profile folder is private there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_private_files::create_private_dir;

/// The reason why a data folder is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// It, or a file in it, belongs to another user.
    #[error(
        "`{}` belongs to another user (uid {owner}): run toolhub as that user, choose another folder with `--home`, or take it over with `chown`",
        path.display()
    )]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// One of our files is a symbolic link.
    #[error("`{}` is a link to `{}`: remove it; to keep the data elsewhere, use `--home`", path.display(), target.display())]
    Link {
        /// The path.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// An I/O error.
    #[error("`{}` cannot be used: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Localize for PrivateError {
    fn localize(&self, lang: Lang) -> String {
        let chinese = || match self {
            Self::Foreign { path, owner } => format!(
                "`{}` 属于其他用户（uid {owner}）：请以该用户运行 toolhub，或用 `--home` 换一个目录，或用 `chown` 更改属主",
                path.display()
            ),
            Self::Link { path, target } => format!(
                "`{}` 是指向 `{}` 的链接：请删除；要把数据放到别处，请用 `--home`",
                path.display(),
                target.display()
            ),
            Self::Io { path, source } => format!("无法使用 `{}`：{source}", path.display()),
        };
        lang.choose(self.to_string(), chinese())
    }
}

/// Creates an empty file with mode 0600 unless it exists. Fails for a symbolic link or a file of another user.
///
/// An existing file is not opened: closing a descriptor releases all POSIX locks of the process on the file,
/// including those of SQLite's connections. Another process would then consider itself the last one and delete the
/// write-ahead log.
pub fn ensure_file(file: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created.map(drop),
    }
    let metadata = file.symlink_metadata()?;
    let refused = |why: &str| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("`{}` {why}", file.display())))
    };
    if !metadata.is_file() {
        return refused("is not a file");
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(&metadata) != rustix::process::geteuid().as_raw() {
        return refused("belongs to another user");
    }
    Ok(())
}

/// Creates the data folder, or checks the existing one: our files in it become private, and the folder too if it
/// contains nothing else. Returns notes for the user about changes and failures.
#[cfg(not(unix))]
pub fn prepare(folder: &Path) -> Result<Vec<LocalizedText>, PrivateError> {
    create_private_dir(folder).map_err(|source| PrivateError::Io { path: folder.to_owned(), source })?;
    Ok(Vec::new())
}

#[cfg(unix)]
pub use checked::prepare;

#[cfg(unix)]
mod checked {
    use std::fs::{Metadata, Permissions};
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};

    use toolhub_private_files::TEMPORARY_PREFIX;

    use super::*;

    /// Name prefixes of our files in the data folder; SQLite appends suffixes.
    const FILES: [&str; 9] = [
        "toolhub.db",
        "audit.",
        "vectors.bin",
        "tokens.",
        "sessions.",
        "trust",
        "python-skills.json",
        "no-model.told",
        TEMPORARY_PREFIX,
    ];
    /// Our folders in it; all files in them are ours.
    const FOLDERS: [&str; 4] = ["running", "logs", "locks", "hubs"];
    /// Permission bits of other users.
    const OTHERS: u32 = 0o077;

    /// Creates the data folder, or checks the existing one: our files in it become private, and the folder too if it
    /// contains nothing else. Returns notes for the user about changes and failures.
    pub fn prepare(folder: &Path) -> Result<Vec<LocalizedText>, PrivateError> {
        let failed = |source| PrivateError::Io { path: folder.to_owned(), source };
        if let Ok(metadata) = folder.symlink_metadata()
            && metadata.is_symlink()
        {
            // A symbolic link of another user would control the location of our files.
            check_owner(folder, &metadata, Links::OfAdministrator)?;
        }
        create_private_dir(folder).map_err(failed)?;
        let opened = File::open(folder).map_err(failed)?;
        let metadata = opened.metadata().map_err(failed)?;
        check_owner(folder, &metadata, Links::None)?;
        let mut check = Check::default();
        let mut ours_alone = folder.file_name().is_some_and(|name| name == "toolhub");
        let mut others = false;
        for entry in std::fs::read_dir(folder).map_err(failed)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if FOLDERS.contains(&name.as_ref()) {
                check.folder(&entry.path())?;
            } else if FILES.iter().any(|ours| name.starts_with(ours)) {
                check.file(&entry.path())?;
            } else {
                others = true;
            }
        }
        ours_alone |= !others;
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS == 0 {
            return Ok(check.notes(folder));
        }
        if ours_alone {
            check.tighten(folder, &opened, 0o700);
            return Ok(check.notes(folder));
        }
        let mut notes = check.notes(folder);
        // Other files in it must stay accessible. Without files of ours there is nothing to report yet.
        let displayed = folder.display();
        notes.push(LocalizedText::new(
            format!(
                "the data folder `{displayed}` holds other files and is open to other users (mode {mode:04o}): its mode was left as it is, files of toolhub in it are private; a folder of its own is safer (`--home`)"
            ),
            format!(
                "数据目录 `{displayed}` 中还有其他文件，且对其他用户开放（权限 {mode:04o}）：未改动其权限，toolhub 的文件仅自己可读；建议用 `--home` 指定专用目录"
            ),
        ));
        Ok(notes)
    }

    /// Whether a symbolic link of the administrator is accepted like one of the user.
    #[derive(Clone, Copy, PartialEq)]
    enum Links {
        OfAdministrator,
        None,
    }

    fn check_owner(path: &Path, metadata: &Metadata, links: Links) -> Result<(), PrivateError> {
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if owner == user || (owner == 0 && links == Links::OfAdministrator) {
            return Ok(());
        }
        Err(PrivateError::Foreign { path: path.to_owned(), owner })
    }

    /// The changes of a check.
    #[derive(Debug, Default)]
    struct Check {
        tightened: Vec<PathBuf>,
        failed: Vec<(PathBuf, io::Error)>,
    }

    impl Check {
        fn folder(&mut self, folder: &Path) -> Result<(), PrivateError> {
            let Some(metadata) = own_metadata(folder)? else { return Ok(()) };
            if !metadata.is_dir() {
                return Ok(());
            }
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                self.file(&entry.path())?;
            }
            if metadata.mode() & OTHERS != 0
                && let Ok(opened) = File::open(folder)
            {
                self.tighten(folder, &opened, 0o700);
            }
            Ok(())
        }

        fn file(&mut self, file: &Path) -> Result<(), PrivateError> {
            let Some(metadata) = own_metadata(file)? else { return Ok(()) };
            if metadata.is_file() && metadata.mode() & OTHERS != 0 {
                let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
                let flags = flags.bits().cast_signed();
                match File::options().read(true).custom_flags(flags).open(file) {
                    Ok(opened) => self.tighten(file, &opened, 0o600),
                    Err(error) => self.failed.push((file.to_owned(), error)),
                }
            }
            Ok(())
        }

        fn tighten(&mut self, path: &Path, opened: &File, mode: u32) {
            match opened.set_permissions(Permissions::from_mode(mode)) {
                Ok(()) => self.tightened.push(path.to_owned()),
                Err(error) => self.failed.push((path.to_owned(), error)),
            }
        }

        fn notes(&self, folder: &Path) -> Vec<LocalizedText> {
            let displayed = folder.display();
            let mut notes = Vec::new();
            if !self.tightened.is_empty() {
                let count = self.tightened.len();
                notes.push(LocalizedText::new(
                    format!(
                        "other users could open the data in `{displayed}`: permissions of {count} entries were tightened to 0600 and 0700"
                    ),
                    format!("其他用户原可打开 `{displayed}` 中的数据：已将 {count} 项的权限收紧为 0600 和 0700"),
                ));
            }
            for (path, error) in &self.failed {
                let path = path.display();
                notes.push(LocalizedText::new(
                    format!("other users can open `{path}`, and its permissions cannot be changed: {error}"),
                    format!("其他用户可打开 `{path}`，且无法更改其权限：{error}"),
                ));
            }
            notes
        }
    }

    /// The metadata of one of our files, if it exists; fails for a symbolic link or a file of another user.
    fn own_metadata(path: &Path) -> Result<Option<Metadata>, PrivateError> {
        let Ok(metadata) = path.symlink_metadata() else { return Ok(None) };
        if metadata.is_symlink() {
            let target = std::fs::read_link(path).unwrap_or_default();
            return Err(PrivateError::Link { path: path.to_owned(), target });
        }
        check_owner(path, &metadata, Links::None)?;
        Ok(Some(metadata))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn ensures_private_files_and_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let file = folder.path().join("file");
        ensure_file(&file).unwrap();
        std::fs::write(&file, "text").unwrap();
        ensure_file(&file).unwrap();
        assert_eq!((mode(&file), std::fs::read(&file).unwrap()), (0o600, b"text".to_vec()));
        symlink(&file, folder.path().join("link")).unwrap();
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        for link in ["link", "dangling"] {
            assert!(ensure_file(&folder.path().join(link)).is_err(), "{link}");
        }
        assert!(!folder.path().join("nowhere").exists());
    }

    #[test]
    fn tightens_temporary_files_of_killed_processes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("{}a.tmp", toolhub_private_files::TEMPORARY_PREFIX));
        std::fs::write(&file, "text").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(prepare(folder.path()).unwrap().len(), 1);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
