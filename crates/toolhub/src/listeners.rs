//! Combines the event sinks of a hub into one.

use std::sync::Arc;

use toolhub_core::{Event, EventSink};

/// Forwards every event to each sink.
#[derive(Default)]
pub struct Listeners(pub(crate) Vec<Arc<dyn EventSink>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Listeners").field(&self.0.len()).finish()
    }
}

impl Listeners {
    /// Combines these sinks.
    pub fn new(listeners: Vec<Arc<dyn EventSink>>) -> Self {
        Self(listeners)
    }
}

impl EventSink for Listeners {
    fn emit(&self, event: Event) {
        let Some((last, others)) = self.0.split_last() else { return };
        for listener in others {
            listener.emit(event.clone());
        }
        last.emit(event);
    }

    fn is_disabled(&self) -> bool {
        self.0.is_empty()
    }
}
