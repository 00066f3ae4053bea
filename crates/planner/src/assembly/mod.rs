//! Assembles the steps of a plan, fills and passes on arguments, and reports what no step serves.

pub(crate) mod assemble;
pub(crate) mod assignment;
pub(crate) mod coverage;
pub(crate) mod event_end;
pub(crate) mod expand_list;
pub(crate) mod fill;
pub(crate) mod inherit;
pub(crate) mod problem;
pub(crate) mod unserved;
