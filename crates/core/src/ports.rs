//! The traits between the crates: the engine's interfaces to sources, stores and event sinks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::approval::Approvals;
pub use crate::boxed::{BoxFuture, boxed};
use crate::call::{CallId, ToolCall};
use crate::call_log::{CallHistory, CallLog};
use crate::caller::CallerHandle;
use crate::conversation::Conversations;
use crate::error::{Seconds, ToolError};
use crate::event::{Event, EventKind};
use crate::json::RawJson;
use crate::lang::LocalizedText;
use crate::nested::NestedTools;
use crate::outcome::{Outcome, OutcomeVerification, ToolOutput};
use crate::responses::Responses;
use crate::shared_state::SharedState;
use crate::source::{ServerId, Source};
pub use crate::store_error::StoreError;
use crate::tool::{Tool, ToolName};

/// Receives events. Must not block.
pub trait EventSink: Send + Sync {
    /// Receives one event.
    fn emit(&self, event: Event);

    /// Whether events are ignored, so that callers need not create them.
    fn is_disabled(&self) -> bool {
        false
    }

    /// Receives the event that the request of a call is being sent, which occurs in every call.
    fn sending(&self, call: &CallId) {
        self.emit(Event::now(Some(call.clone()), EventKind::Sending));
    }
}

/// A sink that ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn emit(&self, _: Event) {}

    fn is_disabled(&self) -> bool {
        true
    }
}

/// The context of a running call for its host. Dropping the call's future cancels the call.
#[derive(Clone)]
pub struct CallContext {
    /// The call.
    pub call: CallId,
    /// The conversation it belongs to.
    pub conversation: Option<Arc<str>>,
    /// The caller, if it can receive messages.
    pub caller: Option<CallerHandle>,
    /// The event sink.
    pub events: Arc<dyn EventSink>,
    /// The tools that the tool may call for its caller; `None` if the tool decides that by itself.
    pub nested: Option<Arc<dyn NestedTools>>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").field("call", &self.call).finish()
    }
}

impl CallContext {
    /// Reports that the request is being sent. Every host must call this: from here on the call may take effect, and
    /// its deadline runs.
    pub fn sending(&self) {
        self.events.sending(&self.call);
    }

    /// Emits an event of this call.
    pub fn emit(&self, kind: EventKind) {
        self.events.emit(Event::now(Some(self.call.clone()), kind));
    }
}

/// The code that calls the tools of one source.
pub trait ToolHost: Send + Sync {
    /// The source.
    fn source(&self) -> Source;

    /// Runs one tool. Dropping the future cancels the call, and notifies the server.
    fn call<'a>(
        &'a self,
        tool: &'a Tool,
        arguments: &'a RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Runs calls from start to end: routing, attempts, checks and recording.
pub trait ToolCaller: Send + Sync {
    /// Runs one call. Dropping the future cancels it.
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Outcome>;

    /// Checks the plausibility of a result; `None` if there is none.
    fn verify<'a>(
        &'a self,
        call: &'a ToolCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Option<OutcomeVerification>>;
}

/// Results to merge.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// The called tool.
    pub tool: ToolName,
    /// The user's request in natural language, if known.
    pub request: Option<String>,
    /// The results, each with its source.
    pub texts: Vec<(Source, String)>,
}

/// Merges several results into one text: a language model.
pub trait Synthesizer: Send + Sync {
    /// One text that combines all results.
    fn merge(&self, request: MergeRequest) -> BoxFuture<'_, Result<String, ToolError>>;
}

/// The last known tool list of a server. The default is that of a server that was never listed.
#[derive(Debug, Clone, Default)]
pub struct CachedList {
    /// Hash of the configuration under which it was listed; a different configuration invalidates the list.
    pub fingerprint: String,
    /// The MCP protocol generation of the server.
    pub era: String,
    /// The name that the server reports.
    pub peer: String,
    /// When it was listed; `None` if only a failure is known.
    pub listed_at: Option<SystemTime>,
    /// The time to live that the server specified, if any.
    pub ttl: Option<Duration>,
    /// The raw definitions.
    pub tools: Vec<RawJson>,
    /// Unusable tools, each with the reason.
    pub skipped: Vec<LocalizedText>,
    /// Time and reason of the last failure, if the server has not worked since.
    pub failure: Option<(SystemTime, LocalizedText)>,
    /// Number of consecutive failed or aborted connections; 0 if the server responded, even with an error.
    pub failures: u32,
    /// When a call last gave up waiting for the list.
    pub late_at: Option<SystemTime>,
    /// How long a call that needed the server waited for it; `None` if no such call gave up. Calls that do not need
    /// the server are not counted.
    pub late_after: Option<Duration>,
}

impl CachedList {
    /// The known problem of the server: its failure, or, if nothing else is known, that it was not listed in the time
    /// that a call had.
    pub fn known_problem(&self) -> Option<LocalizedText> {
        let failure = self.failure.as_ref().map(|(_, why)| why.clone());
        let late = |after: Duration| {
            let after = Seconds(after);
            LocalizedText::new(
                format!("it was not ready within the {after} that a call waited for it"),
                format!("调用等了它 {after}，它仍未就绪"),
            )
        };
        failure.or_else(|| self.late_after.filter(|_| self.listed_at.is_none()).map(late))
    }
}

/// The last received list of a server's other offers, such as prompts.
#[derive(Debug, Clone)]
pub struct CachedOffers {
    /// Hash of the server's configuration.
    pub fingerprint: String,
    /// The member of the response that contains the list, such as `prompts`.
    pub kind: String,
    /// When it was received.
    pub listed_at: SystemTime,
    /// The raw items.
    pub items: Vec<RawJson>,
}

/// Persistent storage of tool lists.
pub trait ToolListStore: Send + Sync {
    /// All lists.
    fn load(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedList)>, StoreError>>;

    /// Stores a server's list; replaces the previous one.
    fn save<'a>(
        &'a self,
        server: &'a ServerId,
        list: &'a CachedList,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// All lists of prompts and resources.
    fn load_offers(&self) -> BoxFuture<'_, Result<Vec<(ServerId, CachedOffers)>, StoreError>>;

    /// Replaces one server's list of one kind.
    fn save_offers<'a>(
        &'a self,
        server: &'a ServerId,
        offers: &'a CachedOffers,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes all lists of a server under one configuration.
    fn forget<'a>(
        &'a self,
        server: &'a ServerId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// One version of a tool's definition.
#[derive(Debug, Clone)]
pub struct ToolVersion {
    /// The definition's hash.
    pub version: String,
    /// The raw definition.
    pub definition: RawJson,
    /// When it was first listed.
    pub first_seen: SystemTime,
    /// When it was last listed.
    pub last_seen: SystemTime,
}

/// The version history of tools.
pub trait ToolVersions: Send + Sync {
    /// All known definitions of a tool, newest first.
    fn history<'a>(
        &'a self,
        server: &'a ServerId,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ToolVersion>, StoreError>>;
}

/// The complete storage of a hub.
pub trait HubStore:
    ToolListStore + ToolVersions + CallLog + CallHistory + Conversations + Approvals + Responses + SharedState
{
    /// Waits until all pending data is written; called at the end of a program.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Number of calls since the store was opened whose details were dropped, because the queue was full or writing
    /// failed. A hub warns its user when it grows.
    fn dropped_details(&self) -> u64 {
        0
    }
}
