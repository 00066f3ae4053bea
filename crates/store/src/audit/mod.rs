//! The audit log in a database, as far as both databases share it: the signing key and its files, conversion of calls,
//! statements, and reading.

pub(crate) mod auditor;
pub(crate) mod history;
pub(crate) mod rows;

pub(crate) use auditor::Auditor;
pub(crate) use rows::LogState;
