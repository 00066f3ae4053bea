//! What a plan consists of.

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A variable gets the value of an expression.
    Assign { name: String, text: String },
    /// A variable gets what fend does not find by itself, or not exactly.
    Work { name: String, work: Work },
}

/// What is worked out around fend; the texts are single operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// A base to an exponent, where the power may be large, or the exponent no whole number.
    Power(String, String),
    /// A whole number: fend's own rounding goes through floating point and is wrong past 2^53.
    Round(Direction, String),
    /// For a base, of a number.
    Logarithm(String, String),
    SquareRoot(String),
    Tangent(String),
    /// Of a dividend, by a divisor.
    Remainder(String, String),
    CommonDivisor(String, String),
}

/// Where to round to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
    /// Halves away from zero.
    Nearest,
}

/// How many digits the caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    Unsaid,
    Decimal(usize),
    Significant(usize),
    /// In another base, as a fraction or in words: fend's own formatting stands.
    Formatted,
}

/// An expression, ready to be calculated.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// The expression whose value is the answer.
    pub(super) answer: String,
    pub(super) places: Places,
}
