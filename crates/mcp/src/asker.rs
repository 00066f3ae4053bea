//! Whose requests are under way at a server: a question of the server's goes to whoever it concerns, and to nobody else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolhub_core::caller::Answer;
use toolhub_core::{CallContext, CallerLink, EventKind, RawJson, Source, TraceContext};

/// Somebody who wants something of a server and can be asked back.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) link: CallerLink,
    /// The call it is for, whose deadline waits while a question is open.
    pub(crate) context: Option<CallContext>,
    /// Questions to it that are open.
    pub(crate) open: Arc<AtomicUsize>,
    /// What the server is told of the trace that the request is part of.
    pub(crate) trace: Option<TraceContext>,
}

impl Asker {
    pub(crate) fn new(link: CallerLink, context: Option<CallContext>) -> Self {
        let trace = link.trace().cloned();
        Self { link, context, open: Arc::default(), trace }
    }

    /// The same for an attempt at a source, which is a span of its own where traces are made.
    pub(crate) fn at(mut self, source: impl FnOnce() -> Source) -> Self {
        if let (Some(trace), Some(context)) = (&mut self.trace, &self.context) {
            *trace = trace.with_span(fastrand::u64(1..));
            context.emit(EventKind::Traced { source: Some(source()), trace: trace.clone() });
        }
        self
    }

    pub(crate) async fn ask(&self, method: String, params: Option<RawJson>) -> Answer {
        self.open.fetch_add(1, Ordering::AcqRel);
        let _open = Open(self);
        if let Some(context) = &self.context {
            context.emit(EventKind::Questioned { method: method.clone() });
        }
        self.link.ask(method, params).await
    }
}

struct Open<'a>(&'a Asker);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
        if let Some(context) = &self.0.context {
            context.emit(EventKind::Answered);
        }
    }
}

/// Those whose requests are under way, by the number of the request.
#[derive(Debug, Default)]
pub(crate) struct Askers(Mutex<BTreeMap<u64, Asker>>);

impl Askers {
    /// Notes a request, until what is given back is dropped.
    pub(crate) fn enter(self: &Arc<Self>, request: u64, asker: Asker) -> Known {
        self.all().insert(request, asker);
        Known { askers: Arc::clone(self), request }
    }

    /// Who is behind what came on the stream of that request. Where no stream tells, and the requests of several
    /// clients are under way, nobody can say whom it concerns; and one must not hear what is meant for another.
    pub(crate) fn behind(&self, via: Option<u64>) -> Option<Asker> {
        let all = self.all();
        if let Some(via) = via {
            return all.get(&via).cloned();
        }
        // Whoever thinks about a question already is hardly asked another one: a request does one thing at a time.
        let idle = |asker: &&Asker| asker.open.load(Ordering::Acquire) == 0;
        let any = all.values().any(|asker| idle(&asker));
        let mut asked = all.values().filter(|asker| !any || idle(asker));
        let newest = asked.next_back()?;
        asked.all(|asker| asker.link.client() == newest.link.client()).then(|| newest.clone())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Asker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is noted.
pub(crate) struct Known {
    askers: Arc<Askers>,
    request: u64,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.askers.all().remove(&self.request);
    }
}
