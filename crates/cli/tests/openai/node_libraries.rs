//! The Node libraries: the official one, and the AI SDK with both of its providers.

use crate::client_library::ClientLibrary;
use crate::expectations::{self as expect, Report};
use crate::served_hub::ServedHub;

#[test]
fn openai_node_chat() {
    let client = ClientLibrary { script: "client_openai.mjs", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["runner", "approval", "errors", "models"]);
    report.check("function", expect::function);
    report.check("runner", expect::knows_weather);
    report.check("mixed", expect::function);
    report.check("approval", expect::refused_in_chat);
    report.check("errors", |observed| expect::errors_with_parameter(observed, "n"));
    report.check("models", expect::models);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn openai_node_responses() {
    let client = ClientLibrary { script: "client_openai.mjs", api: "responses" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["previous", "approval", "background", "errors", "models"]);
    report.check("function", expect::function);
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
fn ai_sdk_chat() {
    let client = ClientLibrary { script: "client_ai_sdk.mjs", api: "chat" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_function);
    report.check("errors", expect::api_call_errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}

#[test]
fn ai_sdk_responses() {
    let client = ClientLibrary { script: "client_ai_sdk.mjs", api: "responses" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["previous", "approval", "errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_mixed);
    report.check("previous", expect::previous);
    report.check("approval", expect::approval);
    report.check("errors", expect::api_call_errors);
    report.expect_calls(&hub, (3, 1));
    report.finish();
}

#[test]
fn ai_sdk_openai_compatible() {
    let client = ClientLibrary { script: "client_ai_sdk.mjs", api: "compatible" };
    let hub = ServedHub::with_model();
    let mut report = Report::of(&client, &hub, &["errors"]);
    report.check("function", expect::framework_function);
    report.check("mixed", expect::framework_function);
    report.check("errors", expect::api_call_errors);
    report.expect_calls(&hub, (3, 0));
    report.finish();
}
