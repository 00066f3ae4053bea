//! Unit tests of workspace trust.
