//! Linux: Landlock, seccomp, namespaces, rlimits, cgroups and a watcher, or Bubblewrap.

mod bpf;
mod bubblewrap;
mod cgroup;
mod child;
mod computation;
mod confinement;
mod fork_notify;
mod grants;
mod guard;
mod installation;
mod landlock;
mod limits;
mod memory;
mod mounts;
mod path_handle;
mod private;
mod probe;
mod proc_files;
mod process_tag;
mod seccomp;
mod syscalls;
mod system_files;
mod text;
mod usage;
mod watch;

use std::process::Command;

use self::cgroup::{Cgroup, CgroupEntry, CgroupLimits};
use self::child::ChildPlan;
use self::confinement::Resources;
use self::fork_notify::{ForkFilter, ForkListener};
use self::grants::Grants;
use self::landlock::Ruleset;
use self::mounts::{MountPrivilege, Mounts};
use self::private::PrivateFolder;
use self::process_tag::ProcessTag;
use self::seccomp::Changes;
use self::syscalls::FileSystem;
use self::watch::WatchedProcess;
use crate::environment;
use crate::error::SandboxError;
use crate::policy::{Isolation, SandboxPolicy};
use crate::protection::{MissingProtection, Protection};

pub use self::computation::restrict_to_computation;
pub use self::confinement::Confinement;
pub use self::guard::{run_guard_if_requested, stop_guard};
pub use self::probe::support;

/// How far the kernel's process limit exceeds the policy's, so that the watcher can report the violation first.
const TASK_SLACK: u64 = 8;
/// The same for memory, in bytes: covers Bubblewrap, page tables and other kernel structures.
const MEMORY_SLACK: u64 = 64 << 20;

/// Prepares `command` (with program, arguments and folder set) so that spawning it confines the child. Set its streams
/// afterwards: the command may be replaced by Bubblewrap. An error names the protections that are missing and not
/// allowed to be.
pub fn confine(policy: &SandboxPolicy, command: &mut Command) -> Result<Confinement, SandboxError> {
    let isolation = probe::chosen(policy.isolation);
    let missing = probe::missing(isolation);
    let (without, refused): (Vec<MissingProtection>, Vec<MissingProtection>) =
        missing.into_iter().partition(|entry| policy.allow_missing.contains(&entry.protection));
    if !refused.is_empty() {
        return Err(SandboxError::Missing(refused));
    }
    let without: Vec<Protection> = without.into_iter().map(|entry| entry.protection).collect();
    // Without process listing a guard could not find the processes.
    if !without.contains(&Protection::ProcessCount) {
        guard::ensure_running().map_err(|source| SandboxError::Prepare { step: "its guard", source })?;
    }
    let folder = std::env::temp_dir();
    let temporary = PrivateFolder::new(&folder)
        .map_err(|source| SandboxError::Temporary { path: folder.clone(), source })?;
    let process_tag =
        ProcessTag::new().map_err(|source| SandboxError::Prepare { step: "its mark", source })?;
    let grants = Grants::open(policy, temporary.home())?;
    let readable = grants.names();
    environment::clean(command, policy, temporary.home());
    if command.get_current_dir().is_none() {
        command.current_dir(temporary.home());
    }
    // If Bubblewrap is requested but allowed to be missing, the builtin isolation is used.
    let isolation = if without.contains(&Protection::Bubblewrap) { Isolation::Builtin } else { isolation };
    let spare = if isolation == Isolation::Bubblewrap { bubblewrap::OWN_PROCESSES } else { 0 };
    let max_tasks = policy.limits.processes.saturating_add(spare);
    let bounds = CgroupLimits {
        tasks: max_tasks.saturating_add(TASK_SLACK),
        memory: memory_bound(policy, &temporary),
    };
    let (cgroup, cgroup_entry) = Cgroup::new(bounds).unzip();
    // A notification may be interrupted by a signal: a program that gets `SIGCHLD` at that moment sees `fork` fail,
    // which shells report as an error. So notifications are used only if the kernel does not count processes itself.
    let counted = cgroup.is_some() || (isolation != Isolation::Bubblewrap && counts_in_namespace());
    let (asking, hearing) = if counted { (None, ForkListener::Closed) } else { forks()? };
    let draft =
        PlanInput { policy, private: &temporary, grants, process_tag, forks: asking, cgroup_entry, without };
    let plan = match isolation {
        Isolation::Bubblewrap => bubblewrap::wrap_command(draft, command)?,
        _ => builtin(draft, command)?,
    };
    let subject = WatchedProcess {
        process_tag,
        limits: policy.limits,
        folder: temporary.root().to_path_buf(),
        cgroup: cgroup.as_ref().map(Cgroup::memory_events),
        spare,
        forks: hearing,
    };
    let resources = Resources { policy: policy.clone(), isolation, readable, temporary, cgroup };
    let confinement = Confinement::new(resources, subject)?;
    syscalls::in_child(command, move || plan.enter());
    Ok(confinement)
}

/// Memory limit of the cgroup, in bytes. Files in memory are charged to it, so the disk limit is added if the private
/// folder is on a tmpfs.
fn memory_bound(policy: &SandboxPolicy, temporary: &PrivateFolder) -> u64 {
    let in_memory = proc_files::file_system(temporary.root()).is_some_and(FileSystem::is_memory);
    let disk = if in_memory { policy.limits.disk } else { 0 };
    policy.limits.memory.saturating_add(MEMORY_SLACK).saturating_add(disk)
}

/// Whether the kernel counts processes in a user namespace of the program.
fn counts_in_namespace() -> bool {
    matches!(probe::kernel().mounts, Ok(MountPrivilege::UserNamespace))
}

fn forks() -> Result<(Option<ForkFilter>, ForkListener), SandboxError> {
    if !probe::kernel().forks {
        return Ok((None, ForkListener::Closed));
    }
    let both =
        ForkFilter::new().map_err(|source| SandboxError::Prepare { step: "a pair of sockets", source });
    both.map(|(asking, hearing)| (Some(asking), hearing))
}

/// The input of a plan.
struct PlanInput<'a> {
    policy: &'a SandboxPolicy,
    private: &'a PrivateFolder,
    grants: Grants,
    process_tag: ProcessTag,
    forks: Option<ForkFilter>,
    cgroup_entry: Option<CgroupEntry>,
    without: Vec<Protection>,
}

impl PlanInput<'_> {
    fn has(&self, protection: Protection) -> bool {
        !self.without.contains(&protection)
    }
}

fn builtin(draft: PlanInput<'_>, command: &Command) -> Result<ChildPlan, SandboxError> {
    let privilege = probe::kernel().mounts.as_ref().ok().copied();
    let folder = command.get_current_dir().unwrap_or(draft.private.home());
    let writable = || draft.grants.write.iter().map(|grant| &grant.path_handle);
    let mounts = privilege.map(|privilege| Mounts::new(privilege, writable(), folder)).transpose()?;
    let ruleset = match draft.has(Protection::Landlock) {
        true => Some(Ruleset::new(draft.policy.network, &draft.grants)?),
        false => None,
    };
    let changes = if mounts.is_some() { Changes::HeldByMounts } else { Changes::Refused };
    let filter = draft.has(Protection::Seccomp).then(|| seccomp::filter(draft.policy, changes));
    let limits = limits::of(&draft.policy.limits, privilege);
    let PlanInput { process_tag, forks, cgroup_entry, without, .. } = draft;
    Ok(ChildPlan {
        process_tag,
        mounts,
        limits,
        ruleset,
        forks,
        cgroup_entry,
        filter,
        inherited_files: Vec::new(),
        without,
    })
}
