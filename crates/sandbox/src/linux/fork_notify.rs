//! Counts new processes and threads with seccomp user notifications: the kernel suspends each clone until the watcher
//! responds. This also limits root, for which `RLIMIT_NPROC` does not apply.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libc::sock_filter;

use super::{calls, seccomp};

/// The child's side: installs the filter and sends the listener to the watcher.
#[derive(Debug)]
pub(super) struct Asking {
    filter: Vec<sock_filter>,
    way: UnixStream,
}

impl Asking {
    /// Creates both sides.
    pub(super) fn new() -> io::Result<(Self, Hearing)> {
        let (way, arriving) = UnixStream::pair()?;
        Ok((Self { filter: seccomp::births(), way }, Hearing::Arriving(arriving)))
    }

    /// Runs in the child.
    pub(super) fn enter(&self) -> io::Result<()> {
        let listener = calls::seccomp_listen(&self.filter)?;
        // The child's copy of the listener is closed on return, so that the child cannot respond to its own
        // notifications.
        calls::send_file(self.way.as_fd(), listener.as_fd())
    }
}

/// The watcher's side.
#[derive(Debug)]
pub(super) enum Hearing {
    /// The listener has not arrived yet.
    Arriving(UnixStream),
    /// The listener is open.
    Open(OwnedFd),
    /// No task is left that could notify, or the kernel does not support it.
    Closed,
}

/// The result of a wait.
#[derive(Debug)]
pub(super) enum Heard {
    Nothing,
    /// A suspended clone, by notification id.
    Question(u64),
    /// The watch has been ended.
    End,
}

impl Hearing {
    /// Waits for a notification, for the end of the watch (the peer of `bell` is closed), or for `time`.
    pub(super) fn wait(&mut self, bell: &UnixStream, time: Duration) -> Heard {
        let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        let ours = match &*self {
            Self::Arriving(way) => Some(way.as_fd()),
            Self::Open(listener) => Some(listener.as_fd()),
            Self::Closed => None,
        };
        let [end, ready] = calls::wait_for([Some(bell.as_fd()), ours], milliseconds);
        if end {
            return Heard::End;
        }
        match self {
            _ if !ready => Heard::Nothing,
            Self::Arriving(way) => {
                *self = match calls::receive_file(way.as_fd()) {
                    Ok(Some(listener)) => Self::Open(listener),
                    _ => Self::Closed,
                };
                Heard::Nothing
            }
            Self::Open(listener) => match calls::hear(listener.as_fd()) {
                Ok(question) => Heard::Question(question),
                // The task has been killed meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Heard::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Heard::Nothing,
                // All tasks under the filter have exited.
                Err(_) => {
                    *self = Self::Closed;
                    Heard::Nothing
                }
            },
            Self::Closed => Heard::Nothing,
        }
    }

    /// Lets a clone continue.
    pub(super) fn allow(&self, question: u64) {
        if let Self::Open(listener) = self {
            // Fails if the task has been killed meanwhile.
            let _ = calls::answer(listener.as_fd(), question, None);
        }
    }

    /// Fails a clone with `EAGAIN`, as the kernel does at its own limit.
    pub(super) fn refuse(&self, question: u64) {
        if let Self::Open(listener) = self {
            let _ = calls::answer(listener.as_fd(), question, Some(libc::EAGAIN));
        }
    }

    /// Whether every new process or thread causes a notification.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}
