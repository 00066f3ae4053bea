//! The host of native tools, and the built-in tools through it.

use std::sync::Arc;

use serde_json::{Value, json};
use toolhub_core::finder::{SearchResult, ToolFinder};
use toolhub_core::ports::NullSink;
use toolhub_core::{
    BoxFuture, CallContext, CallId, NativeTool, RawJson, RawObject, Source, Tool, ToolDefinition, ToolError,
    ToolHost, ToolOutput,
};
use toolhub_native::{BuiltinDeps, CallRunner, Finder, Folders, Memory, NativeHost, WebSearch, builtin};

/// A tool with a fixed result.
struct Fixed {
    definition: ToolDefinition,
    answer: &'static str,
}

impl NativeTool for Fixed {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call<'a>(&'a self, _: RawJson, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(self.answer)) })
    }
}

async fn call(host: &NativeHost, tool: &Tool, arguments: Value) -> String {
    let context = CallContext {
        call: CallId::generate(),
        conversation: None,
        caller: None,
        events: Arc::new(NullSink),
        nested: None,
    };
    let result = host.call(tool, &RawJson::from(arguments), &context).await;
    match result {
        Ok(output) => output.texts().0.join("\n"),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}

fn names(host: &NativeHost) -> Vec<String> {
    host.tools().iter().map(|tool| tool.name().to_string()).collect()
}

#[tokio::test]
async fn adds_and_removes_tools() {
    let fixed = |name: &str, answer: &'static str| {
        let raw = RawObject::default().with("name", name).into_raw();
        Arc::new(Fixed { definition: ToolDefinition::parse(raw).unwrap(), answer })
    };
    let host = NativeHost::default();
    assert_eq!(host.source(), Source::Native);
    assert!(host.add(fixed("b", "one")).is_none());
    assert!(host.add(fixed("a", "two")).is_none());
    assert_eq!(names(&host), ["a", "b"]);
    let tool = host.tools().remove(1);
    assert_eq!(call(&host, &tool, json!({})).await, "one");
    assert!(host.add(fixed("b", "three")).is_some());
    assert_eq!(call(&host, &tool, json!({})).await, "three");
    assert!(host.remove("b"));
    assert!(!host.remove("b"));
    assert_eq!(names(&host), ["a"]);
    let result = call(&host, &tool, json!({})).await;
    assert!(result.starts_with("unknown_tool: there is no tool `b`"), "{result}");
}

/// A finder without tools.
struct EmptyFinder;

impl ToolFinder for EmptyFinder {
    fn search<'a>(&'a self, _: &'a str, _: usize) -> BoxFuture<'a, SearchResult> {
        Box::pin(std::future::ready(SearchResult::default()))
    }

    fn describe(&self, _: &str) -> Vec<RawObject> {
        Vec::new()
    }

    fn similar_names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fn deps() -> BuiltinDeps {
    BuiltinDeps {
        folders: Folders::default(),
        web: WebSearch::from_environment(&|_| None),
        memory: Memory::default(),
        finder: Finder::new(Arc::new(EmptyFinder)),
        call_runner: CallRunner::default(),
    }
}

#[tokio::test]
async fn builtin_tools_work() {
    let host = NativeHost::new(builtin(deps()));
    assert_eq!(
        names(&host),
        [
            "calculate",
            "call_tool",
            "describe_tool",
            "get_conversation_history",
            "get_time",
            "list_files",
            "read_file",
            "read_result",
            "search_tools",
            "search_web"
        ]
    );
    let tools = host.tools();
    assert_eq!(call(&host, &tools[0], json!({"expression": "0.1 + 0.2"})).await, "0.3");
    let result = call(&host, &tools[4], json!({"zone": "北京", "at": "2026-01-01T00:00Z"})).await;
    assert_eq!(result, "2026-01-01 08:00:00 +08:00 (Asia/Shanghai, Thursday)");
    assert!(
        call(&host, &tools[5], json!({"path": "a"})).await.starts_with("tool_failed: no folder may be read")
    );
    for tool in &tools {
        let hints = tool.hints();
        // `call_tool` has the effects of any other tool.
        let reads = tool.name().as_str() != "call_tool";
        assert_eq!((hints.may_repeat(), hints.read_only == Some(true)), (reads, reads), "{}", tool.name());
        let length = tool.definition.description().chars().count();
        assert!((20..700).contains(&length), "{}: {length}", tool.name());
        let schema: Value = tool.definition.input_schema().decode().unwrap();
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}: {name}", tool.name());
        }
    }
}
