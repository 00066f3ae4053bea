//! Writing a file whole or not at all.

use std::io::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::ConfigError;

/// Keeps other hubs from changing a file while it is read, edited and written; until the guard is dropped.
pub(super) fn lock(file: &Path) -> Result<std::fs::File, ConfigError> {
    let target = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let digest = Sha256::digest(target.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = std::env::temp_dir().join(format!("toolhub-{name}.lock"));
    let open = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let guard = open.and_then(|guard| guard.lock().map(|()| guard));
    guard.map_err(|error| ConfigError::io(&path, &error))
}

/// Replaces a file's text in one step; a crash leaves the old or the new one. Its permissions stay as they
/// were; a new file is the owner's alone, since it may hold secrets. A link is followed, not replaced; what is no file (a
/// device, a pipe) is written to and stays what it is.
pub fn write_whole(file: &Path, text: &str) -> Result<(), ConfigError> {
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let failed = |error: std::io::Error| ConfigError::io(file, &error);
    if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        let open = std::fs::OpenOptions::new().write(true).open(file);
        return open.and_then(|mut open| open.write_all(text.as_bytes())).map_err(failed);
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(&target) {
        new.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    }
    new.as_file().sync_all().map_err(failed)?;
    new.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_no_file_is_not_replaced_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert!(write_whole(&socket, "{}").is_err());
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
        assert!(write_whole(folder.path(), "{}").is_err());
    }
}
