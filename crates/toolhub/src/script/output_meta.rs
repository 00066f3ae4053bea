//! What the output of a script has beside its content.

/// The member of an output's `_meta` with the log and the calls of a script.
pub(super) const META_KEY: &str = "toolhub/script";
/// The member of it with the value of a script of a skill, if that is neither text nor an object.
pub(super) const VALUE_KEY: &str = "value";
