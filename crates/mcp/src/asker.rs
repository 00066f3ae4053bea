//! Whose requests are under way at a server: a question of the server's goes to whoever it concerns, and to nobody else.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use toolhub_core::caller::Answer;
use toolhub_core::lane::PerLane;
use toolhub_core::{CallContext, CallerLink, EventKind, RawJson, Source, TraceContext};

use crate::transport::Listener;

/// Somebody who wants something of a server and can be asked back. Whoever knows of them knows the same one.
#[derive(Debug, Clone)]
pub(crate) struct Asker(Arc<Wanting>);

/// What is known of them.
#[derive(Debug)]
pub(crate) struct Wanting {
    pub(crate) link: CallerLink,
    /// The call it is for, whose deadline waits while a question is open.
    call: Option<Arc<Follower>>,
    /// Questions to it that are open.
    open: AtomicUsize,
    /// What the server is told of the trace that the request is part of.
    pub(crate) trace: Option<TraceContext>,
}

impl Deref for Asker {
    type Target = Wanting;

    fn deref(&self) -> &Wanting {
        &self.0
    }
}

impl Asker {
    /// Somebody who wants something that is no call.
    pub(crate) fn new(link: CallerLink) -> Self {
        let trace = link.trace().cloned();
        Self(Arc::new(Wanting { link, call: None, open: AtomicUsize::new(0), trace }))
    }

    /// Whoever made a call, for an attempt at a source, which is a span of its own where traces are made.
    pub(crate) fn calling(link: CallerLink, call: &Arc<Follower>, source: impl FnOnce() -> Source) -> Self {
        let trace = link.trace().map(|trace| trace.with_span(fastrand::u64(1..)));
        if let Some(trace) = &trace {
            call.context.emit(EventKind::Traced { source: Some(source()), trace: trace.clone() });
        }
        Self(Arc::new(Wanting { link, call: Some(Arc::clone(call)), open: AtomicUsize::new(0), trace }))
    }

    pub(crate) async fn ask(&self, method: String, params: Option<RawJson>) -> Answer {
        self.open.fetch_add(1, Ordering::AcqRel);
        let _open = Open(self);
        if let Some(call) = &self.call {
            call.context.emit(EventKind::Questioned { method: method.clone() });
        }
        self.link.ask(method, params).await
    }
}

struct Open<'a>(&'a Asker);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
        if let Some(call) = &self.0.call {
            call.context.emit(EventKind::Answered);
        }
    }
}

#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// Hears of one call for its caller and for whoever follows it.
#[derive(Debug)]
pub(crate) struct Follower {
    context: CallContext,
    /// That it leaves is said once, however many requests it takes.
    left: AtomicBool,
}

impl Follower {
    pub(crate) fn new(context: CallContext) -> Self {
        Self { context, left: AtomicBool::new(false) }
    }
}

impl Listener for Follower {
    fn leaves(&self) {
        if !self.left.swap(true, Ordering::Relaxed) {
            self.context.sending();
        }
    }

    fn progress(&self, params: &RawJson) {
        if let Some(caller) = &self.context.caller {
            caller.progress(params);
        }
        if let Ok(Progress { progress, total, message }) = params.decode() {
            self.context.emit(EventKind::Progress { progress, total, message });
        }
    }
}

/// Those whose requests are under way, by the number of the request. Most are the newest when they go, and there are
/// hardly ever many.
#[derive(Debug, Default)]
pub(crate) struct Askers(PerLane<Here>);

/// Those of one lane.
type Here = Mutex<Vec<(u64, Asker)>>;

impl Askers {
    /// Notes a request, until what is given back is dropped.
    pub(crate) fn enter(&self, request: u64, asker: Asker) -> Known<'_> {
        let here = self.0.here();
        lock(here).push((request, asker));
        Known { here, request }
    }

    /// Who is behind what came on the stream of that request. Where no stream tells, and the requests of several
    /// clients are under way, nobody can say whom it concerns; and one must not hear what is meant for another.
    pub(crate) fn behind(&self, via: Option<u64>) -> Option<Asker> {
        if let Some(via) = via {
            let find = |here: &Here| lock(here).iter().find(|(request, _)| *request == via).cloned();
            return self.0.all().find_map(find).map(|(_, asker)| asker);
        }
        // Nobody comes or goes meanwhile. Whoever wants all of these locks takes them in the same order.
        let all: Vec<_> = self.0.all().map(lock).collect();
        let all: Vec<&(u64, Asker)> = all.iter().flat_map(|here| here.iter()).collect();
        // Whoever thinks about a question already is hardly asked another one: a request does one thing at a time.
        let idle = |asker: &Asker| asker.open.load(Ordering::Acquire) == 0;
        let any = all.iter().any(|(_, asker)| idle(asker));
        let asked = || all.iter().filter(|(_, asker)| !any || idle(asker));
        let (_, newest) = asked().max_by_key(|(request, _)| *request)?;
        asked().all(|(_, asker)| asker.link.client() == newest.link.client()).then(|| newest.clone())
    }
}

fn lock(here: &Here) -> MutexGuard<'_, Vec<(u64, Asker)>> {
    here.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that is noted.
pub(crate) struct Known<'a> {
    /// Where it is, wherever it ends.
    here: &'a Here,
    request: u64,
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.here);
        let place = all.iter().rposition(|(request, _)| *request == self.request);
        let gone = place.map(|place| all.swap_remove(place));
        drop(all);
        drop(gone);
    }
}
