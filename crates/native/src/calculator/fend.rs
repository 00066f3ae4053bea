//! Runs fend statement by statement, within a deadline.

use std::time::{Duration, Instant};

use fend_core::{Context, CustomUnitAttribute, Interrupt, evaluate, evaluate_with_interrupt};

use super::explain::explain;
use crate::blocking::Cancelled;

/// Currencies by their names; the first is displayed. fend itself only supports currencies with exchange rates.
const MONEY: [(&str, &[&str]); 11] = [
    ("$", &["USD", "美元"]),
    ("€", &["EUR", "欧元"]),
    ("£", &["GBP", "英镑"]),
    ("元", &["CNY", "RMB", "人民币", "块", "块钱"]),
    ("¥", &[]),
    ("JPY", &["日元"]),
    ("HKD", &["港币", "港元"]),
    ("₩", &["KRW", "韩元"]),
    ("₹", &["INR"]),
    ("BTC", &[]),
    ("ETH", &[]),
];

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

pub(super) fn is_money(name: &str) -> bool {
    MONEY.iter().any(|(shown, names)| *shown == name || names.contains(&name))
}

/// Whether a word is a unit, a constant or a function.
pub(super) fn knows(word: &str) -> bool {
    evaluate(word, &mut context()).err().is_none_or(|message| !message.starts_with("unknown identifier"))
}

fn context() -> Context {
    let mut context = Context::new();
    for (shown, names) in MONEY {
        context.define_custom_unit_v1(shown, "", "!", &CustomUnitAttribute::None);
        for name in names {
            context.define_custom_unit_v1(name, "", shown, &CustomUnitAttribute::Alias);
        }
    }
    for (name, meaning) in UNITS {
        context.define_custom_unit_v1(name, "", meaning, &CustomUnitAttribute::Alias);
    }
    context
}

/// When to stop: at a deadline, or on cancellation.
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
        Self { context: context(), stop }
    }

    /// Returns the value of `text`, as formatted by fend.
    pub(super) fn show(&mut self, text: &str) -> Result<String, String> {
        self.context.set_echo_result(true);
        match evaluate_with_interrupt(text, &mut self.context, self.stop) {
            Ok(result) => Ok(result.get_main_result().to_owned()),
            Err(message) => Err(explain(&message, self.stop.limit)),
        }
    }

    /// Assigns the value of `text` to a variable.
    pub(super) fn assign(&mut self, name: &str, text: &str) -> Result<(), String> {
        // Without echo: formatting a number of a million digits is the most expensive part.
        self.context.set_echo_result(false);
        match evaluate_with_interrupt(&format!("{name} = {text}"), &mut self.context, self.stop) {
            Ok(_) => Ok(()),
            Err(message) => Err(explain(&message, self.stop.limit)),
        }
    }
}
