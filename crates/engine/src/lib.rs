//! What exists, what fits, run it: the catalog, the router, the strategies and the attempts. Knows only core.

mod attempt;
pub mod brief;
pub mod catalog;
mod engine;
pub mod mend;
mod near;
pub mod recommend;
mod record;
pub mod reserved;
mod retry;
pub mod router;
mod schema;
pub mod score;
mod strategy;
pub mod suspicion;
pub mod synthesis;
pub mod tags;
pub mod verify;
mod watchman;

pub use attempt::Deadlines;
pub use brief::Lengths;
pub use catalog::{Catalog, CatalogCell, Entry};
pub use engine::Engine;
pub use near::near_names;
pub use reserved::ReservedNames;
pub use router::{Candidate, Known, Policy, Request, Route, SourceFilter, Strategy};
pub use score::{Score, Scores};
pub use tags::Tagger;
