//! The answer: put together from what the steps came to, and what is held of its truth.

use toolhub_core::json::canonical;
use toolhub_core::lang::{Lang, Say as _, Text};
use toolhub_core::model::Usage;
use toolhub_core::outcome::Verification;
use toolhub_core::{RawJson, RawObject};

use crate::plan::Plan;
use crate::step_result::StepResult;
use crate::withheld::unserved;

/// How much a failed step takes from the confidence.
const FAILURE_COST: f64 = 0.3;
/// How much a doubt takes whether a plan is what was meant.
const DOUBT_COST: f64 = 0.35;

/// What a request came to.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The answer in words.
    pub text: String,
    /// What was done for it.
    pub steps: Vec<StepResult>,
    /// What is held of its truth.
    pub verification: Verification,
    /// Whether it answers the request.
    pub success: bool,
    /// What failed or is missing, each in words; the text of an answer by rules ends with these lines.
    pub failures: Vec<String>,
    /// The model that gave it; none where rules did.
    pub model: Option<String>,
    /// Tokens that a model read and wrote for it.
    pub usage: Usage,
    /// What happened on the way that is worth knowing.
    pub notes: Vec<Text>,
}

impl Answer {
    /// For programs.
    pub fn to_json(&self, lang: Lang) -> RawObject {
        let steps: Vec<RawObject> = self.steps.iter().map(|step| step.to_json(lang)).collect();
        let say = |texts: &[Text]| RawJson::of(&texts.iter().map(|text| text.say(lang)).collect::<Vec<_>>());
        let usage = RawObject::default()
            .with("input", RawJson::of(&self.usage.input))
            .with("cached", RawJson::of(&self.usage.cached))
            .with("output", RawJson::of(&self.usage.output));
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
            .with("issues", say(&self.verification.issues))
            .with("model", self.model.as_deref().map_or_else(RawJson::null, RawJson::from))
            .with("usage", usage.into_raw())
            .with("notes", say(&self.notes))
    }
}

/// What is held of all steps together: the least sure one decides, and a failure is an issue.
pub(crate) fn verified(steps: &[StepResult], plan: &Plan) -> Verification {
    let mut issues: Vec<Text> = Vec::new();
    let mut confidence: f64 = if steps.is_empty() { 0.5 } else { 0.95 };
    for step in steps {
        if let Some(found) = &step.verification {
            confidence = confidence.min(found.confidence);
            issues.extend(found.issues.iter().cloned());
        }
        if let Some(error) = &step.error {
            let id = step.id.shown();
            issues.push(Text::new(
                format!("step {id} failed: {}", error.say(Lang::En)),
                format!("步骤 {id} 失败：{}", error.say(Lang::Zh)),
            ));
            confidence -= FAILURE_COST;
        }
    }
    issues.extend(unserved(plan));
    issues.extend(plan.problems.iter().chain(&plan.withheld).chain(&plan.doubts).cloned());
    // How often such plans are right was measured, doubts included; where no rule made the plan, doubts count by themselves.
    match plan.confidence {
        Some(measured) => confidence = confidence.min(measured),
        None => confidence -= DOUBT_COST * plan.doubts.len() as f64,
    }
    confidence -= FAILURE_COST * (plan.problems.len() + plan.withheld.len() + plan.unserved.len()) as f64;
    let confidence = (confidence.clamp(0.05, 0.95) * 100.0).round() / 100.0;
    Verification { verified: issues.is_empty(), confidence, issues }
}

/// Holds a model's words against what the steps came to: a number that stands nowhere else is its own.
pub(crate) fn check_words(found: &mut Verification, (answer, request): (&str, &str), steps: &[StepResult]) {
    if steps.is_empty() {
        // Nothing speaks for it but the model.
        found.verified = false;
        return;
    }
    let mut known = numbers(request);
    known.extend(
        steps.iter().flat_map(|step| numbers(&step.whole).into_iter().chain(numbers(&step.description))),
    );
    let strange: Vec<String> =
        numbers(answer).into_iter().filter(|number| number.len() > 1 && !known.contains(number)).collect();
    if let Some(number) = strange.first() {
        found.verified = false;
        found.confidence = (found.confidence - FAILURE_COST).max(0.05);
        found.issues.push(Text::new(
            format!("`{number}` in the answer stands in no result"),
            format!("答案中的 `{number}` 不在任何结果中"),
        ));
    }
}

/// The numbers in a text, without signs, thousands and zeros at the end of a fraction.
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

/// An answer that no model worded.
pub(crate) struct Composed {
    /// What the steps came to; empty where none came to anything.
    results: Vec<String>,
    /// What failed or is missing.
    pub(crate) failures: Vec<String>,
}

impl Composed {
    pub(crate) fn text(&self) -> String {
        self.results.iter().chain(&self.failures).cloned().collect::<Vec<_>>().join("\n")
    }
}

/// The answer without a model: what the steps came to that no other step used, and what failed.
pub(crate) fn composed(plan: &Plan, steps: &[StepResult], lang: Lang) -> Composed {
    let used = |step: &StepResult| {
        let takes = |other: &crate::plan::Step| {
            other.dependencies.contains(&step.id)
                && steps
                    .iter()
                    .any(|result| result.id == other.id && result.success() && !result.text.trim().is_empty())
                && uses(other, step)
        };
        plan.steps.iter().any(takes)
    };
    // A talk has no plan, and a model that went round in circles says the same again: the last time is the newest.
    let again = |place: usize| {
        plan.steps.is_empty() && steps.iter().skip(place + 1).any(|later| same_call(&steps[place], later))
    };
    let answers: Vec<&StepResult> = steps
        .iter()
        .enumerate()
        .filter(|(place, step)| {
            step.success() && !step.text.trim().is_empty() && !used(step) && !again(*place)
        })
        .map(|(_, step)| step)
        .collect();
    let left_out = unserved(plan).map(|text| text.say(lang));
    let mut lines: Vec<String> = match answers[..] {
        [one] => vec![one.said(lang).trim().to_owned()],
        _ => {
            let alike = |step: &StepResult| {
                answers.iter().filter(|other| other.description == step.description).count() > 1
            };
            answers.iter().map(|step| labelled(step, &label(step, alike(step)), lang)).collect()
        }
    };
    if answers.is_empty() && steps.iter().any(StepResult::success) {
        lines.push(lang.pick("done", "已完成").to_owned());
    }
    let mut failures = Vec::new();
    for step in steps {
        if let Some(error) = &step.error {
            let (what, error) = (&step.description, error.say(lang));
            failures.push(lang.pick(format!("{what}: failed: {error}"), format!("{what}：失败：{error}")));
        }
    }
    failures.extend(plan.problems.iter().chain(&plan.withheld).map(|problem| problem.say(lang)));
    // What is left out is said first: an answer to a part may be taken for the whole.
    let results = left_out.into_iter().chain(lines).collect();
    Composed { results, failures }
}

/// Whether two steps called the same tool with the same arguments, both with success.
pub(crate) fn same_call(left: &StepResult, right: &StepResult) -> bool {
    let written = |given: &RawJson| canonical(given.get()).unwrap_or_else(|| given.get().to_owned());
    let call = |step: &StepResult| (step.tool.clone(), step.arguments.as_ref().map(written));
    left.success() && right.success() && left.tool.is_some() && call(left) == call(right)
}

/// Whether a step's arguments take what another came to; coming after it alone is no use of it.
fn uses(step: &crate::plan::Step, other: &StepResult) -> bool {
    step.arguments.iter().any(|(_, slot)| match slot {
        crate::plan::Slot::ResultOf(id) => *id == other.id,
        crate::plan::Slot::Template(value) => value.get().contains(&format!("{{{{{}}}}}", other.id)),
        crate::plan::Slot::Value(_) => false,
    })
}

/// What tells a result from the others: what was to be done or, where that was the same, what it was done with.
fn label(step: &StepResult, alike: bool) -> String {
    let given = step.arguments.as_ref().and_then(RawJson::object).unwrap_or_default();
    let texts: Vec<String> = given.iter().filter_map(|(_, value)| value.decode().ok()).collect();
    match alike && !texts.is_empty() {
        true => texts.join(", "),
        false => step.description.trim().to_owned(),
    }
}

fn labelled(step: &StepResult, what: &str, lang: Lang) -> String {
    let said = step.said(lang);
    let text = said.trim();
    let separator = if text.contains('\n') { "\n" } else { lang.pick(" ", "") };
    lang.pick(format!("{what}:{separator}{text}"), format!("{what}：{separator}{text}"))
}

/// What the steps came to, as a model is told of it: data, with its source named.
pub(crate) fn as_data(steps: &[&StepResult], lang: Lang) -> String {
    let mut text = String::new();
    for step in steps {
        let sources: Vec<String> = step.sources().iter().map(ToString::to_string).collect();
        let tool = step.tool.as_ref().map(ToString::to_string).unwrap_or_default();
        let told = crate::rounds::told(step, lang);
        let state = if step.success() { "ok" } else { "failed" };
        text.push_str(&format!(
            "<tool_result step=\"{}\" tool=\"{tool}\" source=\"{}\" state=\"{state}\">\n{}\n{told}\n</tool_result>\n",
            step.id,
            sources.join(", "),
            step.description,
        ));
    }
    text
}
