//! What a plan consists of.

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A variable gets the value of an expression.
    Assign { name: String, text: String },
    /// A variable gets a power that may be large, or whose exponent may be no whole number.
    Power { name: String, base: String, exponent: String },
    /// A variable gets a whole number: fend's own rounding goes through floating point and is wrong past 2^53.
    Round { name: String, direction: Direction, operand: String },
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
