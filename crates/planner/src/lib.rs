//! The rule-based planner: turns a request in natural language into tool calls with arguments, without a model.
//!
//! Every argument is taken from the request or derived from it with a table; no value is invented. A required parameter that
//! the request does not give is reported as a problem.

use jiff::civil::Date;
use toolhub_core::finder::ToolFinder;

use crate::plan::{Plan, PlanStep, UnprovenStep};
use crate::safety::request_check::{
    MAX_REQUEST_BYTES, asks_about_past, find_objection, forbids_action, how_to_position, is_conditional,
    own_words,
};

mod arithmetic;
mod assembly;
mod lexer;
pub mod plan;
mod rewrite;
mod safety;
mod selection;
mod spreadsheet;
mod values;

pub use rewrite::follow_up::{EarlierExchange, add_last_file, in_context};
pub use safety::request_check::exceeds_limits;
pub use selection::candidates::{Candidates, sub_requests};

/// Quotes around a whole request are removed only if the text between them is longer than this many bytes; shorter text may be
/// a title.
const MIN_STRIPPED_QUOTE_BYTES: usize = 40;

/// Plans a request with the tools that were found for its parts. Deterministic: the same input gives the same plan.
/// `today` is the date to which `tomorrow` and 下周一 are relative.
pub fn plan(request: &str, candidates: &Candidates, today: Date) -> Plan {
    let narrow_request = narrowed(request);
    let exclusion = rewrite::exclusion::find(&narrow_request);
    let request = normalize_request(request);
    let mut plan = assembly::assemble::assemble(&request, candidates, today);
    safety::change_guard::mark_unordered_changes(&narrow_request, &request, &mut plan);
    let refused = || Plan { problems: vec![assembly::problem::no_order(request.trim())], ..Plan::default() };
    let mut tools = plan.steps.iter().filter_map(|step| step.tool.as_ref());
    if let Some(exclusion) = &exclusion
        && tools.any(|tool| rewrite::exclusion::is_denied(exclusion, tool.as_str()))
    {
        return refused();
    }
    // A negation, a question or a condition is never executed as an order.
    let parsed = lexer::mention::ParsedText::of(&request, today);
    let intent = selection::clause_intent::intent(&parsed);
    let past = asks_about_past(&request) && intent.changes();
    let asks_how = how_to_position(&request).is_some_and(|at| !intent.reads_before(at));
    let forbidden = safety::mood::only_forbids(&own_words(&narrow_request.to_lowercase()));
    if (past || forbids_action(&request))
        && (!intent.reads() || asks_how || forbidden)
        && !plan.steps.is_empty()
    {
        return refused();
    }
    // A request that only thanks or remarks runs no search.
    let uses_whole_request = |step: &PlanStep| step.uses(request.trim().trim_end_matches(['.', '!']));
    if plan.changing.is_empty()
        && rewrite::statement::is_remark(&request)
        && plan.steps.iter().all(uses_whole_request)
    {
        return refused();
    }
    // Parts without a matching tool are reported in `unserved`; the rest of the request must be understood completely.
    let served = plan.unserved.iter().fold(request.clone(), |text, part| text.replace(part.as_str(), ""));
    let remaining = lexer::mention::ParsedText::of(&served, today);
    if plan.changing.is_empty() && !plan.steps.is_empty() && safety::unknown_verb::is_order(&remaining) {
        return Plan { problems: vec![assembly::problem::no_tool(request.trim())], ..Plan::default() };
    }
    if let Some(reason) = find_objection(&request) {
        // A conditional change is not started: running only the steps that read would not fulfil the request.
        let has_reads = plan.steps.iter().any(|step| !plan.changing.contains(&step.id));
        let changes = |part: &String| {
            !is_conditional(part)
                && selection::clause_intent::intent(&lexer::mention::ParsedText::of(part, today)).changes()
        };
        let open = plan.changing.is_empty() && plan.unserved.iter().any(changes);
        if is_conditional(&request) && (open || !plan.changing.is_empty() && has_reads) {
            return Plan { problems: vec![reason], ..Plan::default() };
        }
        for step in &plan.changing {
            match plan.unproven.iter_mut().find(|unproven| unproven.step == *step) {
                Some(unproven) => unproven.reasons.insert(0, reason.clone()),
                None => {
                    plan.unproven.push(UnprovenStep { step: step.clone(), reasons: vec![reason.clone()] });
                }
            }
        }
    }
    plan
}

/// Normalizes a request: narrows full-width characters, trims whitespace, removes quotes around the whole text, and drops an
/// exclusion ([`rewrite::exclusion`]).
fn normalize_request(request: &str) -> String {
    let narrow = narrowed(request);
    let narrow = rewrite::exclusion::find(&narrow).map_or(narrow.clone(), |denied| denied.without(&narrow));
    let text = narrow.trim();
    for (open, close) in [('"', '"'), ('“', '”')] {
        let inner = text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
        if let Some(inner) =
            inner.filter(|inner| inner.len() > MIN_STRIPPED_QUOTE_BYTES && !inner.contains([open, close]))
        {
            return inner.trim().to_owned();
        }
    }
    let text = rewrite::rephrase::rephrase(text);
    rewrite::shared_location::move_to_front(&text).unwrap_or(text)
}

fn narrowed(request: &str) -> String {
    let request = request.get(..request.floor_char_boundary(MAX_REQUEST_BYTES)).unwrap_or(request);
    lexer::token::narrow(request)
}

/// Finds the tools with `finder`, then plans the request.
pub async fn plan_with(request: &str, finder: &dyn ToolFinder, today: Date) -> Plan {
    let candidates = Candidates::gather(request, finder).await;
    plan(request, &candidates, today)
}
