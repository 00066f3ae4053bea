//! Receives the body of a request, up to a maximum length. A single piece is used without copying. A long message counts
//! towards the upload budget of its principal until the last reference to it is dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body::Frame;
use toolhub_mcp_gateway::{Exhausted, Permit, Principal, Resource};

use crate::connection::{ARRIVAL, Answering};

/// Messages up to this length do not count towards the budget.
pub(crate) const MAX_UNCOUNTED: usize = 64 << 10;
/// The budget is taken in steps of this many bytes.
const STEP: usize = 64 << 10;
/// Maximum time without new bytes of an incomplete message.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Why a message was not received.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// It exceeds the maximum length.
    TooLong,
    /// The connection failed.
    Broken,
    /// It did not arrive in time.
    Late,
    /// The upload budget of its principal is exhausted.
    NoRoom(Exhausted),
}

/// Bytes and their share of a budget.
struct Counted {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns bytes that count towards a budget until the last slice of them is dropped.
pub(crate) fn counted(bytes: Bytes, permit: Permit) -> Bytes {
    Bytes::from_owner(Counted { bytes, _permit: permit })
}

/// Receives a body of at most `most` bytes. On error the rest stays in `body`.
pub(crate) async fn receive(
    body: &mut Body,
    most: usize,
    who: &Principal,
    answering: &Answering,
) -> Result<Bytes, Unfit> {
    let deadline = Instant::now() + ARRIVAL;
    let (mut first, mut all, mut room) =
        (Bytes::new(), BytesMut::new(), Room { who, permit: None, taken: 0 });
    while let Some(frame) = next(body, deadline, answering).await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > most {
            return Err(Unfit::TooLong);
        }
        room.hold(length)?;
        let waits = !body.is_end_stream();
        if waits {
            room.hold_while_waiting(length)?;
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    let whole = if all.is_empty() { first } else { all.freeze() };
    Ok(match room.permit {
        Some(permit) => counted(whole, permit),
        None => whole,
    })
}

/// Returns the next frame. Most bodies arrive together with their head and need no timer.
async fn next(
    body: &mut Body,
    deadline: Instant,
    answering: &Answering,
) -> Result<Option<Frame<Bytes>>, Unfit> {
    let mut coming = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    let came = match (&mut coming).now_or_never() {
        Some(came) => came,
        None => {
            answering.arriving();
            let patience = deadline.saturating_duration_since(Instant::now()).min(MAX_PAUSE);
            let came = Box::pin(tokio::time::timeout(patience, coming)).await;
            answering.arrived();
            came.map_err(|_| Unfit::Late)?
        }
    };
    came.transpose().map_err(|_| Unfit::Broken)
}

/// The share of the budget that a message holds while it grows.
struct Room<'a> {
    who: &'a Principal,
    permit: Option<Permit>,
    taken: usize,
}

impl Room<'_> {
    /// Reserves budget for an incomplete message. Short ones count as well while incomplete, as a client may hold many of
    /// them open.
    fn hold_while_waiting(&mut self, length: usize) -> Result<(), Unfit> {
        if length > MAX_UNCOUNTED {
            return Ok(());
        }
        self.take(length)
    }

    /// Reserves budget for a message of that length.
    fn hold(&mut self, length: usize) -> Result<(), Unfit> {
        if length <= MAX_UNCOUNTED.max(self.taken) {
            return Ok(());
        }
        let (limit, wanted) = (self.who.limits().upload_bytes, length.next_multiple_of(STEP));
        // The last step does not exceed the limit.
        self.take(if wanted > limit { length } else { wanted })
    }

    fn take(&mut self, wanted: usize) -> Result<(), Unfit> {
        let more = wanted.saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        match &mut self.permit {
            Some(permit) => permit.grow(more).map_err(Unfit::NoRoom)?,
            permit => *permit = Some(self.who.take(Resource::Upload, more).map_err(Unfit::NoRoom)?),
        }
        self.taken = wanted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::stream;
    use toolhub_mcp_gateway::{Limits, Principals};

    use super::*;
    use crate::connection::{Connections, Timeouts};

    async fn read_as(who: &Principal, pieces: &[&[u8]], most: usize) -> Result<Bytes, Unfit> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
        let second = Duration::from_secs(1);
        let connections = Arc::new(Connections::new(Timeouts { head: second, write: second }));
        let entered = connections.enter([127, 0, 0, 1].into());
        let mut body = Body::from_stream(stream::iter(pieces));
        receive(&mut body, most, who, &entered.standing.answering()).await
    }

    async fn read(pieces: &[&str], most: usize) -> Option<Bytes> {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        read_as(&Principal::new("ann"), &pieces, most).await.ok()
    }

    #[tokio::test]
    async fn pieces_are_put_together_up_to_a_limit() {
        assert_eq!(read(&[], 5).await.unwrap(), "");
        assert_eq!(read(&["hello"], 5).await.unwrap(), "hello");
        assert_eq!(read(&["he", "l", "", "lo"], 5).await.unwrap(), "hello");
        assert!(read(&["hello", "!"], 5).await.is_none());
        assert!(read(&["hello!"], 5).await.is_none());
    }

    #[tokio::test]
    async fn long_messages_count_until_nothing_of_them_is_needed() {
        let principals = Principals::new(Limits { upload_bytes: 1 << 20, ..Limits::default() });
        let (ann, bob) = (principals.named("ann"), principals.named("bob"));
        let long = vec![b'x'; 700 << 10];
        let first = read_as(&ann, &[&long[..1_000], &long[1_000..]], 4 << 20).await.unwrap();
        let part = first.slice(5..10);
        drop(first);
        assert!(ann.used(Resource::Upload) >= 700 << 10, "a part of it is still there");
        assert!(matches!(read_as(&ann, &[&long], 4 << 20).await, Err(Unfit::NoRoom(_))));
        assert!(read_as(&ann, &[&long[..MAX_UNCOUNTED]], 4 << 20).await.is_ok());
        assert!(read_as(&bob, &[&long], 4 << 20).await.is_ok());
        drop(part);
        assert_eq!(ann.used(Resource::Upload), 0);
        assert!(read_as(&ann, &[&long], 4 << 20).await.is_ok());
    }
}
