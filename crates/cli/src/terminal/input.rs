//! Reads lines from standard input; a cancelled read consumes no input.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::render::screen::Screen;

/// Whose turn it is to ask at the terminal.
static TURN: Mutex<()> = Mutex::const_new(());
/// Whether a question was withdrawn before it was answered.
static WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// The turn to ask one question: an answer belongs to the question that is shown last, so that no two are shown at the same time.
/// [`PromptTurn::answered`] ends it; dropping it before prints that the question was withdrawn.
pub(crate) struct PromptTurn<'a> {
    screen: &'a Screen,
    _turn: MutexGuard<'static, ()>,
    is_answered: bool,
}

impl<'a> PromptTurn<'a> {
    /// Waits until no other question is open. What was typed for another question is discarded.
    pub(crate) async fn take(screen: &'a Screen) -> Self {
        let had_to_wait = TURN.try_lock().is_err();
        let turn = TURN.lock().await;
        if had_to_wait | WITHDRAWN.swap(false, Ordering::AcqRel) {
            discard_typed_ahead();
        }
        Self { screen, _turn: turn, is_answered: false }
    }

    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for PromptTurn<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            WITHDRAWN.store(true, Ordering::Release);
            // Ends the line of the question.
            self.screen.to_stderr("");
            let note = self
                .screen
                .lang
                .choose("the question was withdrawn: its call has ended", "该询问已撤回：其调用已结束");
            self.screen.note(note);
        }
    }
}

#[cfg(unix)]
fn discard_typed_ahead() {
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed_ahead() {}

/// Reads one line; `None` at the end of the input. If the future is dropped before a line was typed at a terminal, the next read
/// gets that line.
pub(crate) async fn read_line() -> Option<String> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let _guard = CancelOnDrop(Arc::clone(&cancelled));
    let (sender, line) = oneshot::channel();
    // A detached thread: the process can exit while it blocks.
    std::thread::spawn(move || {
        let line = if wait_for_input(&cancelled) { read() } else { None };
        let _ = sender.send(line);
    });
    line.await.ok().flatten()
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn read() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}

/// Waits until a terminal has a line, or the read is cancelled. Returns whether there is input.
#[cfg(unix)]
fn wait_for_input(cancelled: &AtomicBool) -> bool {
    use std::io::IsTerminal as _;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let stdin = std::io::stdin();
    // A terminal returns one line per read, so that nothing is left in the buffer; a pipe has no other reader.
    if !stdin.is_terminal() {
        return true;
    }
    while !cancelled.load(Ordering::Acquire) {
        let mut files = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut files, Some(&INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return !cancelled.load(Ordering::Acquire),
        }
    }
    false
}

#[cfg(not(unix))]
fn wait_for_input(_: &AtomicBool) -> bool {
    true
}
