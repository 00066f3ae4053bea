//! What `/proc` shows of processes from outside: fields, descriptors, and the thread through which they can be read.

use std::fs::{self, Metadata};
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::calls::FileSystem;
use super::text::c_string;

/// A file of `/proc` with lines such as `Name:  12 kB`.
#[derive(Debug)]
pub(super) struct Fields(String);

impl Fields {
    pub(super) fn read(file: &Path) -> Option<Self> {
        fs::read_to_string(file).ok().map(Self)
    }

    /// A field in bytes.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
    }
}

/// A file without a name that a process has open.
pub(super) struct RemovedFile {
    /// Its entry in `/proc/PID/fd`.
    pub(super) link: PathBuf,
    pub(super) about: Metadata,
}

/// Files without a name that the processes have open; one that several have open comes several times.
pub(super) fn removed_files(pids: &[i32]) -> impl Iterator<Item = RemovedFile> {
    let files = pids.iter().flat_map(|pid| fs::read_dir(live_thread(*pid).join("fd")));
    files.flatten().flatten().filter_map(|entry| {
        let link = entry.path();
        let about = fs::metadata(&link).ok().filter(|about| about.is_file() && about.st_nlink() == 0)?;
        Some(RemovedFile { link, about })
    })
}

/// The folder in `/proc` that shows the memory and descriptors of a process. `/proc/PID` shows neither once the first
/// thread has ended, though the others go on with both.
pub(super) fn live_thread(pid: i32) -> PathBuf {
    let process = Path::new("/proc").join(pid.to_string());
    if has_memory(&process) {
        return process;
    }
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path()).find(|thread| has_memory(thread)).unwrap_or(process)
}

/// Whether a thread has an address space: `statm` is all zeros for one that has ended.
fn has_memory(thread: &Path) -> bool {
    fs::read_to_string(thread.join("statm")).is_ok_and(|text| !text.starts_with("0 "))
}

/// The file system that a path is on.
pub(super) fn file_system(path: &Path) -> Option<FileSystem> {
    FileSystem::of(&c_string(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_in_bytes() {
        let fields = Fields("Pss:  12 kB\nPss_Anon:\t  7 kB\nThreads: x\n".to_owned());
        assert_eq!(
            ["Pss", "Pss_Anon", "Threads", "Swap"].map(|name| fields.get(name)),
            [Some(12 << 10), Some(7 << 10), None, None]
        );
    }
}
