//! Plans: steps with dependencies.

use toolhub_core::lang::LocalizedText;
use toolhub_core::{RawJson, RawObject, ToolName};

/// The id of a step, unique in its plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(String);

impl StepId {
    /// Creates an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id for messages: `3` for both `3` and `step3`, as in `step 3`.
    pub fn display_text(&self) -> &str {
        let number = self.0.strip_prefix("step").map(|rest| rest.trim_start_matches(['_', '-', ' ']));
        number.filter(|number| number.parse::<u32>().is_ok()).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The source of an argument's value.
#[derive(Debug, Clone)]
pub enum ArgumentSource {
    /// A value known while planning.
    Value(RawJson),
    /// The result of another step: its text, or the number in it if the schema requires a number.
    ResultOf(StepId),
    /// A value whose strings may contain `{{id}}`, a placeholder for the result of the step with that id.
    Template(RawJson),
}

/// Estimated effort of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Complexity {
    /// One call.
    #[default]
    Simple,
    /// Several calls, or one that needs reasoning by a model.
    Moderate,
    /// More than `Moderate`.
    Complex,
}

/// One step of a plan.
#[derive(Debug, Clone)]
pub struct PlanStep {
    /// The id of the step.
    pub id: StepId,
    /// Description of the step, in the words of the request.
    pub description: String,
    /// The tool to call; `None` for a step that a model performs without a tool.
    pub tool: Option<ToolName>,
    /// The server that must run it, if the request names one.
    pub source: Option<String>,
    /// A capability of the tool, for a fallback by capability.
    pub capability: Option<String>,
    /// The tool's arguments, in the order of its schema.
    pub arguments: Vec<(String, ArgumentSource)>,
    /// The steps that must finish before this one.
    pub dependencies: Vec<StepId>,
    /// Estimated effort.
    pub complexity: Complexity,
}

impl PlanStep {
    /// Whether an argument contains this text, ignoring case.
    pub fn uses(&self, text: &str) -> bool {
        let holds = |value: &RawJson| value.get().to_lowercase().contains(&text.to_lowercase());
        self.arguments.iter().any(|(_, slot)| match slot {
            ArgumentSource::Value(value) | ArgumentSource::Template(value) => holds(value),
            ArgumentSource::ResultOf(_) => false,
        })
    }

    /// The arguments as an object; `None` if one depends on another step.
    pub fn known_arguments(&self) -> Option<RawObject> {
        self.arguments.iter().try_fold(RawObject::default(), |object, (name, slot)| match slot {
            ArgumentSource::Value(value) => Some(object.with(name.clone(), value.clone())),
            ArgumentSource::ResultOf(_) | ArgumentSource::Template(_) => None,
        })
    }
}

/// The plan for a request.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The steps. Each depends only on earlier steps.
    pub steps: Vec<PlanStep>,
    /// Problems and missing information. Each text states what to add to the request.
    pub problems: Vec<LocalizedText>,
    /// Calls with missing arguments. Each has its own entry in `problems`.
    pub unfinished: Vec<IncompleteCall>,
    /// Changing steps that the words of the request do not prove. They must not be run.
    pub unproven: Vec<UnprovenStep>,
    /// Steps that may change something, according to the hints of their tools, or else the names: `list_rows` without hints is not
    /// among them. Set by the rule-based planner only.
    pub changing: Vec<StepId>,
    /// Texts that show the withheld calls and the reasons. Set just before the plan is run.
    pub withheld: Vec<LocalizedText>,
    /// Parts of the request that no step covers.
    pub unserved: Vec<String>,
    /// The estimated probability that the plan is right, if rules made it.
    pub confidence: Option<f64>,
    /// Reasons why the plan may be wrong: parts of the request that it does not use.
    pub doubts: Vec<LocalizedText>,
}

impl Plan {
    /// Whether the changing steps must not be run.
    pub fn is_withheld(&self) -> bool {
        !self.unproven.is_empty() || !self.unserved.is_empty() || !self.problems.is_empty()
    }

    /// The steps that may be run.
    pub fn runnable(&self) -> impl Iterator<Item = &PlanStep> {
        let back = self.is_withheld();
        self.steps.iter().filter(move |step| !back || !self.changing.contains(&step.id))
    }
}

/// A step that must not be run because the request does not prove it.
#[derive(Debug, Clone)]
pub struct UnprovenStep {
    /// The step.
    pub step: StepId,
    /// The words that were not understood, guessed or ambiguous.
    pub reasons: Vec<LocalizedText>,
}

/// A call with missing arguments.
#[derive(Debug, Clone)]
pub struct IncompleteCall {
    /// The tool to call.
    pub tool: ToolName,
    /// The arguments that are known.
    pub arguments: Vec<(String, ArgumentSource)>,
    /// The required parameters that have no value.
    pub missing: Vec<String>,
}
