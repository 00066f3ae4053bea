//! The free disk space.

use std::path::Path;

/// The free bytes on the file system of a folder, if the system reports them.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let file_system = rustix::fs::statvfs(folder).ok()?;
        Some(file_system.f_bavail.saturating_mul(file_system.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}
