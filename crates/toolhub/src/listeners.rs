//! Everybody who listens to the hub's events, as one listener.

use std::sync::Arc;

use toolhub_core::{Event, EventSink};

/// Passes every event on to each listener.
#[derive(Default)]
pub struct Listeners(pub(crate) Vec<Arc<dyn EventSink>>);

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Listeners").field(&self.0.len()).finish()
    }
}

impl Listeners {
    /// All of these.
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
