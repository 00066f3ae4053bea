//! System calls without a safe wrapper in the standard library. Each takes only values and borrowed memory, and makes a
//! single system call without lock or allocation, so that it is async-signal-safe between fork and exec.
#![expect(unsafe_code, reason = "system calls; each block states why it is sound")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use libc::{c_int, c_long, c_ulong};

/// Converts a result of `-1` into `errno`.
fn checked(answer: c_long) -> io::Result<c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Runs `step` in the child, between fork and exec.
///
/// `step` must be async-signal-safe: no allocation, no lock. This crate only passes a `child::Plan`, which is prepared
/// before the fork and only makes system calls.
pub(super) fn in_child(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: `step` is async-signal-safe, as required above.
    unsafe { command.pre_exec(step) };
}

pub(super) fn prctl(option: c_int, first: c_ulong, second: c_ulong) -> io::Result<c_long> {
    // SAFETY: the options in use take integers, no pointers.
    let answer = unsafe { libc::prctl(option, first, second, 0 as c_ulong, 0 as c_ulong) };
    checked(answer.into())
}

/// Sets the name of the calling thread in process lists.
pub(super) fn name_process(name: &'static CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated and outlives the call, which copies it.
    let answer = unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
    checked(answer.into()).map(drop)
}

/// Starts a session, and with it a process group.
pub(super) fn setsid() -> io::Result<()> {
    // SAFETY: has no arguments.
    let answer = unsafe { libc::setsid() };
    checked(answer.into()).map(drop)
}

/// Whether the caller is a process group leader.
pub(super) fn leads_group() -> bool {
    // SAFETY: has no arguments and never fails.
    let group = unsafe { libc::getpgrp() };
    // SAFETY: has no arguments and never fails.
    let own = unsafe { libc::getpid() };
    group == own
}

pub(super) fn effective_ids() -> (u32, u32) {
    // SAFETY: has no arguments and never fails.
    let user = unsafe { libc::geteuid() };
    // SAFETY: has no arguments and never fails.
    let group = unsafe { libc::getegid() };
    (user, group)
}

/// The number of a resource limit; its type differs between C libraries.
pub(super) type LimitNumber = u32;

pub(super) fn set_limit(resource: LimitNumber, soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the new limit outlives the call; the pointer for the old one is null.
    let answer = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const limit, std::ptr::null::<libc::rlimit64>())
    };
    checked(answer).map(drop)
}

/// The soft and hard limit of a process; 0 is the caller.
pub(super) fn limit_of(pid: i32, resource: LimitNumber) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to a value that outlives the call; the pointer for a new limit is null.
    let answer = unsafe {
        libc::syscall(libc::SYS_prlimit64, pid, resource, std::ptr::null::<libc::rlimit64>(), &raw mut limit)
    };
    checked(answer).map(|_| (limit.rlim_cur, limit.rlim_max))
}

/// Opens a pidfd, which is not affected by PID reuse.
pub(super) fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes integers.
    let answer = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

pub(super) fn kill(process: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes integers and a null pointer in place of a `siginfo_t`.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    checked(answer).map(drop)
}

/// Opens a path with `O_PATH`.
pub(super) fn open_path(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::O_PATH | libc::O_CLOEXEC)
}

/// As `open_path`, without following a symbolic link.
pub(super) fn open_path_itself(path: &CStr) -> io::Result<OwnedFd> {
    open(path, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC)
}

/// Device and inode number of an open file.
pub(super) fn identity(file: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let mut stat = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the kernel writes to a value that outlives the call.
    checked(unsafe { libc::fstat64(file.as_raw_fd(), stat.as_mut_ptr()) }.into())?;
    // SAFETY: all zeros is a valid value, and the kernel has filled it.
    let stat = unsafe { stat.assume_init() };
    Ok((stat.st_dev, stat.st_ino))
}

/// Returns a detached copy of the mount tree at an open path.
pub(super) fn copy_tree(path: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE).cast_unsigned();
    // SAFETY: the empty path is NUL-terminated and outlives the call.
    let answer =
        checked(unsafe { libc::syscall(libc::SYS_open_tree, path.as_raw_fd(), c"".as_ptr(), flags) })?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

/// Attaches a mount tree at an open path.
pub(super) fn move_mount(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: the empty paths are NUL-terminated and outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    };
    checked(answer).map(drop)
}

fn open(path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated and outlives the call.
    let answer = checked(unsafe { libc::open(path.as_ptr(), flags) }.into())?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

/// Writes a text to an existing file.
pub(super) fn write_file(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY | libc::O_CLOEXEC)?;
    // SAFETY: pointer and length are those of a slice that outlives the call.
    let written = unsafe { libc::write(file.as_raw_fd(), text.as_ptr().cast(), text.len()) };
    checked(written as c_long).map(drop)
}

pub(super) fn change_folder(path: &CStr) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated and outlives the call.
    checked(unsafe { libc::chdir(path.as_ptr()) }.into()).map(drop)
}

/// Sets close-on-exec on all descriptors from `first` on.
pub(super) fn close_on_exec(first: c_int) -> io::Result<()> {
    let flag = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: takes integers; nothing is closed before exec.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, c_int::MAX, flag) }).map(drop)
}

/// Clears close-on-exec of a descriptor.
pub(super) fn keep_on_exec(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes integers.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) }.into()).map(drop)
}

pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: takes an integer; descriptors and memory stay shared.
    checked(unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// Changes the propagation type of the mount at a path.
pub(super) fn set_propagation(target: &CStr, flags: c_ulong) -> io::Result<()> {
    let none = std::ptr::null();
    // SAFETY: the path is NUL-terminated and outlives the call; source, type and data are null.
    let answer = unsafe { libc::mount(none, target.as_ptr(), none, flags, none.cast()) };
    checked(answer.into()).map(drop)
}

/// Type and usage of a file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSystem {
    /// The magic number of `statfs(2)`.
    magic: i64,
    /// Bytes used by all files, including those that are unlinked but open.
    pub(super) used: u64,
}

impl FileSystem {
    /// The file system of a path.
    pub(super) fn of(path: &CStr) -> io::Result<Self> {
        let mut stat = MaybeUninit::<libc::statfs64>::zeroed();
        // SAFETY: the path is NUL-terminated, and the kernel writes to a value that outlives the call.
        checked(unsafe { libc::statfs64(path.as_ptr(), stat.as_mut_ptr()) }.into())?;
        // SAFETY: all zeros is a valid value, and the kernel has filled it.
        let stat = unsafe { stat.assume_init() };
        let blocks = stat.f_blocks.saturating_sub(stat.f_bfree);
        #[expect(clippy::unnecessary_cast, reason = "the types differ between C libraries")]
        Ok(Self { magic: stat.f_type as i64, used: blocks.saturating_mul(stat.f_bsize as u64) })
    }

    /// Whether the files are in memory: tmpfs (also `memfd_create`), ramfs and hugetlbfs.
    pub(super) fn is_memory(self) -> bool {
        const RAMFS: i64 = 0x8584_58f6;
        #[expect(clippy::unnecessary_cast, reason = "the types differ between C libraries")]
        [libc::TMPFS_MAGIC as i64, libc::HUGETLBFS_MAGIC as i64, RAMFS].contains(&self.magic)
    }
}

/// Whether a path is on a read-only mount.
pub(super) fn is_read_only(path: &CStr) -> bool {
    let mut stat = MaybeUninit::<libc::statvfs64>::uninit();
    // SAFETY: the path is NUL-terminated; both arguments outlive the call.
    let answer = unsafe { libc::statvfs64(path.as_ptr(), stat.as_mut_ptr()) };
    if answer != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so the kernel has filled the value.
    let stat = unsafe { stat.assume_init() };
    stat.f_flag & libc::ST_RDONLY != 0
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
pub(super) struct MountAttributes {
    pub(super) set: u64,
    pub(super) clear: u64,
    pub(super) propagation: u64,
    pub(super) user_namespace: u64,
}

/// Changes the attributes of all mounts below a path.
pub(super) fn mount_setattr(path: &CStr, attributes: &MountAttributes) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, path, libc::AT_RECURSIVE, attributes)
}

/// Changes the attributes of one mount.
pub(super) fn mount_setattr_of(mount: BorrowedFd<'_>, attributes: &MountAttributes) -> io::Result<()> {
    set_attributes(mount.as_raw_fd(), c"", libc::AT_EMPTY_PATH, attributes)
}

fn set_attributes(folder: RawFd, path: &CStr, flags: c_int, attributes: &MountAttributes) -> io::Result<()> {
    // SAFETY: path and structure outlive the call, and the size is that of the structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    checked(answer).map(drop)
}

/// Drops all effective, permitted and inheritable capabilities.
pub(super) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    // Version 3: two 32-bit words per set.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [[0_u32; 3]; 2];
    // SAFETY: both structures have the layout of version 3 and outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) }).map(drop)
}

/// The Landlock ABI version of the kernel.
pub(super) fn landlock_abi_version() -> io::Result<c_long> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call returns the version and takes no structure.
    checked(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION)
    })
}

/// Allows `access` to a file, or to a folder and everything below it.
pub(super) fn landlock_allow(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, access: u64) -> io::Result<()> {
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        parent: c_int,
    }
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { access, parent: path.as_raw_fd() };
    // SAFETY: the rule outlives the call and has the kernel's packed layout.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0)
    };
    checked(answer).map(drop)
}

pub(super) fn landlock_enter(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes integers.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Installs a seccomp filter for the caller and its children.
pub(super) fn seccomp_enter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which outlives the call, and does not write to it.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    checked(answer).map(drop)
}

/// Installs a seccomp filter for all threads of this process.
pub(super) fn seccomp_enter_all_threads(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
    // SAFETY: the kernel copies the program, which outlives the call, and does not write to it.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    // A positive answer is the id of a thread that could not get the filter.
    match checked(answer)? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Installs a seccomp filter and returns the descriptor of its user notifications.
pub(super) fn seccomp_listen(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let listen = |flags: c_ulong| {
        // SAFETY: the kernel copies the program, which outlives the call, and does not write to it.
        checked(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        })
    };
    let new = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Older kernels lack this flag, which keeps non-fatal signals from interrupting a suspended call.
    let answer = listen(new | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).or_else(|_| listen(new))?;
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

/// Receives the id of a pending notification; fails if the notifying task has been killed.
pub(super) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: the structure consists of integers, and the kernel requires it to be zeroed.
    let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to a structure that outlives the call.
    let answer =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    checked(answer.into()).map(|_| notification.id)
}

/// Responds to a notification: lets the call continue, or fail with an error.
pub(super) fn answer(listener: BorrowedFd<'_>, notification: u64, error: Option<c_int>) -> io::Result<()> {
    let flags = if error.is_none() { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 };
    let answer =
        libc::seccomp_notif_resp { id: notification, val: 0, error: -error.unwrap_or_default(), flags };
    // SAFETY: the structure outlives the call.
    let sent =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    checked(sent.into()).map(drop)
}

/// Buffer for a control message with one descriptor, aligned for `cmsghdr`.
type Rights = [u64; 4];

/// Sends a descriptor over a Unix socket (`SCM_RIGHTS`).
pub(super) fn send_file(socket: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut rights: Rights = [0; 4];
    let message = message(&mut part, &mut rights);
    // SAFETY: the control buffer has room for a header, so the result is not null.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: only computes a length.
    let length = unsafe { libc::CMSG_LEN(size_of::<c_int>() as u32) } as usize;
    let head = libc::cmsghdr { cmsg_len: length, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_RIGHTS };
    // SAFETY: the header is in `rights`, which is aligned and long enough.
    unsafe { header.write(head) };
    // SAFETY: as above; the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the buffer has room for an integer after the header; the write is unaligned.
    unsafe { data.cast::<c_int>().write_unaligned(file.as_raw_fd()) };
    // SAFETY: everything the message points to outlives the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    checked(sent as c_long).map(drop)
}

/// Receives a descriptor; `None` if the peer closed the socket without sending one.
pub(super) fn receive_file(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut rights: Rights = [0; 4];
    let mut message = message(&mut part, &mut rights);
    // SAFETY: everything the message points to outlives the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    checked(received as c_long)?;
    // SAFETY: the kernel has filled the message.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Ok(None);
    }
    // SAFETY: a non-null first header is inside `rights`.
    let head = unsafe { header.read() };
    if (head.cmsg_level, head.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
        return Ok(None);
    }
    // SAFETY: as above; the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the kernel has written one integer there.
    let file = unsafe { data.cast::<c_int>().read_unaligned() };
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(file) }))
}

fn message(part: &mut libc::iovec, rights: &mut Rights) -> libc::msghdr {
    // SAFETY: the structure consists of integers and pointers, all of which may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = rights.as_mut_ptr().cast();
    // SAFETY: only computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as _;
    message
}

/// Waits until a descriptor is readable or closed, or until the timeout. Returns which ones are ready.
pub(super) fn wait_for<const COUNT: usize>(
    files: [Option<BorrowedFd<'_>>; COUNT],
    milliseconds: c_int,
) -> [bool; COUNT] {
    // `poll(2)` ignores negative descriptors.
    let mut polled = files.map(|file| libc::pollfd {
        fd: file.map_or(-1, |file| file.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: pointer and length are those of an array that outlives the call.
    unsafe { libc::poll(polled.as_mut_ptr(), COUNT as libc::nfds_t, milliseconds) };
    polled.map(|entry| entry.revents != 0)
}
