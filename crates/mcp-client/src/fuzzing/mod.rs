//! Fuzz targets: each takes arbitrary bytes and asserts invariants. `cargo xtask fuzz` runs them guided by coverage; the tests
//! here run each over its seeds and some thousand mutations of them.

#[path = "../../../../fuzz/shared/hyper_peer.rs"]
pub(crate) mod hyper_peer;
#[cfg(test)]
#[path = "../../../../fuzz/shared/mutator.rs"]
mod mutator;

pub use crate::transport::http::fuzzing::client_requests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_requests_hold_for_mutated_seeds() {
        mutator::run("client_requests", 8_000, client_requests);
    }
}
