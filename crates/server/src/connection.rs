//! The connections as they stand: which waits for a request, which is being answered, and which has had its time. One
//! task looks after all of them, so that no request pays for a timer of its own.

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

/// How long a connection may stay open between two requests. Clients keep theirs for up to 90 seconds, and one that is
/// closed just as a request leaves fails that request.
const BETWEEN: Duration = Duration::from_secs(120);

/// How long a message may take to arrive.
pub(crate) const ARRIVAL: Duration = Duration::from_secs(60);

/// How much later a connection is broken off whose message did not arrive: it is answered first where that can be done.
const ARRIVAL_GRACE: Duration = Duration::from_secs(2);

/// What a connection is doing, and since when: the milliseconds times four, and the phase.
pub(crate) const ANSWERING: u64 = 0;
pub(crate) const HEADING: u64 = 1;
pub(crate) const BETWEEN_REQUESTS: u64 = 2;
pub(crate) const ARRIVING: u64 = 3;

/// What a connection is told to do.
const GO_ON: u64 = 0;
pub(crate) const FINISH: u64 = 1;
pub(crate) const BREAK_OFF: u64 = 2;

/// How long the parts of a request and of its answer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// The head of a request, from its first byte to its last.
    pub(crate) head: Duration,
    /// The time without progress while an answer is written.
    pub(crate) write: Duration,
}

/// One connection as it stands.
#[derive(Debug)]
pub(crate) struct Standing {
    beginning: Instant,
    phase: AtomicU64,
    order: AtomicU64,
    waker: AtomicWaker,
    /// Whether there is something to do for the request that is being answered.
    called: AtomicBool,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// Whether no request of it was answered yet. Then it counts among the unproven ones of its address.
    unproven: AtomicBool,
    unproven_of_address: Arc<AtomicUsize>,
    /// Since when the client has read nothing of what is to be written, in milliseconds; 0 while it reads.
    blocked: AtomicU64,
}

/// Wakes the connection for the sake of the request that is being answered. The connection is woken for its own sake, too,
/// at least once for each request; what answers it is a deep nest, which need not be looked through then.
impl Wake for Standing {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
        self.waker.wake();
    }
}

impl Standing {
    /// Whether the request that is being answered has something to do.
    pub(crate) fn was_called(&self) -> bool {
        self.called.swap(false, Ordering::AcqRel)
    }

    /// There is something to do for it.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::Release);
    }

    /// Whether it is to end once it has answered.
    pub(crate) fn is_finishing(&self) -> bool {
        self.order.load(Ordering::Acquire) != GO_ON
    }

    fn now(&self) -> u64 {
        u64::try_from(self.beginning.elapsed().as_millis()).unwrap_or(u64::MAX) << 2
    }

    /// A request is being answered, until what is given back is dropped.
    pub(crate) fn answering(self: &Arc<Self>) -> Answering {
        self.phase.store(ANSWERING, Ordering::Release);
        if self.unproven.load(Ordering::Relaxed) {
            self.prove();
        }
        self.call();
        Answering(Arc::clone(self))
    }

    /// A request of it is answered, or it is gone: it is not unproven any more.
    fn prove(&self) {
        if self.unproven.swap(false, Ordering::AcqRel) {
            self.unproven_of_address.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether no request of it was answered yet.
    pub(crate) fn is_unproven(&self) -> bool {
        self.unproven.load(Ordering::Relaxed)
    }

    /// Nothing could be written just now, as the client does not read.
    pub(crate) fn write_blocked(&self) {
        let now = (self.now() >> 2).max(1);
        let _ = self.blocked.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Something was written.
    pub(crate) fn write_progressed(&self) {
        if self.blocked.load(Ordering::Relaxed) != 0 {
            self.blocked.store(0, Ordering::Release);
        }
    }

    /// For how long nothing could be written.
    fn blocked_for(&self) -> Duration {
        match self.blocked.load(Ordering::Acquire) {
            0 => Duration::ZERO,
            since => Duration::from_millis((self.now() >> 2).saturating_sub(since)),
        }
    }

    /// Something came. Where nothing was expected, a request begins with it.
    pub(crate) fn heard(&self) {
        let phase = self.phase.load(Ordering::Acquire);
        if phase & 3 == BETWEEN_REQUESTS {
            let begun = self.now() | HEADING;
            let _ = self.phase.compare_exchange(phase, begun, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// The head of a request has come, and what follows is on its way.
    pub(crate) fn headed(&self) {
        if self.phase.load(Ordering::Acquire) & 3 != ARRIVING {
            self.phase.store(self.now() | ARRIVING, Ordering::Release);
        }
    }

    /// What it must do now, as its task hears it; whoever gives orders wakes that task.
    pub(crate) fn order(&self, context: &Context<'_>) -> Order {
        self.waker.register(context.waker());
        match self.order.load(Ordering::Acquire) {
            GO_ON => Order::GoOn,
            FINISH => Order::Finish,
            _ => Order::BreakOff,
        }
    }

    pub(crate) fn tell(&self, order: u64) {
        if self.order.fetch_max(order, Ordering::AcqRel) < order {
            self.waker.wake();
        }
    }

    /// How long it has been in the phase that it is in.
    pub(crate) fn since(&self) -> (u64, Duration) {
        let phase = self.phase.load(Ordering::Acquire);
        let long = (self.now() >> 2).saturating_sub(phase >> 2);
        (phase & 3, Duration::from_millis(long))
    }
}

/// What a connection must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    GoOn,
    /// Answer what runs, and end.
    Finish,
    /// End at once.
    BreakOff,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Standing>);

impl Answering {
    /// The rest of the message is waited for.
    pub(crate) fn arriving(&self) {
        self.0.headed();
    }

    /// The message is there.
    pub(crate) fn arrived(&self) {
        self.0.phase.store(ANSWERING, Ordering::Release);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.phase.store(self.0.now() | BETWEEN_REQUESTS, Ordering::Release);
    }
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Connections {
    timeouts: Timeouts,
    beginning: Instant,
    count: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Standing>>>,
    /// How many connections of each address are unproven.
    unproven: Mutex<HashMap<IpAddr, Arc<AtomicUsize>>>,
}

impl Connections {
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        let (open, unproven) = (Mutex::default(), Mutex::default());
        Self { timeouts, beginning: Instant::now(), count: AtomicU64::new(0), open, unproven }
    }

    fn unproven(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<AtomicUsize>>> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many connections of an address have not been answered yet.
    pub(crate) fn unproven_of(&self, address: IpAddr) -> usize {
        self.unproven().get(&address).map_or(0, |count| count.load(Ordering::Acquire))
    }

    pub(crate) fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Standing>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }

    /// A connection that was just made: its first request should be on its way.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Entered {
        let unproven_of_address = {
            let mut all = self.unproven();
            let count = Arc::clone(all.entry(address).or_default());
            count.fetch_add(1, Ordering::AcqRel);
            count
        };
        let standing = Standing {
            beginning: self.beginning,
            phase: AtomicU64::new(0),
            order: AtomicU64::new(GO_ON),
            waker: AtomicWaker::new(),
            called: AtomicBool::new(false),
            address,
            unproven: AtomicBool::new(true),
            unproven_of_address,
            blocked: AtomicU64::new(0),
        };
        standing.phase.store(standing.now() | HEADING, Ordering::Release);
        let (standing, number) = (Arc::new(standing), self.count.fetch_add(1, Ordering::Relaxed));
        self.open().insert(number, Arc::clone(&standing));
        Entered { connections: Arc::clone(self), number, standing }
    }

    /// Ends what has had its time, for as long as it is polled.
    pub(crate) async fn look_after(&self) {
        let shortest = self.timeouts.head.min(self.timeouts.write);
        let pause = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(pause).await;
            for standing in self.open().values() {
                if standing.blocked_for() >= self.timeouts.write {
                    standing.tell(BREAK_OFF);
                }
                match standing.since() {
                    (HEADING, long) if long >= self.timeouts.head => standing.tell(BREAK_OFF),
                    (ARRIVING, long) if long >= ARRIVAL + ARRIVAL_GRACE => standing.tell(BREAK_OFF),
                    (BETWEEN_REQUESTS, long) if long >= BETWEEN => standing.tell(FINISH),
                    _ => {}
                }
            }
        }
    }

    /// Ends all of them, each once it has answered.
    pub(crate) fn finish(&self) {
        self.open().values().for_each(|standing| standing.tell(FINISH));
    }
}

/// A connection that is known, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    connections: Arc<Connections>,
    number: u64,
    pub(crate) standing: Arc<Standing>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let gone = self.connections.open().remove(&self.number);
        drop(gone);
        self.standing.prove();
        let mut all = self.connections.unproven();
        // The table, and whoever still counts in it: the others of this address.
        if all.get(&self.standing.address).is_some_and(|count| Arc::strong_count(count) <= 2) {
            all.remove(&self.standing.address);
        }
    }
}

/// A connection's stream, which notes when something comes.
#[derive(Debug)]
pub(crate) struct Heard {
    /// What came already.
    pub(crate) before: Bytes,
    pub(crate) stream: TcpStream,
    pub(crate) standing: Arc<Standing>,
}

impl Heard {
    /// Notes whether the client reads what is written.
    fn noted(&self, written: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        match &written {
            Poll::Pending => self.standing.write_blocked(),
            Poll::Ready(_) => self.standing.write_progressed(),
        }
        written
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.before.is_empty() {
            let most = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(most));
            self.standing.heard();
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.standing.heard();
        }
        read
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.noted(written)
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
