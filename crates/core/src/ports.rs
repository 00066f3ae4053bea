//! The ports between the parts: what the engine needs of a source, a store and a listener.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::approval::Approvals;
use crate::call::{CallId, ToolCall};
use crate::caller::CallerLink;
use crate::conversation::Conversations;
use crate::error::{Seconds, ToolError};
use crate::event::{Event, EventKind};
use crate::json::RawJson;
use crate::lang::{Lang, Say, Text};
use crate::memory::{CallHistory, CallLog};
use crate::outcome::{Outcome, ToolOutput, Verification};
use crate::source::{ServerId, Source};
use crate::tool::{Tool, ToolName};

/// A future behind a pointer, as object-safe traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts a future behind a pointer. There is room for it before there is the future: one that was made before would be copied
/// there, and with it all the room that it has for later.
#[inline]
pub fn boxed<'a, T, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, T>
where
    F: Future<Output = T> + Send + 'a,
{
    let room = Box::<F>::new_uninit();
    let made: Box<F> = Box::write(room, make());
    Box::into_pin(made)
}

/// Somebody who listens to what happens. Must not block.
pub trait EventSink: Send + Sync {
    /// Hears of one event.
    fn emit(&self, event: Event);

    /// Whether nobody hears anything, so that events need not even be made.
    fn is_disabled(&self) -> bool {
        false
    }

    /// Hears that the request of a call now leaves for its tool: an event that every call has.
    fn sending(&self, call: &CallId) {
        self.emit(Event::now(Some(call.clone()), EventKind::Sending));
    }
}

/// A listener that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn emit(&self, _: Event) {}

    fn is_disabled(&self) -> bool {
        true
    }
}

/// What a host knows of the call that it serves. Dropping the call's future cancels the call.
#[derive(Clone)]
pub struct CallContext {
    /// Which call.
    pub call: CallId,
    /// The conversation it belongs to.
    pub conversation: Option<Arc<str>>,
    /// Who made it, where they can be reached.
    pub caller: Option<CallerLink>,
    /// Who listens.
    pub events: Arc<dyn EventSink>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").field("call", &self.call).finish()
    }
}

impl CallContext {
    /// Says that the request now leaves for the tool. A host must: from here on the call may take effect, and its
    /// deadline runs.
    pub fn sending(&self) {
        self.events.sending(&self.call);
    }

    /// Tells the listeners of something that belongs to this call.
    pub fn emit(&self, kind: EventKind) {
        self.events.emit(Event::now(Some(self.call.clone()), kind));
    }
}

/// The code that calls the tools of one source.
pub trait ToolHost: Send + Sync {
    /// Which source.
    fn source(&self) -> Source;

    /// Runs one tool. Dropping the future cancels the call, and tells whoever runs it.
    fn call<'a>(
        &'a self,
        tool: &'a Tool,
        arguments: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Somebody who runs calls from start to end: routed, tried, checked and written down.
pub trait ToolCaller: Send + Sync {
    /// Runs one call. Dropping the future cancels it.
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome>;

    /// What is held of an answer's truth; `None` where there is no answer.
    fn verify<'a>(&'a self, call: &'a ToolCall, outcome: &'a Outcome) -> BoxFuture<'a, Option<Verification>>;
}

/// Answers that are to be put together.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// What was called.
    pub tool: ToolName,
    /// What somebody asked for in words, where that is known.
    pub request: Option<String>,
    /// The answers, each with its source.
    pub texts: Vec<(Source, String)>,
}

/// Somebody who can put answers into one text: a language model.
pub trait Synthesizer: Send + Sync {
    /// One text that says what all of them say.
    fn merge(&self, request: MergeRequest) -> BoxFuture<'_, Result<String, ToolError>>;
}

/// A server's tools as they were last listed.
#[derive(Debug, Clone)]
pub struct CachedList {
    /// Hash of the configuration it was listed under; another configuration makes the list void.
    pub fingerprint: String,
    /// What generation of MCP the server spoke.
    pub era: String,
    /// What it calls itself.
    pub peer: String,
    /// When it was listed; never, where only a failure is known.
    pub listed_at: Option<SystemTime>,
    /// How long the server said the list keeps, where it said so.
    pub ttl: Option<Duration>,
    /// The definitions, as they were given.
    pub tools: Vec<RawJson>,
    /// Tools that could not be used, each with the reason.
    pub skipped: Vec<Text>,
    /// Why the server last failed, and when, if it has not served since.
    pub failure: Option<(SystemTime, Text)>,
    /// How often in a row it could not be connected or broke off; 0 where it answered, if only with an error.
    pub failures: u32,
    /// When a call last did not wait until it was listed.
    pub late_at: Option<SystemTime>,
    /// How long a call that needed the server waited for it; `None` if no such call gave up waiting. A call that could do
    /// without the server tells nothing about it.
    pub late_after: Option<Duration>,
}

impl CachedList {
    /// What is wrong with the server, as far as is known: why it failed; or, where nothing else is known of it, that it was
    /// not listed in the time that a call had.
    pub fn trouble(&self) -> Option<Text> {
        let failure = self.failure.as_ref().map(|(_, why)| why.clone());
        let late = |after: Duration| {
            let after = Seconds(after);
            Text::new(
                format!("it was not ready within the {after} that a call waited for it"),
                format!("调用等了它 {after}，它仍未就绪"),
            )
        };
        failure.or_else(|| self.late_after.filter(|_| self.listed_at.is_none()).map(late))
    }
}

/// A list of what a server offers beside tools, such as prompts, as it was last received.
#[derive(Debug, Clone)]
pub struct CachedOffers {
    /// Hash of the server's configuration.
    pub fingerprint: String,
    /// The member of the answer that holds the list, such as `prompts`.
    pub kind: String,
    /// When it was received.
    pub listed_at: SystemTime,
    /// The items, as they were given.
    pub items: Vec<RawJson>,
}

/// A store that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.say(Lang::En))]
pub struct StoreError(pub Text);

impl Say for StoreError {
    fn say(&self, lang: Lang) -> String {
        let why = self.0.say(lang);
        lang.pick(format!("the store failed: {why}"), format!("存储出错：{why}"))
    }
}

/// Where tool lists are kept between runs.
pub trait ToolListStore: Send + Sync {
    /// Every list there is.
    fn load(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedList)>, StoreError>>;

    /// Keeps one server's list in place of the one before.
    fn save<'a>(
        &'a self,
        server: &'a ServerId,
        list: &'a CachedList,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Every list of prompts and resources.
    fn load_offers(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedOffers)>, StoreError>>;

    /// Replaces one server's list of one kind.
    fn save_offers<'a>(
        &'a self,
        server: &'a ServerId,
        offers: &'a CachedOffers,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets all lists that a server had under one configuration.
    fn forget<'a>(
        &'a self,
        server: &'a ServerId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// One definition that a server gave for a tool.
#[derive(Debug, Clone)]
pub struct ToolVersion {
    /// The definition's hash.
    pub version: String,
    /// The definition, as it was given.
    pub definition: RawJson,
    /// When it was first listed.
    pub first_seen: SystemTime,
    /// When it was last listed.
    pub last_seen: SystemTime,
}

/// The history of tools.
pub trait ToolVersions: Send + Sync {
    /// Every definition that is known of a tool, newest first.
    fn history<'a>(
        &'a self,
        server: &'a ServerId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ToolVersion>, StoreError>>;
}

/// All that a hub keeps.
pub trait HubStore: ToolListStore + ToolVersions + CallLog + CallHistory + Conversations + Approvals {
    /// Waits until everything that was handed over is written; for the end of a program.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// How many noted calls have no details since the store was opened, because there were too many at once or they
    /// could not be written. A hub tells its owner when this grows.
    fn lost_details(&self) -> u64 {
        0
    }
}
