//! A hub without a model: the planner by rules answers, and the completion says so.

use serde_json::Value;

use crate::client_library::ClientLibrary;
use crate::expectations::{self as expect, Report};
use crate::served_hub::ServedHub;

fn check(client: &ClientLibrary) {
    let hub = ServedHub::without_model();
    let environment = [("CALCULATION", "what is 17 * 23")];
    let observed = client.run_with(&hub, &["calculation", "models"], &environment);
    let mut report = Report::new(client, observed);
    report.check("calculation", |observed| {
        expect::calculation(observed)?;
        let fingerprint = &observed["fingerprint"];
        if client.api == "chat" && !fingerprint.as_str().is_some_and(|text| text.contains("rules")) {
            return Err(format!("`system_fingerprint` is {fingerprint} and does not name the rules"));
        }
        Ok(())
    });
    report.check("models", expect::models);
    report.finish();
}

#[test]
fn rules_answer_openai_python() {
    for api in ["chat", "responses"] {
        check(&ClientLibrary { script: "client_openai.py", api });
    }
}

#[test]
fn rules_answer_openai_node() {
    for api in ["chat", "responses"] {
        check(&ClientLibrary { script: "client_openai.mjs", api });
    }
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
