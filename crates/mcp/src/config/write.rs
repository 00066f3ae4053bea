//! Writing a file whole or not at all.

use std::io::Write as _;
use std::path::Path;

use super::error::ConfigError;

/// Replaces a file's text in one step; a crash leaves the old or the new one. Its permissions stay as they
/// were; a new file is the owner's alone, since it may hold secrets. A link is followed, not replaced.
pub fn write_whole(file: &Path, text: &str) -> Result<(), ConfigError> {
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let failed = |error: std::io::Error| ConfigError::io(file, &error);
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
