//! Fuzz targets: each takes arbitrary bytes and asserts invariants. `cargo xtask fuzz` runs them with coverage guidance;
//! the tests here run each on its seeds and some thousand mutations of them.

#[path = "../../../fuzz/shared/hyper_peer.rs"]
pub(crate) mod hyper_peer;
#[cfg(test)]
#[path = "../../../fuzz/shared/mutator.rs"]
mod mutator;

pub use crate::fast_path::fuzzing::server_requests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_requests_hold_for_mutated_seeds() {
        mutator::run("server_requests", 8_000, server_requests);
    }
}
