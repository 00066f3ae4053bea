//! hyper's server as the reference implementation of HTTP/1.1 for differential fuzzing: runs over bytes in memory,
//! without a runtime, and returns the parsed messages. Compiled into each crate whose own framing code is compared
//! with it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};

/// A parsed message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// Method and target of a request, or the status of a response.
    pub(crate) start: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the end of the body was reached.
    pub(crate) complete: bool,
}

/// Splits input into pieces whose lengths depend only on the input.
pub(crate) fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let mut state = data.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let (mut rest, mut pieces) = (data, Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let longest = [1, 3, 16, 200][(state >> 40) as usize % 4];
        let length = (1 + (state >> 48) as usize % longest).min(rest.len());
        let (piece, more) = rest.split_at(length);
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// Returns all requests that hyper's server reads from a connection that stays open. The last one may be incomplete.
pub(crate) fn requests(input: &[&[u8]]) -> Vec<Message> {
    let seen = Arc::new(Mutex::new(Vec::<Message>::new()));
    let service = hyper::service::service_fn(|request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            let (head, mut body) = request.into_parts();
            let start = format!("{} {} {:?}", head.method, head.uri, head.version);
            let index = {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(Message { start, headers: head.headers, ..Message::default() });
                seen.len() - 1
            };
            while let Some(frame) =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
            {
                let data = frame?.into_data().unwrap_or_default();
                seen.lock().unwrap_or_else(PoisonError::into_inner)[index].body.extend_from_slice(&data);
            }
            seen.lock().unwrap_or_else(PoisonError::into_inner)[index].complete = true;
            Ok::<_, hyper::Error>(Response::new(Empty))
        }
    });
    let script = Script::new(input);
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(script, service);
    let mut connection = pin!(connection);
    Polling::default().run(|context| connection.as_mut().poll(context).is_ready());
    std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Polls a future without a runtime, as long as its waker is called.
#[derive(Default)]
pub(crate) struct Polling(Arc<Woken>);

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Polling {
    /// Polls until `poll` returns `true`, or until a poll does not call the waker.
    pub(crate) fn run(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> bool) {
        let waker = Waker::from(Arc::clone(&self.0));
        let context = &mut Context::from_waker(&waker);
        loop {
            self.0.0.store(false, Ordering::Release);
            if poll(context) || !self.0.0.load(Ordering::Acquire) {
                return;
            }
        }
    }
}

/// A connection in memory whose peer sends the given input and accepts all written data.
pub(crate) struct Script {
    input: VecDeque<Bytes>,
    /// Whether the peer closes the connection after its input.
    pub(crate) closes: bool,
    /// Whether the input becomes readable only after the first write, like a response.
    pub(crate) is_answer: bool,
    reader: Option<Waker>,
}

impl Script {
    pub(crate) fn new(input: &[&[u8]]) -> Self {
        let input = input.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        Self { input, closes: false, is_answer: false, reader: None }
    }
}

impl Read for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_answer {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let Some(mut piece) = self.input.pop_front() else {
            return if self.closes { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        buffer.put_slice(&piece.split_to(piece.len().min(buffer.remaining())));
        if !piece.is_empty() {
            self.input.push_front(piece);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_answer = false;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// An empty body.
#[derive(Debug, Default)]
pub(crate) struct Empty;

impl Body for Empty {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
