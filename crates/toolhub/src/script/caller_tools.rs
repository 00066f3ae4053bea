//! The tools of a caller as a script sees them: their paths, TypeScript signatures, results and errors.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::output_meta::VALUE_KEY;
use serde_json::Value;
use toolhub_core::{
    BoxFuture, CallId, Lang, NestedBudget, NestedCall, NestedTool, NestedToolList, NestedTools, RawJson,
    ToolDefinition, ToolError, ToolOutput, meta_keys,
};
use toolhub_script::protocol::ToolPath;
use toolhub_script::signature::{self, DEFAULT_BUDGET, ToolShape};
use toolhub_script::{
    CallReport, INVALID_ARGUMENTS, ScriptCall, ScriptLimits, ScriptTool, ScriptToolError, ScriptTools,
    interruption_text,
};

use super::last_interruption::LastInterruption;

/// Bytes of the results of one script, with those of the scripts that it calls, that the history keeps in full.
const MAX_STORED_BYTES: usize = 64 << 20;

/// The tools of one run.
pub(crate) struct CallerTools<'a> {
    nested: &'a dyn NestedTools,
    /// Requested when the run begins.
    tools: OnceLock<Arc<NestedToolList>>,
    /// The call that runs the script.
    parent: CallId,
    budget: Arc<NestedBudget>,
    /// Whether no other script calls this one.
    is_outermost: bool,
    interruption: &'a LastInterruption,
}

impl<'a> CallerTools<'a> {
    /// The tools of a script with these limits, which hold together with the scripts of skills that it calls.
    pub(crate) fn new(
        nested: &'a dyn NestedTools,
        parent: CallId,
        limits: &ScriptLimits,
        interruption: &'a LastInterruption,
    ) -> Self {
        let outer = nested.origin().budget;
        let is_outermost = outer.is_none();
        let new = || NestedBudget::new(limits.calls as usize, MAX_STORED_BYTES, limits.cpu);
        Self {
            nested,
            tools: OnceLock::new(),
            parent,
            budget: outer.unwrap_or_else(new),
            is_outermost,
            interruption,
        }
    }
}

impl ScriptTools for CallerTools<'_> {
    fn tools(&self) -> BoxFuture<'_, Vec<ScriptTool>> {
        let tool = |tool: &NestedTool| ScriptTool {
            path: ToolPath { name: tool.name.clone(), member: tool.member.clone() },
            read_only: tool.read_only,
        };
        Box::pin(async move {
            let tools = self.nested.tools().await;
            self.tools.get_or_init(|| tools).iter().map(tool).collect()
        })
    }

    fn signature(&self, tool: &str) -> Option<String> {
        self.tools.get()?.get(tool).map(|tool| signature_of(tool, DEFAULT_BUDGET))
    }

    fn call(&self, call: ScriptCall) -> BoxFuture<'_, Result<RawJson, ScriptToolError>> {
        let (parent, budget) = (self.parent.clone(), Arc::clone(&self.budget));
        let nested = NestedCall { parent, budget, tool: call.tool, arguments: call.arguments };
        Box::pin(async move {
            if !nested.budget.take_call() {
                return Err(used_up());
            }
            self.nested.call(nested).await.map(|output| value_of(&output)).map_err(|error| thrown(&error))
        })
    }

    /// The caller refuses a call of a tool that it has not listed, and records that if it must.
    fn note_unknown_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        let (parent, budget) = (self.parent.clone(), Arc::clone(&self.budget));
        let nested = NestedCall { parent, budget, tool: name.to_owned(), arguments: RawJson::empty_object() };
        Box::pin(async move { drop(self.nested.call(nested).await) })
    }

    fn set_cpu(&self, used: Duration) {
        if self.is_outermost {
            self.budget.set_outer_cpu(used);
        }
    }

    fn inner_cpu(&self) -> Duration {
        match self.is_outermost {
            true => self.budget.inner_cpu(),
            false => Duration::ZERO,
        }
    }

    fn interrupted(&self, calls: &[CallReport]) {
        let text = interruption_text(calls);
        self.nested.set_interruption(text.clone());
        self.interruption.set(&self.parent, text);
    }
}

/// What a script gets of an output: its structured content, or its text, or all its blocks if they are not only text.
fn value_of(output: &ToolOutput) -> RawJson {
    if let Some(structured) = output.structured() {
        return structured.clone();
    }
    if let Some(value) = value_of_script(output) {
        return value;
    }
    let (texts, only_text) = output.texts();
    match only_text {
        true => RawJson::of(&texts.join("\n")),
        false => RawJson::of(&output.blocks()),
    }
}

/// The value of a script of a skill that is neither text nor an object.
fn value_of_script(output: &ToolOutput) -> Option<RawJson> {
    // Most results have none.
    if !output.raw().get().contains(meta_keys::SCRIPT) {
        return None;
    }
    let meta = output.raw().object()?.get("_meta")?.object()?;
    meta.get(meta_keys::SCRIPT)?.object()?.get(VALUE_KEY).cloned()
}

fn used_up() -> ScriptToolError {
    let message = "the script and the scripts of skills that it calls have used up their number of calls";
    ScriptToolError::new("limit", message).with_hint("do less per script")
}

/// The error as a script sees it. Scripts are written by models, which get English.
fn thrown(error: &ToolError) -> ScriptToolError {
    let kind = match error {
        ToolError::InvalidArguments { .. } => INVALID_ARGUMENTS,
        other => other.kind(),
    };
    ScriptToolError::new(kind, error.brief(Lang::En))
}

/// The TypeScript signature of a tool, in at most about `budget` characters.
pub(crate) fn signature_of(tool: &NestedTool, budget: usize) -> String {
    with_shape(tool, |shape| signature::signature(shape, budget))
}

/// The declaration file (`.d.ts`) of these tools for scripts.
pub fn declaration_of(tools: &[NestedTool]) -> String {
    let parsed: Vec<ParsedTool<'_>> = tools.iter().map(ParsedTool::new).collect();
    let shapes: Vec<ToolShape<'_>> = parsed.iter().map(ParsedTool::shape).collect();
    signature::declaration(&shapes, DEFAULT_BUDGET)
}

fn with_shape<T>(tool: &NestedTool, show: impl FnOnce(&ToolShape<'_>) -> T) -> T {
    show(&ParsedTool::new(tool).shape())
}

/// A tool with its schemas as values.
struct ParsedTool<'a> {
    tool: &'a NestedTool,
    description: String,
    input: Value,
    output: Option<Value>,
}

impl<'a> ParsedTool<'a> {
    fn new(tool: &'a NestedTool) -> Self {
        let definition = ToolDefinition::parse(tool.definition.clone()).ok();
        let output = tool.definition.object().and_then(|members| Some(members.get("outputSchema")?.value()));
        Self {
            tool,
            description: definition
                .as_ref()
                .map(|definition| definition.description().to_owned())
                .unwrap_or_default(),
            input: definition.map(|definition| definition.input_schema().value()).unwrap_or_default(),
            output: output.filter(Value::is_object),
        }
    }

    fn shape(&self) -> ToolShape<'_> {
        let (server, name) = match &self.tool.member {
            Some((server, name)) => (Some(server.as_str()), name.as_str()),
            None => (None, self.tool.name.as_str()),
        };
        let (input, output) = (&self.input, self.output.as_ref());
        ToolShape { server, name, description: &self.description, input, output }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(output: Value) -> String {
        value_of(&ToolOutput::from_raw(RawJson::from(output)).unwrap()).get().to_owned()
    }

    #[test]
    fn scripts_get_structured_content_or_text() {
        let text = json!({"type": "text", "text": "a\"b"});
        assert_eq!(value(json!({"content": [text], "structuredContent": {"n": 1}})), r#"{"n":1}"#);
        assert_eq!(value(json!({"content": [text, text]})), r#""a\"b\na\"b""#);
        assert_eq!(value(json!({"content": []})), r#""""#);
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        assert!(value(json!({"content": [text, image]})).starts_with("[{"));
    }

    #[test]
    fn signatures_name_server_and_output() {
        let definition = json!({
            "name": "read", "description": "Reads a sheet.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "outputSchema": {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]},
        });
        let tool = NestedTool {
            name: "excel__read".to_owned(),
            member: Some(("excel".to_owned(), "read".to_owned())),
            definition: RawJson::from(definition),
            read_only: true,
            is_script: false,
        };
        assert_eq!(
            signature_of(&tool, DEFAULT_BUDGET),
            "tools.excel.read(args: { path: string }): Promise<{ rows: number }>"
        );
        let declared = declaration_of(&[tool]);
        assert!(declared.contains("Reads a sheet.") && declared.contains("excel: {"), "{declared}");
    }
}
