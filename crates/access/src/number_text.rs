//! Numbers that every JSON parser reads alike. Parsers read numbers as doubles (JavaScript), as integers of 64 bits or as exact
//! decimals, so a number with more digits than a double keeps is another value for some of them.

/// Whether a double and an exact decimal of this JSON number are the same value to a program that prints it.
pub(crate) fn is_read_alike(text: &str) -> bool {
    let Ok(double) = text.parse::<f64>() else { return false };
    if !double.is_finite() {
        return false;
    }
    // An integer that a double has exactly, even if fewer digits would name it.
    if let Ok(integer) = text.parse::<i128>() {
        return double as i128 == integer;
    }
    // The shortest digits that name the double.
    match (Decimal::parse(text), Decimal::parse(&format!("{double:e}"))) {
        (Some(written), Some(read)) => written == read,
        _ => false,
    }
}

/// The digits of a number without zeros at their ends, and the power of ten of the last digit.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// `None` if the exponent has more than 64 bits.
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (integer_part, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = format!("{integer_part}{fraction}");
        let mut exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let significant = digits.trim_end_matches('0').len();
        exponent = exponent.checked_add(i64::try_from(digits.len() - significant).ok()?)?;
        digits.truncate(significant);
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits, exponent: 0 });
        }
        Some(Self { is_negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn finds_numbers_that_a_double_changes() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "5",
            "5.0",
            "5e0",
            "50e-1",
            "0.1",
            "1e2",
            "1E+2",
            "100.000",
            "1e300",
            "9007199254740992",
            "1152921504606846976",
            "-9007199254740994",
            "0.000001",
            "1.7976931348623157e308",
        ] {
            assert!(is_read_alike(text), "{text}");
        }
        for text in [
            "9007199254740993",
            "1234567890123456789",
            "1234567890123456789.0",
            "1.234567890123456789e18",
            "100.00000000000000001",
            "4.99999999999999999999",
            "1e400",
            "1e-400",
            "1e99999999999999999999",
            "123456789012345678901234567890",
        ] {
            assert!(!is_read_alike(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_double_is_read_alike_as_it_is_printed(double in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            let value = serde_json::Value::from(double).to_string();
            prop_assert!(is_read_alike(&value), "{value}");
            let exponent = format!("{double:e}");
            prop_assert!(is_read_alike(&exponent), "{exponent}");
        }

        #[test]
        fn integers_are_read_alike_if_a_double_has_them(integer in any::<i64>()) {
            let is_exact = (integer as f64) as i128 == i128::from(integer);
            prop_assert_eq!(is_read_alike(&integer.to_string()), is_exact);
        }
    }
}
