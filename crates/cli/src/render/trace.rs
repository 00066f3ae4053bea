//! Prints the events of a run as lines on stderr: all of them with `--trace`, the most important ones with `-v`.

use std::sync::Arc;
use std::time::Instant;

use toolhub_core::{Event, EventKind, EventSink, Localize as _};
use toolhub_engine::definition_scan::escape_invisible;

use crate::render::screen::{BAD, DIM, GOOD, Screen};

pub(crate) struct TracePrinter {
    screen: Arc<Screen>,
    everything: bool,
    start: Instant,
}

impl TracePrinter {
    pub(crate) fn new(screen: Arc<Screen>, everything: bool) -> Self {
        Self { screen, everything, start: Instant::now() }
    }
}

impl EventSink for TracePrinter {
    fn emit(&self, event: Event) {
        let minor = matches!(
            event.kind,
            EventKind::ServerNote { .. }
                | EventKind::CallStarted { .. }
                | EventKind::AttemptStarted { .. }
                | EventKind::Sending
                | EventKind::Traced { .. }
        );
        if minor && !self.everything {
            return;
        }
        let style = match &event.kind {
            EventKind::AttemptFinished { error: Some(_), .. }
            | EventKind::ConnectFailed { .. }
            | EventKind::CallFinished { success: false, .. }
            | EventKind::InternalError { .. } => BAD,
            EventKind::AttemptFinished { .. } | EventKind::CallFinished { .. } => GOOD,
            _ => DIM,
        };
        let at = format!("{:>6} ms", self.start.elapsed().as_millis());
        let text = event.kind.localize(self.screen.lang);
        self.screen.to_stderr(&format!("{DIM}{at}{DIM:#}  {style}{}{style:#}", escape_invisible(&text)));
    }
}
