//! A call found in a text, before its conversion to a [`ModelCall`].

use toolhub_core::model::ModelCall;
use toolhub_core::{CallId, RawJson, RawObject, ToolName};

use super::known_tools::{KnownTool, KnownTools};
use crate::repair::{Ending, Repair, Repairs};

/// What identifies a call as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMarking {
    /// Surrounding tags or markers.
    Marked,
    /// Only its own syntax.
    Bare,
}

/// A call that was found.
#[derive(Debug, Clone)]
pub(super) struct ParsedCall {
    pub(super) tool: String,
    pub(super) arguments: RawJson,
    pub(super) id: Option<String>,
    pub(super) source: Option<String>,
    pub(super) repairs: Repairs,
    pub(super) ending: Ending,
}

impl ParsedCall {
    pub(super) fn new(name: Name<'_>, arguments: RawJson) -> Self {
        let (tool, repairs) = (name.text, name.repairs);
        Self { tool, arguments, id: None, source: None, repairs, ending: Ending::Whole }
    }

    pub(super) fn into_call(self) -> ModelCall {
        ModelCall {
            id: self.id.filter(|id| !id.is_empty()).map_or_else(CallId::generate, CallId::new),
            tool: ToolName::new(self.tool),
            arguments: on_one_line(self.arguments),
            source: self.source,
            repaired: self.repairs.texts(),
        }
    }
}

/// Replaces line breaks, which are only between JSON tokens, so that a printed call is a single line.
fn on_one_line(json: RawJson) -> RawJson {
    if !json.get().contains(['\n', '\r']) {
        return json;
    }
    RawJson::parse(json.get().replace(['\n', '\r'], " ")).unwrap_or(json)
}

/// Adjacent calls, and the byte offset after them.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) calls: Vec<ParsedCall>,
    pub(super) end: usize,
}

/// A tool name as written, and the known tool, if any.
#[derive(Debug, Clone)]
pub(super) struct Name<'k> {
    pub(super) text: String,
    pub(super) tool: Option<&'k KnownTool>,
    pub(super) repairs: Repairs,
}

/// Maximum length of a name, in bytes.
const MAX_CALLED_NAME_BYTES: usize = 160;

impl<'k> Name<'k> {
    /// Parses a name; `None` if it is invalid.
    pub(super) fn read(raw_name: &str, known: &'k KnownTools) -> Option<Self> {
        let raw_name = raw_name.trim().trim_matches(['`', '"', '\'', '*']).trim_end_matches("()");
        let tidy = raw_name.replace('\\', "");
        if tidy.is_empty() || tidy.len() > MAX_CALLED_NAME_BYTES {
            return None;
        }
        let mut repairs = Repairs::default();
        if let Some(tool) = known.resolve(&tidy).or_else(|| known.resolve(bare_name(&tidy))) {
            if tool.name() != bare_name(&tidy) && tool.name() != tidy {
                repairs.add(Repair::ToolName);
            }
            return Some(Self { text: tool.name().to_owned(), tool: Some(tool), repairs });
        }
        let text = bare_name(&tidy);
        let is_valid = !text.contains(|character: char| {
            character.is_whitespace()
                || character.is_control()
                || matches!(character, '<' | '>' | '{' | '}' | '"' | '(')
        });
        (is_valid && !text.is_empty()).then(|| Self { text: text.to_owned(), tool: None, repairs })
    }

    pub(super) fn is_known(&self) -> bool {
        self.tool.is_some()
    }
}

/// Removes the prefix `functions.` and the suffix `:0`, which some models add.
fn bare_name(name: &str) -> &str {
    let name = ["functions.", "function.", "default_api.", "tools.", "multi_tool_use."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    match name.rsplit_once(':') {
        Some((head, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            head
        }
        _ => name,
    }
}

/// Assigns values without names to the parameters in order.
pub(super) fn positional(values: &[RawJson], name: &Name<'_>, repairs: &mut Repairs) -> Option<RawJson> {
    let tool = name.tool?;
    if values.len() > tool.names().len() {
        return None;
    }
    repairs.add(Repair::Positional);
    let members = tool
        .names()
        .zip(values)
        .fold(RawObject::default(), |object, (name, value)| object.with(name.to_owned(), value.clone()));
    Some(members.into_raw())
}
