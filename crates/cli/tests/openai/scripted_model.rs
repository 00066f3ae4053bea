//! The model behind the hub: it chooses its reply from the last request of the user and the results since then, so that the
//! order in which clients send requests does not matter. The client scripts contain the same requests.

use serde_json::Value;
use toolhub_testkit::model::{Act, ModelServer, ScriptedReply};

/// Multi-byte characters, so that a delta cut inside one is noticed.
pub(crate) const HELLO: &str = "Hello from the hub. Grüße, 世界! 👋";
/// The tokens of each reply: read, written.
pub(crate) const USAGE: (u64, u64) = (10, 5);

/// Starts the model.
pub(crate) fn start() -> ModelServer {
    ModelServer::by_request(reply)
}

fn reply(body: &Value) -> Act {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let asked = messages.iter().rposition(|message| message["role"] == "user");
    let (before, since) = messages.split_at(asked.map_or(0, |position| position + 1));
    let request = before.last().map(content).unwrap_or_default();
    let results: Vec<String> =
        since.iter().filter(|message| message["role"] == "tool").map(content).collect();
    let results = results.join(" and ");
    let says = |text: &str| ScriptedReply::text(text);
    let scripted = match (request.trim(), results.is_empty()) {
        ("Say hello.", _) => says(HELLO),
        ("Think, and say hello.", _) => says(HELLO).thinking("The user wants a greeting."),
        ("Work out 17 * 23.", true) => says("").call("calculate", r#"{"expression":"17 * 23"}"#),
        ("Read row 3.", true) => says("").call("read_sheet", r#"{"row":3}"#),
        ("What is the weather in Kyoto?", true) => says("").call("get_weather", r#"{"city":"Kyoto"}"#),
        ("Read row 3, and tell me the weather in Kyoto.", true) => {
            says("").call("read_sheet", r#"{"row":3}"#).call("get_weather", r#"{"city":"Kyoto"}"#)
        }
        ("A trip to Osaka, as JSON.", _) => says(r#"{"city":"Osaka","days":3}"#),
        ("My name is Ada.", _) => says("Noted."),
        ("What is my name?", _) => {
            let is_known = before.iter().any(|message| content(message).contains("My name is Ada."));
            says(if is_known { "Your name is Ada." } else { "I do not know it." })
        }
        ("Write row 7.", true) => says("").call("write_sheet", r#"{"row":7}"#),
        ("Think for ever.", _) => return Act::Hang,
        (_, false) => says(&format!("The results are: {results}.")),
        (request, true) => {
            return Act::refuse(400, &format!("the scripted model has no reply to `{request}`"));
        }
    };
    let (read, written) = USAGE;
    scripted.with_usage(read, 0, written).act()
}

/// The text of a message, which is a text or a list of parts.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
