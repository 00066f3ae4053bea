//! The identity of this process towards other programs: a hub whose language model is an agent of the hub itself would send each
//! request to itself, for ever.

use std::sync::OnceLock;

use crate::record_id::RecordId;

/// The header with the id of the hub that sends a request to a language model.
pub const INSTANCE_HEADER: &str = "x-toolhub-instance";

/// A random id of this process.
pub fn instance_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| RecordId::generate().to_string())
}
