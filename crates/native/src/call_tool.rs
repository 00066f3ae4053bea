//! `call_tool`: calls a tool that the prompt of the model does not show. The call goes through the router like any
//! other.

use std::sync::{Arc, OnceLock};

use toolhub_core::lang::LocalizedText;
use toolhub_core::{
    BoxFuture, CALL_TOOL, CallContext, NativeTool, Outcome, RawJson, ToolCall, ToolDefinition, ToolError,
    ToolOutput,
};

const DEFINITION: &str = r#"{
    "name": "call_tool",
    "description": "Calls any tool by its name, also one that you were not told of. search_tools finds tools, describe_tool tells their arguments.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name"},
            "arguments": {"type": "object", "description": "Its arguments, as describe_tool tells them"},
            "source": {"type": "string", "description": "The server that has it, where several have a tool of that name"}
        },
        "required": ["name"],
        "additionalProperties": false
    }
}"#;

type Call = Box<dyn Fn(ToolCall) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Runs calls; set late, since this tool is itself one of the tools that are called through it.
#[derive(Clone, Default)]
pub struct CallRunner(Arc<OnceLock<Call>>);

impl CallRunner {
    /// Sets the function that runs calls; only the first call of this method has an effect.
    pub fn set(&self, call: impl Fn(ToolCall) -> BoxFuture<'static, Outcome> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(call));
    }
}

impl std::fmt::Debug for CallRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallRunner")
    }
}

/// The tool.
#[derive(Debug)]
pub(crate) struct CallTool {
    definition: ToolDefinition,
    runner: CallRunner,
}

impl CallTool {
    /// `None` means that the constant definition is invalid, which a test rules out.
    pub(crate) fn new(runner: CallRunner) -> Option<Self> {
        let definition = ToolDefinition::parse(RawJson::parse(DEFINITION).ok()?).ok()?;
        Some(Self { definition, runner })
    }
}

impl NativeTool for CallTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call<'a>(
        &'a self,
        arguments: RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let fields = arguments.object().unwrap_or_default();
            let name = fields.get("name").and_then(|name| name.decode::<String>().ok()).unwrap_or_default();
            if name == CALL_TOOL {
                return Err(ToolError::failed(LocalizedText::new(
                    "`call_tool` calls other tools, not itself: name the tool that you mean",
                    "`call_tool` 用来调用其他工具，不能调用自身：请给出要用的工具名",
                )));
            }
            let inner = fields.get("arguments").cloned().unwrap_or_else(RawJson::empty_object);
            let mut call = ToolCall::new(name, inner).with_coercion();
            call.source = fields.get("source").and_then(|source| source.decode::<String>().ok());
            call.conversation.clone_from(&context.conversation);
            // The call keeps its caller: on a server with an instance per caller, it runs in that instance.
            call.caller.clone_from(&context.caller);
            match self.runner.0.get() {
                Some(run) => run(call).await.result,
                None => Err(ToolError::Internal),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_parses() {
        let tool = CallTool::new(CallRunner::default()).unwrap();
        assert_eq!(tool.definition().name().as_str(), CALL_TOOL);
    }
}
