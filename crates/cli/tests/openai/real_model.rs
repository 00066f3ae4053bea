//! The client libraries with a real language model behind the hub, which `cargo xtask e2e-model` starts and passes in
//! `TOOLHUB_E2E_MODEL_URL`. Other runs report the tests as ignored. What such a model says is not checked, but that it arrives,
//! streamed and not.

use std::time::Instant;

use crate::client_library::ClientLibrary;
use crate::expectations::{self as expect, Report};
use crate::served_hub::ServedHub;

const VARIABLE: &str = "TOOLHUB_E2E_MODEL_URL";
/// An agent with one tool, so that the model reads little.
const AGENT: &str =
    "[agents.tiny]\ntools = [\"calculate\"]\ninstructions = \"Answer in one short sentence.\"\n";
const ENVIRONMENT: [(&str, &str); 5] = [
    ("MODEL", "toolhub/tiny"),
    ("CLIENT_TIMEOUT", "400"),
    ("HELLO", "Say hello."),
    ("READ_ROW", "Name a colour."),
    ("CALCULATION", "What is 17 * 23? Use the tool calculate."),
];

/// Checks a library with each of its APIs.
#[expect(clippy::print_stdout, reason = "the output of a real model is printed")]
fn check(script: &'static str, apis: &[&'static str]) {
    let url = std::env::var(VARIABLE)
        .unwrap_or_else(|_| panic!("`{VARIABLE}` is not set: run `cargo xtask e2e-model`"));
    let hub = ServedHub::start(&format!("{AGENT}[llm]\nurl = \"{url}\"\ntimeout = \"6m\"\n"), None);
    for api in apis {
        let client = ClientLibrary { script, api };
        let since = Instant::now();
        let observed = client.run_with(&hub, &["plain", "stream", "calculation"], &ENVIRONMENT);
        let text = |scenario: &str| observed[scenario]["text"].clone();
        println!(
            "{script} {api}: {:.1} s: {} {} {}",
            since.elapsed().as_secs_f32(),
            text("plain"),
            text("stream"),
            text("calculation")
        );
        let mut report = Report::new(&client, observed);
        report.check("plain", expect::some_text);
        report.check("stream", expect::some_stream);
        // The model may call the tool or work it out itself, and it may be wrong.
        report.check("calculation", expect::some_text);
        report.finish();
    }
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_openai_python() {
    check("client_openai.py", &["chat", "responses"]);
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_openai_node() {
    check("client_openai.mjs", &["chat", "responses"]);
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_ai_sdk() {
    check("client_ai_sdk.mjs", &["chat", "responses", "compatible"]);
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_langchain() {
    check("client_langchain.py", &["chat", "responses"]);
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_pydantic_ai() {
    check("client_pydantic_ai.py", &["chat", "responses"]);
}

#[test]
#[ignore = "needs a language model: run `cargo xtask e2e-model`"]
fn real_model_openai_agents() {
    check("client_agents.py", &["chat", "responses"]);
}
