//! Plans: steps that depend on one another. Who makes them and who runs them is left to others.

use toolhub_core::lang::Text;
use toolhub_core::{RawJson, RawObject, ToolName};

/// The id of a step in its plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(String);

impl StepId {
    /// An id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as a sentence about the step has it: `step 3`, whether the id is `3` or `step3`.
    pub fn shown(&self) -> &str {
        let number = self.0.strip_prefix("step").map(|rest| rest.trim_start_matches(['_', '-', ' ']));
        number.filter(|number| number.parse::<u32>().is_ok()).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a step's argument is.
#[derive(Debug, Clone)]
pub enum Slot {
    /// Known while planning.
    Value(RawJson),
    /// What another step came to: its text, or the number in it where a number is wanted.
    ResultOf(StepId),
    /// A value whose texts may hold `{{id}}`, which stands for what the step of that id came to.
    Template(RawJson),
}

/// How much there is to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Complexity {
    /// One call.
    #[default]
    Simple,
    /// Several calls, or one that needs thought.
    Moderate,
    /// More than that.
    Complex,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its id.
    pub id: StepId,
    /// What it does, in the words of the request.
    pub description: String,
    /// The tool that does it; none where it is thought alone.
    pub tool: Option<ToolName>,
    /// The server that must run it, if the request names one.
    pub source: Option<String>,
    /// What the tool is good for, for a fallback by capability.
    pub capability: Option<String>,
    /// The tool's arguments, in the order of its schema.
    pub arguments: Vec<(String, Slot)>,
    /// The steps that must have ended before.
    pub dependencies: Vec<StepId>,
    /// How much there is to it.
    pub complexity: Complexity,
}

impl Step {
    /// Whether an argument of it contains this text.
    pub(crate) fn uses(&self, text: &str) -> bool {
        let holds = |value: &RawJson| value.get().to_lowercase().contains(&text.to_lowercase());
        self.arguments.iter().any(|(_, slot)| match slot {
            Slot::Value(value) | Slot::Template(value) => holds(value),
            Slot::ResultOf(_) => false,
        })
    }

    /// The arguments as an object, where all are known by now.
    pub fn known_arguments(&self) -> Option<RawObject> {
        self.arguments.iter().try_fold(RawObject::default(), |object, (name, slot)| match slot {
            Slot::Value(value) => Some(object.with(name.clone(), value.clone())),
            Slot::ResultOf(_) | Slot::Template(_) => None,
        })
    }
}

/// What is to be done for a request.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The steps; each depends on earlier ones alone.
    pub steps: Vec<Step>,
    /// What cannot be done, or is missing, each in words that say what to add.
    pub problems: Vec<Text>,
    /// Calls that are known but for some arguments; each has its own problems above.
    pub unfinished: Vec<Unfinished>,
    /// Steps that change something and that the words of the request do not prove: they must not be run.
    pub unproven: Vec<Unproven>,
    /// Steps that may change something, as far as their tools' hints and names tell. Filled by rules alone.
    pub changing: Vec<StepId>,
    /// The calls that were not proven, as they would be made, and why they are not. Filled when the plan is about to be run.
    pub withheld: Vec<Text>,
    /// Parts of the request that no step serves.
    pub unserved: Vec<String>,
    /// How likely the plan is right, where rules made it.
    pub confidence: Option<f64>,
    /// Why the steps may not be what was meant: what of the request they leave unused.
    pub doubts: Vec<Text>,
}

impl Plan {
    /// Whether something keeps the steps from being run that change something.
    pub fn holds_back(&self) -> bool {
        !self.unproven.is_empty() || !self.unserved.is_empty() || !self.problems.is_empty()
    }

    /// The steps that may be run.
    pub fn runnable(&self) -> impl Iterator<Item = &Step> {
        let back = self.holds_back();
        self.steps.iter().filter(move |step| !back || !self.changing.contains(&step.id))
    }
}

/// A step that must not be run without being asked for in other words.
#[derive(Debug, Clone)]
pub struct Unproven {
    /// The step.
    pub step: StepId,
    /// What is not understood, guessed or ambiguous.
    pub reasons: Vec<Text>,
}

/// A call that cannot be made yet.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The tool.
    pub tool: ToolName,
    /// The arguments that are known.
    pub arguments: Vec<(String, Slot)>,
    /// The parameters that must be said before it can be called.
    pub missing: Vec<String>,
}
