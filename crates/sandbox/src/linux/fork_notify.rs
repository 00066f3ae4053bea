//! Each new process or thread of a confinement is asked for: the kernel holds the call back until the watcher has
//! answered. This binds the administrator too, whom the kernel never refuses a process for their number.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libc::sock_filter;

use super::{calls, seccomp};

/// The child's side: has its births asked for, and hands over where that is heard.
#[derive(Debug)]
pub(super) struct Asking {
    filter: Vec<sock_filter>,
    way: UnixStream,
}

impl Asking {
    /// Both sides.
    pub(super) fn new() -> io::Result<(Self, Hearing)> {
        let (way, arriving) = UnixStream::pair()?;
        Ok((Self { filter: seccomp::births(), way }, Hearing::Arriving(arriving)))
    }

    /// To be done in the child.
    pub(super) fn enter(&self) -> io::Result<()> {
        let listener = calls::seccomp_listen(&self.filter)?;
        // Ours is closed here: who asks must not answer.
        calls::send_file(self.way.as_fd(), listener.as_fd())
    }
}

/// The watcher's side.
#[derive(Debug)]
pub(super) enum Hearing {
    /// The child has not begun.
    Arriving(UnixStream),
    /// Questions are heard here.
    Open(OwnedFd),
    /// There is nobody who asks, or the kernel cannot.
    Closed,
}

/// What came in the time that was waited.
#[derive(Debug)]
pub(super) enum Heard {
    Nothing,
    /// Somebody wants a new process or thread, and waits.
    Question(u64),
    /// The watch is to end.
    End,
}

impl Hearing {
    /// Waits for a question, for the end (`bell` is rung then), or until `time` is over.
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
                // Its asker was ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Heard::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Heard::Nothing,
                // All that could ask have gone.
                Err(_) => {
                    *self = Self::Closed;
                    Heard::Nothing
                }
            },
            Self::Closed => Heard::Nothing,
        }
    }

    /// Says yes to a question.
    pub(super) fn allow(&self, question: u64) {
        if let Self::Open(listener) = self {
            // Whoever asked may have been ended meanwhile.
            let _ = calls::answer(listener.as_fd(), question, None);
        }
    }

    /// Says no to a question, as the kernel does where there are too many.
    pub(super) fn refuse(&self, question: u64) {
        if let Self::Open(listener) = self {
            let _ = calls::answer(listener.as_fd(), question, Some(libc::EAGAIN));
        }
    }

    /// Whether nothing new can come without being asked for.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}
