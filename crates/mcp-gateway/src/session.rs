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
use toolhub_core::{FastMap, RawJson, ServerId};

use crate::budget::PrincipalHandle;
use crate::client_handle::ClientInfo;
use crate::ended_session::SessionStamp;
use crate::event_log::{EventLog, StreamId};
use crate::replays::Replay as _;
use crate::subscriptions::{Subscription, Subscriptions};

/// A session expires after this time without use.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Minimum interval between two searches for expired sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of resumable streams per session.
const MAX_STREAMS: usize = 64;

/// The session of a legacy client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Identifies the session in the record of ended ones. `None` if it cannot be resumed after a restart.
    pub(crate) stamp: Option<SessionStamp>,
    /// 0 unless the session was resumed. A resumed session uses other ids for events and server requests than before.
    epoch: u64,
    pub(crate) principal: PrincipalHandle,
    /// The negotiated protocol revision.
    pub(crate) version: &'static str,
    pub(crate) info: ClientInfo,
    /// Cancelled when the session ends.
    pub(crate) closing: CancellationToken,
    state: Mutex<SessionState>,
    streams: AtomicU64,
}

#[derive(Debug)]
struct SessionState {
    last_used: Instant,
    /// The requests in progress, by an internal number. There are rarely many; the id of the client is compared only on
    /// cancellation.
    in_flight: Vec<(u64, RawJson, Arc<Cancellation>)>,
    request_count: u64,
    subscriptions: BTreeMap<String, Subscription>,
    logs: HashMap<u64, Arc<EventLog>>,
}

impl SessionState {
    fn is_idle(&self, now: Instant) -> bool {
        let has_reader = |log: &Arc<EventLog>| log.unread_for().is_some_and(|silence| silence < IDLE_TIMEOUT);
        now.duration_since(self.last_used) >= IDLE_TIMEOUT && !self.logs.values().any(has_reader)
    }
}

/// The parameters of a new session.
pub(crate) struct NewSession {
    pub(crate) id: String,
    pub(crate) stamp: Option<SessionStamp>,
    pub(crate) epoch: u64,
    pub(crate) principal: PrincipalHandle,
    pub(crate) version: &'static str,
    pub(crate) info: ClientInfo,
}

impl Session {
    pub(crate) fn new(new: NewSession) -> Self {
        let NewSession { id, stamp, epoch, principal, version, info } = new;
        let state = SessionState {
            last_used: Instant::now(),
            in_flight: Vec::new(),
            request_count: 0,
            subscriptions: BTreeMap::new(),
            logs: HashMap::new(),
        };
        let (closing, streams) = (CancellationToken::new(), AtomicU64::new(1));
        Self { id, stamp, epoch, principal, version, info, closing, state: Mutex::new(state), streams }
    }

    /// Returns whether the session was rebuilt from its id. Its client may have missed notifications in the meantime.
    pub(crate) fn is_resumed(&self) -> bool {
        self.epoch != 0
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the session has expired. A client that reads a stream keeps it alive.
    fn is_idle(&self) -> bool {
        self.state().is_idle(Instant::now())
    }

    /// Marks the session as used. Returns false if it has already expired.
    pub(crate) fn touch(&self) -> bool {
        let (mut state, now) = (self.state(), Instant::now());
        let is_active = !state.is_idle(now);
        if is_active {
            state.last_used = now;
        }
        is_active
    }

    /// Registers a request until the returned guard is dropped. The guard signals when the client cancels the request or
    /// the session ends.
    pub(crate) fn register(self: &Arc<Self>, id: &RawJson) -> RequestGuard {
        let cancellation = Arc::<Cancellation>::default();
        let number = {
            let mut state = self.state();
            state.request_count += 1;
            let number = state.request_count;
            state.in_flight.push((number, id.clone(), Arc::clone(&cancellation)));
            number
        };
        // `close` cancels the token before it collects the running requests, so that checking after registration misses
        // nothing.
        if self.closing.is_cancelled() {
            cancellation.cancel_with(CancelReason::SessionEnded);
        }
        RequestGuard { session: Arc::clone(self), number, cancellation }
    }

    /// Ends the session and its subscriptions, and cancels its requests.
    pub(crate) fn close(&self) {
        self.closing.cancel();
        let (in_flight, subscriptions) = {
            let mut state = self.state();
            let in_flight: Vec<_> =
                state.in_flight.iter().map(|(_, _, request)| Arc::clone(request)).collect();
            (in_flight, std::mem::take(&mut state.subscriptions))
        };
        in_flight.iter().for_each(|request| request.cancel_with(CancelReason::SessionEnded));
        drop(Subscriptions::from(subscriptions.into_values().collect::<Vec<_>>()));
    }

    /// Cancels the requests with that id.
    pub(crate) fn cancel(&self, id: &RawJson) {
        let named = |(_, name, cancellation): &(u64, RawJson, Arc<Cancellation>)| {
            (name.get() == id.get()).then(|| Arc::clone(cancellation))
        };
        let in_flight: Vec<_> = self.state().in_flight.iter().filter_map(named).collect();
        in_flight.iter().for_each(|cancellation| cancellation.cancel_with(CancelReason::Cancelled));
    }

    /// Keeps a subscription until the session ends, unless there is one for the same resource already.
    pub(crate) fn add_subscription(&self, uri: String, subscription: Subscription) {
        let mut state = self.state();
        // `close` cancels the token before it takes the subscriptions, so that none is left behind.
        if !self.closing.is_cancelled() && !state.subscriptions.contains_key(&uri) {
            state.subscriptions.insert(uri, subscription);
            return;
        }
        drop(state);
        drop(subscription);
    }

    /// Removes and returns a subscription.
    pub(crate) fn remove_subscription(&self, uri: &str) -> Option<Subscription> {
        self.state().subscriptions.remove(uri)
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.state().subscriptions.contains_key(uri)
    }

    /// Returns whether the session is subscribed to the resource of that server.
    pub(crate) fn is_subscribed_at(&self, server: &ServerId, uri: &str) -> bool {
        self.state().subscriptions.get(uri).is_some_and(|subscription| subscription.is_to(server, uri))
    }

    /// Opens a resumable stream.
    pub(crate) fn open_log(&self) -> Arc<EventLog> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let log = EventLog::new(StreamId { epoch: self.epoch, number }, &self.principal);
        let mut state = self.state();
        if state.logs.len() >= MAX_STREAMS {
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
        if let Some(log) = state.logs.get(&0).filter(|log| !log.is_ended()) {
            return (Arc::clone(log), false);
        }
        let log = EventLog::new(StreamId { epoch: self.epoch, number: 0 }, &self.principal);
        state.logs.insert(0, Arc::clone(&log));
        (log, true)
    }
}

/// A registered request.
pub(crate) struct RequestGuard {
    session: Arc<Session>,
    number: u64,
    pub(crate) cancellation: Arc<Cancellation>,
}

/// Why a request of a session is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// Its client sent `notifications/cancelled`. It gets no response (2025-11-25, basic/utilities/cancellation).
    Cancelled,
    /// The session ended.
    SessionEnded,
}

/// Signals the cancellation of a request. Every request of a session has one, and its handler waits for it.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    /// 0 if the request is not cancelled. The first reason is kept.
    reason: AtomicU8,
    waker: AtomicWaker,
}

const CANCELLED: u8 = 1;
const SESSION_ENDED: u8 = 2;

impl Cancellation {
    fn cancel_with(&self, reason: CancelReason) {
        let reason = match reason {
            CancelReason::Cancelled => CANCELLED,
            CancelReason::SessionEnded => SESSION_ENDED,
        };
        let _ = self.reason.compare_exchange(0, reason, Ordering::AcqRel, Ordering::Acquire);
        self.waker.wake();
    }

    fn reason(&self) -> Option<CancelReason> {
        match self.reason.load(Ordering::Acquire) {
            CANCELLED => Some(CancelReason::Cancelled),
            SESSION_ENDED => Some(CancelReason::SessionEnded),
            _ => None,
        }
    }

    /// Waits for the cancellation. Only one task may wait at a time.
    pub(crate) async fn wait(&self) -> CancelReason {
        poll_fn(|context| {
            // The waker is registered before the check, so that no wake-up is lost.
            self.waker.register(context.waker());
            self.reason().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.session.state();
        let index = state.in_flight.iter().rposition(|(number, ..)| *number == self.number);
        let removed = index.map(|index| state.in_flight.swap_remove(index));
        drop(state);
        drop(removed);
    }
}

/// The sessions of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<SessionTable>);

#[derive(Debug, Default)]
struct SessionTable {
    by_id: FastMap<String, Arc<Session>>,
    /// When expired sessions were last searched for.
    last_sweep: Option<Instant>,
}

impl SessionTable {
    /// Removes expired sessions.
    fn remove_expired(&mut self, removed: &mut Vec<Arc<Session>>) {
        let now = Instant::now();
        if self.last_sweep.is_some_and(|last_sweep| now.duration_since(last_sweep) < SWEEP_INTERVAL) {
            return;
        }
        self.last_sweep = Some(now);
        removed.extend(self.by_id.extract_if(|_, session| session.is_idle()).map(|(_, session)| session));
    }

    fn insert(&mut self, session: Arc<Session>) -> RemovedSessions {
        let mut removed = RemovedSessions::default();
        self.remove_expired(&mut removed.idle);
        self.evict_oldest(&session.principal, &mut removed.evicted);
        self.by_id.insert(session.id.clone(), session);
        removed
    }

    /// Removes the least recently used sessions of a principal until it may have another. Those of other principals stay.
    fn evict_oldest(&mut self, principal: &PrincipalHandle, removed: &mut Vec<Arc<Session>>) {
        let limit = principal.limits().sessions.max(1);
        let is_of_principal = |session: &&Arc<Session>| session.principal.shares_budget(principal);
        let count = self.by_id.values().filter(is_of_principal).count();
        for _ in limit..=count {
            let oldest =
                self.by_id.values().filter(is_of_principal).min_by_key(|session| session.state().last_used);
            let oldest = oldest.map(|session| session.id.clone());
            removed.extend(oldest.and_then(|oldest| self.by_id.remove(&oldest)));
        }
    }
}

/// Sessions that were removed when another was added.
#[derive(Debug, Default)]
pub(crate) struct RemovedSessions {
    /// Expired sessions, which may be resumed.
    idle: Vec<Arc<Session>>,
    /// Sessions of a principal that had too many.
    pub(crate) evicted: Vec<Arc<Session>>,
}

impl RemovedSessions {
    fn close(&self) {
        self.idle.iter().chain(&self.evicted).for_each(|session| session.close());
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session. Returns those that were removed.
    pub(crate) fn insert(&self, session: Arc<Session>) -> RemovedSessions {
        let mut sessions = self.lock();
        let removed = sessions.insert(session);
        drop(sessions);
        removed.close();
        removed
    }

    /// Returns the session with that id if it belongs to this principal.
    pub(crate) fn get(&self, id: &str, principal: &PrincipalHandle) -> Option<Arc<Session>> {
        let session = self.lock().by_id.get(id).filter(|session| session.principal == *principal).cloned()?;
        session.touch().then_some(session)
    }

    /// Returns the session with that id, or the one that `create` creates if there is none or it has expired. `None` if
    /// `create` returns none. `create` is called with the sessions locked, and the end of a session is recorded before it is
    /// removed here, so that an ended session is never created again.
    pub(crate) fn get_or_insert(
        &self,
        id: &str,
        principal: &PrincipalHandle,
        create: impl FnOnce() -> Option<Arc<Session>>,
    ) -> Option<(Arc<Session>, RemovedSessions)> {
        let mut sessions = self.lock();
        if let Some(session) = sessions.by_id.get(id) {
            if session.principal != *principal {
                return None;
            }
            if session.touch() {
                return Some((Arc::clone(session), RemovedSessions::default()));
            }
        }
        let idle = sessions.by_id.remove(id);
        let created = create();
        let mut removed =
            created.as_ref().map(|created| sessions.insert(Arc::clone(created))).unwrap_or_default();
        drop(sessions);
        removed.idle.extend(idle);
        removed.close();
        Some((created?, removed))
    }

    /// Ends a session.
    pub(crate) fn remove(&self, id: &str) {
        if let Some(session) = self.lock().by_id.remove(id) {
            session.close();
        }
    }

    /// The ids of all sessions.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.lock().by_id.keys().cloned().collect()
    }

    /// Ends the sessions for which `is_ended` returns true.
    pub(crate) fn close_where(&self, is_ended: impl Fn(&Session) -> bool) {
        let ended: Vec<_> = self
            .lock()
            .by_id
            .extract_if(|_, session| is_ended(session))
            .map(|(_, session)| session)
            .collect();
        ended.iter().for_each(|session| session.close());
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use toolhub_mcp_wire::Era;

    use super::*;
    use crate::budget::{BudgetLimits, PrincipalTable};

    fn session(id: &str) -> Arc<Session> {
        let info = ClientInfo {
            number: 1,
            era: Era::Legacy,
            capabilities: RawJson::empty_object(),
            server_requests: Arc::default(),
            level: Arc::default(),
        };
        with(id, PrincipalHandle::new(toolhub_core::Principal::of_key("ann")), info)
    }

    fn with(id: &str, principal: PrincipalHandle, info: ClientInfo) -> Arc<Session> {
        let (id, version) = (id.to_owned(), "2025-11-25");
        Arc::new(Session::new(NewSession { id, stamp: None, epoch: 0, principal, version, info }))
    }

    #[test]
    fn cancels_requests_when_the_session_ends() {
        let session = session("ends");
        let (one, id) = (session.register(&RawJson::from(1)), RawJson::from("x"));
        let other = session.register(&id);
        // A cancellation applies to all requests with the same id.
        let same = session.register(&id);
        session.cancel(&id);
        assert_eq!(same.cancellation.reason(), Some(CancelReason::Cancelled));
        drop(same);
        assert_eq!(
            (other.cancellation.reason(), one.cancellation.reason()),
            (Some(CancelReason::Cancelled), None)
        );
        session.close();
        assert_eq!(other.cancellation.reason(), Some(CancelReason::Cancelled), "the first reason stays");
        assert_eq!(one.cancellation.reason(), Some(CancelReason::SessionEnded));
        assert_eq!(session.register(&id).cancellation.reason(), Some(CancelReason::SessionEnded));
    }

    #[tokio::test]
    async fn evicts_oldest_session_of_the_same_principal() {
        let principals = PrincipalTable::new(BudgetLimits { sessions: 2, ..BudgetLimits::default() });
        let (ann, bob) = (
            principals.of(&toolhub_core::Principal::of_key("ann").into()),
            principals.of(&toolhub_core::Principal::of_key("bob").into()),
        );
        let of = |id: &str, who: &PrincipalHandle| with(id, who.clone(), session("any").info.clone());
        let sessions = Sessions::default();
        assert!(sessions.insert(of("bob", &bob)).evicted.is_empty());
        for number in 0..10 {
            let removed = sessions.insert(of(&number.to_string(), &ann)).evicted;
            assert_eq!(removed.len(), usize::from(number >= 2));
            assert!(removed.iter().all(|one| one.principal == ann && one.closing.is_cancelled()));
        }
        assert!(sessions.get("bob", &bob).is_some() && sessions.get("9", &ann).is_some());
        assert!(sessions.get("7", &ann).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn listening_client_keeps_its_session() {
        let (sessions, ann) =
            (Sessions::default(), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let (listening, silent) = (session("listening"), session("silent"));
        sessions.insert(Arc::clone(&listening));
        sessions.insert(silent);
        let read_events = listening.own_log().0.read(0);
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(sessions.get("silent", &ann).is_none());
        let removed = sessions.insert(session("new")).idle;
        assert_eq!(removed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["silent"]);
        drop(read_events);
        tokio::time::advance(IDLE_TIMEOUT / 2).await;
        assert!(sessions.get("listening", &ann).is_some());
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(sessions.get("listening", &ann).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn recreates_session_only_after_expiry() {
        let (sessions, ann) =
            (Sessions::default(), PrincipalHandle::new(toolhub_core::Principal::of_key("ann")));
        let first = session("s");
        sessions.insert(Arc::clone(&first));
        let never = || -> Option<Arc<Session>> { panic!("it is there") };
        let (found, _) = sessions.get_or_insert("s", &ann, never).unwrap();
        assert!(Arc::ptr_eq(&found, &first));
        let bob = PrincipalHandle::new(toolhub_core::Principal::of_key("bob"));
        assert!(sessions.get_or_insert("s", &bob, || panic!("it is not bob's")).is_none());
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(sessions.get("s", &ann).is_none());
        let (again, _) = sessions.get_or_insert("s", &ann, || Some(session("s"))).unwrap();
        assert!(!Arc::ptr_eq(&again, &first) && first.closing.is_cancelled() && sessions.len() == 1);
        // An ended session is not created again.
        tokio::time::advance(IDLE_TIMEOUT).await;
        assert!(sessions.get_or_insert("s", &ann, || None).is_none() && sessions.len() == 0);
    }
}
