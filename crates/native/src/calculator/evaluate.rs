//! Evaluates a plan with fend and formats the result.

use toolhub_core::lang::LocalizedText;

use super::digits::{self, DigitLimits};
use super::errors;
use super::fend::{Fend, Interrupter};
use super::steps::{CalculationPlan, Operation, Precision, Step};

/// Reliable digits of an inexact value: fend computes roots and functions in floating point.
const FLOAT_DIGITS: usize = 15;

/// Evaluates a plan to text.
pub(super) fn evaluate(plan: &CalculationPlan, stop: &Interrupter<'_>) -> Result<String, LocalizedText> {
    let mut fend = Fend::new(stop);
    for step in &plan.steps {
        if stop.is_due() {
            return Err(errors::time_limit_exceeded(stop.limit));
        }
        match step {
            Step::Assign { name, text } => fend.assign(name, text)?,
            Step::Operation { name, operation } => match operation {
                Operation::Power(base, exponent) => fend.power(name, base, exponent)?,
                Operation::Round(direction, operand) => fend.round(name, *direction, operand)?,
                Operation::Logarithm(base, number) => fend.logarithm(name, base, number)?,
                Operation::SquareRoot(operand) => fend.square_root(name, operand)?,
                Operation::Tangent(operand) => fend.tangent(name, operand)?,
                Operation::Remainder(dividend, divisor) => fend.remainder(name, dividend, divisor)?,
                Operation::CommonDivisor(one, other) => fend.common_divisor(name, one, other)?,
            },
        }
    }
    let formatted = fend.show(&plan.answer)?;
    if !is_value(&formatted, plan.precision) {
        return Err(LocalizedText::new(
            "the result is no number: give functions their arguments, as in `sqrt(2)`",
            "结果不是数字：请给函数写上参数，例如 `sqrt(2)`",
        ));
    }
    let is_rounded = formatted.starts_with("approx.");
    match plan.precision {
        Precision::Formatted => Ok(formatted),
        Precision::Unspecified if !is_rounded => Ok(formatted),
        precision => Ok(digits_of(&mut fend, precision, &plan.answer).unwrap_or(formatted)),
    }
}

/// Whether fend's output is a value: a function without argument is printed as its name or body.
fn is_value(formatted: &str, precision: Precision) -> bool {
    let bare = formatted.trim_start_matches('-');
    match precision {
        _ if formatted.starts_with('\\') => false,
        Precision::Formatted => true,
        _ => matches!(bare, "true" | "false" | "i") || formatted.contains(|c: char| c.is_ascii_digit()),
    }
}

/// The result with the requested digits; `None` for values without digits, such as `true`.
fn digits_of(fend: &mut Fend<'_>, precision: Precision, answer: &str) -> Option<String> {
    let digit_count = match precision {
        Precision::Decimal(count) | Precision::Significant(count) => count + digits::EXTRA_DIGITS,
        _ => digits::EXTRA_DIGITS,
    };
    let is_inexact = fend.show(&format!("{answer} to fraction")).ok()?.starts_with("approx.");
    let mut long = fend.show(&format!("{answer} to {digit_count} dp")).ok()?;
    if long.trim_start_matches("approx. ").trim_start_matches('-').starts_with("0.0000000000") {
        long = fend.show(&format!("{answer} to {digit_count} sf")).ok()?;
    }
    let limits = DigitLimits { precision, trusted: if is_inexact { FLOAT_DIGITS } else { usize::MAX } };
    let rounded = digits::round_all(&long, limits);
    let was_cut = rounded != long && !rounded.starts_with("approx.");
    Some(if was_cut { format!("approx. {rounded}") } else { rounded })
}
