//! Resource usage of all processes of a confinement, read from `/proc`; memory is in `memory`.

use std::collections::HashSet;
use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::memory;
use super::proc_files::removed_files;
use super::process_tag::Stat;

/// Clock ticks per second in `/proc` (`USER_HZ`), 100 on all supported systems.
const TICKS: u64 = 100;
/// Bytes counted per directory entry, in addition to the file's blocks.
const NAME_BYTES: u64 = 512;

/// The usage of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) tasks: u64,
    pub(super) cpu: Duration,
    /// Bytes; an upper bound while within the limit, so that most checks are cheap.
    pub(super) memory: u64,
}

impl Usage {
    /// Reads the usage of processes. Memory is counted exactly only if it may exceed `memory_limit`, and without files
    /// of the private folder.
    pub(super) fn of(pids: &[i32], memory_limit: u64, folder: &Path) -> Self {
        let mut usage = Self::default();
        let mut ticks = 0;
        for pid in pids {
            let Some(stat) = Stat::read(*pid) else { continue };
            usage.tasks += stat.threads;
            ticks += stat.ticks;
        }
        usage.memory = memory::of(pids, memory_limit, folder);
        usage.cpu = Duration::from_millis(ticks * 1000 / TICKS);
        usage
    }
}

/// Bytes of the private folder on disk, including unlinked open files. Stops counting above `enough`.
pub(super) fn disk(folder: &Path, pids: &[i32], enough: u64) -> u64 {
    let Ok(device) = fs::metadata(folder).map(|metadata| metadata.st_dev()) else { return 0 };
    let mut seen = HashSet::new();
    let mut bytes = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // Does not follow symbolic links.
            let Ok(metadata) = entry.metadata() else { continue };
            bytes += NAME_BYTES;
            if seen.insert(metadata.st_ino()) {
                bytes += metadata.st_blocks() * 512;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
            if bytes > enough {
                return bytes;
            }
        }
    }
    for removed in removed_files(pids) {
        if removed.metadata.st_dev() == device && seen.insert(removed.metadata.st_ino()) {
            bytes += removed.metadata.st_blocks() * 512;
        }
    }
    bytes
}

/// The PID of the newest task, which shows whether tasks were created since the last check.
pub(super) fn newest_task() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_this_process() {
        let ballast = vec![1_u8; 64 << 20];
        let own = Usage::of(&[i32::try_from(std::process::id()).unwrap()], 0, &std::env::temp_dir());
        assert!(own.tasks >= 1 && own.memory >= 64 << 20, "{own:?}");
        assert_eq!(ballast.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 64 << 20);
        assert!(newest_task().is_some());
    }

    #[test]
    fn counts_removed_files_that_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let own = [i32::try_from(std::process::id()).unwrap()];
        fs::write(folder.path().join("a"), vec![1; 1 << 20]).unwrap();
        let path = folder.path().join("b");
        let file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut &file, &vec![1; 1 << 20]).unwrap();
        fs::remove_file(path).unwrap();
        file.sync_all().unwrap();
        let bytes = disk(folder.path(), &own, u64::MAX);
        assert!(bytes >= 2 << 20, "{bytes}");
        assert!(disk(folder.path(), &[], u64::MAX) < 2 << 20);
    }
}
