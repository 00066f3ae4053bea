//! The read connection: queries are pipelined, and repeated if the connection broke.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Error;
use toolhub_core::BoxFuture;
use toolhub_core::ports::StoreError;

use super::liveness::Connection;
use super::session::{Address, Session, error_text, is_transient};
use crate::queue::closed_error;

/// Timeout of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between connection attempts.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);

/// A query with any type of result.
pub(super) trait PendingQuery: Send + Sync + std::fmt::Debug {
    /// Executes the query, and sends the result to its caller.
    fn ask(self: Arc<Self>, session: Arc<Session>) -> BoxFuture<'static, Result<(), Error>>;
    /// Sends an error to the caller.
    fn give_up(&self, error: StoreError);
    /// When the query was queued.
    fn since(&self) -> Instant;
    /// Whether the caller has stopped waiting.
    fn is_abandoned(&self) -> bool;
}

/// A query with the channel for its result.
pub(super) struct QueryWithReply<T, F> {
    ask: F,
    reply: Mutex<Option<oneshot::Sender<Result<T, StoreError>>>>,
    since: Instant,
}

impl<T, F> std::fmt::Debug for QueryWithReply<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryWithReply").field("since", &self.since).finish_non_exhaustive()
    }
}

impl<T, F, A> QueryWithReply<T, F>
where
    T: Send + 'static,
    F: Fn(Arc<Session>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<T, Error>> + Send + 'static,
{
    pub(super) fn with_answer(ask: F) -> (Arc<dyn PendingQuery>, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Arc::new(Self { ask, reply: Mutex::new(Some(reply)), since: Instant::now() }), answer)
    }

    fn answer(&self, answer: Result<T, StoreError>) {
        if let Some(reply) = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = reply.send(answer);
        }
    }
}

/// Executes a query by the reader behind `queue`. It is repeated if the connection breaks, so it must be safe to execute twice.
pub(super) async fn read<T, F, A>(
    queue: Option<&mpsc::Sender<Arc<dyn PendingQuery>>>,
    ask: F,
) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: Fn(Arc<Session>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<T, Error>> + Send + 'static,
{
    let (query, answer) = QueryWithReply::with_answer(ask);
    let queue = queue.ok_or_else(closed_error)?;
    queue.send(query).await.map_err(|_| closed_error())?;
    answer.await.map_err(|_| closed_error())?
}

impl<T, F, A> PendingQuery for QueryWithReply<T, F>
where
    T: Send + 'static,
    F: Fn(Arc<Session>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<T, Error>> + Send + 'static,
{
    fn ask(self: Arc<Self>, session: Arc<Session>) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let answer = (self.ask)(session).await?;
            self.answer(Ok(answer));
            Ok(())
        })
    }

    fn give_up(&self, error: StoreError) {
        self.answer(Err(error));
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_abandoned(&self) -> bool {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

/// Owns the read connection.
pub(super) struct Reader {
    address: Address,
    requests: mpsc::Receiver<Arc<dyn PendingQuery>>,
    /// Receives queries to be repeated. Weak, so that it does not keep the store open.
    retry_sender: mpsc::WeakSender<Arc<dyn PendingQuery>>,
    session: Option<Arc<Session>>,
}

impl Reader {
    pub(super) fn new(
        address: Address,
        requests: mpsc::Receiver<Arc<dyn PendingQuery>>,
        retry_sender: mpsc::WeakSender<Arc<dyn PendingQuery>>,
    ) -> Self {
        Self { address, requests, retry_sender, session: None }
    }

    /// Executes queries until the store is closed.
    pub(super) async fn run(mut self) {
        let mut in_flight = JoinSet::new();
        while let Some(question) = self.requests.recv().await {
            while in_flight.try_join_next().is_some() {}
            if let Some(session) = self.session_for(&*question).await {
                in_flight.spawn(put(question, session, self.retry_sender.clone()));
            }
        }
    }

    /// Another connection.
    async fn connect(&self) -> Result<Session, String> {
        let session = self.address.connect().await?;
        let connection = if self.session.is_some() { Connection::Again } else { Connection::First };
        session.note_connection(connection).await.map_err(|error| error_text(&error))?;
        Ok(session)
    }

    /// A working connection; reconnects if necessary, until the query times out.
    async fn session_for(&mut self, question: &dyn PendingQuery) -> Option<Arc<Session>> {
        loop {
            if let Some(session) = self.session.as_ref().filter(|session| !session.client.is_closed()) {
                return Some(Arc::clone(session));
            }
            match self.connect().await {
                Ok(session) => self.session = Some(Arc::new(session)),
                Err(_) if question.is_abandoned() => return None,
                Err(error) if question.since().elapsed() + RECONNECT_INTERVAL > QUERY_TIMEOUT => {
                    question.give_up(StoreError(format!("PostgreSQL cannot be reached: {error}").into()));
                    return None;
                }
                Err(_) => sleep(RECONNECT_INTERVAL).await,
            }
        }
    }
}

/// Executes a query once.
async fn put(
    question: Arc<dyn PendingQuery>,
    session: Arc<Session>,
    retry_sender: mpsc::WeakSender<Arc<dyn PendingQuery>>,
) {
    let remaining_time = QUERY_TIMEOUT.saturating_sub(question.since().elapsed());
    match timeout(remaining_time, Arc::clone(&question).ask(session)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => match retry_sender.upgrade().filter(|_| is_transient(&error)) {
            Some(retry_sender) if question.since().elapsed() < QUERY_TIMEOUT => {
                sleep(RECONNECT_INTERVAL).await;
                if retry_sender.send(Arc::clone(&question)).await.is_err() {
                    question.give_up(StoreError(error_text(&error).into()));
                }
            }
            _ => question.give_up(StoreError(error_text(&error).into())),
        },
        Err(_) => {
            question.give_up(StoreError(format!("no answer within {} s", QUERY_TIMEOUT.as_secs()).into()));
        }
    }
}
