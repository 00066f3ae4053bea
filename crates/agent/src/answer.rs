//! Composes the answer from the results of the steps, and verifies it.

use toolhub_core::json::canonical_json;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::model::TokenUsage;
use toolhub_core::outcome::OutcomeVerification;
use toolhub_core::{RawJson, RawObject};
use toolhub_planner::plan::Plan;

use crate::step_result::StepResult;
use crate::withheld::unserved_text;

/// Confidence lost per failed step.
const FAILURE_COST: f64 = 0.3;
/// Confidence lost per doubt about the plan.
const DOUBT_COST: f64 = 0.35;

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The answer as text.
    pub text: String,
    /// The results of the steps.
    pub steps: Vec<StepResult>,
    /// Result of the verification.
    pub verification: OutcomeVerification,
    /// Whether the request was answered.
    pub success: bool,
    /// Failures and missing parts, as text. The text of an answer by rules ends with these lines.
    pub failures: Vec<String>,
    /// The name of the model that wrote the answer; `None` if rules did.
    pub model: Option<String>,
    /// Tokens used by the model.
    pub usage: TokenUsage,
    /// Number of requests to the model.
    pub rounds: u32,
    /// Remarks for the user, for example why the model was not used.
    pub notes: Vec<LocalizedText>,
}

impl Answer {
    /// The JSON form.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let steps: Vec<RawObject> = self.steps.iter().map(|step| step.to_json(lang)).collect();
        let localize = |texts: &[LocalizedText]| {
            RawJson::of(&texts.iter().map(|text| text.localize(lang)).collect::<Vec<_>>())
        };
        let usage = RawObject::default()
            .with("input", RawJson::of(&self.usage.input))
            .with("cached", RawJson::of(&self.usage.cached))
            .with("output", RawJson::of(&self.usage.output))
            .with("rounds", RawJson::of(&self.rounds));
        let status = match (self.success, self.steps.iter().any(StepResult::success)) {
            (true, _) => "success",
            (false, true) => "partial",
            (false, false) => "failed",
        };
        RawObject::default()
            .with("success", self.success)
            .with("status", status)
            .with("answer", self.text.as_str())
            .with("steps", RawJson::of(&steps))
            .with("verified", self.verification.verified)
            .with("confidence", RawJson::of(&self.verification.confidence))
            .with("issues", localize(&self.verification.issues))
            .with("model", self.model.as_deref().map_or_else(RawJson::null, RawJson::from))
            .with("usage", usage.into_raw())
            .with("notes", localize(&self.notes))
    }
}

/// Verifies all steps together: the lowest confidence counts, and each failure is an issue.
pub(crate) fn verify_steps(steps: &[StepResult], plan: &Plan) -> OutcomeVerification {
    let mut issues: Vec<LocalizedText> = Vec::new();
    let mut confidence: f64 = if steps.is_empty() { 0.5 } else { 0.95 };
    for step in steps {
        if let Some(found) = &step.verification {
            confidence = confidence.min(found.confidence);
            issues.extend(found.issues.iter().cloned());
        }
        if let Some(error) = &step.error {
            let id = step.id.display_text();
            issues.push(LocalizedText::new(
                format!("step {id} failed: {}", error.localize(Lang::En)),
                format!("步骤 {id} 失败：{}", error.localize(Lang::Zh)),
            ));
            confidence -= FAILURE_COST;
        }
    }
    issues.extend(unserved_text(plan));
    issues.extend(plan.problems.iter().chain(&plan.withheld).chain(&plan.doubts).cloned());
    // The measured confidence of a plan by rules includes its doubts; other plans lose `DOUBT_COST` for each.
    match plan.confidence {
        Some(measured) => confidence = confidence.min(measured),
        None => confidence -= DOUBT_COST * plan.doubts.len() as f64,
    }
    confidence -= FAILURE_COST * (plan.problems.len() + plan.withheld.len() + plan.unserved.len()) as f64;
    let confidence = (confidence.clamp(0.05, 0.95) * 100.0).round() / 100.0;
    OutcomeVerification { verified: issues.is_empty(), confidence, issues }
}

/// Compares the model's answer with the results: a number that occurs neither in the request nor in a result may be invented.
pub(crate) fn check_text(found: &mut OutcomeVerification, answer: &str, request: &str, steps: &[StepResult]) {
    if steps.is_empty() {
        // No tool result supports the answer.
        found.verified = false;
        return;
    }
    let mut known = numbers(request);
    known.extend(
        steps
            .iter()
            .flat_map(|step| numbers(&step.full_output).into_iter().chain(numbers(&step.description))),
    );
    let unsupported: Vec<String> =
        numbers(answer).into_iter().filter(|number| number.len() > 1 && !known.contains(number)).collect();
    if let Some(number) = unsupported.first() {
        found.verified = false;
        found.confidence = (found.confidence - FAILURE_COST).max(0.05);
        found.issues.push(LocalizedText::new(
            format!("`{number}` in the answer is in no result"),
            format!("答案中的 `{number}` 不在任何结果中"),
        ));
    }
}

/// The numbers in a text, without signs, thousands separators and trailing zeros of a fraction.
fn numbers(text: &str) -> Vec<String> {
    let digits = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',');
    text.split(|letter: char| !digits(letter))
        .map(|word| word.trim_matches(['.', ',']).replace(',', ""))
        .filter(|word| word.contains(|letter: char| letter.is_ascii_digit()))
        .map(|word| {
            if word.contains('.') {
                word.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                word
            }
        })
        .collect()
}

/// An answer composed without a model.
pub(crate) struct ComposedAnswer {
    /// The results of the steps; empty if there are none.
    results: Vec<String>,
    /// Failures and missing parts.
    pub(crate) failures: Vec<String>,
}

impl ComposedAnswer {
    pub(crate) fn text(&self) -> String {
        self.results.iter().chain(&self.failures).cloned().collect::<Vec<_>>().join("\n")
    }
}

/// Composes an answer without a model: the results that no other step used, and the failures.
pub(crate) fn compose_answer(plan: &Plan, steps: &[StepResult], lang: Lang) -> ComposedAnswer {
    let used = |step: &StepResult| {
        let takes = |other: &toolhub_planner::plan::PlanStep| {
            other.dependencies.contains(&step.id)
                && steps
                    .iter()
                    .any(|result| result.id == other.id && result.success() && !result.text.trim().is_empty())
                && uses(other, step)
        };
        plan.steps.iter().any(takes)
    };
    // A conversation has no plan, and a model in a loop repeats calls: only the last of identical calls is shown.
    let is_repeated = |index: usize| {
        plan.steps.is_empty() && steps.iter().skip(index + 1).any(|later| same_call(&steps[index], later))
    };
    let answers: Vec<&StepResult> = steps
        .iter()
        .enumerate()
        .filter(|(index, step)| {
            step.success() && !step.text.trim().is_empty() && !used(step) && !is_repeated(*index)
        })
        .map(|(_, step)| step)
        .collect();
    let left_out = unserved_text(plan).map(|text| text.localize(lang));
    let mut lines: Vec<String> = match answers[..] {
        [single] => vec![single.localized_text(lang).trim().to_owned()],
        _ => {
            let alike = |step: &StepResult| {
                answers.iter().filter(|other| other.description == step.description).count() > 1
            };
            answers.iter().map(|step| labelled(step, &label(step, alike(step)), lang)).collect()
        }
    };
    if answers.is_empty() && steps.iter().any(StepResult::success) {
        lines.push(lang.choose("done", "已完成").to_owned());
    }
    let mut failures = Vec::new();
    for step in steps {
        if let Some(error) = &step.error {
            let (title, error) = (&step.description, error.localize(lang));
            failures.push(
                lang.choose(format!("{title}: failed: {error}"), format!("未能完成“{title}”：{error}")),
            );
        }
    }
    failures.extend(plan.problems.iter().chain(&plan.withheld).map(|problem| problem.localize(lang)));
    // Unserved parts are listed first, so that a partial answer is not taken for a complete one.
    let results = left_out.into_iter().chain(lines).collect();
    ComposedAnswer { results, failures }
}

/// Whether two steps called the same tool successfully with the same arguments.
pub(crate) fn same_call(left: &StepResult, right: &StepResult) -> bool {
    let written =
        |arguments: &RawJson| canonical_json(arguments.get()).unwrap_or_else(|| arguments.get().to_owned());
    let call = |step: &StepResult| (step.tool.clone(), step.arguments.as_ref().map(written));
    left.success() && right.success() && left.tool.is_some() && call(left) == call(right)
}

/// Whether a step's arguments contain another step's result; a mere dependency does not count.
fn uses(step: &toolhub_planner::plan::PlanStep, other: &StepResult) -> bool {
    step.arguments.iter().any(|(_, slot)| match slot {
        toolhub_planner::plan::ArgumentSource::ResultOf(id) => *id == other.id,
        toolhub_planner::plan::ArgumentSource::Template(value) => {
            value.get().contains(&format!("{{{{{}}}}}", other.id))
        }
        toolhub_planner::plan::ArgumentSource::Value(_) => false,
    })
}

/// The label of a result: the description of the step or, if several steps have the same description, the arguments.
fn label(step: &StepResult, alike: bool) -> String {
    let arguments = step.arguments.as_ref().and_then(RawJson::object).unwrap_or_default();
    let texts: Vec<String> = arguments.iter().filter_map(|(_, value)| value.decode().ok()).collect();
    match alike && !texts.is_empty() {
        true => texts.join(", "),
        false => step.description.trim().to_owned(),
    }
}

fn labelled(step: &StepResult, title: &str, lang: Lang) -> String {
    let localized_text = step.localized_text(lang);
    let text = localized_text.trim();
    let separator = if text.contains('\n') { "\n" } else { lang.choose(" ", "") };
    lang.choose(format!("{title}:{separator}{text}"), format!("{title}：{separator}{text}"))
}

/// The results of the steps for a prompt: marked as data, with their sources.
pub(crate) fn as_data(steps: &[&StepResult], lang: Lang) -> String {
    let mut text = String::new();
    for step in steps {
        let sources: Vec<String> = step.sources().iter().map(ToString::to_string).collect();
        let tool = step.tool.as_ref().map(ToString::to_string).unwrap_or_default();
        let rendered = render_result(step, lang);
        let state = if step.success() { "ok" } else { "failed" };
        text.push_str(&format!(
            "<tool_result step=\"{}\" tool=\"{tool}\" source=\"{}\" state=\"{state}\">\n{}\n{rendered}\n</tool_result>\n",
            step.id,
            sources.join(", "),
            step.description,
        ));
    }
    text
}

/// The result as shown to the model.
pub(crate) fn render_result(result: &StepResult, lang: Lang) -> String {
    if let Some(error) = &result.error {
        return error.localize(lang);
    }
    let mut text = result.text.clone();
    let truncated = result.outcome.as_ref().filter(|outcome| is_shortened(outcome, &text));
    if let Some(handle) = truncated.and_then(|outcome| outcome.handle.as_ref()) {
        text.push_str(&lang.choose(
            format!("\n(cut; read_result with handle `{handle}` gives all of it)"),
            format!("\n（已截断；用 read_result 和句柄 `{handle}` 可读取全文）"),
        ));
    }
    text
}

/// Whether the shown text is shorter than the full result.
fn is_shortened(outcome: &toolhub_core::Outcome, displayed: &str) -> bool {
    let full_length =
        outcome.result.as_ref().map(|output| output.texts().0.join("\n").len()).unwrap_or_default();
    outcome.truncated || full_length > displayed.len()
}
