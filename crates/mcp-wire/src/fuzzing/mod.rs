//! Fuzz targets: each takes arbitrary bytes and asserts invariants. `cargo xtask fuzz` runs them guided by coverage; the test
//! here runs each over its seeds and some thousand mutations of them.

mod json;
#[cfg(test)]
#[path = "../../../../fuzz/shared/mutator.rs"]
mod mutator;

pub use self::json::{Members, json_members, repeated_key};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_members_hold_for_mutated_seeds() {
        mutator::run("json_members", 20_000, json_members);
    }
}
