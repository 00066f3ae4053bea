//! The sessions of legacy clients: negotiated revision, requests in progress, subscriptions and expiry.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhub_core::{FastMap, RawJson};

use crate::budget::Principal;
use crate::client_handle::ClientFacts;
use crate::event_log::{EventLog, StreamId};
use crate::session_record::Ticket;
use crate::subscriptions::{Subscription, Subscriptions};

/// A session expires after this time without use.
const IDLE: Duration = Duration::from_secs(3600);
/// Minimum interval between two searches for expired sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of resumable streams per session.
const STREAMS: usize = 64;

/// The session of a legacy client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Identifies the session in the record of ended ones. `None` if it cannot be resumed after a restart.
    pub(crate) ticket: Option<Ticket>,
    /// 0 unless the session was resumed. A resumed session uses other ids for events and server requests than before.
    epoch: u64,
    pub(crate) principal: Principal,
    /// The negotiated protocol revision.
    pub(crate) version: &'static str,
    pub(crate) facts: ClientFacts,
    /// Cancelled when the session ends.
    pub(crate) closing: CancellationToken,
    state: Mutex<State>,
    streams: AtomicU64,
}

#[derive(Debug)]
struct State {
    used: Instant,
    /// The requests in progress, by an internal number. There are rarely many; the id of the client is compared only on
    /// cancellation.
    running: Vec<(u64, RawJson, Arc<GivenUp>)>,
    entered: u64,
    watched: BTreeMap<String, Subscription>,
    logs: HashMap<u64, Arc<EventLog>>,
}

impl State {
    fn is_idle(&self, now: Instant) -> bool {
        let listened = |log: &Arc<EventLog>| log.unheard_for().is_some_and(|silence| silence < IDLE);
        now.duration_since(self.used) >= IDLE && !self.logs.values().any(listened)
    }
}

/// The parameters of a new session.
pub(crate) struct NewSession {
    pub(crate) id: String,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) epoch: u64,
    pub(crate) principal: Principal,
    pub(crate) version: &'static str,
    pub(crate) facts: ClientFacts,
}

impl Session {
    pub(crate) fn new(new: NewSession) -> Self {
        let NewSession { id, ticket, epoch, principal, version, facts } = new;
        let state = State {
            used: Instant::now(),
            running: Vec::new(),
            entered: 0,
            watched: BTreeMap::new(),
            logs: HashMap::new(),
        };
        let (closing, streams) = (CancellationToken::new(), AtomicU64::new(1));
        Self { id, ticket, epoch, principal, version, facts, closing, state: Mutex::new(state), streams }
    }

    /// Returns whether the session was rebuilt from its id. Its client may have missed notifications in the meantime.
    pub(crate) fn is_resumed(&self) -> bool {
        self.epoch != 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the session has expired. A client that reads a stream keeps it alive.
    fn is_idle(&self) -> bool {
        self.state().is_idle(Instant::now())
    }

    /// Marks the session as used. Returns false if it has already expired.
    pub(crate) fn touch(&self) -> bool {
        let (mut state, now) = (self.state(), Instant::now());
        let kept = !state.is_idle(now);
        if kept {
            state.used = now;
        }
        kept
    }

    /// Registers a request until the returned guard is dropped. The guard signals when the client cancels the request or
    /// the session ends.
    pub(crate) fn enter(self: &Arc<Self>, id: &RawJson) -> Entered {
        let given_up = Arc::<GivenUp>::default();
        let number = {
            let mut state = self.state();
            state.entered += 1;
            let number = state.entered;
            state.running.push((number, id.clone(), Arc::clone(&given_up)));
            number
        };
        // `close` cancels the token before it collects the running requests, so that checking after registration misses
        // nothing.
        if self.closing.is_cancelled() {
            given_up.cancel_with(Reason::SessionEnded);
        }
        Entered { session: Arc::clone(self), number, given_up }
    }

    /// Ends the session and its subscriptions, and cancels its requests.
    pub(crate) fn close(&self) {
        self.closing.cancel();
        let (running, watched) = {
            let mut state = self.state();
            let running: Vec<_> = state.running.iter().map(|(_, _, one)| Arc::clone(one)).collect();
            (running, std::mem::take(&mut state.watched))
        };
        running.iter().for_each(|one| one.cancel_with(Reason::SessionEnded));
        drop(Subscriptions::from(watched.into_values().collect::<Vec<_>>()));
    }

    /// Cancels the requests with that id.
    pub(crate) fn cancel(&self, id: &RawJson) {
        let named =
            |(_, name, one): &(u64, RawJson, Arc<GivenUp>)| (name.get() == id.get()).then(|| Arc::clone(one));
        let running: Vec<_> = self.state().running.iter().filter_map(named).collect();
        running.iter().for_each(|one| one.cancel_with(Reason::Cancelled));
    }

    /// Keeps a subscription until the session ends, unless there is one for the same resource already.
    pub(crate) fn watch(&self, uri: String, subscription: Subscription) {
        let mut state = self.state();
        // `close` cancels the token before it takes the subscriptions, so that none is left behind.
        if !self.closing.is_cancelled() && !state.watched.contains_key(&uri) {
            state.watched.insert(uri, subscription);
            return;
        }
        drop(state);
        drop(subscription);
    }

    /// Removes and returns a subscription.
    pub(crate) fn unwatch(&self, uri: &str) -> Option<Subscription> {
        self.state().watched.remove(uri)
    }

    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.state().watched.contains_key(uri)
    }

    /// Opens a resumable stream.
    pub(crate) fn open_log(&self) -> Arc<EventLog> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let log = EventLog::new(StreamId { epoch: self.epoch, number }, &self.principal);
        let mut state = self.state();
        if state.logs.len() >= STREAMS {
            let oldest = state.logs.keys().copied().filter(|number| *number != 0).min();
            oldest.map(|oldest| state.logs.remove(&oldest));
        }
        state.logs.insert(number, Arc::clone(&log));
        log
    }

    /// Returns the stream with that id.
    pub(crate) fn log(&self, stream: StreamId) -> Option<Arc<EventLog>> {
        if stream.epoch != self.epoch {
            return None;
        }
        self.state().logs.get(&stream.number).cloned()
    }

    /// Returns the stream for messages that belong to no request, and whether it is new.
    pub(crate) fn own_log(&self) -> (Arc<EventLog>, bool) {
        let mut state = self.state();
        if let Some(log) = state.logs.get(&0).filter(|log| !log.is_over()) {
            return (Arc::clone(log), false);
        }
        let log = EventLog::new(StreamId { epoch: self.epoch, number: 0 }, &self.principal);
        state.logs.insert(0, Arc::clone(&log));
        (log, true)
    }
}

/// A registered request.
pub(crate) struct Entered {
    session: Arc<Session>,
    number: u64,
    pub(crate) given_up: Arc<GivenUp>,
}

/// Why a request of a session is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its client sent `notifications/cancelled`. It gets no response (2025-11-25, basic/utilities/cancellation).
    Cancelled,
    /// The session ended.
    SessionEnded,
}

/// Signals the cancellation of a request. Every request of a session has one, and its handler waits for it.
#[derive(Debug, Default)]
pub(crate) struct GivenUp {
    /// 0 if the request is not cancelled. The first reason is kept.
    reason: AtomicU8,
    waiting: AtomicWaker,
}

const CANCELLED: u8 = 1;
const SESSION_ENDED: u8 = 2;

impl GivenUp {
    fn cancel_with(&self, reason: Reason) {
        let reason = match reason {
            Reason::Cancelled => CANCELLED,
            Reason::SessionEnded => SESSION_ENDED,
        };
        let _ = self.reason.compare_exchange(0, reason, Ordering::AcqRel, Ordering::Acquire);
        self.waiting.wake();
    }

    fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::Acquire) {
            CANCELLED => Some(Reason::Cancelled),
            SESSION_ENDED => Some(Reason::SessionEnded),
            _ => None,
        }
    }

    /// Waits for the cancellation. Only one task may wait at a time.
    pub(crate) async fn wait(&self) -> Reason {
        poll_fn(|context| {
            // The waker is registered before the check, so that no wake-up is lost.
            self.waiting.register(context.waker());
            self.reason().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let place = state.running.iter().rposition(|(number, ..)| *number == self.number);
        let gone = place.map(|place| state.running.swap_remove(place));
        drop(state);
        drop(gone);
    }
}

/// The sessions of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_id: FastMap<String, Arc<Session>>,
    /// When expired sessions were last searched for.
    swept: Option<Instant>,
}

impl Open {
    /// Removes expired sessions.
    fn sweep(&mut self, gone: &mut Vec<Arc<Session>>) {
        let now = Instant::now();
        if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP_INTERVAL) {
            return;
        }
        self.swept = Some(now);
        gone.extend(self.by_id.extract_if(|_, one| one.is_idle()).map(|(_, one)| one));
    }

    fn insert(&mut self, session: Arc<Session>) -> Removed {
        let mut removed = Removed::default();
        self.sweep(&mut removed.idle);
        self.make_room(&session.principal, &mut removed.evicted);
        self.by_id.insert(session.id.clone(), session);
        removed
    }

    /// Removes the least recently used sessions of a principal until it may have another. Those of other principals stay.
    fn make_room(&mut self, principal: &Principal, gone: &mut Vec<Arc<Session>>) {
        let limit = principal.limits().sessions.max(1);
        let own = |one: &&Arc<Session>| one.principal.shares_budget(principal);
        let count = self.by_id.values().filter(own).count();
        for _ in limit..=count {
            let oldest = self.by_id.values().filter(own).min_by_key(|one| one.state().used);
            let oldest = oldest.map(|one| one.id.clone());
            gone.extend(oldest.and_then(|oldest| self.by_id.remove(&oldest)));
        }
    }
}

/// Sessions that were removed when another was added.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Expired sessions, which may be resumed.
    idle: Vec<Arc<Session>>,
    /// Sessions of a principal that had too many.
    pub(crate) evicted: Vec<Arc<Session>>,
}

impl Removed {
    fn close(&self) {
        self.idle.iter().chain(&self.evicted).for_each(|one| one.close());
    }
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session. Returns those that were removed.
    pub(crate) fn insert(&self, session: Arc<Session>) -> Removed {
        let mut all = self.all();
        let removed = all.insert(session);
        drop(all);
        removed.close();
        removed
    }

    /// Returns the session with that id if it belongs to this principal.
    pub(crate) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let found = self.all().by_id.get(id).filter(|one| one.principal == *principal).cloned()?;
        found.touch().then_some(found)
    }

    /// Returns the session with that id, or the one that `make` creates if there is none or it has expired. `None` if
    /// `make` returns none. `make` is called with the sessions locked, and the end of a session is recorded before it is
    /// removed here, so that an ended session is never created again.
    pub(crate) fn get_or_insert(
        &self,
        id: &str,
        principal: &Principal,
        make: impl FnOnce() -> Option<Arc<Session>>,
    ) -> Option<(Arc<Session>, Removed)> {
        let mut all = self.all();
        if let Some(found) = all.by_id.get(id) {
            if found.principal != *principal {
                return None;
            }
            if found.touch() {
                return Some((Arc::clone(found), Removed::default()));
            }
        }
        let idle = all.by_id.remove(id);
        let made = make();
        let mut removed = made.as_ref().map(|made| all.insert(Arc::clone(made))).unwrap_or_default();
        drop(all);
        removed.idle.extend(idle);
        removed.close();
        Some((made?, removed))
    }

    /// Ends a session.
    pub(crate) fn remove(&self, id: &str) {
        if let Some(session) = self.all().by_id.remove(id) {
            session.close();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all().by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use toolhub_mcp_wire::Era;

    use super::*;
    use crate::budget::{Limits, Principals};

    fn session(id: &str) -> Arc<Session> {
        let facts = ClientFacts {
            number: 1,
            era: Era::Legacy,
            capabilities: RawJson::empty_object(),
            questions: Arc::default(),
            level: Arc::default(),
        };
        with(id, Principal::new("ann"), facts)
    }

    fn with(id: &str, principal: Principal, facts: ClientFacts) -> Arc<Session> {
        let (id, version) = (id.to_owned(), "2025-11-25");
        Arc::new(Session::new(NewSession { id, ticket: None, epoch: 0, principal, version, facts }))
    }

    #[test]
    fn what_runs_is_given_up_with_its_session() {
        let session = session("ends");
        let (one, id) = (session.enter(&RawJson::from(1)), RawJson::from("x"));
        let other = session.enter(&id);
        // A cancellation applies to all requests with the same id.
        let same = session.enter(&id);
        session.cancel(&id);
        assert_eq!(same.given_up.reason(), Some(Reason::Cancelled));
        drop(same);
        assert_eq!((other.given_up.reason(), one.given_up.reason()), (Some(Reason::Cancelled), None));
        session.close();
        assert_eq!(other.given_up.reason(), Some(Reason::Cancelled), "the first reason stays");
        assert_eq!(one.given_up.reason(), Some(Reason::SessionEnded));
        assert_eq!(session.enter(&id).given_up.reason(), Some(Reason::SessionEnded));
    }

    #[tokio::test]
    async fn another_session_ends_the_oldest_of_the_same_principal_alone() {
        let principals = Principals::new(Limits { sessions: 2, ..Limits::default() });
        let (ann, bob) = (principals.named("ann"), principals.named("bob"));
        let of = |id: &str, who: &Principal| with(id, who.clone(), session("any").facts.clone());
        let sessions = Sessions::default();
        assert!(sessions.insert(of("bob", &bob)).evicted.is_empty());
        for number in 0..10 {
            let gone = sessions.insert(of(&number.to_string(), &ann)).evicted;
            assert_eq!(gone.len(), usize::from(number >= 2));
            assert!(gone.iter().all(|one| one.principal == ann && one.closing.is_cancelled()));
        }
        assert!(sessions.get("bob", &bob).is_some() && sessions.get("9", &ann).is_some());
        assert!(sessions.get("7", &ann).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_only_listens_keeps_its_session() {
        let (sessions, ann) = (Sessions::default(), Principal::new("ann"));
        let (listening, silent) = (session("listening"), session("silent"));
        sessions.insert(Arc::clone(&listening));
        sessions.insert(silent);
        let heard = listening.own_log().0.read(0);
        tokio::time::advance(IDLE).await;
        assert!(sessions.get("silent", &ann).is_none());
        let gone = sessions.insert(session("new")).idle;
        assert_eq!(gone.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["silent"]);
        drop(heard);
        tokio::time::advance(IDLE / 2).await;
        assert!(sessions.get("listening", &ann).is_some());
        tokio::time::advance(IDLE).await;
        assert!(sessions.get("listening", &ann).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_made_again_only_if_it_cannot_be_used() {
        let (sessions, ann) = (Sessions::default(), Principal::new("ann"));
        let first = session("s");
        sessions.insert(Arc::clone(&first));
        let never = || -> Option<Arc<Session>> { panic!("it is there") };
        let (found, _) = sessions.get_or_insert("s", &ann, never).unwrap();
        assert!(Arc::ptr_eq(&found, &first));
        let bob = Principal::new("bob");
        assert!(sessions.get_or_insert("s", &bob, || panic!("it is not bob's")).is_none());
        tokio::time::advance(IDLE).await;
        assert!(sessions.get("s", &ann).is_none());
        let (again, _) = sessions.get_or_insert("s", &ann, || Some(session("s"))).unwrap();
        assert!(!Arc::ptr_eq(&again, &first) && first.closing.is_cancelled() && sessions.len() == 1);
        // An ended session is not created again.
        tokio::time::advance(IDLE).await;
        assert!(sessions.get_or_insert("s", &ann, || None).is_none() && sessions.len() == 0);
    }
}
