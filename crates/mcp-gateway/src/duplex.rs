//! A bidirectional stream of messages: stdio, and the HTTP+SSE transport of 2024-11-05. For clients of both eras.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::{RawJson, RawObject};

use crate::backend::{INVALID_REQUEST, News, RpcError};
use crate::listen::{ListenPermits, Wanted, farewell};
use crate::message::{self, Message, ONE_AT_A_TIME, Params, Request, one_line, refusal};
use crate::outbox::{Outbound, Outbox};
use crate::pending_input::{About, Resumed};
use crate::running::{Running, Step};
use crate::session::Session;
use crate::{Client, Gateway, Principal, modern};

/// The client at the other end of a stream. Dropping it cancels its requests.
#[derive(Debug)]
pub struct Duplex {
    gateway: Arc<Gateway>,
    principal: Principal,
    out: Outbox,
    session: Mutex<Option<Arc<Session>>>,
    /// The requests in progress of a modern client, by id.
    running: Arc<Mutex<HashMap<String, CancellationToken>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Duplex {
    /// Opens a stream. Returns it and the messages for the client, one per line.
    pub fn open(gateway: &Arc<Gateway>, principal: Principal) -> (Self, mpsc::Receiver<Outbound>) {
        let (out, messages) = Outbox::new(principal.clone());
        let duplex = Self {
            gateway: Arc::clone(gateway),
            principal,
            out,
            session: Mutex::default(),
            running: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        (duplex, messages)
    }

    /// Waits until all received requests have been answered.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Waits until the gateway closes and the requests received before have been answered.
    pub async fn over(&self) {
        self.gateway.closing.cancelled().await;
        self.drain().await;
    }

    /// Handles one message.
    pub async fn receive(&self, text: &str) {
        match message::read(&text.into()) {
            Ok(Message::Request(request, params)) => self.request(request, params).await,
            Ok(Message::Notification { method, params }) => self.hear(&method, params.as_ref()),
            Ok(Message::Answer { id, answer }) => {
                if let Some(session) = self.session().as_ref() {
                    session.facts.questions.settle(id, answer);
                }
            }
            // Batches are not supported on this transport: one line is one message.
            Err((_, error)) if error.code == INVALID_REQUEST && text.trim_start().starts_with('[') => {
                self.out.send(refusal(None, &RpcError::new(INVALID_REQUEST, ONE_AT_A_TIME))).await;
            }
            Err((id, error)) => self.out.send(refusal(id.as_ref(), &error)).await,
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, method: &str, params: Option<&RawJson>) {
        let id = params.and_then(RawJson::object).and_then(|params| params.get("requestId").cloned());
        let modern = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up = id.filter(|_| method == "notifications/cancelled");
        if let Some(token) = given_up.and_then(|id| modern.get(id.get()).cloned()) {
            return token.cancel();
        }
        drop(modern);
        if let Some(session) = self.session().as_ref() {
            self.gateway.hear(session, method, params);
        }
    }

    async fn request(&self, request: Request, params: Params) {
        if modern::version_in(&params).is_some() || request.method == "server/discover" {
            return self.modern(request, params).await;
        }
        if request.method == "initialize" && self.session().is_none() {
            return self.initialize(&request, &params.members).await;
        }
        let session = self.session().clone();
        let Some(session) = session else {
            // A ping is answered even before `initialize` (2025-11-25, basic/lifecycle).
            let answer = match &*request.method {
                "ping" => Ok(RawJson::empty_object()),
                _ => Err(RpcError::new(INVALID_REQUEST, "begin with `initialize`")),
            };
            return self.out.answer(&request.id, &answer).await;
        };
        session.touch();
        let entered = session.enter(&request.id);
        let client = Client { facts: session.facts.clone(), session: Some(session) };
        let mut running = self.gateway.start(request, params, client);
        let (out, closing) = (self.out.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            loop {
                let step = tokio::select! {
                    step = running.step() => step,
                    // A cancelled request gets no response.
                    _ = entered.given_up.wait() => return,
                    () = closing.cancelled() => return,
                };
                match step {
                    Step::Tell(text) => out.send(one_line(text)).await,
                    Step::Over(served) => return out.answer(&running.id, &served).await,
                    Step::Ask(_) => {}
                }
                if out.is_closed() {
                    return;
                }
            }
        });
    }

    async fn initialize(&self, request: &Request, params: &RawObject) {
        let (session, greeting) = match self.gateway.initialize(params, &self.principal, None) {
            Ok(greeted) => greeted,
            Err(error) => return self.out.send(refusal(Some(&request.id), &error)).await,
        };
        *self.session() = Some(Arc::clone(&session));
        self.out.answer(&request.id, &Ok(greeting)).await;
        let (gateway, out, closing) = (Arc::clone(&self.gateway), self.out.clone(), self.closing.clone());
        self.gateway.tasks.spawn(async move {
            let told = gateway.tell(session, move |text| out.try_send(one_line(text)));
            tokio::select! {
                () = told => {}
                () = closing.cancelled() => {}
            }
        });
    }

    async fn modern(&self, request: Request, params: Params) {
        let facts = self.gateway.modern_facts(&params).and_then(|facts| {
            modern::supported(&modern::version_in(&params).unwrap_or_default())?;
            Ok(facts)
        });
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => return self.out.send(refusal(Some(&request.id), &error)).await,
        };
        let token = self.closing.child_token();
        let entered = Entered::new(&self.running, &request.id, token.clone());
        if request.method == "subscriptions/listen" {
            let wanted = Wanted::of(&params);
            let permits = match wanted.permits(&self.principal) {
                Ok(permits) => permits,
                Err(error) => return self.out.send(refusal(Some(&request.id), &error)).await,
            };
            let listening = self.listen(request.id, (wanted, permits), token);
            self.tasks.spawn(async move {
                let _held = entered;
                listening.await;
            });
            return;
        }
        let about = About::of(&self.principal, &request, &params);
        let running = match self.gateway.rounds.resume(&request, &params, &about) {
            Resumed::Other => self.gateway.start(request, params, Client { facts, session: None }),
            Resumed::On(running) => running,
            Resumed::Again(question) => return self.out.answer(&request.id, &Ok(question)).await,
            Resumed::Refused(error) => return self.out.send(refusal(Some(&request.id), &error)).await,
        };
        let (gateway, out) = (Arc::clone(&self.gateway), self.out.clone());
        self.tasks.spawn(async move {
            let _entered = entered;
            tokio::select! {
                () = run(gateway, running, (about, out)) => {}
                () = token.cancelled() => {}
            }
        });
    }

    /// Sends a modern client the notifications of a `subscriptions/listen` request until that is cancelled.
    fn listen(
        &self,
        id: RawJson,
        (wanted, permits): (Wanted, ListenPermits),
        token: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (gateway, out, closing) =
            (Arc::clone(&self.gateway), self.out.clone(), self.gateway.closing.clone());
        async move {
            let mut news = gateway.backend.news();
            let ListenPermits { stream, subscriptions } = permits;
            let _held = tokio::select! {
                watched = gateway.subscribe_all(subscriptions) => (stream, watched),
                () = token.cancelled() => return,
            };
            out.send(wanted.acknowledgement(&id)).await;
            loop {
                let piece = tokio::select! {
                    () = closing.cancelled() => {
                        out.answer(&id, &Ok(farewell(&id))).await;
                        break;
                    }
                    () = token.cancelled() => break,
                    piece = news.recv() => piece,
                };
                let pieces = match piece {
                    Ok(piece) => vec![piece],
                    // Notifications were lost. A redundant refresh of the lists does no harm.
                    Err(RecvError::Lagged(_)) => vec![News::Tools, News::Prompts, News::Resources],
                    Err(RecvError::Closed) => break,
                };
                for text in pieces.iter().filter_map(|piece| wanted.told(piece, &id)) {
                    out.send(one_line(text)).await;
                }
                if out.is_closed() {
                    break;
                }
            }
        }
    }
}

impl Drop for Duplex {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Some(session) = self.session().take() {
            session.close();
        }
    }
}

async fn run(gateway: Arc<Gateway>, mut running: Running, (about, out): (About, Outbox)) {
    loop {
        match running.step().await {
            Step::Tell(text) => out.send(one_line(text)).await,
            Step::Over(served) => return out.answer(&running.id, &served).await,
            Step::Ask(questions) => {
                let id = running.id.clone();
                let asking = gateway.rounds.park(running, questions, about);
                return out.answer(&id, &Ok(asking)).await;
            }
        }
        if out.is_closed() {
            return;
        }
    }
}

/// A registered modern request.
struct Entered {
    all: Arc<Mutex<HashMap<String, CancellationToken>>>,
    id: String,
}

impl Entered {
    fn new(
        all: &Arc<Mutex<HashMap<String, CancellationToken>>>,
        id: &RawJson,
        token: CancellationToken,
    ) -> Self {
        let id = id.get().to_owned();
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), token);
        Self { all: Arc::clone(all), id }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
