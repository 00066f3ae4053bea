//! Event streams: responses of requests that send more than a result, and notification streams.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::broadcast::error::RecvError;
use toolhub_core::RawJson;

use crate::Gateway;
use crate::backend::{News, RpcError};
use crate::budget::{Permit, Principal};
use crate::event_log::{ALIVE, EventLog, KEEP_ALIVE, event};
use crate::http::{Events, Reply, session_ended, status_of};
use crate::listen::{ListenPermits, Wanted, farewell};
use crate::message::{one_line, refusal, response};
use crate::pending_input::About;
use crate::running::{Running, Step};
use crate::session::{Entered, Reason};
use crate::subscriptions::Subscriptions;

/// How long a request keeps running after its client has lost the stream, so that the client may resume it.
const GRACE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Runs a modern request. Dropping the reply cancels it, as when the client disconnects.
    pub(super) async fn run(self: &Arc<Self>, mut running: Running, about: About) -> Reply {
        let first = match running.step().await {
            Step::Over(served) => {
                let status = served.as_ref().err().map_or(200, status_of);
                return Reply::answer(status, &running.id, served);
            }
            Step::Ask(questions) => {
                let id = running.id.clone();
                let asking = self.rounds.park(running, questions, about);
                return Reply::answer(200, &id, Ok(asking));
            }
            Step::Tell(text) => text,
        };
        let gateway = Arc::clone(self);
        let going = Going::Told(first, Box::new((running, about)));
        Reply::Events(Box::pin(stream::unfold(going, move |going| {
            let gateway = Arc::clone(&gateway);
            async move {
                let (mut running, about) = match going {
                    Going::Over => return None,
                    Going::Told(text, rest) => {
                        return Some((event(None, &one_line(text)), Going::On(rest)));
                    }
                    Going::On(rest) => *rest,
                };
                let last = |text: String| Some((event(None, &one_line(text)), Going::Over));
                match tokio::time::timeout(KEEP_ALIVE, running.step()).await {
                    Err(_) => Some((ALIVE.to_owned(), Going::On(Box::new((running, about))))),
                    Ok(Step::Tell(text)) => {
                        Some((event(None, &one_line(text)), Going::On(Box::new((running, about)))))
                    }
                    Ok(Step::Ask(questions)) => {
                        let id = running.id.clone();
                        let asking = gateway.rounds.park(running, questions, about);
                        last(response(&id, &Ok(asking)))
                    }
                    Ok(Step::Over(served)) => last(response(&running.id, &served)),
                }
            }
        })))
    }

    /// Opens the notification stream of a `subscriptions/listen` request.
    pub(super) async fn listen(
        self: &Arc<Self>,
        id: RawJson,
        wanted: Wanted,
        principal: &Principal,
    ) -> Result<Events, RpcError> {
        let ListenPermits { stream, subscriptions } = wanted.permits(principal)?;
        let news = self.backend.news();
        let watched = self.subscribe_all(subscriptions).await;
        let held = (stream, watched);
        let watching = Watching { gateway: Arc::clone(self), wanted, id: id.detach(), _held: held };
        let first = event(None, &watching.wanted.acknowledgement(&watching.id));
        let state = (Some(first), news, Some(watching));
        Ok(Box::pin(stream::unfold(state, |(first, mut news, watching)| async move {
            let watching = watching?;
            if let Some(first) = first {
                return Some((first, (None, news, Some(watching))));
            }
            loop {
                let closing = watching.gateway.closing.clone();
                let piece = tokio::select! {
                    () = closing.cancelled() => {
                        let end = response(&watching.id, &Ok(farewell(&watching.id)));
                        return Some((event(None, &end), (None, news, None)));
                    }
                    piece = tokio::time::timeout(KEEP_ALIVE, news.recv()) => piece,
                };
                let pieces = match piece {
                    Err(_) => return Some((ALIVE.to_owned(), (None, news, Some(watching)))),
                    Ok(Ok(piece)) => vec![piece],
                    Ok(Err(RecvError::Lagged(_))) => vec![News::Tools, News::Prompts, News::Resources],
                    Ok(Err(RecvError::Closed)) => return None,
                };
                let told = pieces.iter().filter_map(|piece| watching.wanted.told(piece, &watching.id));
                let told: String = told.map(|text| event(None, &one_line(text))).collect();
                if !told.is_empty() {
                    return Some((told, (None, news, Some(watching))));
                }
            }
        })))
    }
}

/// The state of the event stream of a modern request.
enum Going {
    Told(String, Box<(Running, About)>),
    On(Box<(Running, About)>),
    Over,
}

/// A notification stream and the resources that it holds.
struct Watching {
    gateway: Arc<Gateway>,
    wanted: Wanted,
    id: RawJson,
    _held: (Permit, Subscriptions),
}

/// The error that replaces a response for which the replay budget has no room.
fn unkept() -> RpcError {
    let why = "the request was executed, but its answer was dropped: too many events of this caller were not read \
               (`replay_bytes` in `[serve.limits]`)";
    RpcError::new(-32000, why)
}

/// Runs a legacy request to its end, whether or not its client is connected to the stream.
pub(super) async fn pump(log: Arc<EventLog>, mut running: Running, entered: Entered) {
    loop {
        let step = tokio::select! {
            step = running.step() => step,
            reason = entered.given_up.wait() => {
                match reason {
                    Reason::SessionEnded => {
                        log.push(&refusal(Some(&running.id), &session_ended()));
                    }
                    // A cancelled request has nothing to resume.
                    Reason::Cancelled => log.discard(),
                }
                break;
            }
            () = log.abandoned(GRACE) => break,
        };
        match step {
            Step::Tell(text) => {
                log.push(&one_line(text));
            }
            Step::Over(served) => {
                if !log.push(&one_line(response(&running.id, &served))) {
                    log.push(&refusal(Some(&running.id), &unkept()));
                }
                break;
            }
            Step::Ask(_) => {}
        }
    }
    log.finish();
}
