//! Server-sent events: which parts of the hub have changed. The events carry no data, so that a page reads what it may see
//! through its own routes. A client that reconnects with `Last-Event-ID` learns what changed in between.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolhub::Hub;
use toolhub_core::BoxFuture;
use toolhub_core::call_log::CallQuery;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_gateway::{BudgetPermit, BudgetedResource, PrincipalHandle};

use crate::problem::Problem;

/// How often changes are looked for while a stream is open.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a comment is sent, so that proxies keep the stream open and a lost client is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the credential of a stream, or of a running call, is checked.
const LIVE_INTERVAL: Duration = Duration::from_millis(500);

/// Returns whether the credential of a stream is still valid.
pub(crate) type IsLive = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// Waits until a credential is not valid any more.
pub(crate) async fn wait_for_revocation(is_live: &IsLive) {
    while is_live().await {
        tokio::time::sleep(LIVE_INTERVAL).await;
    }
}

/// What a stream may show, and for how long.
pub(crate) struct StreamAccess<'a> {
    pub(crate) handle: &'a PrincipalHandle,
    /// Which of [`TOPICS`] the principal may see.
    pub(crate) visible: [bool; 3],
    pub(crate) is_live: IsLive,
}

/// A digest of each part of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Versions([u64; 3]);

/// The parts, in the order of [`Versions`].
const TOPICS: [&str; 3] = ["servers", "calls", "waiting"];

impl Versions {
    fn id(self) -> String {
        let Self([servers, calls, held]) = self;
        format!("{servers:x}-{calls:x}-{held:x}")
    }

    /// Parses the id of an event; `None` if it is not from here.
    fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('-').map(|part| u64::from_str_radix(part, 16).ok());
        let versions = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Self(versions))
    }

    /// The versions of the visible parts.
    fn only(self, visible: [bool; 3]) -> Self {
        let mut parts =
            visible.into_iter().zip(self.0).map(|(visible, version)| if visible { version } else { 0 });
        Self(std::array::from_fn(|_| parts.next().unwrap_or_default()))
    }

    fn changed_since(self, before: Self) -> Vec<&'static str> {
        let pairs = self.0.iter().zip(before.0).zip(TOPICS);
        pairs.filter(|((now, before), _)| **now != *before).map(|(_, topic)| topic).collect()
    }
}

/// Finds changes while streams are open.
pub(crate) struct EventSource {
    versions: watch::Sender<Versions>,
    closed: CancellationToken,
    /// Digests with a random key, so that their contents cannot be guessed.
    hasher: RandomState,
}

impl Default for EventSource {
    fn default() -> Self {
        Self {
            versions: watch::Sender::new(Versions::default()),
            closed: CancellationToken::new(),
            hasher: RandomState::new(),
        }
    }
}

impl EventSource {
    /// Looks for changes while it is polled and streams are open.
    pub(crate) async fn follow(&self, hub: &Hub) {
        loop {
            if self.versions.receiver_count() > 0 {
                let now = self.versions_of(hub).await;
                self.versions.send_if_modified(|before| std::mem::replace(before, now) != now);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// The id of the current state, for streams that are opened later.
    pub(crate) async fn current_id(&self, hub: &Hub, visible: [bool; 3]) -> String {
        self.versions_of(hub).await.only(visible).id()
    }

    /// Digests of the current state. Equal states have equal digests in one process.
    async fn versions_of(&self, hub: &Hub) -> Versions {
        let mut servers = self.hasher.build_hasher();
        hub.server_updates().borrow().hash(&mut servers);
        for view in hub.servers() {
            view.spec.id.as_str().hash(&mut servers);
            view.restarts.hash(&mut servers);
            view.stderr.hash(&mut servers);
            std::mem::discriminant(&view.state).hash(&mut servers);
        }
        let newest = hub.calls(CallQuery { limit: Some(1), ..CallQuery::default() }).await;
        let mut calls = self.hasher.build_hasher();
        for record in newest.unwrap_or_default() {
            record.start.record.as_str().hash(&mut calls);
            record.status.name().hash(&mut calls);
        }
        let mut held = self.hasher.build_hasher();
        for call in hub.held_calls().list().await.unwrap_or_default() {
            call.id.hash(&mut held);
            call.state.name().hash(&mut held);
        }
        Versions([servers.finish(), calls.finish(), held.finish()])
    }

    /// Opens a stream. `last` is the id of the last event that the client has received.
    pub(crate) async fn open(
        &self,
        hub: &Hub,
        last: Option<&str>,
        access: StreamAccess<'_>,
    ) -> Result<Response<Body>, Problem> {
        let StreamAccess { handle, visible, is_live } = access;
        let guard = handle.take(BudgetedResource::Streams, 1).map_err(|_| too_many_streams())?;
        // Before the state is read: a later change is announced.
        let receiver = self.versions.subscribe();
        let current = self.versions_of(hub).await.only(visible);
        let before = last.and_then(Versions::parse).map(|before| before.only(visible));
        let first = match last {
            // The first event gives the client an id to resume from.
            None => event(current, &[]),
            Some(_) => {
                event(current, &before.map_or(TOPICS.to_vec(), |before| current.changed_since(before)))
            }
        };
        let opening = format!("retry: 2000\n\n{first}");
        let state = StreamState {
            receiver,
            sent: current,
            closed: self.closed.clone(),
            visible,
            is_live,
            _guard: guard,
        };
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

pub(crate) fn too_many_streams() -> Problem {
    let detail = LocalizedText::new(
        "too many event streams are open (`streams` in `[serve.limits]`)",
        "打开的事件流过多（`[serve.limits]` 的 `streams`）",
    );
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-streams", detail)
}

struct StreamState {
    receiver: watch::Receiver<Versions>,
    sent: Versions,
    closed: CancellationToken,
    visible: [bool; 3],
    is_live: IsLive,
    _guard: BudgetPermit,
}

impl StreamState {
    /// The next event or heartbeat; `None` when the hub or the credential ends.
    async fn next(&mut self) -> Option<Bytes> {
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        let mut check = tokio::time::interval(LIVE_INTERVAL);
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return None,
                _ = heartbeat.tick() => return Some(Bytes::from_static(b": \n\n")),
                _ = check.tick() => {
                    let is_live = tokio::select! {
                        () = self.closed.cancelled() => false,
                        is_live = (self.is_live)() => is_live,
                    };
                    if !is_live {
                        return None;
                    }
                    continue;
                }
                changed = self.receiver.changed() => changed.ok()?,
            }
            let now = self.receiver.borrow_and_update().only(self.visible);
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
