//! Probes the features of this system by using them in a child that exits before exec.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::mounts::{MountPrivilege, Mounts};
use super::path_handle::PathHandle;
use super::{bubblewrap, cgroup, landlock, seccomp, syscalls};
use crate::policy::{Isolation, SandboxPolicy};
use crate::protection::{MissingProtection, Protection};
use crate::support::SandboxSupport;

/// The error code by which a probe reports success; no step fails with it.
const DONE: i32 = libc::EXDEV;

/// Kernel features, for any isolation.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) landlock: u32,
    pub(super) mounts: Result<MountPrivilege, io::Error>,
    /// Whether seccomp user notifications for new processes work.
    pub(super) forks: bool,
    missing: Vec<MissingProtection>,
}

/// Probes the kernel once.
pub(super) fn kernel() -> &'static Kernel {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    KERNEL.get_or_init(Kernel::detect)
}

/// Returns the protections that this system supports.
pub fn support() -> SandboxSupport {
    SandboxSupport {
        builtin: missing(Isolation::Builtin),
        bubblewrap: missing(Isolation::Bubblewrap),
        auto: chosen(Isolation::Auto),
        bubblewrap_program: bubblewrap::installed().as_ref().ok().map(|found| found.program.clone()),
        landlock: kernel().landlock,
        mount_namespace: kernel().mounts.is_ok(),
    }
}

/// Resolves `Auto`.
pub(super) fn chosen(requested: Isolation) -> Isolation {
    match requested {
        // With Bubblewrap and without a cgroup, the kernel cannot count the processes of an ordinary user.
        Isolation::Auto
            if bubblewrap::installed().is_ok()
                && (cgroup::is_available() || !kernel().missing.is_empty()) =>
        {
            Isolation::Bubblewrap
        }
        Isolation::Auto => Isolation::Builtin,
        other => other,
    }
}

/// Returns the missing protections of an isolation.
pub(super) fn missing(isolation: Isolation) -> Vec<MissingProtection> {
    let kernel = kernel();
    match isolation {
        Isolation::Bubblewrap => match bubblewrap::installed() {
            // The namespaces of Bubblewrap replace these.
            Ok(_) => {
                let others = [Protection::Landlock, Protection::Signals, Protection::ReadOnly];
                kernel.missing.iter().filter(|entry| !others.contains(&entry.protection)).cloned().collect()
            }
            Err(missing) => kernel.missing.iter().chain([missing]).cloned().collect(),
        },
        _ => kernel.missing.clone(),
    }
}

impl Kernel {
    fn detect() -> Self {
        let mut missing = Vec::new();
        let landlock = landlock::abi_version();
        let mounts = find_mount_privilege();
        if let Err(error) = attempt(|| syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)) {
            missing.push(refused(Protection::NoNewPrivileges, &error));
        }
        let needed = if mounts.is_ok() { 1 } else { landlock::TRUNCATE_ABI };
        if landlock < needed {
            missing.push(MissingProtection::new(
                Protection::Landlock,
                "the kernel has no Landlock, or one that is too old: it takes Linux 6.2, or 5.13 with user namespaces, and `landlock` in the list of security modules",
                "内核没有 Landlock 或版本过旧：需要 Linux 6.2（允许用户命名空间时为 5.13），且安全模块列表中含 `landlock`",
            ));
        }
        if landlock < landlock::SIGNAL_SCOPE_ABI {
            missing.push(MissingProtection::new(
                Protection::Signals,
                "the kernel's Landlock cannot keep signals in: that takes Linux 6.12, or Bubblewrap",
                "内核的 Landlock 不能限制信号：需要 Linux 6.12，或使用 Bubblewrap",
            ));
        }
        let filter = seccomp::filter(&SandboxPolicy::default(), seccomp::Changes::HeldByMounts);
        let filtered = attempt(move || {
            syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
            syscalls::seccomp_enter(&filter)
        });
        if !seccomp::KNOWN_ARCHITECTURE {
            missing.push(MissingProtection::new(
                Protection::Seccomp,
                "the list of system calls is known for x86_64 and aarch64 only",
                "系统调用清单仅支持 x86_64 和 aarch64",
            ));
        } else if let Err(error) = &filtered {
            missing.push(refused(Protection::Seccomp, error));
        }
        let seccomp = missing.iter().all(|entry| entry.protection != Protection::Seccomp);
        if let Err(error) = &mounts
            && !seccomp
        {
            missing.push(refused(Protection::ReadOnly, error));
        }
        let asking = seccomp::forks();
        let notify_attempt = attempt(move || {
            syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
            syscalls::seccomp_listen(&asking).map(drop)
        });
        let counted = notify_attempt.is_ok()
            || mounts.as_ref().is_ok_and(|privilege| *privilege == MountPrivilege::UserNamespace);
        if let Err(error) = &notify_attempt
            && !counted
        {
            missing.push(refused(Protection::ProcessCount, error));
        } else if !Path::new("/proc/self/stat").exists() {
            missing.push(MissingProtection::new(
                Protection::ProcessCount,
                "`/proc` is not mounted, so that processes cannot be counted or found",
                "未挂载 `/proc`，无法统计和查找进程",
            ));
        }
        Self { landlock, mounts, forks: seccomp && notify_attempt.is_ok(), missing }
    }
}

fn refused(protection: Protection, error: &io::Error) -> MissingProtection {
    MissingProtection::new(
        protection,
        format!("the system refuses it: {error}"),
        format!("系统拒绝：{error}"),
    )
}

fn find_mount_privilege() -> Result<MountPrivilege, io::Error> {
    let folder = std::env::temp_dir();
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for privilege in [MountPrivilege::Administrator, MountPrivilege::UserNamespace] {
        let path_handle = PathHandle::follow(&folder)?;
        let mounts =
            Mounts::new(privilege, std::iter::once(&path_handle), &folder).map_err(io::Error::other)?;
        match attempt(move || mounts.enter()) {
            Ok(()) => return Ok(privilege),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Runs `step` in a child, which then exits.
fn attempt(step: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> io::Result<()> {
    // `/` is a folder, so exec can never run a program.
    let mut command = Command::new("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    syscalls::in_child(&mut command, move || {
        step()?;
        Err(io::Error::from_raw_os_error(DONE))
    });
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(DONE) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => child.wait().and(Err(io::ErrorKind::Unsupported.into())),
    }
}
