//! Tests of the decision point: a reference implementation, properties over random rules, attacks, and errors.

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
