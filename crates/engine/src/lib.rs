//! Tool calls: the catalog of tools, the router that selects candidates, the strategies that run them, and single
//! attempts with deadlines. Depends only on `toolhub_core`.

mod attempt;
pub mod brief;
mod call;
pub mod catalog;
pub mod coerce;
mod deadline_timer;
mod deadlines;
pub mod definition_scan;
mod engine;
mod nested_relay;
pub mod recommend;
mod record;
pub mod reserved;
mod retry;
pub mod router;
mod schema;
pub mod score;
mod strategy;
pub mod synthesis;
pub mod tags;
pub mod verify;

pub use brief::OutputLimits;
pub use catalog::{Catalog, CatalogCell, CatalogEntry, Projection};
pub use deadlines::Deadlines;
pub use engine::Engine;
pub use nested_relay::{NestedResult, run_with_nested};
pub use reserved::ReservedNames;
pub use router::{Candidate, Route, RouteRequest, RoutingContext, RoutingPolicy, SourceFilter, Strategy};
pub use score::{Score, Scores};
pub use tags::Tagger;
pub use toolhub_core::suggest::{MAX_SUGGESTIONS, similar_names};
