//! The fast path: serves the `POST /mcp` requests that nearly all clients send with a minimal HTTP/1.1 implementation.
//! Any other request is passed to hyper, together with all bytes read so far.

mod admission;
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
use toolhub_mcp_gateway::{BudgetedResource, HttpReply, PrincipalHandle, ResponseBody, SseEvents};

use self::admission::{ConnectionIdentity, FastPathResult, profile_of};
use self::head::{FastPathRequest, MissingPart, ParseOutcome, ParsedHead};
use self::written::{MAX_COPIED_BODY_BYTES, ResponseHead};
use crate::access::AccessRequest;
use crate::body::MAX_UNCOUNTED;
use crate::connection::{ActiveRequest, ConnectionCommand, ConnectionState};
use crate::io_threads::ConnectionAffinity;
use crate::request_record::RequestRecord;
use crate::revocation::until_revoked;
use crate::shared::HttpServerState;

/// How many bytes are read at a time once a message is longer than this.
const READ_CHUNK_BYTES: usize = 4 << 10;
/// Maximum size of a message whose body is incomplete on the fast path; a longer one is passed to hyper. Most messages arrive
/// in one piece.
const MAX_PARTIAL_BYTES: usize = 8 << 10;

/// The response to a client that did not send a complete message in time.
const TIMEOUT_RESPONSE: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 35\r\n\
    connection: close\r\n\r\nthe message did not arrive in time\n";

/// The state in which the fast path leaves a connection.
pub(crate) enum FastPathExit<S = TcpStream> {
    /// The connection is closed.
    Closed,
    /// hyper continues; these bytes have already been read.
    Hyper(S, Vec<u8>),
    /// The fast path continues on another runtime.
    OtherRuntime(S),
}

impl<S> FastPathExit<S> {
    /// Converts the stream into a form that another runtime can take. If that fails, the connection is closed.
    pub(crate) fn with<T>(self, convert: impl FnOnce(S) -> io::Result<T>) -> FastPathExit<T> {
        match self {
            Self::Closed => FastPathExit::Closed,
            Self::Hyper(stream, before) => {
                convert(stream).map_or(FastPathExit::Closed, |stream| FastPathExit::Hyper(stream, before))
            }
            Self::OtherRuntime(stream) => {
                convert(stream).map_or(FastPathExit::Closed, FastPathExit::OtherRuntime)
            }
        }
    }
}

/// A connection on the fast path.
pub(crate) struct FastPathConnection<'a> {
    pub(crate) shared: &'a Arc<HttpServerState>,
    pub(crate) client: SocketAddr,
    pub(crate) state: &'a Arc<ConnectionState>,
    /// Wakes the connection task on behalf of the request in progress.
    pub(crate) waker: Waker,
}

impl FastPathConnection<'_> {
    /// Serves requests until one needs hyper, the connection ends, or it should move to another runtime.
    pub(crate) async fn serve(
        &self,
        mut stream: TcpStream,
        mut affinity: ConnectionAffinity,
    ) -> FastPathExit {
        let (mut read, mut identity) = (BytesMut::new(), ConnectionIdentity::default());
        let mut cached: Option<ParsedHead> = None;
        loop {
            let found = match read.is_empty() {
                true => ParseOutcome::Incomplete(MissingPart::Head),
                false => ParsedHead::find(&read, &mut cached),
            };
            let lengths = match found {
                ParseOutcome::Complete(lengths) => lengths,
                ParseOutcome::Unsupported => return FastPathExit::Hyper(stream, read.into()),
                ParseOutcome::Incomplete(missing) => {
                    // On the hyper path the buffered bytes count towards the body budget.
                    if missing == MissingPart::Body && read.len() > MAX_PARTIAL_BYTES {
                        return FastPathExit::Hyper(stream, read.into());
                    }
                    match missing {
                        MissingPart::Head if read.is_empty() => {}
                        MissingPart::Head => self.state.record_read(),
                        MissingPart::Body => self.state.record_head(),
                    }
                    if !self.receive(&mut stream, &mut read, missing).await {
                        return FastPathExit::Closed;
                    }
                    continue;
                }
            };
            let all = lengths.all() == read.len();
            let message = if all { take(&mut read) } else { read.split_to(lengths.all()) }.freeze();
            let Some(head) = cached.as_ref().map(|cached| cached.head(&message, lengths)) else {
                return FastPathExit::Hyper(stream, [&message[..], &read].concat());
            };
            match self.answer(&mut stream, &head, &mut identity).await {
                ResponseOutcome::NeedsHyper => {
                    return FastPathExit::Hyper(stream, [&message[..], &read].concat());
                }
                ResponseOutcome::Close => return FastPathExit::Closed,
                ResponseOutcome::Complete => {}
                ResponseOutcome::EventStream(event_stream) => {
                    // The stream may last for hours, and the request is no longer needed.
                    drop((head, message));
                    if !self.write_events(&mut stream, event_stream).await {
                        return FastPathExit::Closed;
                    }
                }
            }
            ParsedHead::admit(&mut cached);
            if all && affinity.may_move(|| self.shared.in_flight()) {
                return FastPathExit::OtherRuntime(stream);
            }
        }
    }

    /// Reads more bytes. Returns false if the connection has ended or timed out.
    async fn receive(&self, stream: &mut TcpStream, read: &mut BytesMut, missing: MissingPart) -> bool {
        let (nothing, short) = (read.is_empty(), read.len() < READ_CHUNK_BYTES);
        if !short {
            read.reserve(READ_CHUNK_BYTES);
        }
        let mut reading = |context: &mut Context<'_>| {
            let stream = Pin::new(&mut *stream);
            match short {
                // Most messages arrive in one or two pieces.
                true => {
                    let (count, piece) = with_read_buffer(|buffer| poll_read_buf(stream, context, buffer));
                    read.unsplit(piece);
                    count
                }
                false => poll_read_buf(stream, context, read),
            }
        };
        let count = poll_fn(|context| match self.state.command(context) {
            ConnectionCommand::Abort => Poll::Ready(None),
            ConnectionCommand::Finish if nothing => Poll::Ready(Some(0)),
            ConnectionCommand::Continue | ConnectionCommand::Finish => {
                reading(context).map(|count| Some(count.unwrap_or_default()))
            }
        })
        .await;
        if count.is_none() && missing == MissingPart::Body {
            let _ = stream.try_write(TIMEOUT_RESPONSE);
        }
        count.is_some_and(|count| count > 0)
    }

    async fn answer(
        &self,
        stream: &mut TcpStream,
        head: &FastPathRequest<'_>,
        identity: &mut ConnectionIdentity,
    ) -> ResponseOutcome {
        let began = Instant::now();
        let mut admitted = self.shared.admit(head, self.client, began, identity);
        if admitted.is_none() && self.shared.verify(head).await {
            admitted = self.shared.admit(head, self.client, began, identity);
        }
        let Some(admitted) = admitted else { return ResponseOutcome::NeedsHyper };
        let active_request = self.state.active_request();
        let mut record = RequestRecord::open(&self.shared.events, self.client, "POST", head.path);
        let reply = {
            let mut taken = pin!(self.shared.take(head, admitted, began, record.as_deref_mut()));
            poll_fn(|context| self.poll_request(stream, context, |context| taken.as_mut().poll(context)))
                .await
        };
        let reply = match reply {
            None => return ResponseOutcome::Close,
            Some(FastPathResult::NeedsHyper) => return ResponseOutcome::NeedsHyper,
            Some(FastPathResult::Reply(reply)) => reply,
        };
        let last = self.state.is_finishing();
        match reply {
            HttpReply::Body { status, mut body, session } => {
                let length = body.len();
                let unread = match identity.principal().filter(|_| length > MAX_UNCOUNTED) {
                    Some(principal) => principal.take(BudgetedResource::Unread, length).map(Some),
                    None => Ok(None),
                };
                let _unread = unread.unwrap_or_else(|exceeded| {
                    body = body.dropped(exceeded);
                    None
                });
                if let Some(record) = &mut record {
                    record.record_response(status, &body);
                }
                let mut out = WriteBuffer::acquire();
                ResponseHead { status, session: session.as_deref(), last, now: began }.body(&body, &mut out);
                if self.send(stream, &out, &body).await && !last {
                    ResponseOutcome::Complete
                } else {
                    ResponseOutcome::Close
                }
            }
            HttpReply::Events(events) => {
                let principal = identity.principal().cloned();
                let events = match &principal {
                    Some(principal) => {
                        let profile = profile_of(head).flatten();
                        let request = AccessRequest { headers: head, target: None, profile };
                        let access = &self.shared.access;
                        let credential = access.stream_credential(&request, principal, identity.recheck());
                        until_revoked(events, credential)
                    }
                    None => events,
                };
                ResponseOutcome::EventStream(EventStream {
                    events,
                    principal,
                    record,
                    last,
                    began,
                    _active_request: active_request,
                })
            }
        }
    }

    /// Writes events as they occur. Returns whether the stream ended normally and another request may follow.
    async fn write_events(&self, stream: &mut TcpStream, event_stream: EventStream) -> bool {
        let EventStream { mut events, principal, mut record, last, began, _active_request } = event_stream;
        if let Some(record) = &mut record {
            record.record_status(200);
        }
        let mut out = WriteBuffer::acquire();
        let mut unread = None;
        ResponseHead { status: 200, session: None, last, now: began }.stream(&mut out);
        loop {
            if !self.write(stream, &mut [IoSlice::new(&out)]).await {
                return false;
            }
            drop((out, unread.take()));
            self.state.mark_woken();
            let next = poll_fn(|context| {
                self.poll_request(stream, context, |context| Pin::new(&mut events).poll_next(context))
            });
            let event = match next.await {
                None => return false,
                Some(None) => return self.write(stream, &mut [IoSlice::new(LAST_CHUNK)]).await && !last,
                Some(Some(event)) => event,
            };
            if let Some(record) = &mut record {
                record.add_bytes(event.len());
            }
            if event.len() > MAX_UNCOUNTED {
                // If the budget of unread bytes is exhausted, the stream ends before this event; the client may resume
                // it.
                let permit = principal
                    .as_ref()
                    .map(|principal| principal.take(BudgetedResource::Unread, event.len()))
                    .transpose();
                let Ok(permit) = permit else { return false };
                unread = permit;
            }
            out = WriteBuffer::acquire();
            write_chunk(&event, &mut out);
        }
    }

    /// Writes a head, and the body if it is too long to have been appended to the head. Returns whether that succeeded.
    async fn send(&self, stream: &mut TcpStream, head: &[u8], body: &ResponseBody) -> bool {
        if body.len() <= MAX_COPIED_BODY_BYTES {
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
                        self.state.write_progressed();
                    }
                    Poll::Pending => {
                        self.state.write_blocked();
                        // A client that does not read in time is disconnected.
                        return match self.state.command(context) {
                            ConnectionCommand::Abort => Poll::Ready(false),
                            ConnectionCommand::Continue | ConnectionCommand::Finish => Poll::Pending,
                        };
                    }
                }
            }
            Poll::Ready(true)
        })
        .await
    }

    /// Polls `poll_work` if the request was woken. Returns `Ready(None)` if the client has disconnected or the connection
    /// must be closed.
    fn poll_request<T>(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        poll_work: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if self.state.command(context) == ConnectionCommand::Abort {
            return Poll::Ready(None);
        }
        if self.state.take_woken()
            && let Poll::Ready(done) = poll_work(&mut Context::from_waker(&self.waker))
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
enum ResponseOutcome {
    /// The request must be handled by hyper.
    NeedsHyper,
    /// The response was written; another request may follow.
    Complete,
    /// The response is a stream of events.
    EventStream(EventStream),
    /// The connection ends.
    Close,
}

/// A stream of events that is the response to a request.
struct EventStream {
    events: SseEvents,
    principal: Option<PrincipalHandle>,
    record: Option<Box<RequestRecord>>,
    /// Whether the connection ends after the stream.
    last: bool,
    began: Instant,
    _active_request: ActiveRequest,
}
