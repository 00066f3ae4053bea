//! Plans with a finder that finds the same tools for every query.

use jiff::civil::Date;
use serde_json::Value;
use toolhub_core::finder::{SearchHit, SearchResult};
use toolhub_core::{RawJson, Source, Tool, ToolDefinition};
use toolhub_planner::plan::Plan;
use toolhub_planner::{Candidates, plan, sub_requests};

const TODAY: Date = Date::constant(2026, 1, 15);

/// Plans a request with a finder that returns these tools for every query.
pub(crate) fn planned(request: &str, tools: &[Value]) -> Plan {
    let found = |tool: &Value| SearchHit {
        tool: Tool::new(Source::Native, ToolDefinition::parse(RawJson::of(tool)).unwrap()),
        score: 1.0,
        parts: Vec::new(),
    };
    let search = SearchResult { hits: tools.iter().map(found).collect(), fits: true, confidence: 0.9 };
    let mut candidates = Candidates::default();
    for part in sub_requests(request) {
        candidates.add(part, search.clone());
    }
    plan(request, &candidates, TODAY)
}
