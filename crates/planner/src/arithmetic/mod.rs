//! Reads arithmetic, conversions and word problems as expressions for a calculator.

pub(crate) mod continuation;
pub(crate) mod conversion;
pub(crate) mod expression;
pub(crate) mod fractions;
pub(crate) mod recognize;
pub(crate) mod word_problem;
