//! Writes lines to a pipe. The caller that queues a line also writes it, together with the lines that others queue meanwhile.
//! Only bytes that the pipe does not accept immediately are left to the `drive` task.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::mux::{MAX_QUEUED_MESSAGES, MessageSink};

/// How many batches a caller writes, its own included, before it hands over to `drive`.
const MAX_BATCHES: usize = 8;

/// The owner of the pipe.
enum WriterState<W> {
    /// Idle: no line is queued.
    Idle(W),
    /// A caller or `drive` is writing.
    Busy,
    /// Handed over to `drive`.
    HandedOver(W),
    /// Closed.
    Closed,
}

struct PipeWriterState<W> {
    writer: WriterState<W>,
    /// The queued bytes: complete lines, except that the first may be partly written.
    queued: Vec<u8>,
    /// Number of lines that are not written yet.
    lines: usize,
    closed: bool,
}

/// Writes lines to one pipe.
pub(super) struct PipeWriter<W> {
    state: Mutex<PipeWriterState<W>>,
    /// Wakes `drive`.
    handed_over: Notify,
}

/// The reason why writing stopped.
pub(super) enum WriteError {
    /// The pipe is broken.
    Broken(io::Error),
    /// The reader accepted nothing until the timeout.
    NotReading,
}

impl<W: AsyncWrite + Unpin> PipeWriter<W> {
    pub(super) fn new(pipe: W) -> Self {
        let state =
            PipeWriterState { writer: WriterState::Idle(pipe), queued: Vec::new(), lines: 0, closed: false };
        Self { state: Mutex::new(state), handed_over: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, PipeWriterState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the pipe after the queued lines are written.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        if let WriterState::Idle(_) = state.writer {
            state.writer = WriterState::Closed;
        }
        drop(state);
        self.handed_over.notify_one();
    }

    /// Writes the bytes that callers hand over, until the pipe is closed. Fails if the reader accepts nothing for `timeout`.
    pub(super) async fn drive(&self, timeout: Duration) -> Result<(), WriteError> {
        loop {
            self.handed_over.notified().await;
            loop {
                let (mut pipe, batch, lines) = {
                    let mut state = self.state();
                    match std::mem::replace(&mut state.writer, WriterState::Busy) {
                        WriterState::HandedOver(pipe) => {
                            (pipe, std::mem::take(&mut state.queued), state.lines)
                        }
                        WriterState::Closed => return Ok(()),
                        other => {
                            state.writer = other;
                            break;
                        }
                    }
                };
                let mut rest = &batch[..];
                while !rest.is_empty() {
                    match tokio::time::timeout(timeout, pipe.write(rest)).await {
                        Ok(Ok(0)) => return Err(WriteError::Broken(io::ErrorKind::WriteZero.into())),
                        Ok(Ok(written)) => rest = &rest[written..],
                        Ok(Err(error)) => return Err(WriteError::Broken(error)),
                        Err(_) => return Err(WriteError::NotReading),
                    }
                }
                let mut state = self.state();
                state.lines -= lines;
                if state.queued.is_empty() {
                    self.release(&mut state, pipe);
                } else {
                    state.writer = WriterState::HandedOver(pipe);
                }
            }
        }
    }

    /// Releases the pipe when nothing is queued.
    fn release(&self, state: &mut PipeWriterState<W>, pipe: W) {
        if state.closed {
            state.writer = WriterState::Closed;
            // Lets `drive` return.
            self.handed_over.notify_one();
        } else {
            state.writer = WriterState::Idle(pipe);
        }
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> MessageSink for Arc<PipeWriter<W>> {
    fn enqueue(&self, mut line: String) -> Result<(), String> {
        let mut state = self.state();
        if state.lines >= MAX_QUEUED_MESSAGES {
            return Err(line);
        }
        if state.closed {
            return Ok(());
        }
        state.lines += 1;
        line.push('\n');
        let mut pipe = match std::mem::replace(&mut state.writer, WriterState::Busy) {
            WriterState::Idle(pipe) => pipe,
            other => {
                state.writer = other;
                state.queued.extend_from_slice(line.as_bytes());
                return Ok(());
            }
        };
        let (mut batch, mut lines) = (line.into_bytes(), 1);
        for _ in 0..MAX_BATCHES {
            drop(state);
            let written = write_now(&mut pipe, &batch);
            state = self.state();
            batch.drain(..written);
            if !batch.is_empty() {
                break;
            }
            state.lines -= lines;
            if state.queued.is_empty() {
                self.release(&mut state, pipe);
                return Ok(());
            }
            (batch, lines) = (std::mem::take(&mut state.queued), state.lines);
        }
        batch.append(&mut state.queued);
        state.queued = batch;
        state.writer = WriterState::HandedOver(pipe);
        drop(state);
        self.handed_over.notify_one();
        Ok(())
    }
}

/// Writes as much as the pipe accepts immediately and returns that number of bytes. Errors are left to `drive`, which writes
/// the rest.
fn write_now(pipe: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> usize {
    let (mut written, mut context) = (0, Context::from_waker(Waker::noop()));
    while written < bytes.len() {
        match Pin::new(&mut *pipe).poll_write(&mut context, &bytes[written..]) {
            Poll::Ready(Ok(some @ 1..)) => written += some,
            Poll::Ready(_) | Poll::Pending => break,
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn preserves_line_order_with_a_slow_reader() {
        let tasks = TaskTracker::new();
        for capacity in [1, 7, 64, 1 << 20] {
            let (ours, mut theirs) = tokio::io::duplex(capacity);
            let pipe_writer = Arc::new(PipeWriter::new(ours));
            let driven = Arc::clone(&pipe_writer);
            let driver = tasks.spawn(async move { driven.drive(Duration::from_secs(30)).await.is_ok() });
            let reader = tasks.spawn(async move {
                let mut all = String::new();
                theirs.read_to_string(&mut all).await.map(|_| all)
            });
            let mut expect = String::new();
            for number in 0..500 {
                pipe_writer.enqueue(format!("line {number}")).unwrap();
                expect += &format!("line {number}\n");
                if number % 7 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            pipe_writer.close();
            pipe_writer.enqueue("too late".to_owned()).unwrap();
            assert_eq!(reader.await.unwrap().unwrap(), expect, "{capacity}");
            assert!(driver.await.unwrap(), "{capacity}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reports_unresponsive_and_closed_readers() {
        let (ours, theirs) = tokio::io::duplex(4);
        let pipe_writer = Arc::new(PipeWriter::new(ours));
        let taken =
            (0..2 * MAX_QUEUED_MESSAGES).take_while(|_| pipe_writer.enqueue("x".to_owned()).is_ok()).count();
        // The pipe accepted two lines immediately.
        assert_eq!(taken, MAX_QUEUED_MESSAGES + 2);
        assert_eq!(pipe_writer.enqueue("z".to_owned()), Err("z".to_owned()));
        assert!(matches!(pipe_writer.drive(Duration::from_secs(30)).await, Err(WriteError::NotReading)));
        drop(theirs);
        let (ours, theirs) = tokio::io::duplex(4);
        let pipe_writer = Arc::new(PipeWriter::new(ours));
        drop(theirs);
        pipe_writer.enqueue("x".to_owned()).unwrap();
        assert!(matches!(pipe_writer.drive(Duration::from_secs(30)).await, Err(WriteError::Broken(_))));
    }

    #[test]
    fn writes_all_lines_of_concurrent_callers() {
        let pipe_writer = Arc::new(PipeWriter::new(io::Cursor::new(Vec::new())));
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let pipe_writer = &pipe_writer;
                threads.spawn(move || {
                    for number in 0..200 {
                        pipe_writer.enqueue(format!("{thread} {number}")).unwrap();
                    }
                });
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let driven = pipe_writer.drive(Duration::from_secs(30));
        let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(20), driven).await });
        let state = pipe_writer.state();
        let WriterState::Idle(pipe) = &state.writer else { panic!("a write is in progress") };
        let text = String::from_utf8(pipe.get_ref().clone()).unwrap();
        for thread in ["0", "1", "2", "3"] {
            let of_thread =
                text.lines().filter_map(|line| line.strip_prefix(thread)?.trim().parse::<u32>().ok());
            assert!(of_thread.eq(0..200), "{thread}");
        }
        assert_eq!(state.lines, 0);
    }
}
