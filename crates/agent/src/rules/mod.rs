//! The planner without a model: from a request in words to calls with arguments, by rules alone.
//!
//! What is read from a request stands in it, or follows from it by a table: nothing is invented. What a tool needs and
//! nobody said is named as a problem.

mod assemble;
mod candidate;
mod candidates;
mod choice;
mod choose;
mod date;
mod deed;
mod expression;
mod fan;
mod fill;
mod flag;
mod inherit;
mod labels;
mod literal;
mod mention;
mod moment_value;
mod name;
mod number;
mod number_value;
mod parameter;
mod phrase;
mod plural;
mod probe;
mod problem;
mod role;
mod series;
mod sheet;
mod split;
mod text_value;
mod token;
mod units;

pub use candidates::{Candidates, sub_requests};

use jiff::civil::Date;
use toolhub_core::finder::ToolFinder;

use crate::plan::Plan;

/// Requests past this size are cut: what is longer is a document, not a request.
const LONGEST: usize = 8 << 10;

/// Plans a request with the tools that were found for its parts. The same input gives the same plan; `today` is the day
/// that `tomorrow` and 下周一 are counted from.
pub fn plan(request: &str, candidates: &Candidates, today: Date) -> Plan {
    let request = request.get(..request.floor_char_boundary(LONGEST)).unwrap_or(request);
    assemble::assemble(token::narrow(request).trim(), candidates, today)
}

/// Plans a request with the tools that a finder finds.
pub async fn plan_with(request: &str, finder: &dyn ToolFinder, today: Date) -> Plan {
    let candidates = Candidates::gather(request, finder).await;
    plan(request, &candidates, today)
}
