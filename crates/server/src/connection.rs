//! The state of each connection: waiting for a request, receiving one, or being served. One task enforces the timeouts of
//! all connections, so that a request needs no timer of its own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use toolhub_core::millis::duration_millis;

/// Maximum idle time between two requests. Clients keep idle connections for up to 90 seconds, and a connection that is
/// closed just as a request is sent fails that request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum time for receiving a message body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// How much later a connection is closed if its message did not arrive in time, so that a 408 response can be sent first.
const BODY_TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// The phases of a connection. The phase word holds the milliseconds since the start of the server, shifted left by two
/// bits, and the phase in the lower two.
pub(crate) const SERVING: u64 = 0;
pub(crate) const READING_HEAD: u64 = 1;
pub(crate) const IDLE: u64 = 2;
pub(crate) const READING_BODY: u64 = 3;

/// Orders to a connection, in ascending priority.
const CONTINUE: u64 = 0;
pub(crate) const FINISH: u64 = 1;
pub(crate) const ABORT: u64 = 2;

/// The timeouts of requests and responses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For receiving the head of a request, from its first byte to its last.
    pub(crate) header: Duration,
    /// For writing a response without any progress.
    pub(crate) write: Duration,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    started: Instant,
    phase: AtomicU64,
    command: AtomicU64,
    waker: AtomicWaker,
    /// Whether the future of the request in progress has been woken.
    woken: AtomicBool,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// Whether no request has been received yet. Such a connection counts among the unproven ones of its address.
    is_unproven: AtomicBool,
    unproven_of_address: Arc<AtomicUsize>,
    /// Since when writing has been blocked because the client does not read, in milliseconds; 0 if it is not.
    blocked: AtomicU64,
}

/// Wakes the connection task on behalf of the request in progress. The task is also woken by its socket, at least once
/// per request; the deeply nested future of the request is not polled then.
impl Wake for ConnectionState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mark_woken();
        self.waker.wake();
    }
}

impl ConnectionState {
    /// Returns whether the future of the request in progress has been woken, and resets that.
    pub(crate) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Marks the future of the request in progress as woken.
    pub(crate) fn mark_woken(&self) {
        self.woken.store(true, Ordering::Release);
    }

    /// Returns whether the connection is to end after the current response.
    pub(crate) fn is_finishing(&self) -> bool {
        self.command.load(Ordering::Acquire) != CONTINUE
    }

    fn now(&self) -> u64 {
        duration_millis(self.started.elapsed()) << 2
    }

    /// Marks the connection as serving a request until the returned guard is dropped.
    pub(crate) fn active_request(self: &Arc<Self>) -> ActiveRequest {
        self.phase.store(SERVING, Ordering::Release);
        if self.is_unproven.load(Ordering::Relaxed) {
            self.mark_proven();
        }
        self.mark_woken();
        ActiveRequest(Arc::clone(self))
    }

    /// Removes the connection from the unproven ones: a request has been received, or the connection has ended.
    fn mark_proven(&self) {
        if self.is_unproven.swap(false, Ordering::AcqRel) {
            self.unproven_of_address.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns whether no request has been received yet.
    pub(crate) fn is_unproven(&self) -> bool {
        self.is_unproven.load(Ordering::Relaxed)
    }

    /// Records that a write returned `Poll::Pending` because the client does not read.
    pub(crate) fn write_blocked(&self) {
        let now = (self.now() >> 2).max(1);
        let _ = self.blocked.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Records that a write made progress.
    pub(crate) fn write_progressed(&self) {
        if self.blocked.load(Ordering::Relaxed) != 0 {
            self.blocked.store(0, Ordering::Release);
        }
    }

    /// Returns how long writing has been blocked.
    fn blocked_for(&self) -> Duration {
        match self.blocked.load(Ordering::Acquire) {
            0 => Duration::ZERO,
            since => Duration::from_millis((self.now() >> 2).saturating_sub(since)),
        }
    }

    /// Records that bytes have arrived. On an idle connection they begin a request.
    pub(crate) fn record_read(&self) {
        let phase = self.phase.load(Ordering::Acquire);
        if phase & 3 == IDLE {
            let begun = self.now() | READING_HEAD;
            let _ = self.phase.compare_exchange(phase, begun, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Records that the head of a request has arrived and its body is incomplete.
    pub(crate) fn record_head(&self) {
        if self.phase.load(Ordering::Acquire) & 3 != READING_BODY {
            self.phase.store(self.now() | READING_BODY, Ordering::Release);
        }
    }

    /// Returns the current order, and registers the task to be woken when that changes.
    pub(crate) fn command(&self, context: &Context<'_>) -> ConnectionCommand {
        self.waker.register(context.waker());
        match self.command.load(Ordering::Acquire) {
            CONTINUE => ConnectionCommand::Continue,
            FINISH => ConnectionCommand::Finish,
            _ => ConnectionCommand::Abort,
        }
    }

    pub(crate) fn set_command(&self, command: u64) {
        if self.command.fetch_max(command, Ordering::AcqRel) < command {
            self.waker.wake();
        }
    }

    /// Returns the current phase and its duration.
    pub(crate) fn since(&self) -> (u64, Duration) {
        let phase = self.phase.load(Ordering::Acquire);
        let elapsed = (self.now() >> 2).saturating_sub(phase >> 2);
        (phase & 3, Duration::from_millis(elapsed))
    }
}

/// What a connection must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionCommand {
    Continue,
    /// Finish the current request, then end.
    Finish,
    /// End immediately.
    Abort,
}

/// Marks a connection as serving a request.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<ConnectionState>);

impl ActiveRequest {
    /// Records that the rest of the message is awaited.
    pub(crate) fn body_pending(&self) {
        self.0.record_head();
    }

    /// Records that the message is complete.
    pub(crate) fn body_received(&self) {
        self.0.phase.store(SERVING, Ordering::Release);
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.phase.store(self.0.now() | IDLE, Ordering::Release);
    }
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    timeouts: Timeouts,
    started: Instant,
    count: AtomicU64,
    open: Mutex<HashMap<u64, Arc<ConnectionState>>>,
    /// The number of unproven connections per address.
    unproven: Mutex<HashMap<IpAddr, Arc<AtomicUsize>>>,
}

impl Connections {
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        let (open, unproven) = (Mutex::default(), Mutex::default());
        Self { timeouts, started: Instant::now(), count: AtomicU64::new(0), open, unproven }
    }

    fn unproven(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<AtomicUsize>>> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of unproven connections of an address.
    pub(crate) fn unproven_of(&self, address: IpAddr) -> usize {
        self.unproven().get(&address).map_or(0, |count| count.load(Ordering::Acquire))
    }

    pub(crate) fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<ConnectionState>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }

    /// Registers a new connection, whose first request is expected.
    pub(crate) fn register(self: &Arc<Self>, address: IpAddr) -> ConnectionGuard {
        let unproven_of_address = {
            let mut all = self.unproven();
            let count = Arc::clone(all.entry(address).or_default());
            count.fetch_add(1, Ordering::AcqRel);
            count
        };
        let state = ConnectionState {
            started: self.started,
            phase: AtomicU64::new(0),
            command: AtomicU64::new(CONTINUE),
            waker: AtomicWaker::new(),
            woken: AtomicBool::new(false),
            address,
            is_unproven: AtomicBool::new(true),
            unproven_of_address,
            blocked: AtomicU64::new(0),
        };
        state.phase.store(state.now() | READING_HEAD, Ordering::Release);
        let (state, number) = (Arc::new(state), self.count.fetch_add(1, Ordering::Relaxed));
        self.open().insert(number, Arc::clone(&state));
        ConnectionGuard { connections: Arc::clone(self), number, state }
    }

    /// Enforces the timeouts for as long as it is polled.
    pub(crate) async fn enforce_timeouts(&self) {
        let shortest = self.timeouts.header.min(self.timeouts.write);
        let pause = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(pause).await;
            for state in self.open().values() {
                if state.blocked_for() >= self.timeouts.write {
                    state.set_command(ABORT);
                }
                match state.since() {
                    (READING_HEAD, elapsed) if elapsed >= self.timeouts.header => state.set_command(ABORT),
                    (READING_BODY, elapsed) if elapsed >= BODY_TIMEOUT + BODY_TIMEOUT_GRACE => {
                        state.set_command(ABORT);
                    }
                    (IDLE, elapsed) if elapsed >= IDLE_TIMEOUT => state.set_command(FINISH),
                    _ => {}
                }
            }
        }
    }

    /// Ends all connections, each after its current response.
    pub(crate) fn finish(&self) {
        self.open().values().for_each(|state| state.set_command(FINISH));
    }
}

/// A registered connection. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) state: Arc<ConnectionState>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let removed = self.connections.open().remove(&self.number);
        drop(removed);
        self.state.mark_proven();
        let mut all = self.connections.unproven();
        // Two references: the map and this connection. More belong to other connections of the address.
        if all.get(&self.state.address).is_some_and(|count| Arc::strong_count(count) <= 2) {
            all.remove(&self.state.address);
        }
    }
}

/// A stream that records read and write progress in the state of its connection.
#[derive(Debug)]
pub(crate) struct MonitoredStream {
    /// Bytes that have already been read, returned first.
    pub(crate) before: Bytes,
    pub(crate) stream: TcpStream,
    pub(crate) state: Arc<ConnectionState>,
}

impl MonitoredStream {
    /// Records whether a write was blocked.
    fn record_write(&self, written: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        match &written {
            Poll::Pending => self.state.write_blocked(),
            Poll::Ready(_) => self.state.write_progressed(),
        }
        written
    }
}

impl AsyncRead for MonitoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.before.is_empty() {
            let most = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(most));
            self.state.record_read();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.state.record_read();
        }
        read
    }
}

impl AsyncWrite for MonitoredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
