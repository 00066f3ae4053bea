//! Counts new processes and threads with seccomp user notifications: the kernel suspends each clone until the watcher
//! responds. This also limits root, for which `RLIMIT_NPROC` does not apply.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libc::sock_filter;

use super::{seccomp, syscalls};

/// The child's side: installs the filter and sends the listener to the watcher.
#[derive(Debug)]
pub(super) struct ForkFilter {
    filter: Vec<sock_filter>,
    socket: UnixStream,
}

impl ForkFilter {
    /// Creates both sides.
    pub(super) fn new() -> io::Result<(Self, ForkListener)> {
        let (socket, arriving) = UnixStream::pair()?;
        Ok((Self { filter: seccomp::forks(), socket }, ForkListener::Arriving(arriving)))
    }

    /// Runs in the child.
    pub(super) fn enter(&self) -> io::Result<()> {
        let listener = syscalls::seccomp_listen(&self.filter)?;
        // The child's copy of the listener is closed on return, so that the child cannot respond to its own
        // notifications.
        syscalls::send_file(self.socket.as_fd(), listener.as_fd())
    }
}

/// The watcher's side.
#[derive(Debug)]
pub(super) enum ForkListener {
    /// The listener has not arrived yet.
    Arriving(UnixStream),
    /// The listener is open.
    Open(OwnedFd),
    /// No task is left that could notify, or the kernel does not support it.
    Closed,
}

/// The result of a wait.
#[derive(Debug)]
pub(super) enum ForkEvent {
    Nothing,
    /// A suspended clone, by notification id.
    Notification(u64),
    /// The watch has been ended.
    End,
}

impl ForkListener {
    /// Waits for a notification, for the end of the watch (the peer of `stop_socket` is closed), or for `time`.
    pub(super) fn wait(&mut self, stop_socket: &UnixStream, time: Duration) -> ForkEvent {
        let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        let listener_fd = match &*self {
            Self::Arriving(socket) => Some(socket.as_fd()),
            Self::Open(listener) => Some(listener.as_fd()),
            Self::Closed => None,
        };
        let [end, ready] = syscalls::wait_for([Some(stop_socket.as_fd()), listener_fd], milliseconds);
        if end {
            return ForkEvent::End;
        }
        match self {
            _ if !ready => ForkEvent::Nothing,
            Self::Arriving(socket) => {
                *self = match syscalls::receive_file(socket.as_fd()) {
                    Ok(Some(listener)) => Self::Open(listener),
                    _ => Self::Closed,
                };
                ForkEvent::Nothing
            }
            Self::Open(listener) => match syscalls::receive_notification(listener.as_fd()) {
                Ok(notification) => ForkEvent::Notification(notification),
                // The task has been killed meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => ForkEvent::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => ForkEvent::Nothing,
                // All tasks under the filter have exited.
                Err(_) => {
                    *self = Self::Closed;
                    ForkEvent::Nothing
                }
            },
            Self::Closed => ForkEvent::Nothing,
        }
    }

    /// Lets a clone continue.
    pub(super) fn allow(&self, notification: u64) {
        if let Self::Open(listener) = self {
            // Fails if the task has been killed meanwhile.
            let _ = syscalls::answer(listener.as_fd(), notification, None);
        }
    }

    /// Fails a clone with `EAGAIN`, as the kernel does at its own limit.
    pub(super) fn refuse(&self, notification: u64) {
        if let Self::Open(listener) = self {
            let _ = syscalls::answer(listener.as_fd(), notification, Some(libc::EAGAIN));
        }
    }

    /// Whether every new process or thread causes a notification.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}
