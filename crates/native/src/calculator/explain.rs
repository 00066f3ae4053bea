//! Converts fend's errors to messages with a correction.

use std::time::Duration;

use super::fend;
use super::functions;

pub(super) const UNREADABLE: &str = "the expression cannot be read: an operator or an operand is missing";

pub(super) const NO_RATES: &str = "there are no exchange rates here: look up the rate, leave out the currency and multiply \
     by the rate";

/// Converts an error message of fend.
pub(super) fn explain(message: &str, limit: Duration) -> String {
    if let Some(name) = quoted(message, "unknown identifier '") {
        return unknown(name);
    }
    let hint = match message {
        "interrupted" => return gave_up(limit),
        "exchange rates are not available" => return NO_RATES.to_owned(),
        _ if message.split('\'').filter(|unit| fend::is_money(unit)).count() == 2 => {
            return NO_RATES.to_owned();
        }
        "unable to get the current date" => return "there is no clock here: use `get_time`".to_owned(),
        "random numbers are not available" => {
            return "there are no dice and no random numbers here".to_owned();
        }
        "division by zero" | "modulo by zero" => "the divisor comes to 0",
        "exponent too large" | "value is too large" => "calculate with the logarithm instead",
        "unexpected input found" | "expected a character" | "expected a token" | "error" => {
            return UNREADABLE.to_owned();
        }
        "expected a number" => "an operand is missing, or is no number",
        "right-hand side of unit conversion has a numerical value" => "name a unit alone after `to`",
        "expected an object" => "`of` follows a percentage: `20% of 50`",
        _ if message.contains("expected a value, instead found") => "an operand is missing",
        _ if message.contains("must lie in the interval") => "the argument is out of the function's range",
        _ => return message.to_owned(),
    };
    format!("{message}: {hint}")
}

/// The message of a calculation that exceeds the time limit.
pub(super) fn gave_up(limit: Duration) -> String {
    format!(
        "gave up after {} s: the numbers get too many digits; use smaller exponents, or calculate with the logarithm",
        limit.as_secs()
    )
}

/// The message of a call of an unknown function.
pub(super) fn unknown_function(name: &str) -> String {
    match crate::suggest::nearest(name, functions::names()).first() {
        None if name.is_ascii() => format!("`{name}` is not a known function"),
        _ => unknown(name),
    }
}

fn unknown(name: &str) -> String {
    if !name.is_ascii() {
        return format!(
            "`{name}` is not known: write units and functions in English, such as `km`, `kg`, `sqrt`"
        );
    }
    match crate::suggest::nearest(name, functions::names()).first() {
        Some(near) => format!("`{name}` is not known: did you mean `{near}`?"),
        None => format!(
            "`{name}` is not known as a unit, constant or function; give it a value with `{name} = 1; …`"
        ),
    }
}

fn quoted<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.strip_suffix('\'')
}
