//! A hub without a model: the planner by rules answers every library, streamed and not, and the completion says so.

use serde_json::Value;

use crate::client_library::ClientLibrary;
use crate::expectations::{self as expect, Report};
use crate::served_hub::ServedHub;

/// A request that rules can answer.
const REQUEST: &str = "what is 17 * 23";

/// Checks a library with each of its APIs. Only the official libraries show models and fingerprints.
fn check(script: &'static str, apis: &[&'static str], is_official: bool) {
    let hub = ServedHub::without_model();
    for api in apis {
        let client = ClientLibrary { script, api };
        let mut scenarios = vec!["calculation", "stream", "errors"];
        scenarios.extend(is_official.then_some("models"));
        let observed = client.run_with(&hub, &scenarios, &[("CALCULATION", REQUEST), ("READ_ROW", REQUEST)]);
        let mut report = Report::new(&client, observed);
        report.check("calculation", |observed| {
            expect::calculation(observed)?;
            let fingerprint = observed["fingerprint"].as_str().unwrap_or_default();
            match is_official && *api == "chat" && !fingerprint.ends_with("-rules") {
                true => Err(format!("`system_fingerprint` is `{fingerprint}` and does not name the rules")),
                false => Ok(()),
            }
        });
        report.check("stream", expect::stream_by_rules);
        if script == "client_ai_sdk.mjs" {
            report.check("errors", expect::api_call_errors);
        } else {
            report.check("errors", expect::errors);
        }
        if is_official {
            report.check("models", expect::models);
        }
        report.finish();
    }
}

#[test]
fn rules_answer_openai_python() {
    check("client_openai.py", &["chat", "responses"], true);
}

#[test]
fn rules_answer_openai_node() {
    check("client_openai.mjs", &["chat", "responses"], true);
}

#[test]
fn rules_answer_ai_sdk() {
    check("client_ai_sdk.mjs", &["chat", "responses", "compatible"], false);
}

#[test]
fn rules_answer_langchain() {
    check("client_langchain.py", &["chat", "responses"], false);
}

#[test]
fn rules_answer_pydantic_ai() {
    check("client_pydantic_ai.py", &["chat", "responses"], false);
}

#[test]
fn rules_answer_openai_agents() {
    check("client_agents.py", &["chat", "responses"], false);
}

/// An agent is a model of its own, with its own tools.
#[test]
fn agent_answers_under_its_name() {
    let hub = ServedHub::with_model();
    let client = ClientLibrary { script: "client_openai.py", api: "chat" };
    let observed = client.run_with(&hub, &["calculation"], &[("MODEL", "toolhub/abacus")]);
    assert_eq!(observed["calculation"]["model"], "toolhub/abacus", "{observed}");
    expect::calculation(&observed["calculation"]).unwrap();
    let offered = hub.model_requests()[0]["tools"].to_string();
    assert!(offered.contains("calculate") && !offered.contains("read_sheet"), "{offered}");
    assert_eq!(observed["calculation"]["steps"][0]["tool"], Value::from("calculate"), "{observed}");
}
