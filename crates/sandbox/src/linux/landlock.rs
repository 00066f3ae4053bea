//! The Landlock ruleset of a policy: files, TCP ports and signals. The crate `landlock` creates it before the fork, for what the
//! kernel supports; the child makes two system calls of its own, since the crate does not promise to be async-signal-safe.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, AddRuleError, AddRulesError, BitFlags, CreateRulesetError,
    PathBeneath, Ruleset as RulesetBuilder, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, Scope, make_bitflags,
};

use super::grants::Grants;
use super::path_handle::PathHandle;
use super::syscalls;
use crate::error::SandboxError;
use crate::policy::NetworkAccess;

/// The rights that are handled, as far as the kernel supports them. Later versions handle connections to Unix sockets, which
/// the seccomp filter denies.
const HANDLED: ABI = ABI::V6;
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
/// All changes but device files.
const CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer | Truncate
});

/// The ABI version since which truncation is a separate right, so that read-only files cannot be truncated.
pub(super) const TRUNCATE_ABI: u32 = 3;
/// The ABI version since which signals to other processes can be denied.
pub(super) const SIGNAL_SCOPE_ABI: u32 = 6;

/// The ABI version of the kernel; 0 without Landlock. It is reported to users; the crate does not expose it.
pub(super) fn abi_version() -> u32 {
    syscalls::landlock_abi_version().ok().and_then(|version| u32::try_from(version).ok()).unwrap_or(0)
}

/// A ruleset of the kernel.
#[derive(Debug)]
pub(super) struct Ruleset(OwnedFd);

impl Ruleset {
    /// Creates the rules for the grants, system files and devices.
    pub(super) fn new(network: NetworkAccess, grants: &Grants) -> Result<Self, SandboxError> {
        let mut ruleset = empty(network).map_err(prepare_error)?;
        // Paths that do not exist on this system need no rule.
        for path in super::system_files::readable() {
            if let Ok(path_handle) = PathHandle::follow(&path) {
                let _ = allow(&mut ruleset, &path_handle, READ);
            }
        }
        for device in super::system_files::DEVICES {
            if let Ok(path_handle) = PathHandle::follow(Path::new(device)) {
                let _ = allow(&mut ruleset, &path_handle, AccessFs::ReadFile | AccessFs::WriteFile);
            }
        }
        for (some, access) in [(&grants.read, READ), (&grants.write, READ | CHANGE)] {
            for grant in some {
                let failed =
                    |error| SandboxError::Grant { path: grant.named.clone(), source: system_error(error) };
                allow(&mut ruleset, &grant.path_handle, access).map_err(failed)?;
            }
        }
        match Option::<OwnedFd>::from(ruleset) {
            Some(file) => Ok(Self(file)),
            // The kernel has no Landlock.
            None => {
                let source = io::ErrorKind::Unsupported.into();
                Err(SandboxError::Prepare { step: "a Landlock ruleset", source })
            }
        }
    }

    /// Enforces the rules on the caller. Adds `/proc/self` first, since its PID is known only now.
    pub(super) fn enter(&self) -> io::Result<()> {
        // Fails if `/proc` is not mounted; then no rule is needed.
        if let Ok(own) = syscalls::open_path(c"/proc/self") {
            let access = AccessFs::ReadFile | AccessFs::ReadDir;
            syscalls::landlock_allow(self.0.as_fd(), own.as_fd(), access.bits())?;
        }
        syscalls::landlock_enter(self.0.as_fd())
    }
}

/// A ruleset without rules, which denies everything that it handles.
fn empty(network: NetworkAccess) -> Result<RulesetCreated, RulesetError> {
    let ruleset = RulesetBuilder::default()
        .handle_access(AccessFs::from_all(HANDLED))?
        .scope(Scope::from_all(HANDLED))?;
    match network {
        NetworkAccess::None => ruleset.handle_access(AccessNet::from_all(HANDLED))?.create(),
        _ => ruleset.create(),
    }
}

/// Rights that do not apply to files, or that the kernel does not support, are left out.
fn allow(
    ruleset: &mut RulesetCreated,
    path_handle: &PathHandle,
    access: BitFlags<AccessFs>,
) -> Result<(), RulesetError> {
    ruleset.add_rule(PathBeneath::new(path_handle.fd(), access)).map(drop)
}

fn prepare_error(error: RulesetError) -> SandboxError {
    SandboxError::Prepare { step: "a Landlock ruleset", source: system_error(error) }
}

/// The error of the system call, if one failed.
fn system_error(error: RulesetError) -> io::Error {
    match error {
        RulesetError::CreateRuleset(CreateRulesetError::CreateRulesetCall { source, .. })
        | RulesetError::AddRules(AddRulesError::Fs(AddRuleError::AddRuleCall { source, .. })) => source,
        other => io::Error::other(other),
    }
}
