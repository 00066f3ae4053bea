//! The fast path: serves the `POST /mcp` requests that nearly all clients send with a minimal HTTP/1.1 implementation.
//! Any other request is passed to hyper, together with all bytes read so far.

#[cfg(test)]
mod attacks;
mod head;
mod written;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::take;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::BytesMut;
use futures_util::Stream as _;
use tokio::io::{AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;
use toolhub_core::read_buffer::with_read_buffer;
use toolhub_core::write_buffer::WriteBuffer;
use toolhub_http1::{LAST_CHUNK, write_chunk};
use toolhub_mcp_gateway::{Body, Events, Principal, Reply, Resource};

use self::head::{Found, Known, Missing};
use self::written::{LONG, Written};
use crate::body::MAX_UNCOUNTED;
use crate::connection::{Answering, Order, Standing};
use crate::request_record::RequestRecord;
use crate::shared::{Familiar, Shared};
use crate::workers::Placement;

pub(crate) use self::head::Head;

/// How many bytes are read at a time once a message is longer than this.
const PIECE: usize = 4 << 10;
/// Maximum size of an incomplete message on the fast path; a longer one is passed to hyper. Most messages arrive in one
/// piece.
const MAX_PARTIAL_BYTES: usize = 8 << 10;

/// The response to a client that did not send a complete message in time.
const LATE: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 35\r\n\
    connection: close\r\n\r\nthe message did not arrive in time\n";

/// The state in which the fast path leaves a connection.
pub(crate) enum Left<S = TcpStream> {
    /// The connection is closed.
    Over,
    /// hyper continues; these bytes have already been read.
    Long(S, Vec<u8>),
    /// The fast path continues on another runtime.
    Elsewhere(S),
}

impl<S> Left<S> {
    /// Converts the stream into a form that another runtime can take. If that fails, the connection is closed.
    pub(crate) fn with<T>(self, make: impl FnOnce(S) -> io::Result<T>) -> Left<T> {
        match self {
            Self::Over => Left::Over,
            Self::Long(stream, before) => {
                make(stream).map_or(Left::Over, |stream| Left::Long(stream, before))
            }
            Self::Elsewhere(stream) => make(stream).map_or(Left::Over, Left::Elsewhere),
        }
    }
}

/// A connection on the fast path.
pub(crate) struct Short<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) client: SocketAddr,
    pub(crate) standing: &'a Arc<Standing>,
    /// Wakes the connection task on behalf of the request in progress.
    pub(crate) waker: Waker,
}

impl Short<'_> {
    /// Serves requests until one needs hyper, the connection ends, or it should move to another runtime.
    pub(crate) async fn serve(&self, mut stream: TcpStream, mut stay: Placement) -> Left {
        let (mut read, mut familiar) = (BytesMut::new(), Familiar::default());
        let mut known: Option<Known> = None;
        loop {
            let found = match read.is_empty() {
                true => Found::Part(Missing::Head),
                false => Known::find(&read, &mut known),
            };
            let lengths = match found {
                Found::Whole(lengths) => lengths,
                Found::Unusual => return Left::Long(stream, read.into()),
                Found::Part(missing) => {
                    // On the hyper path the buffered bytes count towards the body budget.
                    if missing == Missing::Body && read.len() > MAX_PARTIAL_BYTES {
                        return Left::Long(stream, read.into());
                    }
                    match missing {
                        Missing::Head if read.is_empty() => {}
                        Missing::Head => self.standing.heard(),
                        Missing::Body => self.standing.headed(),
                    }
                    if !self.receive(&mut stream, &mut read, missing).await {
                        return Left::Over;
                    }
                    continue;
                }
            };
            let all = lengths.all() == read.len();
            let message = if all { take(&mut read) } else { read.split_to(lengths.all()) }.freeze();
            let Some(head) = known.as_ref().map(|known| known.head(&message, lengths)) else {
                return Left::Long(stream, [&message[..], &read].concat());
            };
            match self.answer(&mut stream, &head, &mut familiar).await {
                Answered::Not => return Left::Long(stream, [&message[..], &read].concat()),
                Answered::Last => return Left::Over,
                Answered::Whole => {}
                Answered::Telling(telling) => {
                    // The stream may last for hours, and the request is no longer needed.
                    drop((head, message));
                    if !self.tell(&mut stream, telling).await {
                        return Left::Over;
                    }
                }
            }
            Known::admits(&mut known);
            if all && stay.ends(|| self.shared.under_way()) {
                return Left::Elsewhere(stream);
            }
        }
    }

    /// Reads more bytes. Returns false if the connection has ended or timed out.
    async fn receive(&self, stream: &mut TcpStream, read: &mut BytesMut, missing: Missing) -> bool {
        let (nothing, short) = (read.is_empty(), read.len() < PIECE);
        if !short {
            read.reserve(PIECE);
        }
        let mut reading = |context: &mut Context<'_>| {
            let stream = Pin::new(&mut *stream);
            match short {
                // Most messages arrive in one or two pieces.
                true => {
                    let (came, piece) = with_read_buffer(|basin| poll_read_buf(stream, context, basin));
                    read.unsplit(piece);
                    came
                }
                false => poll_read_buf(stream, context, read),
            }
        };
        let came = poll_fn(|context| match self.standing.order(context) {
            Order::BreakOff => Poll::Ready(None),
            Order::Finish if nothing => Poll::Ready(Some(0)),
            Order::GoOn | Order::Finish => reading(context).map(|came| Some(came.unwrap_or_default())),
        })
        .await;
        if came.is_none() && missing == Missing::Body {
            let _ = stream.try_write(LATE);
        }
        came.is_some_and(|came| came > 0)
    }

    async fn answer(&self, stream: &mut TcpStream, head: &Head<'_>, familiar: &mut Familiar) -> Answered {
        let began = Instant::now();
        let Some(admitted) = self.shared.admits(head, self.client, familiar) else { return Answered::Not };
        let answering = self.standing.answering();
        let mut account = RequestRecord::open(&self.shared.events, self.client, ("POST", head.path));
        let reply = {
            let mut taken = pin!(self.shared.take(head, (admitted, began), account.as_deref_mut()));
            poll_fn(|context| self.unless_gone(stream, context, |context| taken.as_mut().poll(context))).await
        };
        let Some(reply) = reply else { return Answered::Last };
        let last = self.standing.is_finishing();
        match reply {
            Reply::Body { status, mut body, session } => {
                let length = body.len();
                let unread = match familiar.who().filter(|_| length > MAX_UNCOUNTED) {
                    Some(who) => who.take(Resource::Unread, length).map(Some),
                    None => Ok(None),
                };
                let _unread = unread.unwrap_or_else(|exhausted| {
                    body = body.dropped(exhausted);
                    None
                });
                if let Some(account) = &mut account {
                    account.answers(status, &body);
                }
                let mut out = WriteBuffer::acquire();
                Written { status, session: session.as_deref(), last, now: began }.body(&body, &mut out);
                if self.send(stream, &out, &body).await && !last { Answered::Whole } else { Answered::Last }
            }
            Reply::Events(events) => {
                let who = familiar.who().cloned();
                Answered::Telling(Telling { events, who, account, last, began, _answering: answering })
            }
        }
    }

    /// Writes events as they occur. Returns whether the stream ended normally and another request may follow.
    async fn tell(&self, stream: &mut TcpStream, telling: Telling) -> bool {
        let Telling { mut events, who, mut account, last, began, _answering } = telling;
        if let Some(account) = &mut account {
            account.answered(200);
        }
        let mut out = WriteBuffer::acquire();
        let mut unread = None;
        Written { status: 200, session: None, last, now: began }.stream(&mut out);
        loop {
            if !self.write(stream, &mut [IoSlice::new(&out)]).await {
                return false;
            }
            drop((out, unread.take()));
            self.standing.call();
            let next = poll_fn(|context| {
                self.unless_gone(stream, context, |context| Pin::new(&mut events).poll_next(context))
            });
            let event = match next.await {
                None => return false,
                Some(None) => return self.write(stream, &mut [IoSlice::new(LAST_CHUNK)]).await && !last,
                Some(Some(event)) => event,
            };
            if let Some(account) = &mut account {
                account.sends(event.len());
            }
            if event.len() > MAX_UNCOUNTED {
                // If the budget of unread bytes is exhausted, the stream ends before this event; the client may resume
                // it.
                let permit = who.as_ref().map(|who| who.take(Resource::Unread, event.len())).transpose();
                let Ok(permit) = permit else { return false };
                unread = permit;
            }
            out = WriteBuffer::acquire();
            write_chunk(&event, &mut out);
        }
    }

    /// Writes a head, and the body if it is too long to have been appended to the head. Returns whether that succeeded.
    async fn send(&self, stream: &mut TcpStream, head: &[u8], body: &Body) -> bool {
        if body.len() <= LONG {
            return self.write(stream, &mut [IoSlice::new(head)]).await;
        }
        let mut pieces: Vec<IoSlice<'_>> = [IoSlice::new(head)].into();
        pieces.extend(body.parts().into_iter().map(|part| IoSlice::new(part.as_bytes())));
        self.write(stream, &mut pieces).await
    }

    /// Writes all pieces, as long as the client reads. Returns whether that succeeded.
    async fn write(&self, stream: &mut TcpStream, mut left: &mut [IoSlice<'_>]) -> bool {
        IoSlice::advance_slices(&mut left, 0);
        poll_fn(|context| {
            while !left.is_empty() {
                let stream = Pin::new(&mut *stream);
                let written = match &*left {
                    [one] => stream.poll_write(context, one),
                    several => stream.poll_write_vectored(context, several),
                };
                match written {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(false),
                    Poll::Ready(Ok(written)) => {
                        IoSlice::advance_slices(&mut left, written);
                        self.standing.write_progressed();
                    }
                    Poll::Pending => {
                        self.standing.write_blocked();
                        // A client that does not read in time is disconnected.
                        return match self.standing.order(context) {
                            Order::BreakOff => Poll::Ready(false),
                            Order::GoOn | Order::Finish => Poll::Pending,
                        };
                    }
                }
            }
            Poll::Ready(true)
        })
        .await
    }

    /// Polls `go_on` if the request was woken. Returns `Ready(None)` if the client has disconnected or the connection
    /// must be closed.
    fn unless_gone<T>(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        go_on: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if self.standing.order(context) == Order::BreakOff {
            return Poll::Ready(None);
        }
        if self.standing.was_called()
            && let Poll::Ready(done) = go_on(&mut Context::from_waker(&self.waker))
        {
            return Poll::Ready(Some(done));
        }
        // Bytes that arrive meanwhile belong to the next request and are not consumed.
        match stream.poll_peek(context, &mut ReadBuf::new(&mut [0])) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(None),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The result of handling a request.
enum Answered {
    /// The request must be handled by hyper.
    Not,
    /// The response was written; another request may follow.
    Whole,
    /// The response is a stream of events.
    Telling(Telling),
    /// The connection ends.
    Last,
}

/// A stream of events that is the response to a request.
struct Telling {
    events: Events,
    who: Option<Principal>,
    account: Option<Box<RequestRecord>>,
    /// Whether the connection ends after the stream.
    last: bool,
    began: Instant,
    _answering: Answering,
}
