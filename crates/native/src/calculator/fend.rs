//! Runs fend statement by statement, within a deadline.

use std::time::{Duration, Instant};

use fend_core::{Context, CustomUnitAttribute, Interrupt, evaluate, evaluate_with_interrupt};

use toolhub_core::lang::LocalizedText;

use super::currencies::CURRENCIES;
use super::engine_messages;
use crate::blocking::Cancelled;

/// Units missing in fend, and those that it reads as millibits, which is never intended.
const UNITS: [(&str, &str); 9] = [
    ("Kb", "kilobit"),
    ("kb", "kB"),
    ("mb", "MB"),
    ("gb", "GB"),
    ("tb", "TB"),
    ("mbps", "Mbps"),
    ("kbit", "kilobit"),
    ("Mbit", "megabit"),
    ("Gbit", "gigabit"),
];

/// Whether a word is a unit, a constant or a function.
pub(super) fn is_unit(word: &str) -> bool {
    match evaluate(word, &mut context()) {
        Ok(_) => true,
        Err(message) => !engine_messages::is_unknown_identifier(&message),
    }
}

fn context() -> Context {
    let mut context = Context::new();
    for (symbol, names) in CURRENCIES {
        context.define_custom_unit_v1(symbol, "", "!", &CustomUnitAttribute::None);
        for name in names {
            context.define_custom_unit_v1(name, "", symbol, &CustomUnitAttribute::Alias);
        }
    }
    for (name, meaning) in UNITS {
        context.define_custom_unit_v1(name, "", meaning, &CustomUnitAttribute::Alias);
    }
    context
}

/// When to stop: at a deadline, or on cancellation.
pub(super) struct Interrupter<'a> {
    pub(super) deadline: Instant,
    pub(super) limit: Duration,
    pub(super) cancelled: &'a Cancelled,
}

impl Interrupter<'_> {
    pub(super) fn is_due(&self) -> bool {
        self.cancelled.is_set() || Instant::now() >= self.deadline
    }
}

impl Interrupt for Interrupter<'_> {
    fn should_interrupt(&self) -> bool {
        self.is_due()
    }
}

/// fend with its variables.
pub(super) struct Fend<'a> {
    context: Context,
    stop: &'a Interrupter<'a>,
}

impl<'a> Fend<'a> {
    pub(super) fn new(stop: &'a Interrupter<'a>) -> Self {
        Self { context: context(), stop }
    }

    /// Returns the value of `text`, as formatted by fend.
    pub(super) fn show(&mut self, text: &str) -> Result<String, LocalizedText> {
        self.context.set_echo_result(true);
        match evaluate_with_interrupt(text, &mut self.context, self.stop) {
            Ok(result) => Ok(result.get_main_result().to_owned()),
            Err(message) => Err(engine_messages::translate(&message, self.stop.limit)),
        }
    }

    /// Assigns the value of `text` to a variable.
    pub(super) fn assign(&mut self, name: &str, text: &str) -> Result<(), LocalizedText> {
        // Without echo: formatting a number of a million digits is the most expensive part.
        self.context.set_echo_result(false);
        match evaluate_with_interrupt(&format!("{name} = {text}"), &mut self.context, self.stop) {
            Ok(_) => Ok(()),
            Err(message) => Err(engine_messages::translate(&message, self.stop.limit)),
        }
    }
}
