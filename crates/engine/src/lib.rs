//! What exists, what fits, run it: the catalog, the router and the attempts. Knows only core.

mod attempt;
pub mod catalog;
mod engine;
mod near;
mod retry;
pub mod router;
mod schema;
mod schema_cost;
mod strategy;

pub use attempt::Limits;
pub use catalog::{Catalog, CatalogCell, Entry};
pub use engine::Engine;
pub use near::near_names;
pub use router::{Candidate, Policy, Request, Route, Strategy};
