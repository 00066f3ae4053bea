//! The tools of a request: functions that the client runs, and servers of the hub.

use serde_json::{Value, json};
use toolhub_core::model::{OfferedTool, ToolChoice};
use toolhub_core::suggest::similar_names;
use toolhub_core::{RawJson, Tool, ToolName};

use crate::error::ApiError;
use crate::parameters::{Parameters, missing_parameter};

const MAX_FUNCTIONS: usize = 128;
const MAX_SERVERS: usize = 128;
const MAX_FUNCTION_NAME_BYTES: usize = 64;

/// The tools of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestTools {
    pub(crate) functions: Vec<OfferedTool>,
    /// The servers that the agent may use; all if empty.
    pub(crate) servers: Vec<ServerTool>,
}

/// `{"type": "mcp"}`: a server of the hub.
#[derive(Debug, Clone)]
pub(crate) struct ServerTool {
    pub(crate) label: String,
    allowed: Option<Vec<String>>,
    reads_only: bool,
    approval: ApprovalRule,
    /// Whether its tools are not listed in the output.
    pub(crate) is_deferred: bool,
}

/// `require_approval`.
#[derive(Debug, Clone)]
enum ApprovalRule {
    Always,
    Never,
    /// Tools that always need approval, and tools that never do. Others need it.
    Named {
        always: Vec<String>,
        never: Vec<String>,
    },
}

impl ServerTool {
    fn admits(&self, tool: &Tool) -> bool {
        let name = tool.definition.wire_name().as_str();
        let is_named = |names: &Vec<String>| {
            names.iter().any(|allowed| allowed == name || allowed == tool.name().as_str())
        };
        tool.source.to_string() == self.label
            && self.allowed.as_ref().is_none_or(is_named)
            && (!self.reads_only || tool.hints().read_only == Some(true))
    }

    fn requires_approval(&self, tool: &Tool) -> bool {
        let (name, wire_name) = (tool.name().as_str(), tool.definition.wire_name().as_str());
        let has = |names: &[String]| names.iter().any(|named| named == name || named == wire_name);
        match &self.approval {
            ApprovalRule::Always => true,
            ApprovalRule::Never => false,
            ApprovalRule::Named { always, never } => has(always) || !has(never),
        }
    }
}

impl RequestTools {
    /// Parses the tools of a responses request that was sent to a host; `None` if the request was checked before.
    pub(crate) fn parse(values: Vec<Value>, host: Option<&str>) -> Result<Self, ApiError> {
        let mut tools = Self::default();
        for (index, value) in values.into_iter().enumerate() {
            let at = format!("tools[{index}]");
            let mut members = members(&value, &at)?;
            match members.required_text("type")?.as_str() {
                "function" => tools.functions.push(function(members, &at)?),
                "mcp" => tools.servers.push(server(members, &at, host)?),
                other => {
                    let why = format!(
                        "tools of type `{other}` do not exist here; use `function` for your own functions and `mcp` with \
                         `server_label` for a server of the hub"
                    );
                    return Err(ApiError::unsupported(&format!("{at}.type"), &why));
                }
            }
        }
        tools.check_functions()?;
        tools.check_labels()?;
        Ok(tools)
    }

    /// Parses the tools of a chat request, in which a function is nested.
    pub(crate) fn parse_chat(values: Vec<Value>) -> Result<Self, ApiError> {
        let mut tools = Self::default();
        for (index, value) in values.into_iter().enumerate() {
            let at = format!("tools[{index}]");
            let mut outer = members(&value, &at)?;
            match outer.required_text("type")?.as_str() {
                "function" => {}
                other => {
                    let why = format!("tools of type `{other}` do not exist in chat; use `/v1/responses`");
                    return Err(ApiError::unsupported(&format!("{at}.type"), &why));
                }
            }
            let inner =
                outer.object("function")?.ok_or_else(|| missing_parameter(&format!("{at}.function")))?;
            outer.finish(&format!("{at}."))?;
            tools.functions.push(function(inner, &at)?);
        }
        tools.check_functions()?;
        Ok(tools)
    }

    fn check_functions(&self) -> Result<(), ApiError> {
        if self.functions.len() > MAX_FUNCTIONS {
            return Err(ApiError::invalid("tools", format!("at most {MAX_FUNCTIONS} functions")));
        }
        for (index, function) in self.functions.iter().enumerate() {
            if self.functions[..index].iter().any(|other| other.name == function.name) {
                let message = format!("the function `{}` occurs twice", function.name);
                return Err(ApiError::invalid("tools", message));
            }
        }
        Ok(())
    }

    /// Each entry lists the tools of its server in the output, and has a rule about approvals of its own.
    fn check_labels(&self) -> Result<(), ApiError> {
        if self.servers.len() > MAX_SERVERS {
            return Err(ApiError::invalid("tools", format!("at most {MAX_SERVERS} servers")));
        }
        for (index, server) in self.servers.iter().enumerate() {
            if self.servers[..index].iter().any(|other| other.label == server.label) {
                let message = format!("the server `{}` occurs twice (服务器重复)", server.label);
                return Err(ApiError::invalid("tools.server_label", message));
            }
        }
        Ok(())
    }

    /// Whether the agent may use a tool of the hub.
    pub(crate) fn admits(&self, tool: &Tool) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|server| server.admits(tool))
    }

    /// Whether the client requires its approval for calls of a tool.
    pub(crate) fn requires_approval(&self, tool: &Tool) -> bool {
        let source = tool.source.to_string();
        self.servers.iter().any(|server| server.label == source && server.requires_approval(tool))
    }

    /// Checks that the named servers exist for the principal.
    pub(crate) fn check_servers(&self, visible: &[Tool]) -> Result<(), ApiError> {
        let sources: std::collections::BTreeSet<String> =
            visible.iter().map(|tool| tool.source.to_string()).collect();
        for server in &self.servers {
            if sources.contains(&server.label) {
                continue;
            }
            let near = similar_names(&server.label, sources.iter().map(String::as_str), 1);
            let hint = match near.first() {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!("; there are: {}", sources.into_iter().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no server `{}`{hint} (没有此服务器)", server.label);
            return Err(ApiError::invalid("tools.server_label", message));
        }
        Ok(())
    }

    /// The tools of a server as an item lists them, with the definitions that `offered` shows to the principal.
    pub(crate) fn listed(
        server: &ServerTool,
        visible: &[Tool],
        offered: impl Fn(&Tool) -> Option<RawJson>,
    ) -> Value {
        let own = visible.iter().filter(|tool| server.admits(tool));
        let tools = own.filter_map(|tool| Some((tool, offered(tool)?))).map(|(tool, definition)| {
            let parse = |raw: &RawJson| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
            let definition = definition.object().unwrap_or_default();
            json!({
                "name": tool.name().as_str(),
                "description": definition.get("description").and_then(RawJson::text).unwrap_or_default(),
                "input_schema": definition.get("inputSchema").map(parse),
                "annotations": definition.get("annotations").map(parse),
            })
        });
        Value::Array(tools.collect())
    }
}

fn members(value: &Value, at: &str) -> Result<Parameters, ApiError> {
    let mut outer = Parameters::parse(json!({ "tool": value }).to_string().as_bytes())?;
    outer.object("tool")?.ok_or_else(|| ApiError::invalid(at, format!("`{at}` must be an object")))
}

fn function(mut members: Parameters, at: &str) -> Result<OfferedTool, ApiError> {
    let name = members.required_text("name")?;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > MAX_FUNCTION_NAME_BYTES || !name.bytes().all(is_valid) {
        let message =
            format!("the name of a function has 1 to {MAX_FUNCTION_NAME_BYTES} letters, digits, `_` and `-`");
        return Err(ApiError::invalid(format!("{at}.name"), message));
    }
    let description = members.text("description")?.unwrap_or_default();
    let schema = members.take("parameters").unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if !schema.is_object() {
        return Err(ApiError::invalid(
            format!("{at}.parameters"),
            "`parameters` must be a JSON Schema object",
        ));
    }
    members.accept(&["strict", "defer_loading"]);
    members.finish(&format!("{at}."))?;
    Ok(OfferedTool { name: ToolName::new(name), description, schema: RawJson::from(schema) })
}

/// Whether a URL is that of the hub itself. Some clients require one beside the label; the hub never connects to it.
fn is_own_url(url: &Value, host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    let Some((scheme, rest)) = url.as_str().and_then(|url| url.split_once("://")) else { return false };
    ["http", "https"].contains(&scheme) && rest.strip_prefix(host).is_some_and(|path| path == "/mcp")
}

fn server(mut members: Parameters, at: &str, host: Option<&str>) -> Result<ServerTool, ApiError> {
    let url = members.take("server_url");
    let is_foreign = url.is_some_and(|url| !is_own_url(&url, host));
    for (name, is_foreign) in [
        ("server_url", is_foreign),
        ("connector_id", members.take("connector_id").is_some()),
        ("authorization", members.take("authorization").is_some()),
        ("headers", members.take("headers").is_some()),
    ] {
        if is_foreign {
            let why = "the hub calls only servers of its own configuration: name one by `server_label`";
            return Err(ApiError::unsupported(&format!("{at}.{name}"), why));
        }
    }
    let label = members.required_text("server_label")?;
    let (mut allowed, mut reads_only) = (None, false);
    match members.take("allowed_tools") {
        None => {}
        Some(Value::Array(names)) => allowed = Some(texts(names, &format!("{at}.allowed_tools"))?),
        Some(Value::Object(filter)) => {
            let mut filter = Parameters::parse(Value::Object(filter).to_string().as_bytes())?;
            if let Some(names) = filter.take("tool_names") {
                let names = names.as_array().cloned().unwrap_or_default();
                allowed = Some(texts(names, &format!("{at}.allowed_tools.tool_names"))?);
            }
            reads_only = filter.flag("read_only")?.unwrap_or(false);
            filter.finish(&format!("{at}.allowed_tools."))?;
        }
        Some(_) => {
            return Err(ApiError::invalid(
                format!("{at}.allowed_tools"),
                "`allowed_tools` is a list of names",
            ));
        }
    }
    let approval = approval(members.take("require_approval"), &format!("{at}.require_approval"))?;
    let is_deferred = members.flag("defer_loading")?.unwrap_or(false);
    members.accept(&["server_description"]);
    members.finish(&format!("{at}."))?;
    Ok(ServerTool { label, allowed, reads_only, approval, is_deferred })
}

fn approval(value: Option<Value>, at: &str) -> Result<ApprovalRule, ApiError> {
    let wrong =
        || ApiError::invalid(at, "`require_approval` is `always`, `never`, or lists `tool_names` for them");
    match value {
        None => Ok(ApprovalRule::Always),
        Some(Value::String(text)) if text == "always" => Ok(ApprovalRule::Always),
        Some(Value::String(text)) if text == "never" => Ok(ApprovalRule::Never),
        Some(Value::Object(lists)) => {
            let names = |key: &str| match lists.get(key) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(filter) => texts(filter["tool_names"].as_array().cloned().ok_or_else(wrong)?, at),
            };
            if lists.keys().any(|key| !["always", "never"].contains(&key.as_str())) {
                return Err(wrong());
            }
            Ok(ApprovalRule::Named { always: names("always")?, never: names("never")? })
        }
        Some(_) => Err(wrong()),
    }
}

fn texts(values: Vec<Value>, at: &str) -> Result<Vec<String>, ApiError> {
    values
        .into_iter()
        .map(|value| match value {
            Value::String(text) => Ok(text),
            _ => Err(ApiError::invalid(at, format!("`{at}` is a list of names"))),
        })
        .collect()
}

/// `tool_choice`: whether the model may call tools, and the only one that it may call.
pub(crate) fn parse_tool_choice(
    value: Option<&Value>,
    tools: &RequestTools,
) -> Result<(ToolChoice, Option<String>), ApiError> {
    let unknown = |name: &str| {
        ApiError::invalid("tool_choice", format!("`tool_choice` names `{name}`, which is not in `tools`"))
    };
    match value {
        None => Ok((ToolChoice::Free, None)),
        Some(Value::String(text)) => match text.as_str() {
            "auto" => Ok((ToolChoice::Free, None)),
            "none" => Ok((ToolChoice::Forbidden, None)),
            "required" => Ok((ToolChoice::Required, None)),
            _ => Err(ApiError::invalid(
                "tool_choice",
                "`tool_choice` is `auto`, `none`, `required`, or a tool",
            )),
        },
        Some(object) => {
            let name = object["name"].as_str().or_else(|| object["function"]["name"].as_str());
            match (object["type"].as_str(), name) {
                (Some("function"), Some(name)) => {
                    let is_known = tools.functions.iter().any(|function| function.name.as_str() == name);
                    if !is_known {
                        return Err(unknown(name));
                    }
                    Ok((ToolChoice::Required, Some(name.to_owned())))
                }
                (Some("mcp"), Some(name)) => {
                    let label = object["server_label"].as_str().unwrap_or_default();
                    if !tools.servers.iter().any(|server| server.label == label) {
                        return Err(unknown(label));
                    }
                    Ok((ToolChoice::Required, Some(name.to_owned())))
                }
                (Some("mcp"), None) => Ok((ToolChoice::Required, None)),
                _ => Err(ApiError::unsupported(
                    "tool_choice",
                    "use `auto`, `none`, `required`, a function or a tool of a server",
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approved_tools::tests::tool as offered;

    #[test]
    fn refuses_foreign_servers() {
        let parse = |tool: Value| RequestTools::parse(vec![tool], Some("hub.example:7460"));
        let server = |url: &str| json!({ "type": "mcp", "server_label": "s", "server_url": url });
        for own in ["http://hub.example:7460/mcp", "https://hub.example:7460/mcp"] {
            assert!(parse(server(own)).is_ok(), "{own}");
        }
        for foreign in [
            "http://169.254.169.254/mcp",
            "http://hub.example:7460.evil/mcp",
            "http://hub.example:7460@evil/mcp",
            "http://hub.example:7460/mcp/../x",
            "file://hub.example:7460/mcp",
            "hub.example:7460/mcp",
            "",
        ] {
            let error = parse(server(foreign)).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("tools[0].server_url"), "{foreign}");
        }
        for (name, value) in
            [("headers", json!({})), ("authorization", json!("x")), ("connector_id", json!("x"))]
        {
            let mut tool = json!({ "type": "mcp", "server_label": "s" });
            tool[name] = value;
            assert!(parse(tool).is_err(), "{name}");
        }
    }

    #[test]
    fn tools_need_approval_unless_the_client_says_never() {
        let needs = |rule: Value, tool: &str| {
            let value = json!({ "type": "mcp", "server_label": "s", "require_approval": rule });
            let tools = RequestTools::parse(vec![value], None).unwrap();
            assert!(!tools.requires_approval(&offered("other", tool)));
            tools.requires_approval(&offered("s", tool))
        };
        assert!(needs(Value::Null, "a") && needs(json!("always"), "a") && !needs(json!("never"), "a"));
        let named = json!({ "never": { "tool_names": ["a"] }, "always": { "tool_names": ["b"] } });
        assert!(!needs(named.clone(), "a") && needs(named.clone(), "b") && needs(named, "c"));
        let wrong = json!({ "type": "mcp", "server_label": "s", "require_approval": { "sometimes": {} } });
        assert!(RequestTools::parse(vec![wrong], None).is_err());
    }
}
