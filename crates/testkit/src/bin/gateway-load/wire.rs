//! The messages of the benchmark and their protocol revision.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The tool to call.
pub(crate) const TOOL: &str = "echo_0";

/// The parsed members of a message.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: &'a str,
}

/// The metadata of every request.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A stateless call.
pub(crate) fn call(id: u64, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"hello","count":3}},{META}}}}}"#
    )
}

/// A call in a session, without metadata.
pub(crate) fn call_in_session(id: u64, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"hello","count":3}}}}}}"#
    )
}

/// A `tools/list` request in a session.
pub(crate) fn list_in_session(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#)
}

/// The `initialize` request.
pub(crate) fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"load","version":"1"}}}}}}"#
    )
}

/// The notification after `initialize`.
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A stateless `tools/list` request.
pub(crate) fn list(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{META}}}}}"#)
}

/// The list of the server's tools.
pub(crate) fn tools(count: usize) -> String {
    // One tool has no annotations, so the gateway must assume that it has side effects.
    let change = r#"{"name":"change_0","description":"Stores a text so many times.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"}},"required":["text"]}}"#;
    let tools: Vec<String> = (0..count)
        .map(|number| {
            format!(
                r#"{{"name":"echo_{number}","description":"Gives back what it is given, as server number {number} does it: the text, so many times as it is asked to.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to give back"}},"count":{{"type":"integer","minimum":1,"maximum":10,"description":"How many times"}}}},"required":["text"]}},"annotations":{{"readOnlyHint":true}}}}"#
            )
        })
        .chain([change.to_owned()])
        .collect();
    format!(
        r#"{{"tools":[{}],"resultType":"complete","ttlMs":3600000,"cacheScope":"public"}}"#,
        tools.join(",")
    )
}

/// The response to a message; `None` for a notification.
pub(crate) fn answer(message: &Message<'_>, tools: &str) -> Option<String> {
    let id = message.id?;
    let result = match message.method {
        "tools/call" => r#"{"content":[{"type":"text","text":"hello hello hello"}],"resultType":"complete"}"#,
        "tools/list" => tools,
        "server/discover" => {
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":3600000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fast","version":"1"}}}"#
        }
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fast","version":"1"}}"#
        }
        "ping" => "{}",
        _ => {
            let code = r#"{"code":-32601,"message":"method not found"}"#;
            return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{code}}}"#));
        }
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}
