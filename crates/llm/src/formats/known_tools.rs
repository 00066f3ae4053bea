//! The tools offered to the model: they distinguish calls from prose, and text from numbers.

use std::collections::HashMap;

use serde_json::Value;
use toolhub_core::RawJson;

/// The type of a parameter, as far as parsing needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Only strings: `42` is a string then.
    Text,
    /// Another or no declared type.
    Other,
}

/// An offered tool.
#[derive(Debug, Clone)]
pub struct KnownTool {
    name: String,
    schema: Option<RawJson>,
    parameters: Vec<(String, ParameterKind)>,
    required: Vec<String>,
}

impl KnownTool {
    /// Creates a tool with the optional schema of its arguments.
    pub fn new(name: impl Into<String>, schema: Option<RawJson>) -> Self {
        let value = schema.as_ref().map(RawJson::value).unwrap_or_default();
        let parameters = value["properties"].as_object().map(|properties| {
            properties.iter().map(|(name, property)| (name.clone(), parameter_kind(property))).collect()
        });
        let required = value["required"]
            .as_array()
            .map(|names| names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect());
        let (parameters, required) = (parameters.unwrap_or_default(), required.unwrap_or_default());
        Self { name: name.into(), schema, parameters, required }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema of its arguments.
    pub fn schema(&self) -> Option<&RawJson> {
        self.schema.as_ref()
    }

    pub(super) fn parameter_kind(&self, parameter: &str) -> Option<ParameterKind> {
        self.parameters.iter().find(|(name, _)| name == parameter).map(|(_, parameter_kind)| *parameter_kind)
    }

    pub(super) fn has(&self, parameter: &str) -> bool {
        self.parameter_kind(parameter).is_some()
    }

    /// The names of the parameters, in the order of the schema.
    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str())
    }

    /// The only parameter that a value without a name can belong to.
    pub(super) fn only_parameter(&self) -> Option<&str> {
        match (self.required.as_slice(), self.parameters.as_slice()) {
            ([one], _) => Some(one),
            ([], [(one, _)]) => Some(one),
            _ => None,
        }
    }
}

fn parameter_kind(property: &Value) -> ParameterKind {
    let is_text = |kind: &Value| matches!(kind.as_str(), Some("string" | "str"));
    match &property["type"] {
        Value::Array(kinds) => {
            let others = kinds.iter().any(|kind| !is_text(kind) && kind != "null");
            if others || kinds.is_empty() { ParameterKind::Other } else { ParameterKind::Text }
        }
        kind if is_text(kind) => ParameterKind::Text,
        _ => ParameterKind::Other,
    }
}

/// All offered tools; empty if they are unknown.
#[derive(Debug, Clone, Default)]
pub struct KnownTools {
    tools: Vec<KnownTool>,
    exact: HashMap<String, usize>,
    /// By folded name; `None` if it is ambiguous.
    folded: HashMap<String, Option<usize>>,
}

impl KnownTools {
    /// Creates the index of these tools.
    pub fn new(tools: impl IntoIterator<Item = KnownTool>) -> Self {
        let mut known = Self { tools: tools.into_iter().collect(), ..Self::default() };
        for (index, tool) in known.tools.iter().enumerate() {
            known.exact.entry(tool.name.clone()).or_insert(index);
            let folded = known.folded.entry(fold(&tool.name)).or_insert(Some(index));
            if folded.is_some_and(|first| known.tools[first].name != tool.name) {
                *folded = None;
            }
        }
        known
    }

    /// Whether the tools are unknown.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tool of exactly that name.
    pub fn named(&self, name: &str) -> Option<&KnownTool> {
        self.exact.get(name).and_then(|&index| self.tools.get(index))
    }

    /// Returns the tool for a name that may be spelled differently: `math_power` for `math.power`, `functions.get_time`
    /// for `get_time`.
    pub fn resolve(&self, name: &str) -> Option<&KnownTool> {
        if let Some(tool) = self.named(name) {
            return Some(tool);
        }
        let folded = |name: &str| self.tools.get((*self.folded.get(&fold(name))?)?);
        folded(name).or_else(|| {
            // Retries without a namespace prefix.
            let (_, tail) = name.split_once(['.', ':', '/'])?;
            self.named(tail).or_else(|| folded(tail))
        })
    }
}

/// Reduces a name to lower-case letters and digits.
pub(super) fn fold(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
