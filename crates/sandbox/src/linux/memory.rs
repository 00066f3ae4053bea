//! The memory of all processes of a confinement together: shared pages are counted once, and files in memory are
//! included.

use std::collections::HashSet;
use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::proc_files::{Fields, file_system, live_thread, removed_files};
use super::syscalls::FileSystem;

/// The only tmpfs that the program can write, if any: Bubblewrap mounts it.
const SHARED_MEMORY: &str = "dev/shm";

/// Bytes of memory used by these processes. A result up to `limit` is a cheap upper bound; one above `limit` is exact.
/// Files in `folder` do not count, even on a tmpfs.
pub(super) fn of(pids: &[i32], limit: u64, folder: &Path) -> u64 {
    let processes: Vec<Process> = pids.iter().filter_map(|pid| Process::read(*pid)).collect();
    let shared = SharedMemory::find(&processes);
    let counted = [device(folder), shared.as_ref().map(|shared| shared.device)];
    let files = shared.map_or(0, |shared| shared.used).saturating_add(removed_memory_files(pids, counted));
    let swaps = is_swap_used();
    let bound: u64 = processes.iter().map(|process| process.upper_bound(swaps)).sum();
    if bound.saturating_add(files) <= limit {
        return bound + files;
    }
    let exact: u64 = processes.iter().map(Process::proportional).sum();
    // The proportional shares are read one process after another and may change meanwhile; the largest process is a
    // lower bound.
    let largest = processes.iter().map(Process::resident).max().unwrap_or(0);
    exact.max(largest).saturating_add(files)
}

/// A process with an address space.
struct Process {
    folder: PathBuf,
    status: Fields,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let folder = live_thread(pid);
        let status = Fields::read(&folder.join("status")).filter(|status| status.get("RssAnon").is_some())?;
        Some(Self { folder, status })
    }

    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.status.get(name)).sum()
    }

    /// Bytes of resident memory without file backing; shared pages count in full.
    fn resident(&self) -> u64 {
        self.sum(&["RssAnon", "RssShmem", "HugetlbPages"])
    }

    /// Upper bound of the memory. With swap it is the address space, since the resident counters omit shared pages that
    /// are swapped out.
    fn upper_bound(&self, swaps: bool) -> u64 {
        if swaps { self.sum(&["VmSize"]) } else { self.resident() }
    }

    /// As `resident`, with shared pages divided among the processes that map them. If `smaps_rollup` is not readable,
    /// they count in full.
    fn proportional(&self) -> u64 {
        let known = Fields::read(&self.folder.join("smaps_rollup")).and_then(|rollup| {
            let shares = rollup.get("Pss_Anon")? + rollup.get("Pss_Shmem")?;
            let others =
                ["Swap", "Private_Hugetlb", "Shared_Hugetlb"].iter().filter_map(|name| rollup.get(name));
            Some(shares + others.sum::<u64>())
        });
        known.unwrap_or_else(|| self.resident() + self.sum(&["VmSwap"]))
    }
}

/// Whether any swap is in use on this machine.
fn is_swap_used() -> bool {
    let Some(machine) = Fields::read(Path::new("/proc/meminfo")) else { return true };
    machine.get("SwapTotal") != machine.get("SwapFree")
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.st_dev())
}

/// The `/dev/shm` of the confinement.
struct SharedMemory {
    device: u64,
    /// Bytes of all its files. Mapped pages of them are counted twice, since process counters do not distinguish them;
    /// the file system is small.
    used: u64,
}

impl SharedMemory {
    fn find(processes: &[Process]) -> Option<Self> {
        let of_machine = device(&Path::new("/").join(SHARED_MEMORY));
        processes.iter().find_map(|process| {
            let folder = process.folder.join("root").join(SHARED_MEMORY);
            // The first process of Bubblewrap, and processes without Bubblewrap, see the machine's own `/dev/shm`.
            let device = device(&folder).filter(|device| Some(*device) != of_machine)?;
            let system = file_system(&folder).filter(|system| system.is_memory())?;
            Some(Self { device, used: system.used })
        })
    }
}

/// Bytes of open files in memory without a name, except on devices counted already: `memfd_create`, if the seccomp
/// filter that denies it is missing.
fn removed_memory_files(pids: &[i32], counted: [Option<u64>; 2]) -> u64 {
    let mut seen = HashSet::new();
    let files = removed_files(pids).filter(|removed| {
        let (device, number) = (removed.metadata.st_dev(), removed.metadata.st_ino());
        !counted.contains(&Some(device))
            && seen.insert((device, number))
            && file_system(&removed.link).is_some_and(FileSystem::is_memory)
    });
    files.map(|removed| removed.metadata.st_blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn own() -> [i32; 1] {
        [i32::try_from(std::process::id()).unwrap()]
    }

    #[test]
    fn proportional_size_is_within_upper_bound() {
        let ballast = vec![1_u8; 32 << 20];
        let process = Process::read(own()[0]).unwrap();
        let exact = process.proportional();
        // Other tests of this program allocate meanwhile.
        assert!(exact >= 32 << 20 && exact <= process.upper_bound(true), "{exact}");
        assert!(of(&own(), u64::MAX, &std::env::temp_dir()) >= 32 << 20);
        assert_eq!(ballast.len(), 32 << 20);
    }

    #[test]
    fn counts_removed_files_in_memory() {
        let memory = Path::new("/dev/shm");
        if !file_system(memory).is_some_and(|system| system.is_memory()) {
            return;
        }
        let mut file = tempfile::tempfile_in(memory).unwrap();
        file.write_all(&vec![1; 8 << 20]).unwrap();
        let bytes = removed_memory_files(&own(), [None; 2]);
        assert!(bytes >= 8 << 20, "{bytes}");
        drop(file);
        assert!(removed_memory_files(&own(), [None; 2]) < 8 << 20);
    }
}
