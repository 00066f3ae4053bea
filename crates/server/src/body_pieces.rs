//! A response body of several pieces with a known length, so that a long piece need not be copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

struct Pieces(std::vec::IntoIter<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Combines the pieces into one body.
pub(crate) fn body(mut pieces: Vec<Bytes>) -> Body {
    match pieces.len() {
        0 => Body::empty(),
        1 => Body::from(pieces.remove(0)),
        _ => Body::new(Pieces(pieces.into_iter())),
    }
}
