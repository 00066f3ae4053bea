//! What is recorded about trusted folders, and the recorded state that consent to their servers is bound to.

pub(super) mod changes;
pub(super) mod consent_binding;
pub(super) mod trust_list;
