//! Starts the program through Bubblewrap, which builds the view of the file system; this crate provides all other
//! protections.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::child::ChildPlan;
use super::grants::{Grant, Grants};
use super::installation::is_system;
use super::path_handle::PathHandle;
use super::seccomp::Changes;
use super::{PlanInput, limits, seccomp, system_files};
use crate::error::SandboxError;
use crate::policy::NetworkAccess;
use crate::protection::{MissingProtection, Protection};

const PROGRAM: &str = "bwrap";
/// The only folders that are searched for `bwrap`; a program of this name elsewhere is not trusted.
const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// The installed Bubblewrap.
#[derive(Debug)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    /// Whether it supports `--size` of a tmpfs: since 0.7.0, and not if installed setuid.
    bounds_tmpfs: bool,
}

/// Probes Bubblewrap once.
pub(super) fn installed() -> &'static Result<Bubblewrap, MissingProtection> {
    static BUBBLEWRAP: OnceLock<Result<Bubblewrap, MissingProtection>> = OnceLock::new();
    BUBBLEWRAP.get_or_init(detect)
}

/// Finds Bubblewrap and checks that it works on this system.
fn detect() -> Result<Bubblewrap, MissingProtection> {
    let absent = || {
        MissingProtection::new(
            Protection::Bubblewrap,
            "`bwrap` is not installed; the package is called `bubblewrap`",
            "未安装 `bwrap`；软件包名为 `bubblewrap`",
        )
    };
    let mut places = FOLDERS.iter().map(|folder| Path::new(folder).join(PROGRAM));
    let program = places.find(|path| path.is_file()).ok_or_else(absent)?;
    if !binds_descriptors(&program) {
        return Err(MissingProtection::new(
            Protection::Bubblewrap,
            "`bwrap` is too old to bind by descriptor (`--ro-bind-fd`): install 0.10.0 or newer, or your distribution's security update",
            "`bwrap` 版本过旧，不支持按描述符绑定（`--ro-bind-fd`）：请安装 0.10.0 或更高版本，或发行版的安全更新",
        ));
    }
    if try_run(&program, Some(1 << 20)).is_ok() {
        return Ok(Bubblewrap { program, bounds_tmpfs: true });
    }
    match try_run(&program, None) {
        Ok(()) => Ok(Bubblewrap { program, bounds_tmpfs: false }),
        Err(why) => Err(MissingProtection::new(
            Protection::Bubblewrap,
            format!("`bwrap` is installed and does not work: {why}"),
            format!("`bwrap` 已安装但无法使用：{why}"),
        )),
    }
}

/// Runs `true` in a sandbox like the real one; returns Bubblewrap's stderr if that fails.
fn try_run(program: &Path, shared_memory: Option<u64>) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(NAMESPACES).args(["--ro-bind", "/", "/"]);
    add_kernel_files(&mut command, shared_memory);
    command.args(["--remount-ro", "/", "--", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Adds `/proc` and `/dev`. Both are read-only: root could write kernel settings even without capabilities, and `/dev`
/// is a tmpfs without size limit. `/dev/shm` has a size limit, or is read-only.
fn add_kernel_files(command: &mut Command, shared_memory: Option<u64>) {
    command.args(["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]);
    if let Some(bytes) = shared_memory {
        command.arg("--size").arg(bytes.to_string()).args(["--tmpfs", "/dev/shm"]);
    }
    command.args(["--remount-ro", "/dev"]);
}

/// Whether it supports bind mounts by file descriptor. With paths, a path could be replaced before it is mounted.
fn binds_descriptors(program: &Path) -> bool {
    let mut command = Command::new(program);
    let answer = command.arg("--help").stdin(Stdio::null()).output();
    answer.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--ro-bind-fd"))
}

/// Divisor of the memory limit for files in `/dev/shm`, which count as memory.
const SHARED_MEMORY_SHARE: u64 = 4;
const PAGE: u64 = 4096;

/// Processes of Bubblewrap itself: one outside, and PID 1 inside.
pub(super) const OWN_PROCESSES: u64 = 2;

/// All namespaces except that of the network, which may be granted.
const NAMESPACES: [&str; 5] =
    ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"];

/// Rewrites `command` to start through Bubblewrap.
pub(super) fn wrap_command(draft: PlanInput<'_>, command: &mut Command) -> Result<ChildPlan, SandboxError> {
    let Bubblewrap { program, bounds_tmpfs } = match installed() {
        Ok(found) => found,
        Err(missing) => return Err(SandboxError::Missing(vec![missing.clone()])),
    };
    let filter = match draft.has(Protection::Seccomp) {
        true => Some(filter_file(&draft)?),
        false => None,
    };
    let mut launcher = Command::new(program);
    launcher.env_clear().envs(variables(command)).args(NAMESPACES);
    launcher.args(["--cap-drop", "ALL", "--new-session"]);
    let shared_memory = draft.policy.limits.memory / SHARED_MEMORY_SHARE;
    // The kernel rounds down to pages, and reads 0 as unlimited.
    add_kernel_files(&mut launcher, Some(shared_memory.max(PAGE)).filter(|_| *bounds_tmpfs));
    if draft.policy.network == NetworkAccess::None {
        launcher.arg("--unshare-net");
    }
    for path in system_files::PROGRAMS.iter().chain(system_files::SETTINGS).map(Path::new) {
        show_system(&mut launcher, path);
    }
    for path in system_files::interpreters() {
        show_system(&mut launcher, &path);
    }
    let mut inherited_files = Vec::new();
    // A folder on disk, so that the disk limit covers it. Mounted before grants below `/tmp`.
    show_tmp(&mut launcher, draft.private.tmp(), &mut inherited_files)?;
    let Grants { read, write, links } = &draft.grants;
    // A link inside a shown folder is visible already; its target is shown by its real path.
    let is_visible = |path: &Path| {
        let inside = |folder: &Path| path != folder && path.starts_with(folder);
        let contains_path = |grant: &Grant| inside(grant.path_handle.path()) || inside(&grant.named);
        is_system(path) || read.iter().chain(write).any(contains_path)
    };
    for (how, some) in [("--ro-bind-fd", read), ("--bind-fd", write)] {
        for grant in some {
            let named = Some(grant.named.as_path()).filter(|named| !is_visible(named));
            inherited_files.extend(show(&mut launcher, how, grant, named)?);
        }
    }
    for (link, target) in links.iter().filter(|(link, _)| !is_visible(link)) {
        launcher.arg("--symlink").arg(target).arg(link);
    }
    // Last, since mount points are created in the root, which is a tmpfs without size limit.
    launcher.args(["--remount-ro", "/"]);
    if let Some(folder) = command.get_current_dir() {
        launcher.arg("--chdir").arg(folder).current_dir(folder);
    }
    if let Some(file) = &filter {
        launcher.arg("--seccomp").arg(file.as_raw_fd().to_string());
    }
    launcher.arg("--").arg(command.get_program()).args(command.get_args());
    *command = launcher;
    let limits = limits::of(&draft.policy.limits, None);
    let PlanInput { process_tag, forks, cgroup_entry, mut without, .. } = draft;
    // Bubblewrap needs capabilities to build the sandbox, and drops them itself.
    without.push(Protection::Capabilities);
    inherited_files.extend(filter);
    Ok(ChildPlan {
        process_tag,
        mounts: None,
        limits,
        ruleset: None,
        forks,
        cgroup_entry,
        filter: None,
        inherited_files,
        without,
    })
}

fn variables(command: &Command) -> Vec<(OsString, OsString)> {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    set.map(|(name, value): (&OsStr, &OsStr)| (name.to_owned(), value.to_owned())).collect()
}

/// Shows a system path, preserving a symbolic link; skips missing ones.
fn show_system(launcher: &mut Command, path: &Path) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    match std::fs::read_link(path) {
        // `/lib` is a link to `/usr/lib` on most systems, and programs may resolve it.
        Ok(target) if metadata.is_symlink() && path.parent() == Some(Path::new("/")) => {
            launcher.arg("--symlink").arg(target).arg(path);
        }
        _ => {
            launcher.arg("--ro-bind-try").arg(path).arg(path);
        }
    }
}

/// Mounts a grant at its real path, and at the path by which the program names it. Returns the descriptors that
/// Bubblewrap inherits.
fn show(
    launcher: &mut Command,
    how: &str,
    grant: &Grant,
    named: Option<&Path>,
) -> Result<Vec<OwnedFd>, SandboxError> {
    let mut inherited_files = Vec::new();
    let real = grant.path_handle.path();
    for path in [real].into_iter().chain(named.filter(|named| *named != real)) {
        let failed = |source| SandboxError::Grant { path: grant.named.clone(), source };
        // Bubblewrap closes each descriptor after use.
        let file = grant.path_handle.duplicate().map_err(failed)?;
        launcher.arg(how).arg(file.as_raw_fd().to_string()).arg(path);
        inherited_files.push(file);
    }
    Ok(inherited_files)
}

/// Mounts a folder as `/tmp`.
fn show_tmp(
    launcher: &mut Command,
    folder: &Path,
    inherited_files: &mut Vec<OwnedFd>,
) -> Result<(), SandboxError> {
    let failed = |source| SandboxError::Temporary { path: folder.to_owned(), source };
    let path_handle =
        PathHandle::follow(folder).and_then(|path_handle| path_handle.duplicate()).map_err(failed)?;
    launcher.arg("--bind-fd").arg(path_handle.as_raw_fd().to_string()).arg("/tmp");
    inherited_files.push(path_handle);
    Ok(())
}

/// Writes the seccomp filter to an unlinked temporary file for Bubblewrap.
fn filter_file(draft: &PlanInput<'_>) -> Result<OwnedFd, SandboxError> {
    let prepare = |source| SandboxError::Prepare { step: "the filter's file", source };
    let mut file: File = tempfile::tempfile().map_err(prepare)?;
    let filter = seccomp::filter(draft.policy, Changes::HeldByMounts);
    let mut bytes = Vec::with_capacity(filter.len() * 8);
    for step in filter {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    file.write_all(&bytes).and_then(|()| file.rewind()).map_err(prepare)?;
    Ok(file.into())
}
