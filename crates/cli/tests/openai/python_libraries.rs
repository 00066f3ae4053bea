//! The Python libraries: the official one, LangChain, Pydantic AI and the Agents SDK.

use crate::client_library::ClientLibrary;
use crate::expectations::{self as expect, Report};
use crate::served_hub::ServedHub;

#[test]
fn openai_python_chat() {
    let client = ClientLibrary { script: "client_openai.py", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["streamed_function", "approval", "errors", "models"]);
    report.check("function", expect::function);
    report.check("streamed_function", expect::function_requested);
    report.check("mixed", expect::function);
    report.check("approval", expect::refused_in_chat);
    report.check("errors", |observed| expect::errors_with_parameter(observed, "n"));
    report.check("models", expect::models);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

/// The owner of the hub can approve a tool for all clients, which is the only way in this API.
#[test]
fn tool_that_the_owner_approved_runs_in_chat() {
    let client = ClientLibrary { script: "client_openai.py", api: "chat" };
    let hub = ServedHub::with_model_and("[openai]\napproved_tools = [\"sheets__write_*\"]\n");
    let mut report = Report::new(&client, client.run(&hub, &["approval"]));
    report.check("approval", expect::written_in_chat);
    report.expect_calls(&hub, (0, 1));
    report.finish();
}

#[test]
fn openai_python_responses() {
    let client = ClientLibrary { script: "client_openai.py", api: "responses" };
    let more = ["streamed_function", "previous", "approval", "background", "errors", "models"];
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &more);
    report.check("function", expect::function);
    report.check("streamed_function", expect::function_requested);
    report.check("mixed", expect::mixed_items);
    report.check("previous", expect::stored);
    report.check("approval", expect::approval);
    report.check("background", expect::background);
    report.check("errors", |observed| expect::errors_with_parameter(observed, "tools[0].server_url"));
    report.check("models", expect::models);
    report.expect_calls(&hub, (3, 1));
    report.finish();
}

#[test]
fn langchain_chat() {
    let client = ClientLibrary { script: "client_langchain.py", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["errors"]);
    report.check("function", expect::function);
    report.check("mixed", expect::function);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn langchain_responses() {
    let client = ClientLibrary { script: "client_langchain.py", api: "responses" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["previous", "approval", "errors"]);
    report.check("function", expect::function);
    report.check("mixed", expect::mixed);
    report.check("previous", expect::previous);
    report.check("approval", expect::approval);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 1));
    report.finish();
}

#[test]
fn pydantic_ai_chat() {
    let client = ClientLibrary { script: "client_pydantic_ai.py", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_function);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn pydantic_ai_responses() {
    let client = ClientLibrary { script: "client_pydantic_ai.py", api: "responses" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["previous", "errors"]);
    report.check("function", expect::framework_function);
    // This library does not send back calls of a server that it has not declared itself.
    report.check("mixed", expect::framework_function);
    report.check("previous", expect::previous);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn openai_agents_chat() {
    let client = ClientLibrary { script: "client_agents.py", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_function);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn openai_agents_responses() {
    let client = ClientLibrary { script: "client_agents.py", api: "responses" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["previous", "approval", "errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_mixed);
    report.check("previous", expect::previous);
    report.check("approval", expect::approval);
    report.check("errors", expect::errors);
    report.expect_calls(&hub, (3, 1));
    report.finish();
}
