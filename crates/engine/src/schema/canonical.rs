//! Canonical texts of values, equal if JSON Schema considers the values equal: members sorted, `1.0` written as `1`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::budget::{BudgetExhausted, StepBudget};

/// Steps for sorting, per member.
const SORT_STEPS: u64 = 8;

/// The canonical text of a value.
pub(super) fn text(value: &Value, steps: &StepBudget) -> Result<String, BudgetExhausted> {
    let mut out = String::new();
    write(value, steps, &mut out)?;
    Ok(out)
}

fn write(value: &Value, steps: &StepBudget, out: &mut String) -> Result<(), BudgetExhausted> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, steps, out)?,
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, steps, out)?;
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<(&String, &Value)> = members.iter().collect();
            // Sorting needs several comparisons per member.
            steps.spend(u64::try_from(names.len()).unwrap_or(u64::MAX).saturating_mul(SORT_STEPS))?;
            names.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in names {
                write_string(name, steps, out)?;
                write(value, steps, out)?;
                out.push(',');
            }
            out.push('}');
        }
    }
    steps.spend(2)
}

/// Starts with the length, so that the text is unambiguous.
fn write_string(text: &str, steps: &StepBudget, out: &mut String) -> Result<(), BudgetExhausted> {
    steps.spend_len(text.len(), 32)?;
    let _ = write!(out, "\"{}:{text}", text.len());
    Ok(())
}

fn write_number(number: &Number, out: &mut String) {
    // Integers up to 2^53 are exact as `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let integral = number.as_f64().filter(|_| number.is_f64()).filter(|float| float.fract() == 0.0);
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    let _ = match integral.filter(|float| float.abs() <= EXACT) {
        Some(float) => write!(out, "{}", float as i64),
        None => write!(out, "{number}"),
    };
}
