//! Sends a body in the scripted pieces and with the scripted end, and detects a disconnected client.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::ServerState;
use super::script::{Ending, Pacing};

/// Counts a disconnect if it is dropped before the response is complete.
#[derive(Debug)]
pub(super) struct Guard {
    server_state: Option<Arc<ServerState>>,
}

impl Guard {
    pub(super) fn new(server_state: Arc<ServerState>) -> Self {
        Self { server_state: Some(server_state) }
    }

    /// Marks the response as complete.
    pub(super) fn complete(mut self) {
        self.server_state = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(server_state) = self.server_state.take() {
            server_state.counters.send_modify(|counters| counters.disconnected += 1);
        }
    }
}

/// A step of sending a body.
enum Part {
    Bytes(Bytes),
    Wait(std::time::Duration),
    Break,
    Silence,
}

pub(super) fn deliver(body: String, pacing: Pacing, ending: Ending, guard: Guard) -> Body {
    let content = body.into_bytes();
    let (length, last) = match ending {
        Ending::Whole => (content.len(), None),
        Ending::CutAfter(bytes) => (bytes, Some(Part::Break)),
        Ending::EndAfter(bytes) => (bytes, None),
        Ending::SilentAfter(bytes) => (bytes, Some(Part::Silence)),
    };
    let content = Bytes::from(content[..length.min(content.len())].to_vec());
    let mut parts = pieces(&content, pacing);
    parts.extend(last);
    let state = (parts.into_iter(), Some(guard));
    let parts = stream::unfold(state, |(mut parts, mut guard)| async move {
        loop {
            match parts.next() {
                Some(Part::Bytes(bytes)) => return Some((Ok(bytes), (parts, guard))),
                Some(Part::Wait(pause)) => tokio::time::sleep(pause).await,
                Some(Part::Break) => {
                    guard.take()?.complete();
                    // The previous pieces must be flushed first.
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    return Some((Err(io::Error::other("cut off on purpose")), (parts, guard)));
                }
                Some(Part::Silence) => std::future::pending::<Infallible>().await.into_never(),
                None => {
                    if let Some(guard) = guard.take() {
                        guard.complete();
                    }
                    return None;
                }
            }
        }
    });
    Body::from_stream(parts.boxed())
}

trait Never {
    fn into_never(self);
}

impl Never for Infallible {
    fn into_never(self) {
        match self {}
    }
}

fn pieces(content: &Bytes, pacing: Pacing) -> Vec<Part> {
    match pacing {
        Pacing::AtOnce => vec![Part::Bytes(content.clone())],
        Pacing::SplitAt(at) => {
            let at = at.min(content.len());
            vec![Part::Bytes(content.slice(..at)), Part::Bytes(content.slice(at..))]
        }
        Pacing::EveryByte => (0..content.len()).map(|at| Part::Bytes(content.slice(at..=at))).collect(),
        Pacing::Delayed(pause) => {
            let lines = content.split_inclusive(|byte| *byte == b'\n');
            lines.flat_map(|line| [Part::Wait(pause), Part::Bytes(Bytes::copy_from_slice(line))]).collect()
        }
    }
}
