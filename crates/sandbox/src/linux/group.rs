//! A control group of its own, in which the kernel counts processes. There it refuses the administrator one too many as
//! well, whom it refuses none elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Where the kernel shows control groups: one tree for all that is counted, or one for each.
const TREE: &str = "/sys/fs/cgroup";
/// How its folders begin; the number of the process that made one follows.
const NAME: &str = "toolhub-";
/// How often, and after which pauses, a group is removed whose last process is just going.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(2);

/// A group; it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

/// The way into a group, for the child.
#[derive(Debug)]
pub(super) struct Entrance(File);

impl Entrance {
    /// To be done in the child: from here on it and all it starts are counted.
    pub(super) fn enter(&self) -> io::Result<()> {
        (&self.0).write_all(b"0")
    }
}

impl Group {
    /// A group of at most so many processes and threads, where this user may make one.
    pub(super) fn new(most: u64) -> Option<(Self, Entrance)> {
        parents().iter().find_map(|parent| {
            clear(parent);
            let folder = parent.join(format!("{NAME}{}-{:x}", std::process::id(), fastrand::u64(..)));
            fs::create_dir(&folder).ok()?;
            let group = Self { folder };
            fs::write(group.folder.join("pids.max"), most.to_string()).ok()?;
            let entrance = OpenOptions::new().write(true).open(group.folder.join("cgroup.procs")).ok()?;
            Some((group, Entrance(entrance)))
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// Whether this user may make groups; found out once.
pub(super) fn can_be_made() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| Group::new(1).is_some())
}

/// The groups in which one for processes may be made, the nearest first.
fn parents() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(counts), Some(place)) = (parts.next(), parts.next()) else { continue };
        let place = place.trim_start_matches('/');
        if counts.split(',').any(|one| one == "pids") {
            found.push(Path::new(TREE).join(counts).join(place));
        } else if counts.is_empty() {
            let hands_on = |folder: &Path| {
                fs::read_to_string(folder.join("cgroup.subtree_control"))
                    .is_ok_and(|all| all.split_whitespace().any(|one| one == "pids"))
            };
            let all = Path::new(place).ancestors().map(|above| Path::new(TREE).join(above));
            found.extend(all.filter(|folder| hands_on(folder)));
        }
    }
    found
}

/// Removes groups that processes left which are no more.
fn clear(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
        if maker.is_some_and(|maker| !Path::new("/proc").join(maker).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
