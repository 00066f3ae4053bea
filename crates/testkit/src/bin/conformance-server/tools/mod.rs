//! The table of tools, and `tools/call`.

mod client_requests;
mod content;
mod list_changes;
mod rounds;
mod schemas;
mod streaming;
mod tasks;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, ErrorData, JsonObject, Tool,
};
use rmcp::task_manager::{TaskContext, TaskFuture, TaskOptions};
use serde_json::{Value, json};

use crate::exchange::{Exchange, Step};
use crate::server_state::ServerState;

/// Poll interval of tasks: short, since tests wait for it.
const POLL_MILLISECONDS: u64 = 100;

/// A tool.
struct Fixture {
    name: &'static str,
    description: &'static str,
    /// The properties of its arguments, all required, or a complete schema.
    arguments: Arguments,
    step: fn(&Exchange) -> Result<Step<Outcome>, ErrorData>,
}

enum Arguments {
    None,
    /// Names and types.
    Required(&'static [(&'static str, &'static str)]),
    Schema(fn() -> Value),
}

/// The result of a tool after its last input request.
enum Outcome {
    Result(CallToolResult),
    Later(BoxFuture<'static, Result<CallToolResult, ErrorData>>),
    Task(Box<dyn FnOnce(TaskContext) -> TaskFuture + Send>),
}

fn fixtures() -> impl Iterator<Item = &'static Fixture> {
    [
        content::FIXTURES,
        schemas::FIXTURES,
        streaming::FIXTURES,
        client_requests::FIXTURES,
        rounds::FIXTURES,
        list_changes::FIXTURES,
        tasks::FIXTURES,
    ]
    .into_iter()
    .flatten()
}

/// The current tools.
pub(crate) fn list(server_state: &ServerState) -> Vec<Tool> {
    let extra = server_state.extra_tool.is_on().then_some(&list_changes::EXTRA);
    fixtures().chain(extra).map(Fixture::tool).collect()
}

/// The tool of that name, if it exists at this moment.
pub(crate) fn get(server_state: &ServerState, name: &str) -> Option<Tool> {
    find(server_state, name).map(Fixture::tool)
}

fn find(server_state: &ServerState, name: &str) -> Option<&'static Fixture> {
    let extra = server_state.extra_tool.is_on().then_some(&list_changes::EXTRA);
    fixtures().chain(extra).find(|fixture| fixture.name == name)
}

/// Calls a tool.
pub(crate) async fn call(name: &str, mut exchange: Exchange) -> Result<CallToolResponse, ErrorData> {
    let fixture = find(&exchange.server_state, name)
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no tool `{name}`"), None))?;
    match exchange.take(fixture.step).await? {
        Step::Ask(requested) => Ok(requested.into()),
        Step::Done(Outcome::Result(result)) => Ok(result.into()),
        Step::Done(Outcome::Later(result)) => Ok(result.await?.into()),
        Step::Done(Outcome::Task(operation)) => {
            let options = TaskOptions::new().with_poll_interval_ms(POLL_MILLISECONDS);
            Ok(CreateTaskResult::new(exchange.server_state.tasks.spawn(options, operation)).into())
        }
    }
}

impl Fixture {
    fn tool(&self) -> Tool {
        Tool::new(self.name, self.description, Arc::new(self.arguments.schema()))
    }
}

impl Arguments {
    fn schema(&self) -> JsonObject {
        let schema = match self {
            Self::None => json!({"type": "object", "properties": {}}),
            Self::Required(arguments) => {
                let properties: JsonObject = arguments
                    .iter()
                    .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
                    .collect();
                let names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
                json!({"type": "object", "properties": properties, "required": names})
            }
            Self::Schema(schema) => schema(),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        }
    }
}

fn text_content(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn done(result: CallToolResult) -> Result<Step<Outcome>, ErrorData> {
    Ok(Step::Done(Outcome::Result(result)))
}
