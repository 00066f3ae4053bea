//! The accounts of requests that come over one stream, as over stdin: each is kept from its line to the line that answers
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolhub_core::{Event, EventKind, EventSink, RequestWay, ServedRequest};
use toolhub_mcp::gateway::Principal;

use crate::envelope::Envelope;

/// Requests that are kept account of at a time; a client that gives requests up leaves them open.
const MOST: usize = 1_024;

/// Keeps account of the requests of one client.
pub struct StreamAccount {
    events: Arc<dyn EventSink>,
    principal: Principal,
    open: Mutex<HashMap<String, (Instant, Envelope)>>,
}

impl std::fmt::Debug for StreamAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamAccount").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl StreamAccount {
    /// The accounts of that client, where anybody listens.
    pub fn open(events: &Arc<dyn EventSink>, principal: Principal) -> Option<Self> {
        let events = Arc::clone(events);
        (!events.is_deaf()).then(|| Self { events, principal, open: Mutex::default() })
    }

    /// A line came in.
    pub fn hears(&self, line: &str) {
        let envelope = Envelope::read(line.as_bytes());
        let (Some(id), Some(_)) = (envelope.id.clone(), &envelope.method) else { return };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, (began, _))| *began).map(|(id, _)| id.clone());
            open.remove(&oldest.unwrap_or_default());
        }
        open.insert(id, (Instant::now(), envelope));
    }

    /// A line goes out.
    pub fn says(&self, line: &str) {
        let answer = Envelope::read(line.as_bytes());
        let Some(id) = answer.id.filter(|_| answer.method.is_none()) else { return };
        let asked = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some((began, envelope)) = asked else { return };
        let served = ServedRequest {
            principal: Some(self.principal.as_str().into()),
            way: RequestWay::Stdio { error: answer.error },
            method: envelope.method,
            tool: envelope.tool,
            bytes: line.len() as u64 + 1,
            took: began.elapsed(),
        };
        self.events.emit(Event::now(None, EventKind::Served(Box::new(served))));
    }
}
