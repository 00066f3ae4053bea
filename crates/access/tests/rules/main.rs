//! Tests of the decision point: a reference implementation, properties over random rules, attacks, and errors.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod attacks;
mod compile;
mod explain;
mod generate;
mod narrow;
mod properties;
mod reference;
mod roles;
mod scopes;
mod support;
