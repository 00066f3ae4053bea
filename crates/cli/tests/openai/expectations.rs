//! What a client must have observed in each scenario, whatever its library is called and however it names things.

use serde_json::{Value, json};

use crate::client_library::ClientLibrary;
use crate::scripted_model::{HELLO, USAGE};
use crate::served_hub::ServedHub;

/// The observations of one client, and the expectations that it did not meet.
pub(crate) struct Report {
    client: String,
    observed: Value,
    failures: Vec<String>,
}

/// The scenarios that every library supports.
const BASIC: [&str; 6] = ["plain", "calculation", "stream", "function", "mixed", "structured"];

impl Report {
    /// Runs the scenarios that every library supports and these further ones. Checks those that every library reports alike.
    pub(crate) fn of(client: &ClientLibrary, hub: &ServedHub, more: &[&str]) -> Self {
        let observed = client.run(hub, &[&BASIC, more].concat());
        let mut report = Self::new(client, observed);
        report.check("plain", plain);
        report.check("calculation", calculation);
        report.check("stream", stream);
        report.check("structured", structured);
        report
    }

    /// The report of a client.
    pub(crate) fn new(client: &ClientLibrary, observed: Value) -> Self {
        let client = format!("{} {}", client.script, client.api);
        Self { client, observed, failures: Vec::new() }
    }

    /// Checks one scenario. All others are checked too if it fails.
    pub(crate) fn check(&mut self, scenario: &str, check: impl FnOnce(&Value) -> Result<(), String>) {
        let observed = &self.observed[scenario];
        let result = match &observed["exception"] {
            Value::Null => check(observed).map_err(|error| format!("{error}\n  in {observed}")),
            exception => Err(exception.as_str().unwrap_or_default().to_owned()),
        };
        if let Err(error) = result {
            self.failures.push(format!("{} `{scenario}`: {error}", self.client));
        }
    }

    /// Adds an expectation about the hub.
    fn expect(&mut self, condition: bool, what: impl FnOnce() -> String) {
        if !condition {
            self.failures.push(format!("{}: {}", self.client, what()));
        }
    }

    /// Expects that `read_sheet` and `write_sheet` were called this often.
    pub(crate) fn expect_calls(&mut self, hub: &ServedHub, expected: (usize, usize)) {
        let called = hub.called();
        let count = |tool: &str| called.iter().filter(|name| *name == tool).count();
        let found = (count("read_sheet"), count("write_sheet"));
        self.expect(found == expected, || {
            format!("`read_sheet` and `write_sheet` were called {found:?} times and not {expected:?}")
        });
    }

    /// Fails the test if an expectation was not met.
    pub(crate) fn finish(self) {
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n\n"));
    }
}

fn equal(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found} and not {expected}")) }
}

fn require(condition: bool, what: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what.to_owned()) }
}

fn text(observed: &Value) -> &str {
    observed["text"].as_str().unwrap_or_default()
}

/// That a turn has ended, with a text and without a call; libraries that report no reason have none.
fn is_finished(observed: &Value) -> Result<(), String> {
    let finish = observed["finish"].as_str().unwrap_or("stop");
    require(matches!(finish, "stop" | "completed"), "the turn did not end with `stop`")
}

fn has_usage(observed: &Value, requests: u64) -> Result<(), String> {
    let (read, written) = USAGE;
    match &observed["usage"] {
        Value::Null => Err("there is no usage".to_owned()),
        usage => equal("the usage", usage, &json!([read * requests, written * requests])),
    }
}

/// A text without a call.
pub(crate) fn plain(observed: &Value) -> Result<(), String> {
    equal("the text", &observed["text"], &HELLO.into())?;
    is_finished(observed)?;
    has_usage(observed, 1)
}

/// A call of a built-in tool, and an answer from its result.
pub(crate) fn calculation(observed: &Value) -> Result<(), String> {
    require(text(observed).contains("391"), "391 is not in the text")?;
    is_finished(observed)
}

/// Streamed text equals the unstreamed one, and comes in several pieces.
pub(crate) fn stream(observed: &Value) -> Result<(), String> {
    equal("the unstreamed text", &observed["unstreamed"], &observed["text"])?;
    require(text(observed).contains(r#"{"row":3}"#), "the result of the hub's tool is not in the text")?;
    let deltas = observed["deltas"].as_array().ok_or("no deltas")?;
    // A library reports the empty content of the first chunk as a delta.
    let deltas: Vec<&Value> = deltas.iter().filter(|delta| *delta != "").collect();
    let whole: String = deltas.iter().filter_map(|delta| delta.as_str()).collect();
    require(whole == text(observed), "the deltas are not the text")?;
    require(deltas.len() > 1, "the text came in one piece")?;
    is_finished(observed)?;
    match &observed["finishes"] {
        Value::Null => Ok(()),
        finishes => equal("the reasons to end", finishes, &json!(["stop"])),
    }
}

/// Like `stream`, without a model: the text comes in one piece.
pub(crate) fn stream_by_rules(observed: &Value) -> Result<(), String> {
    some_stream(observed)?;
    equal("the unstreamed text", &observed["unstreamed"], &observed["text"])?;
    calculation(observed)
}

/// A text, whatever it says.
pub(crate) fn some_text(observed: &Value) -> Result<(), String> {
    require(!text(observed).trim().is_empty(), "there is no text")?;
    is_finished(observed)
}

/// A streamed text, whatever it says: the deltas are the text.
pub(crate) fn some_stream(observed: &Value) -> Result<(), String> {
    some_text(observed)?;
    let deltas = observed["deltas"].as_array().ok_or("no deltas")?;
    let whole: String = deltas.iter().filter_map(Value::as_str).collect();
    require(whole == text(observed), "the deltas are not the text")?;
    let unstreamed = observed["unstreamed"].as_str().unwrap_or_default();
    require(!unstreamed.trim().is_empty(), "there is no unstreamed text")?;
    match &observed["finishes"] {
        Value::Null => Ok(()),
        finishes => equal("the reasons to end", finishes, &json!(["stop"])),
    }
}

/// The one call of the client's function.
fn weather_called(observed: &Value) -> Result<(), String> {
    let calls = observed["calls"].as_array().ok_or("no calls")?;
    let [call] = calls.as_slice() else {
        return Err(format!("{} calls of the client's function", calls.len()));
    };
    equal("the function", &call[0], &"get_weather".into())?;
    let arguments: Value = serde_json::from_str(call[1].as_str().unwrap_or_default()).unwrap_or_default();
    equal("the arguments", &arguments, &json!({"city": "Kyoto"}))
}

/// That the result of the function is in the final text.
pub(crate) fn knows_weather(observed: &Value) -> Result<(), String> {
    require(text(observed).contains("sunny in Kyoto"), "the result of the function is not in the text")?;
    is_finished(observed)
}

fn knows_row(observed: &Value) -> Result<(), String> {
    require(text(observed).contains(r#"{"row":3}"#), "the result of the hub's tool is not in the text")
}

/// A turn that ended with a call of the client's function.
pub(crate) fn function_requested(observed: &Value) -> Result<(), String> {
    weather_called(observed)?;
    let finish = observed["finish"].as_str().unwrap_or_default();
    require(matches!(finish, "tool_calls" | "completed"), "the turn did not end with the call")
}

/// A client that runs its function itself: two turns.
pub(crate) fn function(observed: &Value) -> Result<(), String> {
    function_requested(&observed["first"])?;
    knows_weather(&observed["final"])?;
    equal("the calls at the end", &observed["final"]["calls"], &json!([]))?;
    match &observed["stateless"] {
        Value::Null => Ok(()),
        stateless => knows_weather(stateless),
    }
}

/// Like `function`, after a call of the hub's tool, whose result the model knows in the second turn too.
pub(crate) fn mixed(observed: &Value) -> Result<(), String> {
    function(observed)?;
    knows_row(&observed["final"])
}

/// Like `mixed`, with the items of the official libraries.
pub(crate) fn mixed_items(observed: &Value) -> Result<(), String> {
    let items = observed["first"]["items"].as_array().ok_or("no items")?;
    let items: Vec<&Value> = items.iter().filter(|item| *item != "mcp_list_tools").collect();
    require(
        items == ["mcp_call", "function_call"],
        "the items are not the call of the hub and that of the client",
    )?;
    let call = &observed["first"]["hub_calls"][0];
    equal(
        "the call of the hub",
        call,
        &json!(["sheets", "read_sheet", r#"{"row":3}"#, r#"{"row":3}"#, null]),
    )?;
    mixed(observed)?;
    knows_row(&observed["stateless"])
}

/// A framework that runs the function by itself.
pub(crate) fn framework_function(observed: &Value) -> Result<(), String> {
    weather_called(observed)?;
    knows_weather(observed)?;
    equal("the number of requests", &observed["requests"], &2.into())
}

/// Like `framework_function`, with a call of the hub's tool, whose result the framework sends back.
pub(crate) fn framework_mixed(observed: &Value) -> Result<(), String> {
    framework_function(observed)?;
    knows_row(observed)
}

/// Output by a JSON schema.
pub(crate) fn structured(observed: &Value) -> Result<(), String> {
    equal("the output", &observed["parsed"], &json!({"city": "Osaka", "days": 3}))
}

/// A response knows the one that it continues, and no other.
pub(crate) fn previous(observed: &Value) -> Result<(), String> {
    equal("the text", &observed["chained"]["text"], &"Your name is Ada.".into())?;
    equal("the text without a previous response", &observed["alone"], &"I do not know it.".into())
}

/// Like `previous`, with the other methods of stored responses.
pub(crate) fn stored(observed: &Value) -> Result<(), String> {
    previous(observed)?;
    equal("`previous_response_id`", &observed["chained"]["previous_is_first"], &true.into())?;
    equal("the retrieved text", &observed["retrieved"]["text"], &"Noted.".into())?;
    equal("the input items", &observed["inputs"], &json!([["message", "user", "My name is Ada."]]))?;
    error(&observed["deleted"], "NotFoundError", 404)?;
    let unknown = &observed["unknown"];
    require(
        matches!(unknown["status"].as_u64(), Some(400 | 404)),
        "an unknown previous response is accepted",
    )?;
    equal("the parameter", &unknown["param"], &"previous_response_id".into())
}

/// The call waits for the client; it runs if the client approves it.
pub(crate) fn approval(observed: &Value) -> Result<(), String> {
    for decision in ["approved", "denied"] {
        let asked = observed[decision]["asked"].as_array().ok_or("nothing was asked")?;
        let [request] = asked.as_slice() else {
            return Err(format!("{} approvals were requested", asked.len()));
        };
        equal("the server", &request[0], &"sheets".into())?;
        equal("the tool", &request[1], &"write_sheet".into())?;
        // Libraries give the arguments as text or as a value.
        let arguments = match &request[2] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            value => value.clone(),
        };
        equal("the arguments", &arguments, &json!({"row": 7}))?;
        is_finished(&observed[decision]["final"])?;
        require(!text(&observed[decision]["final"]).is_empty(), "there is no text at the end")?;
    }
    let written = |decision: &str| text(&observed[decision]["final"]).contains(r#"{"row":7}"#);
    require(written("approved"), "the result of the approved call is not in the text")?;
    require(!written("denied"), "the denied call has a result")
}

/// The call is not made, and the answer comes nevertheless.
pub(crate) fn refused_in_chat(observed: &Value) -> Result<(), String> {
    is_finished(observed)?;
    let is_written = text(observed).contains(r#"{"row":7}"#);
    require(!text(observed).is_empty() && !is_written, "the call was not refused")
}

/// The call is made without a question.
pub(crate) fn written_in_chat(observed: &Value) -> Result<(), String> {
    is_finished(observed)?;
    require(text(observed).contains(r#"{"row":7}"#), "the result of the call is not in the text")?;
    equal("the call of the hub", &observed["steps"][0]["tool"], &"write_sheet".into())
}

/// A response in the background completes; another one is cancelled.
pub(crate) fn background(observed: &Value) -> Result<(), String> {
    plain(&observed["final"])?;
    for begun in ["begun", "endless"] {
        let status = observed[begun].as_str().unwrap_or_default();
        require(
            matches!(status, "queued" | "in_progress"),
            "it does not begin as `queued` or `in_progress`",
        )?;
    }
    equal("the cancelled one", &observed["cancelled"], &"cancelled".into())?;
    equal("the cancelled one, retrieved", &observed["retrieved"], &"cancelled".into())?;
    error(&observed["not_in_background"], "BadRequestError", 400)
}

/// The class and status of an error, and that it has a message.
fn error(observed: &Value, class: &str, status: u16) -> Result<(), String> {
    equal("the class", &observed["class"], &class.into())?;
    equal("the status", &observed["status"], &status.into())?;
    let message = observed["body"]["message"].as_str().unwrap_or_default();
    require(!message.is_empty(), "the error has no message")
}

/// The errors that every library reports, with the classes of the official libraries.
pub(crate) fn errors(observed: &Value) -> Result<(), String> {
    error(&observed["key"], "AuthenticationError", 401)?;
    error(&observed["model"], "NotFoundError", 404)
}

/// Like `errors`, with the parameter that was not accepted.
pub(crate) fn errors_with_parameter(observed: &Value, parameter: &str) -> Result<(), String> {
    errors(observed)?;
    equal("the code", &observed["model"]["code"], &"model_not_found".into())?;
    equal("the parameter of the model", &observed["model"]["param"], &"model".into())?;
    error(&observed["parameter"], "BadRequestError", 400)?;
    equal("the parameter", &observed["parameter"]["param"], &parameter.into())
}

/// The errors of the AI SDK, which has one class for all.
pub(crate) fn api_call_errors(observed: &Value) -> Result<(), String> {
    error(&observed["key"], "APICallError", 401)?;
    error(&observed["model"], "APICallError", 404)
}

/// Each agent of the configuration is a model.
pub(crate) fn models(observed: &Value) -> Result<(), String> {
    let mut ids = observed.as_array().cloned().unwrap_or_default();
    ids.sort_by_key(ToString::to_string);
    equal("the list of models", &ids.into(), &json!(["toolhub/abacus", "toolhub/default"]))
}
