//! Fuzz targets: each takes arbitrary bytes and asserts invariants. `cargo xtask fuzz` runs them guided by coverage; the tests
//! here run each over its seeds and some thousand mutations of them.

#[path = "../../../../fuzz/shared/hyper_client.rs"]
pub(crate) mod hyper_client;
#[path = "../../../../fuzz/shared/hyper_peer.rs"]
pub(crate) mod hyper_peer;
mod json;
#[cfg(test)]
#[path = "../../../../fuzz/shared/mutator.rs"]
mod mutator;

pub use self::json::json_members;
pub(crate) use self::json::{Members, repeated_key};
pub use crate::gateway::fuzzing::{gateway_ids, gateway_messages};
pub use crate::transport::http::fuzzing::{client_answers, client_requests};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_answers_hold_for_mutated_seeds() {
        mutator::run("client_answers", 8_000, client_answers);
    }

    #[test]
    fn client_requests_hold_for_mutated_seeds() {
        mutator::run("client_requests", 8_000, client_requests);
    }

    #[test]
    fn gateway_ids_hold_for_mutated_seeds() {
        mutator::run("gateway_ids", 8_000, gateway_ids);
    }

    #[test]
    fn gateway_messages_hold_for_mutated_seeds() {
        mutator::run("gateway_messages", 20_000, gateway_messages);
    }

    #[test]
    fn json_members_hold_for_mutated_seeds() {
        mutator::run("json_members", 20_000, json_members);
    }
}
