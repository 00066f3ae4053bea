//! Event streams that outlive their connection: 2025-11-25, basic/transports, "Resumability and Redelivery".

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::{body_part::Part, lock::locked};

/// The streams of this process by number.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<usize, Arc<StreamLog>>>);

impl Streams {
    pub(super) fn open(&self) -> Arc<StreamLog> {
        let mut streams = locked(&self.0);
        let number = streams.len() + 1;
        let log = Arc::new(StreamLog { number, state: watch::Sender::default() });
        streams.insert(number, Arc::clone(&log));
        log
    }

    /// The stream of an event id, and the position to resume at.
    pub(super) fn find(&self, last_event_id: &str) -> Option<(Arc<StreamLog>, usize)> {
        let (stream, event) = last_event_id.split_once('-')?;
        let log = locked(&self.0).get(&stream.parse().ok()?).cloned()?;
        Some((log, event.parse::<usize>().ok()?.checked_add(1)?))
    }
}

/// Everything sent on a stream. The id of an event is `<stream>-<index>`.
#[derive(Debug)]
pub(super) struct StreamLog {
    number: usize,
    state: watch::Sender<StreamLogState>,
}

#[derive(Debug, Default)]
struct StreamLogState {
    sent: Vec<Bytes>,
    /// The index before which each connection was aborted.
    disconnects: Vec<usize>,
    done: bool,
}

impl StreamLog {
    /// The first event has only an id, so that the client can resume even if nothing follows.
    pub(super) fn prime(&self) {
        self.append(|id| format!("id: {id}\nretry: 10\ndata: \n\n"));
    }

    pub(super) fn event(&self, text: &str) {
        self.append(|id| format!("id: {id}\nevent: message\ndata: {text}\n\n"));
    }

    fn append(&self, render: impl Fn(String) -> String) {
        self.state.send_modify(|state| {
            let id = format!("{}-{}", self.number, state.sent.len());
            state.sent.push(render(id).into());
        });
    }

    pub(super) fn raw(&self, bytes: Vec<u8>) {
        self.state.send_modify(|state| state.sent.push(bytes.into()));
    }

    /// Aborts the connections that read this stream now.
    pub(super) fn cut(&self) {
        self.state.send_modify(|state| state.disconnects.push(state.sent.len()));
    }

    pub(super) fn finish(&self) {
        self.state.send_modify(|state| state.done = true);
    }

    /// Copies the stream from this index on to a reader.
    pub(super) fn pump(&self, from: usize, parts: mpsc::Sender<Part>) -> impl Future<Output = ()> + use<> {
        let mut state = self.state.subscribe();
        let disconnects = state.borrow().disconnects.len();
        async move {
            let mut position = from;
            loop {
                let (waiting, cut, done) = {
                    let state = state.borrow_and_update();
                    let cut = state.disconnects.get(disconnects).copied();
                    let end = cut.unwrap_or(state.sent.len());
                    let waiting = state.sent.get(position..end).unwrap_or_default().to_vec();
                    (waiting, cut.is_some(), state.done)
                };
                position += waiting.len();
                for bytes in waiting {
                    if parts.send(Part::Data(bytes)).await.is_err() {
                        return;
                    }
                }
                if cut {
                    _ = parts.send(Part::Cut).await;
                }
                if cut || done || state.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}
