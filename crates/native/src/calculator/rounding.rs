//! Rounds fractions of any size to integers, exactly.

use toolhub_core::lang::LocalizedText;

use super::fend::Fend;
use super::steps::Direction;

impl Fend<'_> {
    /// Rounds an operand; keeps its unit.
    pub(super) fn round(
        &mut self,
        name: &str,
        direction: Direction,
        operand: &str,
    ) -> Result<(), LocalizedText> {
        let formatted = self.show(&format!("{operand} to fraction"))?;
        let Some(fraction) = Fraction::read(&formatted) else {
            return Err(LocalizedText::new("only a number can be rounded", "只有数字可以取整"));
        };
        if fraction.above.trim_matches('0').is_empty() {
            return self.assign(name, operand);
        }
        self.assign("_above", fraction.above)?;
        self.assign("_below", fraction.below)?;
        // The unit of the value: 1, or a unit.
        self.assign("_unit", &format!("{operand} * _below / _above"))?;
        if direction == Direction::Nearest {
            self.assign("_above", "_above + _above + _below")?;
            self.assign("_below", "_below + _below")?;
        }
        self.assign("_rest", "_above mod _below")?;
        self.assign("_whole", "_above - _rest")?;
        self.assign("_whole", "_whole / _below")?;
        // Rounding down goes away from zero for negative values, rounding up for others.
        let away = match direction {
            Direction::Nearest => false,
            Direction::Down => fraction.is_negative,
            Direction::Up => !fraction.is_negative,
        };
        if away && self.show("_rest")? != "0" {
            self.assign("_whole", "_whole + 1")?;
        }
        // The rounded value is exact, even if the operand is not; only the unit is taken from the operand.
        match (fraction.has_unit, fraction.is_negative) {
            (true, _) => self.assign(name, "_whole * _unit"),
            (false, true) => self.assign(name, "- _whole"),
            (false, false) => self.assign(name, "_whole"),
        }
    }
}

/// A fraction in fend's output, without its sign.
struct Fraction<'a> {
    is_negative: bool,
    above: &'a str,
    below: &'a str,
    has_unit: bool,
}

impl<'a> Fraction<'a> {
    fn read(formatted: &'a str) -> Option<Self> {
        let formatted = formatted.trim_start_matches("approx. ");
        // Currencies with the sign before the number.
        let bare = formatted.trim_start_matches(['$', '£', '¥']);
        let (has_sign, formatted) = (bare != formatted, bare);
        let (is_negative, formatted) =
            formatted.strip_prefix('-').map_or((false, formatted), |rest| (true, rest));
        let digits = |text: &'a str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.split_at(end)
        };
        let (above, rest) = digits(formatted);
        let (below, unit) = rest.strip_prefix('/').map_or(("1", rest), digits);
        let is_complex = unit == "i" || unit.contains(" + ") || unit.contains(" - ");
        let is_number = !is_complex && !above.is_empty() && !below.is_empty();
        is_number.then_some(Self { is_negative, above, below, has_unit: has_sign || !unit.is_empty() })
    }
}
