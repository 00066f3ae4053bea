//! Compares numbers by their decimal representation.

use std::cmp::Ordering;

use serde_json::Number;

use super::verdict::Verdict;

pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return one.cmp(&other);
    }
    let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

/// Whether a number is a multiple of another, both as decimal fractions: `0.3` is a multiple of `0.1`.
pub(super) fn is_multiple(value: &Number, of: &Number) -> Verdict {
    let scaled = decimal(value).zip(decimal(of)).and_then(|((value, digits), (of, of_digits))| {
        let scale =
            |number: i128, up: u32| 10_i128.checked_pow(up).and_then(|power| number.checked_mul(power));
        let most = digits.max(of_digits);
        Some((scale(value, most.abs_diff(digits))?, scale(of, most.abs_diff(of_digits))?))
    });
    match scaled {
        Some((value, of)) if of != 0 => (value % of == 0).into(),
        _ => Verdict::Undecided,
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The digits of a number without the decimal point, and the number of fractional digits.
fn decimal(number: &Number) -> Option<(i128, i32)> {
    if let Some(integer) = integer(number) {
        return Some((integer, 0));
    }
    let text = format!("{:e}", number.as_f64()?);
    let (mantissa, exponent) = text.split_once('e')?;
    let (before, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    Some((digits, places - exponent.parse::<i32>().ok()?))
}
