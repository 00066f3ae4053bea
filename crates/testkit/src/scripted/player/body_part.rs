//! The parts in which the body of an HTTP response is sent.

use bytes::Bytes;

/// A step of the body.
#[derive(Debug)]
pub(super) enum Part {
    Data(Bytes),
    /// Aborts the connection.
    Cut,
}
