//! A cgroup per confinement, in which the kernel limits processes and memory. Unlike rlimits, it also limits root, and
//! counts memory that no process maps.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// The mount point of cgroups: one hierarchy for all controllers (v2), or one per controller (v1).
const CGROUP_ROOT: &str = "/sys/fs/cgroup";
/// Prefix of the cgroup names, followed by the PID of the creator.
const CGROUP_PREFIX: &str = "toolhub-";
/// Number of attempts to remove a cgroup whose last process is exiting, and the pause between them.
const REMOVE_ATTEMPTS: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(2);

/// The limits of a cgroup, for all its processes together.
#[derive(Clone, Copy, Debug)]
pub(super) struct CgroupLimits {
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Bytes of memory: anonymous, shared, files in memory, and kernel memory charged to the cgroup.
    pub(super) memory: u64,
}

/// A cgroup, removed on drop.
#[derive(Debug)]
pub(super) struct Cgroup {
    /// One folder (v2), or one per controller (v1).
    folders: Vec<PathBuf>,
    memory: MemoryEvents,
}

/// The file with the kernel's count of OOM kills; `None` without memory controller.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryEvents(Option<PathBuf>);

impl MemoryEvents {
    /// Whether the kernel has killed a process for exceeding the memory limit.
    pub(super) fn has_killed(&self) -> bool {
        let text = self.0.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok();
        text.is_some_and(|text| text.lines().find_map(count).is_some_and(|count| count > 0))
    }
}

/// The `cgroup.procs` files, for the child.
#[derive(Debug)]
pub(super) struct CgroupEntry(Vec<File>);

impl CgroupEntry {
    /// Runs in the child: moves it into the cgroup, together with its later children.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|mut file| file.write_all(b"0"))
    }
}

impl Cgroup {
    /// Creates a cgroup with `bounds`, if this user may do so. Without memory controller, only the watcher checks
    /// memory.
    pub(super) fn new(bounds: CgroupLimits) -> Option<(Self, CgroupEntry)> {
        let (folder, pids) =
            parents("pids").iter().find_map(|parent| create_folder(parent, &[("pids.max", bounds.tasks)]))?;
        let mut cgroup = Self { folders: vec![folder], memory: MemoryEvents::default() };
        let mut entrances = vec![pids];
        if let Some(folder) = cgroup.folders.first()
            && bound_memory(folder, bounds.memory)
        {
            cgroup.memory = MemoryEvents(Some(folder.join("memory.events")));
        } else {
            let limit = [("memory.limit_in_bytes", bounds.memory)];
            if let Some((folder, cgroup_entry)) =
                separate("memory").and_then(|parent| create_folder(&parent, &limit))
            {
                // Limit including swap; the file is absent if the kernel does not account swap. It must not be below
                // the limit without swap.
                let _ = fs::write(folder.join("memory.memsw.limit_in_bytes"), bounds.memory.to_string());
                cgroup.memory = MemoryEvents(Some(folder.join("memory.oom_control")));
                cgroup.folders.push(folder);
                entrances.push(cgroup_entry);
            }
        }
        Some((cgroup, CgroupEntry(entrances)))
    }

    /// The kernel's count of OOM kills.
    pub(super) fn memory_events(&self) -> MemoryEvents {
        self.memory.clone()
    }

    /// Whether the kernel has killed a process for exceeding the memory limit.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.memory.has_killed()
    }
}

/// Creates a cgroup in `parent` with these settings. Returns its folder and its open `cgroup.procs`.
fn create_folder(parent: &Path, settings: &[(&str, u64)]) -> Option<(PathBuf, File)> {
    clear(parent);
    let folder = parent.join(format!("{CGROUP_PREFIX}{}-{:x}", std::process::id(), fastrand::u64(..)));
    fs::create_dir(&folder).ok()?;
    let set = |(name, value): &(&str, u64)| fs::write(folder.join(name), value.to_string()).is_ok();
    let cgroup_entry =
        settings.iter().all(set).then(|| OpenOptions::new().write(true).open(folder.join("cgroup.procs")));
    match cgroup_entry {
        Some(Ok(cgroup_entry)) => Some((folder, cgroup_entry)),
        _ => {
            let _ = fs::remove_dir(&folder);
            None
        }
    }
}

/// Sets the memory limit of a v2 cgroup. Returns `false` if the parent does not delegate the controller.
fn bound_memory(folder: &Path, bytes: u64) -> bool {
    if fs::write(folder.join("memory.max"), bytes.to_string()).is_err() {
        return false;
    }
    // Absent if the kernel has no swap. Without swap, memory cannot be moved out of the limit.
    let _ = fs::write(folder.join("memory.swap.max"), "0");
    // An OOM kill ends all processes of the cgroup.
    let _ = fs::write(folder.join("memory.oom.group"), "1");
    true
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            for _ in 0..REMOVE_ATTEMPTS {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(REMOVE_PAUSE),
                    _ => break,
                }
            }
        }
    }
}

/// Whether this user may create cgroups; cached.
pub(super) fn is_available() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| Cgroup::new(CgroupLimits { tasks: 1, memory: 1 << 20 }).is_some())
}

/// The cgroups in which one with this controller may be created, nearest first.
fn parents(controller: &str) -> Vec<PathBuf> {
    let mut found = Vec::from_iter(separate(controller));
    for path in own_groups().into_iter().filter_map(|(counts, path)| counts.is_empty().then_some(path)) {
        let hands_on = |folder: &Path| {
            fs::read_to_string(folder.join("cgroup.subtree_control"))
                .is_ok_and(|all| all.split_whitespace().any(|one| one == controller))
        };
        let all = Path::new(&path).ancestors().map(|above| Path::new(CGROUP_ROOT).join(above));
        found.extend(all.filter(|folder| hands_on(folder)));
    }
    found
}

/// The cgroup of this process in the hierarchy of a v1 controller.
fn separate(controller: &str) -> Option<PathBuf> {
    let mut all = own_groups().into_iter();
    let (counts, path) = all.find(|(counts, _)| counts.split(',').any(|one| one == controller))?;
    Some(Path::new(CGROUP_ROOT).join(counts).join(path))
}

/// The cgroups of this process: the controllers of each hierarchy (empty for v2) and the path in it.
fn own_groups() -> Vec<(String, String)> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let parts = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    parts.map(|(counts, path)| (counts.to_owned(), path.trim_start_matches('/').to_owned())).collect()
}

/// Removes cgroups whose creator has exited.
fn clear(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(CGROUP_PREFIX)?.split('-').next());
        if maker.is_some_and(|maker| !Path::new("/proc").join(maker).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requires root or a delegated cgroup; passes without checks elsewhere.
    #[test]
    fn bounds_memory_with_cgroup_controller() {
        let Some((cgroup, _entrance)) = Cgroup::new(CgroupLimits { tasks: 7, memory: 96 << 20 }) else {
            return;
        };
        let read = |name: &str| {
            let texts = cgroup.folders.iter().filter_map(|folder| fs::read_to_string(folder.join(name)).ok());
            texts.map(|text| text.trim().to_owned()).next()
        };
        assert_eq!(read("pids.max").as_deref(), Some("7"));
        if cgroup.memory.0.is_some() {
            let bound = read("memory.max").or_else(|| read("memory.limit_in_bytes"));
            assert_eq!(bound.as_deref(), Some("100663296"));
            assert!(!cgroup.ran_out_of_memory());
        }
        let folders = cgroup.folders.clone();
        drop(cgroup);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
}
