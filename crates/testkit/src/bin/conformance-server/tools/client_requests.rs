//! Tools that send requests to legacy clients; modern clients get the same requests as rounds.

use rmcp::model::{ElicitResult, ErrorData};
use serde_json::{Value, json};

use super::{Arguments, Fixture, Outcome, done, text_content};
use crate::exchange::{Exchange, Step};
use crate::input_requests;

pub(super) const FIXTURES: &[Fixture] = &[
    Fixture {
        name: "test_sampling",
        description: "Asks the caller's model",
        arguments: Arguments::Required(&[("prompt", "string")]),
        step: |exchange| sample(exchange, exchange.text("prompt")?),
    },
    Fixture {
        name: "test_missing_capability",
        description: "Asks the caller's model, which the caller has to have",
        arguments: Arguments::None,
        step: |exchange| sample(exchange, "Say anything"),
    },
    Fixture {
        name: "test_elicitation",
        description: "Asks a person for a name and an address",
        arguments: Arguments::Required(&[("message", "string")]),
        step: elicit_user,
    },
    Fixture {
        name: "test_streaming_elicitation",
        description: "Asks a person whether to go on",
        arguments: Arguments::None,
        step: |exchange| {
            let schema = json!({"type": "object", "properties": {"proceed": {"type": "boolean"}}});
            elicit(exchange, "Shall this go on?", &schema, "Elicitation completed")
        },
    },
    Fixture {
        name: "test_elicitation_sep1034_defaults",
        description: "Asks a person, with a default for each kind of field",
        arguments: Arguments::None,
        step: |exchange| {
            elicit(exchange, "Please check these values", &with_defaults(), "Elicitation completed")
        },
    },
    Fixture {
        name: "test_elicitation_sep1330_enums",
        description: "Asks a person to choose, in each way that there is",
        arguments: Arguments::None,
        step: |exchange| elicit(exchange, "Please choose", &with_choices(), "Elicitation completed"),
    },
];

/// The key of the response for tools with a single input request.
const ONLY: &str = "answer";

fn sample(exchange: &Exchange, prompt: &str) -> Result<Step<Outcome>, ErrorData> {
    if let Some(text) = exchange.sampled(ONLY) {
        return done(text_content(format!("LLM response: {text}")));
    }
    Step::ask([(ONLY, input_requests::prompt(prompt))])
}

fn elicit(
    exchange: &Exchange,
    message: &str,
    schema: &Value,
    before: &str,
) -> Result<Step<Outcome>, ErrorData> {
    if let Some(ElicitResult { action, content, .. }) = exchange.elicited(ONLY) {
        let response = json!({"action": action, "content": content});
        return done(text_content(format!(
            "{before}: action={}, content={}",
            response["action"], response["content"]
        )));
    }
    Step::ask([(ONLY, input_requests::form(message, schema))])
}

fn elicit_user(exchange: &Exchange) -> Result<Step<Outcome>, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    elicit(exchange, exchange.text("message")?, &schema, "User response")
}

fn with_defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
    })
}

fn with_choices() -> Value {
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    {"const": "value1", "title": "First Option"},
                    {"const": "value2", "title": "Second Option"},
                    {"const": "value3", "title": "Third Option"},
                ],
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"const": "value1", "title": "First Choice"},
                        {"const": "value2", "title": "Second Choice"},
                        {"const": "value3", "title": "Third Choice"},
                    ],
                },
            },
        },
    })
}
