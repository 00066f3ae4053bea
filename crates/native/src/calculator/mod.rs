//! `calculate`: exact arithmetic with units, by fend. This file defines its limits; the submodules parse and evaluate
//! expressions.

mod commas;
mod currencies;
mod digits;
mod engine_messages;
mod errors;
mod evaluate;
mod exact;
mod fend;
mod flat;
mod function_call;
mod functions;
mod normalise;
mod piece;
mod plan;
mod planner;
mod power;
mod rounding;
mod steps;
mod tokens;

use std::time::{Duration, Instant};

use toolhub_core::lang::LocalizedText;
use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

use crate::blocking::{self, Cancelled, Work};
use crate::localized_output::with_chinese;

const MAX_INPUT: usize = 10_000;
const MAX_OUTPUT: usize = 100_000;
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Calculates an arithmetic expression exactly: decimals, big integers, fractions, powers, roots, logarithms,
/// trigonometry, percentages and units.
///
/// Examples: `0.1 + 0.2`, `2^200`, `20% of 50`, `1/7 to 30 dp`, `5 km in miles`, `72 °F to °C`,
/// `max(3, 5) * 2`, `gcd(12, 18)`, `7 // 2` (3), `-7 mod 3` (2), `200 + 15%` (230), `x = 3; x^2 + 1`. A result that
/// had to be rounded starts with `approx.`. Angles are in radians unless written as `30°`; `kb` and `mb` are bytes.
/// No dates, exchange rates or random numbers.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn calculate(
    #[doc = "The expression, without words around it"] expression: String,
) -> Result<ToolOutput, ToolError> {
    let result = blocking::run(Work::Cpu, move |cancelled| {
        calculate_within(&expression, TIME_LIMIT, cancelled).map_err(ToolError::failed)
    });
    let result = result.await?;
    let message = match result.strip_prefix("approx. ") {
        Some(rounded) => LocalizedText::new(result.as_str(), format!("约 {rounded}")),
        None => LocalizedText::from(result),
    };
    ToolOutput::from_raw(with_chinese(&message).into_raw()).ok_or(ToolError::Internal)
}

fn calculate_within(
    expression: &str,
    limit: Duration,
    cancelled: &Cancelled,
) -> Result<String, LocalizedText> {
    let length = expression.chars().count();
    if length > MAX_INPUT {
        return Err(LocalizedText::new(
            format!("the expression has {length} characters, more than {MAX_INPUT}: calculate it in parts"),
            format!("表达式有 {length} 个字符，超过 {MAX_INPUT} 个：请分开计算"),
        ));
    }
    let stop = fend::Interrupter { deadline: Instant::now() + limit, limit, cancelled };
    let tokens = tokens::tokens(&normalise::normalise(expression))?;
    let result = evaluate::evaluate(&plan::plan(&tokens)?, &stop)?;
    let length = result.chars().count();
    if length > MAX_OUTPUT {
        return Err(LocalizedText::new(
            format!(
                "the result has {length} characters, more than {MAX_OUTPUT}: ask for fewer, as in `… to 20 sf`"
            ),
            format!("结果有 {length} 个字符，超过 {MAX_OUTPUT} 个：请减少位数，例如 `… to 20 sf`"),
        ));
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
