//! Server-sent events: which parts of the hub have changed. The events carry no data, so that a page reads what it may see
//! through its own routes. A client that reconnects with `Last-Event-ID` learns what changed in between.

use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolhub::Hub;
use toolhub_core::call_log::CallQuery;
use toolhub_core::lang::LocalizedText;

use crate::problem::Problem;

/// How often changes are looked for while a stream is open.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a comment is sent, so that proxies keep the stream open and a lost client is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Maximum number of open streams.
const MAX_STREAMS: usize = 1_000;

/// A digest of each part of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Versions([u64; 3]);

/// The parts, in the order of [`Versions`].
const TOPICS: [&str; 3] = ["servers", "calls", "waiting"];

impl Versions {
    fn id(self) -> String {
        let Self([servers, calls, waiting]) = self;
        format!("{servers:x}-{calls:x}-{waiting:x}")
    }

    /// Parses the id of an event; `None` if it is not from here.
    fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('-').map(|part| u64::from_str_radix(part, 16).ok());
        let versions = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Self(versions))
    }

    fn changed_since(self, before: Self) -> Vec<&'static str> {
        let pairs = self.0.iter().zip(before.0).zip(TOPICS);
        pairs.filter(|((now, before), _)| **now != *before).map(|(_, topic)| topic).collect()
    }
}

/// Finds changes while streams are open.
pub(crate) struct EventSource {
    versions: watch::Sender<Versions>,
    streams: Arc<AtomicUsize>,
    closed: CancellationToken,
}

impl Default for EventSource {
    fn default() -> Self {
        Self {
            versions: watch::Sender::new(Versions::default()),
            streams: Arc::default(),
            closed: CancellationToken::new(),
        }
    }
}

/// Counts a stream while it is open.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl EventSource {
    /// Looks for changes while it is polled and streams are open.
    pub(crate) async fn follow(&self, hub: &Hub) {
        loop {
            if self.versions.receiver_count() > 0 {
                let now = versions(hub).await;
                self.versions.send_if_modified(|before| std::mem::replace(before, now) != now);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    fn register(&self) -> Result<OpenStream, Problem> {
        let guard = OpenStream(Arc::clone(&self.streams));
        if self.streams.fetch_add(1, Ordering::AcqRel) < MAX_STREAMS {
            return Ok(guard);
        }
        let detail = LocalizedText::new("too many event streams are open", "打开的事件流过多");
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail))
    }

    /// Opens a stream. `last` is the id of the last event that the client has received.
    pub(crate) async fn open(&self, hub: &Hub, last: Option<&str>) -> Result<Response<Body>, Problem> {
        let guard = self.register()?;
        let current = versions(hub).await;
        let before = last.and_then(Versions::parse);
        let first = match last {
            // The first event gives the client an id to resume from.
            None => event(current, &[]),
            Some(_) => {
                event(current, &before.map_or(TOPICS.to_vec(), |before| current.changed_since(before)))
            }
        };
        let (receiver, opening) = (self.versions.subscribe(), format!("retry: 2000\n\n{first}"));
        let state = StreamState { receiver, sent: current, closed: self.closed.clone(), _guard: guard };
        let later = stream::unfold(state, |mut state| async move {
            let chunk = state.next().await?;
            Some((Ok::<_, Infallible>(chunk), state))
        });
        let chunks = stream::StreamExt::chain(stream::iter([Ok(Bytes::from(opening))]), later);
        let mut response = Response::new(Body::from_stream(chunks));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        // Some reverse proxies buffer responses otherwise.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }
}

/// Digests of the current state. Equal states have equal digests in one process.
async fn versions(hub: &Hub) -> Versions {
    let mut servers = DefaultHasher::new();
    hub.server_updates().borrow().hash(&mut servers);
    for view in hub.servers() {
        view.spec.id.as_str().hash(&mut servers);
        view.restarts.hash(&mut servers);
        view.stderr.hash(&mut servers);
        std::mem::discriminant(&view.state).hash(&mut servers);
    }
    let newest = hub.calls(CallQuery { limit: Some(1), ..CallQuery::default() }).await;
    let mut calls = DefaultHasher::new();
    for record in newest.unwrap_or_default() {
        record.start.record.as_str().hash(&mut calls);
        record.status.name().hash(&mut calls);
    }
    let mut waiting = DefaultHasher::new();
    for call in hub.held_calls().list().unwrap_or_default() {
        call.id.hash(&mut waiting);
        call.state.name().hash(&mut waiting);
    }
    Versions([servers.finish(), calls.finish(), waiting.finish()])
}

struct StreamState {
    receiver: watch::Receiver<Versions>,
    sent: Versions,
    closed: CancellationToken,
    _guard: OpenStream,
}

impl StreamState {
    /// The next event or heartbeat; `None` when the hub ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changed = tokio::select! {
                () = self.closed.cancelled() => return None,
                changed = tokio::time::timeout(HEARTBEAT, self.receiver.changed()) => changed,
            };
            match changed {
                Err(_) => return Some(Bytes::from_static(b": \n\n")),
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {}
            }
            let now = *self.receiver.borrow_and_update();
            let changed = now.changed_since(std::mem::replace(&mut self.sent, now));
            if !changed.is_empty() {
                return Some(Bytes::from(event(now, &changed)));
            }
        }
    }
}

fn event(versions: Versions, changed: &[&str]) -> String {
    let topics = serde_json::to_string(changed).unwrap_or_default();
    format!("id: {}\nevent: change\ndata: {{\"topics\":{topics}}}\n\n", versions.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_what_changed() {
        let (before, now) = (Versions([1, 2, u64::MAX]), Versions([1, 3, 4]));
        assert_eq!(Versions::parse(&before.id()), Some(before));
        assert_eq!(now.changed_since(before), ["calls", "waiting"]);
        assert_eq!(now.changed_since(now), [""; 0]);
        for id in ["", "1-2", "1-2-3-4", "x-y-z", "1-2-11111111111111111"] {
            assert_eq!(Versions::parse(id), None, "{id}");
        }
        assert_eq!(
            event(Versions([1, 2, 3]), &["calls"]),
            "id: 1-2-3\nevent: change\ndata: {\"topics\":[\"calls\"]}\n\n"
        );
    }
}
