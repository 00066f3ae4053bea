//! The default responses of a server of each era.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    message::{Fault, Message, Params, one_line, quote, text_result},
    request_check::Era,
    scenario::Scenario,
};

/// The default result of a request, as JSON text.
pub(super) fn default(
    scenario: &Scenario,
    era: Era,
    message: &Message,
    params: &Params,
) -> Result<String, Fault> {
    match (era, message.method()) {
        (Era::Legacy, "initialize") => Ok(initialize(scenario, params)),
        (Era::Legacy, "ping") => Ok("{}".to_owned()),
        (Era::Modern, "server/discover") => Ok(discover(scenario)),
        (_, "tools/list") => list(scenario, era, params),
        (_, "tools/call") => call(scenario, era, params),
        (Era::Legacy, method) => Err(unknown(200, method)),
        // 2026-07-28, streamable-http: an unknown method is 404 with a JSON-RPC error.
        (Era::Modern, method) => Err(unknown(404, method)),
    }
}

/// Adds the members that the era requires in results: 2026-07-28 has a result type and the server info.
pub(super) fn complete(scenario: &Scenario, era: Era, result: &str) -> String {
    let members = result.strip_prefix('{').unwrap_or(result);
    match era {
        Era::Legacy => result.to_owned(),
        Era::Modern => format!(
            r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{}}},{members}"#,
            implementation(scenario)
        ),
    }
}

/// The definition of a tool of this name.
pub(super) fn tool(scenario: &Scenario, name: &str) -> Option<Value> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named = |raw: &RawValue| serde_json::from_str::<Named>(raw.get()).is_ok_and(|tool| tool.name == name);
    let raw = scenario.tools.iter().find(|raw| named(raw))?;
    // A definition that is too deep for the parser is still a tool.
    Some(serde_json::from_str(raw.get()).unwrap_or_default())
}

fn initialize(scenario: &Scenario, params: &Params) -> String {
    let version = match scenario.version.as_str() {
        "echo" => params.protocol_version.as_deref().unwrap_or_default(),
        version => version,
    };
    let (version, server) = (quote(version), implementation(scenario));
    let (capabilities, instructions) = (capabilities(scenario), instructions(scenario));
    format!(
        r#"{{"protocolVersion":{version},"capabilities":{capabilities},"serverInfo":{server}{instructions}}}"#
    )
}

fn discover(scenario: &Scenario) -> String {
    let (versions, capabilities) = (json!(scenario.versions()), capabilities(scenario));
    let (instructions, caching) = (instructions(scenario), caching(scenario));
    let result =
        format!(r#"{{"supportedVersions":{versions},"capabilities":{capabilities}{instructions}{caching}}}"#);
    complete(scenario, Era::Modern, &result)
}

/// Cursors are `page-N`. A repeating cursor always leads to the second page.
fn list(scenario: &Scenario, era: Era, params: &Params) -> Result<String, Fault> {
    let size = scenario.page_size.unwrap_or(usize::MAX).max(1);
    let page: usize = match params.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix("page-")
            .and_then(|page| page.parse().ok())
            .ok_or_else(|| Fault::new(200, -32602, "Invalid cursor"))?,
    };
    let start = page.saturating_mul(size).min(scenario.tools.len());
    let end = start.saturating_add(size).min(scenario.tools.len());
    let tools: Vec<String> = scenario.tools[start..end].iter().map(|tool| one_line(tool.get())).collect();
    let next =
        if scenario.cursor_repeats { Some(1) } else { (end < scenario.tools.len()).then_some(page + 1) };
    let next = next.map(|next| format!(r#","nextCursor":"page-{next}""#)).unwrap_or_default();
    let caching = if era == Era::Modern { caching(scenario) } else { String::new() };
    Ok(complete(scenario, era, &format!(r#"{{"tools":[{}]{next}{caching}}}"#, tools.join(","))))
}

fn call(scenario: &Scenario, era: Era, params: &Params) -> Result<String, Fault> {
    let name = params.name.as_deref().ok_or_else(|| Fault::new(200, -32602, "Missing tool name"))?;
    if tool(scenario, name).is_none() {
        return Err(Fault::new(200, -32602, format!("Unknown tool: {name}")));
    }
    let arguments = params.arguments.as_deref().map_or("{}", RawValue::get);
    Ok(complete(scenario, era, &text_result(arguments, false)))
}

fn unknown(status: u16, method: &str) -> Fault {
    Fault::new(status, -32601, format!("Method not found: {method}"))
}

fn implementation(scenario: &Scenario) -> String {
    json!({"name": scenario.name, "version": env!("CARGO_PKG_VERSION")}).to_string()
}

fn capabilities(scenario: &Scenario) -> String {
    let written = scenario.capabilities.as_deref().map(|raw| one_line(raw.get()));
    written.unwrap_or_else(|| r#"{"tools":{"listChanged":true}}"#.to_owned())
}

fn instructions(scenario: &Scenario) -> String {
    let written = scenario.instructions.as_deref();
    written.map(|text| format!(r#","instructions":{}"#, quote(text))).unwrap_or_default()
}

fn caching(scenario: &Scenario) -> String {
    format!(r#","ttlMs":{},"cacheScope":{}"#, scenario.ttl_ms, quote(&scenario.cache_scope))
}
