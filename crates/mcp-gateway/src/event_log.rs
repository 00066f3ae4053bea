//! A stream of events that a legacy client may resume after a disconnect (2025-11-25, transports: resumability).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::budget::{BudgetPermit, BudgetedResource, PrincipalHandle};
use crate::replays::Replay;

/// Maximum number of events kept for resumption.
const MAX_EVENTS: usize = 1_024;
/// Maximum size of the kept events in bytes.
const MAX_EVENT_BYTES: usize = 8 << 20;
/// Events up to this length are kept even if the budget is exhausted: one of them may report the exhaustion.
const MAX_SMALL_EVENT: usize = 4 << 10;
/// Interval between comments on an idle stream.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The comment sent on an idle stream, which clients ignore.
pub(crate) const KEEP_ALIVE_COMMENT: &str = ":\n\n";

#[derive(Debug, Default)]
struct EventLogState {
    events: VecDeque<(u64, String, Option<BudgetPermit>)>,
    bytes: usize,
    count: u64,
    ended: bool,
    /// Whether the events were discarded, so that the stream cannot be resumed.
    discarded: bool,
    /// How many readers have started. Only the latest receives events.
    generation: u64,
    read_until: Option<Instant>,
}

impl EventLogState {
    fn drop_oldest(&mut self) {
        if let Some((_, event, _)) = self.events.pop_front() {
            self.bytes -= event.len();
        }
    }
}

/// Identifies a stream of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamId {
    /// 0 in a session that has not been resumed. A resumed session numbers its streams anew under another epoch, so that
    /// event ids stay unique.
    pub(crate) epoch: u64,
    /// 0 for the stream of messages that belong to no request.
    pub(crate) number: u64,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            0 => write!(f, "{}", self.number),
            epoch => write!(f, "{epoch}-{}", self.number),
        }
    }
}

/// The events of one stream.
#[derive(Debug)]
pub(crate) struct EventLog {
    stream: StreamId,
    /// The principal whose budget the events count towards.
    principal: PrincipalHandle,
    state: Mutex<EventLogState>,
    changed: Notify,
    readers: watch::Sender<usize>,
}

impl EventLog {
    pub(crate) fn new(stream: StreamId, principal: &PrincipalHandle) -> Arc<Self> {
        let (changed, readers) = (Notify::new(), watch::Sender::new(0));
        let log = Self { stream, principal: principal.clone(), state: Mutex::default(), changed, readers };
        let log = Arc::new(log);
        let replay = Arc::downgrade(&log) as Weak<dyn Replay>;
        principal.may_discard(replay);
        log
    }

    fn state(&self) -> MutexGuard<'_, EventLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message; an empty one only conveys an event id. Returns false if the budget of the principal has no room
    /// for it.
    pub(crate) fn push(&self, text: &str) -> bool {
        let permit = match self.permit(text.len()) {
            Some(permit) => Some(permit),
            None if text.len() <= MAX_SMALL_EVENT => None,
            None => return false,
        };
        let mut state = self.state();
        let count = state.count + 1;
        let event = format_event(Some(&format!("{}-{count}", self.stream)), text);
        state.count = count;
        state.bytes += event.len();
        state.events.push_back((count, event, permit));
        while state.events.len() > 1 && (state.events.len() > MAX_EVENTS || state.bytes > MAX_EVENT_BYTES) {
            state.drop_oldest();
        }
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Takes budget for an event. If necessary, discards the events of ended streams, the oldest first, and then older
    /// events of this stream.
    fn permit(&self, length: usize) -> Option<BudgetPermit> {
        let take = || self.principal.take(BudgetedResource::Replay, length).ok();
        if let Some(permit) = take() {
            return Some(permit);
        }
        if length > self.principal.limits().replay_bytes {
            return None;
        }
        self.principal.discard_replays(length);
        loop {
            if let Some(permit) = take() {
                return Some(permit);
            }
            let mut state = self.state();
            if state.events.is_empty() {
                return None;
            }
            state.drop_oldest();
        }
    }

    /// Returns whether there is, or may still be, an event after `after`.
    pub(crate) fn can_resume(&self, after: u64) -> bool {
        let state = self.state();
        !state.discarded && (!state.ended || state.count > after)
    }

    /// Marks the stream as ended.
    pub(crate) fn finish(&self) {
        self.state().ended = true;
        self.changed.notify_waiters();
    }

    /// Returns for how long there has been no reader; `None` if there never was one.
    pub(crate) fn unread_for(&self) -> Option<Duration> {
        if *self.readers.borrow() > 0 {
            return Some(Duration::ZERO);
        }
        self.state().read_until.map(|until| until.elapsed())
    }

    /// Waits until there has been no reader for `grace`.
    pub(crate) async fn wait_abandoned(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        loop {
            let _ = readers.wait_for(|count| *count == 0).await;
            let back = readers.wait_for(|count| *count > 0);
            if tokio::time::timeout(grace, back).await.is_err() {
                return;
            }
        }
    }

    /// Returns the number of events so far.
    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// Returns the events after `after`, as they occur. Ends the stream of an earlier reader, as each message is sent on
    /// one stream only (2025-11-25, transports: multiple connections).
    pub(crate) fn read(self: &Arc<Self>, after: u64) -> impl Stream<Item = String> + Send + 'static {
        let own_generation = {
            let mut state = self.state();
            state.generation += 1;
            state.generation
        };
        self.changed.notify_waiters();
        let reader = Reader::new(Arc::clone(self));
        stream::unfold((reader, after), move |(reader, after)| async move {
            let log = Arc::clone(&reader.log);
            loop {
                let change = log.changed.notified();
                tokio::pin!(change);
                change.as_mut().enable();
                let (next, ended) = {
                    let state = log.state();
                    if state.generation != own_generation {
                        return None;
                    }
                    let next = state.events.iter().find(|(count, ..)| *count > after);
                    (next.map(|(count, event, _)| (*count, event.clone())), state.ended)
                };
                match next {
                    Some((count, event)) => return Some((event, (reader, count))),
                    None if ended => return None,
                    None => {
                        if tokio::time::timeout(KEEP_ALIVE, change).await.is_err() {
                            return Some((KEEP_ALIVE_COMMENT.to_owned(), (reader, after)));
                        }
                    }
                }
            }
        })
    }
}

impl Replay for EventLog {
    fn is_ended(&self) -> bool {
        self.state().ended
    }

    fn discard(&self) {
        let mut state = self.state();
        state.discarded = true;
        state.bytes = 0;
        let discarded = std::mem::take(&mut state.events);
        drop(state);
        drop(discarded);
    }

    fn is_discarded(&self) -> bool {
        self.state().discarded
    }
}

/// An active reader.
struct Reader {
    log: Arc<EventLog>,
}

impl Reader {
    fn new(log: Arc<EventLog>) -> Self {
        log.readers.send_modify(|count| *count += 1);
        Self { log }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.log.state().read_until = Some(Instant::now());
        self.log.readers.send_modify(|count| *count -= 1);
    }
}

/// Serializes an event with a message of one line.
pub(crate) fn format_event(id: Option<&str>, text: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    if text.is_empty() { format!("{id}data:\n\n") } else { format!("{id}event: message\ndata: {text}\n\n") }
}

/// Parses an event id into the stream and the number of the event. Each event has exactly one id: other spellings of the
/// numbers are invalid.
pub(crate) fn parse_event_id(id: &str) -> Option<(StreamId, u64)> {
    let (stream, count) = id.rsplit_once('-')?;
    let stream = match stream.split_once('-') {
        Some((epoch, stream)) => {
            StreamId { epoch: number(epoch).filter(|epoch| *epoch != 0)?, number: number(stream)? }
        }
        None => StreamId { epoch: 0, number: number(stream)? },
    };
    Some((stream, number(count)?))
}

/// Parses decimal digits without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BudgetLimits, PrincipalTable};

    #[tokio::test]
    async fn bounds_stored_events_per_principal() {
        let principals =
            PrincipalTable::new(BudgetLimits { replay_bytes: 100_000, ..BudgetLimits::default() });
        let (ann, bob) = (
            principals.of(&toolhub_core::Principal::of_key("ann").into()),
            principals.of(&toolhub_core::Principal::of_key("bob").into()),
        );
        let long = "x".repeat(30_000);
        let stream = |number| StreamId { epoch: 0, number };
        let others = EventLog::new(stream(1), &bob);
        assert!(others.push(&long));
        // Ended streams make room, the oldest first.
        let logs: Vec<_> = (1..=10)
            .map(|number| {
                let log = EventLog::new(stream(number), &ann);
                assert!(log.push(&long), "{number}");
                log.finish();
                log
            })
            .collect();
        assert!(ann.used(BudgetedResource::Replay) <= 100_000);
        assert!(
            logs[..7].iter().all(|log| log.is_discarded()) && !logs[7..].iter().any(|log| log.is_discarded())
        );
        assert!(!others.is_discarded());
        // A stream that has not ended keeps its newest events, and reports those it cannot keep.
        drop(logs);
        let open = EventLog::new(stream(11), &ann);
        assert!((0..5).all(|_| open.push(&long)));
        assert!(ann.used(BudgetedResource::Replay) <= 100_000);
        assert!(!open.push(&"x".repeat(200_000)) && open.push("why"));
        assert!(open.state().events.len() > 1, "what cannot be kept costs nothing that is");
        drop((open, others));
        assert_eq!((ann.used(BudgetedResource::Replay), bob.used(BudgetedResource::Replay)), (0, 0));
    }
}
