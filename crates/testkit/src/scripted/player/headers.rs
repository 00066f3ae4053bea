//! The header checks of a modern HTTP server: 2026-07-28, basic/transports/streamable-http, "Request Metadata".

use axum::http::HeaderMap;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    default_responses,
    message::{Fault, Message, Params},
    scenario::Scenario,
};

/// Rejects a request whose headers contradict its body.
pub(super) fn check(
    scenario: &Scenario,
    headers: &HeaderMap,
    message: &Message,
    params: &Params,
) -> Result<(), Fault> {
    let version = required(headers, "MCP-Protocol-Version")?;
    if let Some(body) = params.meta.version.as_deref() {
        same("MCP-Protocol-Version", version, body)?;
    }
    same("Mcp-Method", required(headers, "Mcp-Method")?, message.method())?;
    let name = match message.method() {
        "tools/call" | "prompts/get" => params.name.as_deref(),
        "resources/read" => params.uri.as_deref(),
        _ => None,
    };
    if let Some(name) = name {
        same("Mcp-Name", &decoded("Mcp-Name", required(headers, "Mcp-Name")?)?, name)?;
    }
    match name
        .filter(|_| message.method() == "tools/call")
        .and_then(|name| default_responses::tool(scenario, name))
    {
        Some(tool) => parameters(headers, &tool, params),
        None => Ok(()),
    }
}

/// Each annotated parameter with a value must have its header, and others must not.
fn parameters(headers: &HeaderMap, tool: &Value, params: &Params) -> Result<(), Fault> {
    let arguments = params.arguments.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let arguments: Value = arguments.unwrap_or_default();
    for (name, path) in annotated(&tool["inputSchema"]) {
        let header = format!("Mcp-Param-{name}");
        let value = path.iter().fold(&arguments, |value, key| &value[key.as_str()]);
        match (value, single(headers, &header)?) {
            (Value::Null, None) => {}
            (Value::Null, Some(_)) => {
                return Err(mismatch(&format!("{header} is given for an absent value")));
            }
            (_, None) => return Err(mismatch(&format!("{header} is missing"))),
            (value, Some(text)) => matches(&header, &decoded(&header, text)?, value)?,
        }
    }
    Ok(())
}

/// The annotations reachable through `properties` only, each with the path of its parameter.
fn annotated(schema: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(name) = property["x-mcp-header"].as_str() {
            found.push((name.to_owned(), vec![key.clone()]));
        }
        for (name, mut path) in annotated(property) {
            path.insert(0, key.clone());
            found.push((name, path));
        }
    }
    found
}

fn matches(header: &str, text: &str, value: &Value) -> Result<(), Fault> {
    match value {
        Value::String(body) => same(header, text, body),
        // Numbers are compared by value: 42.0 equals 42.
        Value::Number(body) if text.parse::<f64>().ok() == body.as_f64() => Ok(()),
        other => same(header, text, &other.to_string()),
    }
}

fn same(header: &str, header_value: &str, body: &str) -> Result<(), Fault> {
    if header_value == body {
        return Ok(());
    }
    Err(mismatch(&format!("{header} header value '{header_value}' does not match body value '{body}'")))
}

fn required<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Fault> {
    single(headers, name)?.ok_or_else(|| mismatch(&format!("{name} is missing")))
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(mismatch(&format!("{name} is given twice")));
    }
    value.to_str().map(Some).map_err(|_| mismatch(&format!("{name} contains invalid characters")))
}

fn decoded(header: &str, text: &str) -> Result<String, Fault> {
    let Some(encoded) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(text.to_owned());
    };
    let bytes = STANDARD.decode(encoded).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| mismatch(&format!("{header} is badly encoded")))
}

fn mismatch(problem: &str) -> Fault {
    Fault::new(400, -32020, format!("Header mismatch: {problem}"))
}
