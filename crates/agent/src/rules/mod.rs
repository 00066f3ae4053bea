//! The rule-based planner: turns a request in natural language into tool calls with arguments, without a model.
//!
//! Every argument is taken from the request or derived from it with a table; no value is invented. A required parameter that
//! the request does not give is reported as a problem.

mod again;
mod aside;
mod ask_turn;
mod assemble;
mod blank_path;
mod candidate;
mod candidates;
mod casual;
mod cell_turn;
mod cell_value;
mod choice;
mod choice_check;
mod choose;
mod context;
mod continuation;
mod conversion;
mod countdown;
mod coverage;
mod date;
mod deed;
mod doubt;
mod duration;
mod entry;
mod expression;
mod extent;
mod fan;
mod file_ending;
mod file_value;
mod fill;
mod filler;
mod flag;
mod follow_up;
mod foreign;
mod format_value;
mod graph_turn;
mod group;
mod guess;
mod han_path;
mod header_value;
mod holiday;
mod implied;
mod inherit;
mod labels;
mod lexicon;
mod literal;
mod lookup_turn;
mod mention;
mod message_turn;
mod message_value;
mod moment_value;
mod mood;
mod name;
mod nested_path;
mod number;
mod number_value;
mod parameter;
mod passive_turn;
mod phrase;
mod place_value;
mod plural;
mod pretext;
mod probe;
mod problem;
mod proof;
mod record_list;
mod record_value;
mod relation_value;
mod relative_folder;
mod remark;
mod rephrase;
mod reserve;
mod revision_value;
mod role;
mod same_day;
mod search_words;
mod series;
mod shares;
mod sheet;
mod sheet_renamed;
mod shift_value;
mod skeleton;
mod spelled;
mod spelling;
mod split;
mod spoken_of;
mod statement;
mod statement_words;
mod text_value;
mod token;
mod topic;
mod transfer_value;
mod turn;
mod units;
mod unknown_verb;
mod unserved;
mod verb_class;
mod verb_place;
mod verbless;
mod wish_turn;
mod word_problem;

pub use candidates::{Candidates, sub_requests};
pub use follow_up::{Exchange, in_context, placed};

use jiff::civil::Date;
use toolhub_core::finder::ToolFinder;

use crate::caution::{against, asks_of_the_past, forbids, how_at, is_conditional, own_words};
use crate::plan::{Plan, Unproven};

/// The maximum size of a request in bytes. Longer input is truncated.
const LONGEST: usize = 8 << 10;

/// Quotes around a whole request are removed only if the text between them is longer than this many bytes; shorter text may be
/// a title.
const LONG_QUOTE: usize = 40;

/// Plans a request with the tools that were found for its parts. Deterministic: the same input gives the same plan.
/// `today` is the date to which `tomorrow` and 下周一 are relative.
pub fn plan(request: &str, candidates: &Candidates, today: Date) -> Plan {
    let denied = aside::find(&narrowed(request));
    let said = narrowed(request);
    let request = plain(request);
    let mut plan = assemble::assemble(&request, candidates, today);
    reserve::check(&said, &mut plan);
    let refused = || Plan { problems: vec![problem::no_order(request.trim())], ..Plan::default() };
    let mut tools = plan.steps.iter().filter_map(|step| step.tool.as_ref());
    if let Some(denied) = &denied
        && tools.any(|tool| aside::is_denied(denied, tool.as_str()))
    {
        return refused();
    }
    // A negation, a question or a condition is never executed as an order.
    let reading = mention::Reading::of(&request, today);
    let wish = choose::wish(&reading);
    let past = asks_of_the_past(&request) && wish.changes();
    let asks_how = how_at(&request).is_some_and(|at| !wish.reads_before(at));
    let forbidden = mood::only_forbids(&own_words(&said.to_lowercase()));
    if (past || forbids(&request)) && (!wish.reads() || asks_how || forbidden) && !plan.steps.is_empty() {
        return refused();
    }
    // Thanks and remarks are not searched for.
    let searched = |step: &crate::plan::Step| step.uses(request.trim().trim_end_matches(['.', '!']));
    if plan.changing.is_empty() && statement::is_remark(&request) && plan.steps.iter().all(searched) {
        return refused();
    }
    // Parts without a matching tool are reported in `unserved`; the rest of the request must be understood completely.
    let served = plan.unserved.iter().fold(request.clone(), |text, part| text.replace(part.as_str(), ""));
    let left = mention::Reading::of(&served, today);
    if plan.changing.is_empty() && !plan.steps.is_empty() && unknown_verb::is_order(&left) {
        return Plan { problems: vec![problem::no_tool(request.trim())], ..Plan::default() };
    }
    if let Some(reason) = against(&request) {
        // A conditional change is not started: running only the steps that read would not fulfil the request.
        let looks = plan.steps.iter().any(|step| !plan.changing.contains(&step.id));
        let changes = |part: &String| {
            !is_conditional(part) && choose::wish(&mention::Reading::of(part, today)).changes()
        };
        let open = plan.changing.is_empty() && plan.unserved.iter().any(changes);
        if is_conditional(&request) && (open || !plan.changing.is_empty() && looks) {
            return Plan { problems: vec![reason], ..Plan::default() };
        }
        for step in &plan.changing {
            match plan.unproven.iter_mut().find(|unproven| unproven.step == *step) {
                Some(unproven) => unproven.reasons.insert(0, reason.clone()),
                None => plan.unproven.push(Unproven { step: step.clone(), reasons: vec![reason.clone()] }),
            }
        }
    }
    plan
}

/// Normalizes a request: narrows full-width characters, trims whitespace, removes quotes around the whole text, and drops a
/// denied aside.
fn plain(request: &str) -> String {
    let narrow = narrowed(request);
    let narrow = aside::find(&narrow).map_or(narrow.clone(), |denied| denied.without(&narrow));
    let text = narrow.trim();
    for (open, close) in [('"', '"'), ('“', '”')] {
        let inner = text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| inner.len() > LONG_QUOTE && !inner.contains([open, close]))
        {
            return inner.trim().to_owned();
        }
    }
    let text = rephrase::rephrased(text);
    context::first(&text).unwrap_or(text)
}

fn narrowed(request: &str) -> String {
    let request = request.get(..request.floor_char_boundary(LONGEST)).unwrap_or(request);
    token::narrow(request)
}

/// Finds the tools with `finder`, then plans the request.
pub async fn plan_with(request: &str, finder: &dyn ToolFinder, today: Date) -> Plan {
    let candidates = Candidates::gather(request, finder).await;
    plan(request, &candidates, today)
}
