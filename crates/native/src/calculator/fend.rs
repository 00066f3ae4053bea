//! fend, one statement at a time, within a deadline.

use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt, evaluate_with_interrupt};

use super::explain::explain;
use crate::blocking::Cancelled;

/// When to stop: at a time, or because nobody waits any more.
pub(super) struct Stop<'a> {
    pub(super) deadline: Instant,
    pub(super) limit: Duration,
    pub(super) cancelled: &'a Cancelled,
}

impl Stop<'_> {
    pub(super) fn is_due(&self) -> bool {
        self.cancelled.is_set() || Instant::now() >= self.deadline
    }
}

impl Interrupt for Stop<'_> {
    fn should_interrupt(&self) -> bool {
        self.is_due()
    }
}

/// fend with its variables.
pub(super) struct Fend<'a> {
    context: Context,
    stop: &'a Stop<'a>,
}

impl<'a> Fend<'a> {
    pub(super) fn new(stop: &'a Stop<'a>) -> Self {
        Self { context: Context::new(), stop }
    }

    /// The value of `text`, as fend writes it.
    pub(super) fn show(&mut self, text: &str) -> Result<String, String> {
        self.context.set_echo_result(true);
        match evaluate_with_interrupt(text, &mut self.context, self.stop) {
            Ok(result) => Ok(result.get_main_result().to_owned()),
            Err(message) => Err(explain(&message, self.stop.limit)),
        }
    }

    /// Gives a variable the value of `text`.
    pub(super) fn assign(&mut self, name: &str, text: &str) -> Result<(), String> {
        // Not written out: a number of a million digits costs most when it is written.
        self.context.set_echo_result(false);
        match evaluate_with_interrupt(&format!("{name} = {text}"), &mut self.context, self.stop) {
            Ok(_) => Ok(()),
            Err(message) => Err(explain(&message, self.stop.limit)),
        }
    }
}
