//! English plurals of counted things.

/// The count with its noun: `1 tool`, `2 tools`.
pub(crate) fn plural(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
