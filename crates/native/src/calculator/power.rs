//! Powers that would take fend too long.

use toolhub_core::lang::LocalizedText;

use super::fend::Fend;

/// Maximum degree of a root that fend computes in acceptable time; above it, floating point is as accurate.
const MAX_ROOT: u32 = 60;

/// A power of a fraction with more digits than this is rounded: fend's fractions are slow.
const MAX_DIGITS: usize = 1_000;

/// The kind of an exponent.
enum Exponent {
    Whole(i64),
    /// A fraction with a small denominator.
    Root,
    Other,
    Unknown,
}

impl Fend<'_> {
    /// fend computes integer powers and roots, exactly if possible. Large powers of fractions and exponents such as
    /// `pi` would not terminate in time, so they are approximated here.
    pub(super) fn power(&mut self, name: &str, base: &str, exponent: &str) -> Result<(), LocalizedText> {
        let exponent_name = format!("{name}_exponent");
        self.assign(&exponent_name, exponent)?;
        match self.exponent(&exponent_name) {
            Exponent::Whole(times) => {
                if let Some(digits) = self.fraction_digits(base)
                    && digits.saturating_mul(times.unsigned_abs() as usize) > MAX_DIGITS
                {
                    return self.rounded_power(name, base, times);
                }
            }
            Exponent::Other => {
                if let Some(value) = self.float_power(base, &exponent_name) {
                    return self.assign(name, &format!("approximately {value}"));
                }
            }
            Exponent::Root | Exponent::Unknown => {}
        }
        self.assign(name, &format!("{base} ^ {exponent_name}"))
    }

    fn exponent(&mut self, exponent_name: &str) -> Exponent {
        let Ok(text) = self.show(&format!("{exponent_name} to fraction")) else { return Exponent::Unknown };
        if let Ok(times) = text.parse() {
            return Exponent::Whole(times);
        }
        let degree = text.split_once('/').and_then(|(_, below)| below.parse::<u32>().ok());
        match degree {
            _ if text.starts_with("approx.") => Exponent::Other,
            Some(degree) if degree <= MAX_ROOT => Exponent::Root,
            Some(_) => Exponent::Other,
            None => Exponent::Unknown,
        }
    }

    /// The number of digits of a fraction; `None` for integers, units and other values.
    fn fraction_digits(&mut self, base: &str) -> Option<usize> {
        self.assign("_base", base).ok()?;
        let text = self.show("_base to fraction").ok()?;
        let text = text.trim_start_matches("approx. ");
        let fits = |c: char| c.is_ascii_digit() || matches!(c, '/' | '-');
        (text.contains('/') && text.chars().all(fits)).then_some(text.len())
    }

    /// An integer power by repeated squaring, with every product rounded to a fixed number of places for speed.
    fn rounded_power(&mut self, name: &str, base: &str, times: i64) -> Result<(), LocalizedText> {
        self.assign("_factor", base)?;
        // The number of decimal places is fixed, so the factor must be at least 1.
        let shrinks = self.float("_factor").is_some_and(|factor| factor.abs() < 1.0);
        if shrinks {
            self.assign("_factor", "1 / _factor")?;
        }
        self.assign("_power", "1")?;
        let mut remaining = times.unsigned_abs();
        while remaining > 0 {
            if remaining & 1 == 1 {
                self.assign("_power", "_power * _factor")?;
                self.cut("_power")?;
            }
            remaining >>= 1;
            if remaining > 0 {
                self.assign("_factor", "_factor * _factor")?;
                self.cut("_factor")?;
            }
        }
        if shrinks == (times > 0) {
            self.assign("_power", "1 / _power")?;
        }
        self.assign(name, "approximately _power")
    }

    /// Rounds a number to a hundred places.
    fn cut(&mut self, name: &str) -> Result<(), LocalizedText> {
        let formatted = self.show(&format!("{name} to 100 dp"))?;
        self.assign(name, formatted.trim_start_matches("approx. "))
    }

    fn float_power(&mut self, base: &str, exponent: &str) -> Option<String> {
        let value = self.float(base)?.powf(self.float(exponent)?);
        (value.is_finite() && value != 0.0).then(|| format!("{value}"))
    }

    pub(super) fn float(&mut self, text: &str) -> Option<f64> {
        let exponent_name = self.assign("_float", text).and_then(|()| self.show("_float to 25 dp"));
        let mut formatted = exponent_name.ok()?;
        if formatted.contains("0.0000000000") {
            formatted = self.show("_float to 25 sf").ok()?;
        }
        formatted.trim_start_matches("approx. ").parse().ok()
    }
}
