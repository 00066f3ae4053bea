//! Exact results for operations that fend only approximates or lacks.

use toolhub_core::lang::LocalizedText;

use super::fend::Fend;
use super::steps::Direction;

impl Fend<'_> {
    /// A logarithm; exact if it is an integer.
    pub(super) fn logarithm(&mut self, name: &str, base: &str, number: &str) -> Result<(), LocalizedText> {
        match base {
            "e" => self.assign(name, &format!("ln {number}"))?,
            "2" | "10" => self.assign(name, &format!("log{base} {number}"))?,
            _ => {
                self.assign("_above", &format!("ln {number}"))?;
                self.assign("_below", &format!("ln {base}"))?;
                self.assign(name, "_above / _below")?;
            }
        }
        let Some(value) = self.float(name) else { return Ok(()) };
        let rounded = value.round();
        let is_close = (value - rounded).abs() < 1e-9 && rounded.abs() < 10_000.0;
        if is_close
            && self.power("_whole", base, &rounded.to_string()).is_ok()
            && self.are_equal("_whole", number)
        {
            return self.assign(name, &rounded.to_string());
        }
        Ok(())
    }

    /// A square root; that of a negative number is a multiple of `i`, for which fend would add a spurious real part.
    pub(super) fn square_root(&mut self, name: &str, operand: &str) -> Result<(), LocalizedText> {
        if !self.are_equal(&format!("abs {operand}"), &format!("- {operand}")) {
            return self.assign(name, &format!("sqrt {operand}"));
        }
        self.assign("_opposite", &format!("- {operand}"))?;
        self.assign(name, "sqrt _opposite * i")
    }

    /// A tangent; exact for 45°, like fend's sines.
    pub(super) fn tangent(&mut self, name: &str, operand: &str) -> Result<(), LocalizedText> {
        self.assign("_double", &format!("{operand} + {operand}"))?;
        match ["1", "-1"].into_iter().find(|value| self.are_equal("sin _double", value)) {
            Some(value) => self.assign(name, value),
            None => self.assign(name, &format!("tan {operand}")),
        }
    }

    /// The remainder of a division, with the sign of the divisor.
    pub(super) fn remainder(
        &mut self,
        name: &str,
        dividend: &str,
        divisor: &str,
    ) -> Result<(), LocalizedText> {
        // fend's own `mod` is fast, but only supports positive integers.
        if self.assign(name, &format!("{dividend} mod {divisor}")).is_ok() {
            return Ok(());
        }
        self.assign("_ratio", &format!("{dividend} / {divisor}"))?;
        // Fails if the ratio has a unit: both operands must have the same dimension.
        self.assign("_ratio", "_ratio + 1")?;
        self.assign("_ratio", "_ratio - 1")?;
        self.round("_floor", Direction::Down, "_ratio")?;
        self.assign(name, &format!("{dividend} - {divisor} * _floor"))
    }

    /// The greatest common divisor, by Euclid's algorithm.
    pub(super) fn common_divisor(&mut self, name: &str, one: &str, other: &str) -> Result<(), LocalizedText> {
        self.assign(name, &format!("abs {one}"))?;
        self.assign("_other", &format!("abs {other}"))?;
        for number in [name, "_other"] {
            if !self.are_equal(&format!("{number} mod 1"), "0") {
                return Err(LocalizedText::new(
                    "`gcd` and `lcm` take whole numbers",
                    "`gcd` 和 `lcm` 只接受整数",
                ));
            }
        }
        while !self.are_equal("_other", "0") {
            self.assign("_rest", &format!("{name} mod _other"))?;
            self.assign(name, "_other")?;
            self.assign("_other", "_rest")?;
        }
        Ok(())
    }

    fn are_equal(&mut self, left: &str, right: &str) -> bool {
        self.show(&format!("{left} == {right}")).is_ok_and(|formatted| formatted == "true")
    }
}
