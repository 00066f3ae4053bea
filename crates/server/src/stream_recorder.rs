//! Access records of requests on a bidirectional stream such as stdio: each is kept from the request line to the response
//! line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolhub_core::access_record::AccessTrace;
use toolhub_core::{AccessRecord, Event, EventKind, EventSink, RequestTransport};
use toolhub_mcp_gateway::{PrincipalHandle, RequestContext, StepUp};

use crate::envelope::Envelope;
use crate::telemetry::Sampler;

/// Maximum number of open records. Requests that a client cancels get no response and stay open.
const MAX_OPEN_RECORDS: usize = 1_024;

/// Keeps the access records of one client.
pub struct StreamRecorder {
    events: Arc<dyn EventSink>,
    principal: PrincipalHandle,
    sampler: Option<Sampler>,
    open: Mutex<HashMap<String, OpenRecord>>,
}

struct OpenRecord {
    began: Instant,
    envelope: Envelope,
    trace: Option<AccessTrace>,
}

impl std::fmt::Debug for StreamRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamRecorder").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl StreamRecorder {
    /// Creates the records of that client. None are kept if the event sink is disabled.
    pub fn new(events: Arc<dyn EventSink>, principal: PrincipalHandle, sampler: Option<Sampler>) -> Self {
        Self { events, principal, sampler, open: Mutex::default() }
    }

    /// Opens the record of a request line. Returns the context of the request.
    pub fn open_record(&self, line: &str) -> RequestContext {
        let mut context =
            RequestContext { principal: self.principal.clone(), trace: None, step_up: StepUp::default() };
        if self.events.is_disabled() {
            return context;
        }
        let mut envelope = Envelope::read(line.as_bytes());
        let (Some(id), Some(_)) = (envelope.id.clone(), &envelope.method) else { return context };
        let parent = envelope.trace.take();
        context.trace = self.sampler.map(|sampler| sampler.join(parent.as_ref()));
        let own = context.trace.clone();
        let trace = own.map(|own| AccessTrace { own, parent: parent.map(|parent| parent.span()) });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_OPEN_RECORDS {
            let oldest = open.iter().min_by_key(|(_, one)| one.began).map(|(id, _)| id.clone());
            open.remove(&oldest.unwrap_or_default());
        }
        open.insert(id, OpenRecord { began: Instant::now(), envelope, trace });
        context
    }

    /// Closes the record of the request that a response line answers.
    pub fn close_record(&self, line: &str) {
        if self.events.is_disabled() {
            return;
        }
        let answer = Envelope::read(line.as_bytes());
        let Some(id) = answer.id.filter(|_| answer.method.is_none()) else { return };
        let open_record = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some(OpenRecord { began, envelope, trace }) = open_record else { return };
        let access_record = AccessRecord {
            principal: Some(self.principal.as_str().into()),
            transport: RequestTransport::Stdio,
            method: envelope.method,
            tool: envelope.tool,
            error: answer.error,
            bytes: line.len() as u64 + 1,
            took: began.elapsed(),
            trace,
        };
        self.events.emit(Event::now(None, EventKind::RequestServed(Box::new(access_record))));
    }
}
