//! What is recorded about trusted folders, and the recorded state that consent to their servers is bound to.

pub(super) mod changes;
pub(super) mod consent_binding;
mod edit_record;
pub(super) mod own_edits;
pub(super) mod trust_list;
