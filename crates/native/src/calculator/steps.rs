//! The parts of a plan.

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Assigns the value of an expression to a variable.
    Assign { name: String, text: String },
    /// Assigns a value that fend cannot compute, or not exactly.
    Operation { name: String, operation: Operation },
}

/// Work done around fend; the texts are single operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    /// Base and exponent, for large powers and exponents that are not integers.
    Power(String, String),
    /// Rounding to an integer: fend uses floating point, which is wrong above 2^53.
    Round(Direction, String),
    /// Base and number.
    Logarithm(String, String),
    SquareRoot(String),
    Tangent(String),
    /// Dividend and divisor.
    Remainder(String, String),
    CommonDivisor(String, String),
}

/// The rounding direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
    /// Halves away from zero.
    Nearest,
}

/// The requested number of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Unspecified,
    Decimal(usize),
    Significant(usize),
    /// Another base, a fraction or words: fend's formatting is kept.
    Formatted,
}

/// A parsed expression.
#[derive(Debug)]
pub(super) struct CalculationPlan {
    pub(super) steps: Vec<Step>,
    /// The expression of the result.
    pub(super) answer: String,
    pub(super) precision: Precision,
}
