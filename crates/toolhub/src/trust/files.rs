//! Reads the files of a workspace. Each file is opened once, its size is limited, and only regular files are read.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;
use toolhub_core::open_databases;

/// The maximum size of a config file.
pub(super) const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// The maximum size of a file that is hashed.
pub(super) const MAX_FILE_BYTES: u64 = 512 << 20;

/// The state of a file when it was read: everything that trust is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    /// SHA-256 of its bytes.
    pub(crate) sha256: [u8; 32],
    pub(crate) executable: bool,
    /// Its owner; `None` on systems without user ids.
    pub(crate) owner: Option<u32>,
    /// Whether users other than the owner can write to it.
    pub(crate) shared: bool,
    /// The canonical path, if the file is reached through a symbolic link.
    pub(crate) target: Option<PathBuf>,
}

/// Adds everything that trust is bound to, in parts whose boundaries matter.
pub(super) fn add_to_digest(path: &Path, state: &FileState, add: &mut impl FnMut(&[u8])) {
    add(path.as_os_str().as_encoded_bytes());
    add(&[u8::from(state.executable)]);
    add(&state.sha256);
    add(&state.owner.map(|owner| owner.to_le_bytes().to_vec()).unwrap_or_default());
    add(state.target.as_ref().map(|path| path.as_os_str().as_encoded_bytes()).unwrap_or_default());
}

/// A digest of the states of files.
pub(super) fn digest_of(files: &BTreeMap<PathBuf, FileState>) -> String {
    let mut all = Sha256::new();
    for (path, state) in files {
        add_to_digest(path, state, &mut |bytes| {
            all.update((bytes.len() as u64).to_le_bytes());
            all.update(bytes);
        });
    }
    hex::encode(&all.finalize())
}

/// The bytes of a config file and its state; `None` if there is no such file.
pub(super) fn read(file: &Path) -> Result<Option<(Vec<u8>, FileState)>, LocalizedText> {
    let Some((open, found)) = open(file)? else { return Ok(None) };
    if found.len() > MAX_CONFIG_BYTES {
        return Err(too_large(file, MAX_CONFIG_BYTES));
    }
    let mut bytes = Vec::new();
    open.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(file, &error))?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(too_large(file, MAX_CONFIG_BYTES));
    }
    let state = state(file, &found, Sha256::digest(&bytes).into());
    Ok(Some((bytes, state)))
}

/// The state of a file; `None` if there is no such file.
pub(super) fn hash(file: &Path) -> Result<Option<FileState>, LocalizedText> {
    let Some((open, found)) = open(file)? else { return Ok(None) };
    if found.len() > MAX_FILE_BYTES {
        return Err(too_large(file, MAX_FILE_BYTES));
    }
    let mut open = open.take(MAX_FILE_BYTES);
    let (mut all, mut some) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match open.read(&mut some) {
            Ok(0) => return Ok(Some(state(file, &found, all.finalize().into()))),
            Ok(count) => all.update(some.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(file, &error)),
        }
    }
}

/// The state of a symbolic link to a folder: its target.
pub(super) fn link(file: &Path) -> FileState {
    let target = std::fs::read_link(file).unwrap_or_default();
    let sha256 = Sha256::digest(target.as_os_str().as_encoded_bytes()).into();
    FileState { sha256, executable: false, owner: None, shared: false, target: file.canonicalize().ok() }
}

/// Opens a regular file with `O_NONBLOCK`: opening a FIFO would block forever. `None` if there is no such file.
fn open(file: &Path) -> Result<Option<(File, Metadata)>, LocalizedText> {
    // The hub's own data in a project is no file of the project.
    if open_databases::contains(file) {
        return Ok(None);
    }
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let open = match options.open(file) {
        Ok(open) => open,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(file, &error)),
    };
    let found = open.metadata().map_err(|error| unreadable(file, &error))?;
    if !found.is_file() {
        let file = file.display();
        return Err(LocalizedText::new(
            format!("`{file}` is not a regular file"),
            format!("`{file}` 不是普通文件"),
        ));
    }
    Ok(Some((open, found)))
}

fn state(file: &Path, found: &Metadata, sha256: [u8; 32]) -> FileState {
    let target = file.canonicalize().ok().filter(|real| real != file);
    #[cfg(unix)]
    let (executable, shared) = {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = found.permissions().mode();
        (mode & 0o111 != 0, mode & 0o002 != 0)
    };
    #[cfg(not(unix))]
    let (executable, shared) = (true, false);
    FileState { sha256, executable, owner: owner_of(found), shared, target }
}

/// Whether any user may execute a file.
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Whether every user can create files in a folder, as in `/tmp`.
pub(super) fn is_open_to_all(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        false
    }
}

/// Whether a file or symbolic link belongs to a user other than the current user and root.
pub(super) fn is_foreign(file: &Path) -> bool {
    let owner = file.symlink_metadata().ok().and_then(|metadata| owner_of(&metadata));
    owner.is_some_and(|owner| owner != 0 && Some(owner) != current_user())
}

/// The user id of a file's owner.
pub(super) fn owner_of(found: &Metadata) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some(found.uid())
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

/// The effective user id of this process.
pub(super) fn current_user() -> Option<u32> {
    #[cfg(unix)]
    {
        Some(rustix::process::geteuid().as_raw())
    }
    #[cfg(not(unix))]
    {
        None
    }
}

pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> LocalizedText {
    let file = file.display();
    LocalizedText::new(format!("`{file}` cannot be read: {error}"), format!("无法读取 `{file}`：{error}"))
}

fn too_large(file: &Path, limit: u64) -> LocalizedText {
    let (file, limit) = (file.display(), limit >> 20);
    LocalizedText::new(format!("`{file}` is larger than {limit} MiB"), format!("`{file}` 超过 {limit} MiB"))
}
