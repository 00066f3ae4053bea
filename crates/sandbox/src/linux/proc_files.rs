//! Reads files of `/proc` about other processes: fields, descriptors, and live threads.

use std::fs::{self, Metadata};
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::syscalls::FileSystem;
use super::text::c_string;

/// A file of `/proc` with lines such as `Name:  12 kB`.
#[derive(Debug)]
pub(super) struct Fields(String);

impl Fields {
    pub(super) fn read(file: &Path) -> Option<Self> {
        fs::read_to_string(file).ok().map(Self)
    }

    /// A field given in kB, converted to bytes.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
    }
}

/// An open file without a name.
pub(super) struct RemovedFile {
    /// Its entry in `/proc/PID/fd`.
    pub(super) link: PathBuf,
    pub(super) metadata: Metadata,
}

/// Files without a name that are open in the processes; a file open in several appears several times.
pub(super) fn removed_files(pids: &[i32]) -> impl Iterator<Item = RemovedFile> {
    let files = pids.iter().flat_map(|pid| fs::read_dir(live_thread(*pid).join("fd")));
    files.flatten().flatten().filter_map(|entry| {
        let link = entry.path();
        let metadata =
            fs::metadata(&link).ok().filter(|metadata| metadata.is_file() && metadata.st_nlink() == 0)?;
        Some(RemovedFile { link, metadata })
    })
}

/// The folder in `/proc` with memory and descriptors of a process. `/proc/PID` has neither after the main thread has
/// exited, although other threads still use both.
pub(super) fn live_thread(pid: i32) -> PathBuf {
    let process = Path::new("/proc").join(pid.to_string());
    if has_memory(&process) {
        return process;
    }
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path()).find(|thread| has_memory(thread)).unwrap_or(process)
}

/// Whether a thread has an address space: `statm` is all zeros after its exit.
fn has_memory(thread: &Path) -> bool {
    fs::read_to_string(thread.join("statm")).is_ok_and(|text| !text.starts_with("0 "))
}

/// The file system of a path.
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
