//! Everybody who listens to the hub's events, as one listener.

use std::sync::Arc;

use toolhub_core::{Event, EventSink};

/// Passes every event on to each listener.
#[derive(Default)]
pub(crate) struct Listeners(pub(crate) Vec<Arc<dyn EventSink>>);

impl EventSink for Listeners {
    fn emit(&self, event: Event) {
        let Some((last, others)) = self.0.split_last() else { return };
        for listener in others {
            listener.emit(event.clone());
        }
        last.emit(event);
    }

    fn is_deaf(&self) -> bool {
        self.0.is_empty()
    }
}
