//! Receives the body of a request, up to a maximum length. A single piece is used without copying. A long message counts
//! towards the upload budget of its principal until the last reference to it is dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body::Frame;
use toolhub_mcp_gateway::{BudgetPermit, BudgetedResource, PrincipalHandle, QuotaExceeded};

use crate::connection::{ActiveRequest, BODY_TIMEOUT};

/// Messages up to this length do not count towards the budget.
pub(crate) const MAX_UNCOUNTED: usize = 64 << 10;
/// The budget is taken in steps of this many bytes.
const BUDGET_STEP_BYTES: usize = 64 << 10;
/// Maximum time without new bytes of an incomplete message.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Why a message was not received.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It exceeds the maximum length.
    TooLong,
    /// The connection failed.
    Broken,
    /// It did not arrive in time.
    TimedOut,
    /// The upload budget of its principal is exhausted.
    OverBudget(QuotaExceeded),
}

/// Bytes and their share of a budget.
struct CountedBytes {
    bytes: Bytes,
    _permit: BudgetPermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns bytes that count towards a budget until the last slice of them is dropped.
pub(crate) fn budgeted_bytes(bytes: Bytes, permit: BudgetPermit) -> Bytes {
    Bytes::from_owner(CountedBytes { bytes, _permit: permit })
}

/// Receives a body of at most `max_bytes` bytes. On error the rest stays in `body`.
pub(crate) async fn receive(
    body: &mut Body,
    max_bytes: usize,
    principal: &PrincipalHandle,
    active_request: &ActiveRequest,
) -> Result<Bytes, BodyError> {
    let deadline = Instant::now() + BODY_TIMEOUT;
    let (mut first, mut all, mut budget) =
        (Bytes::new(), BytesMut::new(), UploadBudget { principal, permit: None, taken: 0 });
    while let Some(frame) = next(body, deadline, active_request).await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > max_bytes {
            return Err(BodyError::TooLong);
        }
        budget.reserve(length)?;
        let is_incomplete = !body.is_end_stream();
        if is_incomplete {
            budget.reserve_while_incomplete(length)?;
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
    let full_body = if all.is_empty() { first } else { all.freeze() };
    Ok(match budget.permit {
        Some(permit) => budgeted_bytes(full_body, permit),
        None => full_body,
    })
}

/// Returns the next frame. Most bodies arrive together with their head and need no timer.
async fn next(
    body: &mut Body,
    deadline: Instant,
    active_request: &ActiveRequest,
) -> Result<Option<Frame<Bytes>>, BodyError> {
    let mut next_frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    let frame = match (&mut next_frame).now_or_never() {
        Some(frame) => frame,
        None => {
            active_request.body_pending();
            let timeout = deadline.saturating_duration_since(Instant::now()).min(MAX_PAUSE);
            let frame = Box::pin(tokio::time::timeout(timeout, next_frame)).await;
            active_request.body_received();
            frame.map_err(|_| BodyError::TimedOut)?
        }
    };
    frame.transpose().map_err(|_| BodyError::Broken)
}

/// The share of the budget that a message holds while it grows.
struct UploadBudget<'a> {
    principal: &'a PrincipalHandle,
    permit: Option<BudgetPermit>,
    taken: usize,
}

impl UploadBudget<'_> {
    /// Reserves budget for an incomplete message. Short ones count as well while incomplete, as a client may hold many of
    /// them open.
    fn reserve_while_incomplete(&mut self, length: usize) -> Result<(), BodyError> {
        if length > MAX_UNCOUNTED {
            return Ok(());
        }
        self.take(length)
    }

    /// Reserves budget for a message of that length.
    fn reserve(&mut self, length: usize) -> Result<(), BodyError> {
        if length <= MAX_UNCOUNTED.max(self.taken) {
            return Ok(());
        }
        let (limit, needed) =
            (self.principal.limits().upload_bytes, length.next_multiple_of(BUDGET_STEP_BYTES));
        // The last step does not exceed the limit.
        self.take(if needed > limit { length } else { needed })
    }

    fn take(&mut self, needed: usize) -> Result<(), BodyError> {
        let more = needed.saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        match &mut self.permit {
            Some(permit) => permit.grow(more).map_err(BodyError::OverBudget)?,
            permit => {
                *permit =
                    Some(self.principal.take(BudgetedResource::Upload, more).map_err(BodyError::OverBudget)?);
            }
        }
        self.taken = needed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::stream;
    use toolhub_mcp_gateway::{BudgetLimits, PrincipalTable};

    use super::*;
    use crate::connection::{Connections, Timeouts};

    async fn read_as(
        principal: &PrincipalHandle,
        pieces: &[&[u8]],
        max_bytes: usize,
    ) -> Result<Bytes, BodyError> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
        let second = Duration::from_secs(1);
        let connections = Arc::new(Connections::new(Timeouts { header: second, write: second }));
        let guard = connections.register([127, 0, 0, 1].into());
        let mut body = Body::from_stream(stream::iter(pieces));
        receive(&mut body, max_bytes, principal, &guard.state.active_request()).await
    }

    async fn read(pieces: &[&str], max_bytes: usize) -> Option<Bytes> {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        read_as(&PrincipalHandle::new(toolhub_core::Principal::of_key("ann")), &pieces, max_bytes).await.ok()
    }

    #[tokio::test]
    async fn joins_body_pieces_up_to_a_limit() {
        assert_eq!(read(&[], 5).await.unwrap(), "");
        assert_eq!(read(&["hello"], 5).await.unwrap(), "hello");
        assert_eq!(read(&["he", "l", "", "lo"], 5).await.unwrap(), "hello");
        assert!(read(&["hello", "!"], 5).await.is_none());
        assert!(read(&["hello!"], 5).await.is_none());
    }

    #[tokio::test]
    async fn long_bodies_count_until_the_last_slice_is_dropped() {
        let principals =
            PrincipalTable::new(BudgetLimits { upload_bytes: 1 << 20, ..BudgetLimits::default() });
        let (ann, bob) = (
            principals.of(&toolhub_core::Principal::of_key("ann").into()),
            principals.of(&toolhub_core::Principal::of_key("bob").into()),
        );
        let long = vec![b'x'; 700 << 10];
        let first = read_as(&ann, &[&long[..1_000], &long[1_000..]], 4 << 20).await.unwrap();
        let part = first.slice(5..10);
        drop(first);
        assert!(ann.used(BudgetedResource::Upload) >= 700 << 10, "a part of it is still there");
        assert!(matches!(read_as(&ann, &[&long], 4 << 20).await, Err(BodyError::OverBudget(_))));
        assert!(read_as(&ann, &[&long[..MAX_UNCOUNTED]], 4 << 20).await.is_ok());
        assert!(read_as(&bob, &[&long], 4 << 20).await.is_ok());
        drop(part);
        assert_eq!(ann.used(BudgetedResource::Upload), 0);
        assert!(read_as(&ann, &[&long], 4 << 20).await.is_ok());
    }
}
