//! Tools that are missing because their server is disabled.

use toolhub::ServerView;
use toolhub_core::RawJson;

use crate::problem::Problem;
use crate::request::ConsoleContext;

/// The problem of a tool of a disabled server, for those who see all servers.
pub(super) fn disabled_tool(context: &ConsoleContext<'_>, name: &str) -> Option<Problem> {
    if !context.sees_fixed_arguments() {
        return None;
    }
    let servers = context.hub().servers();
    let view = servers.iter().filter(|view| !view.spec.enabled).find(|view| {
        // A tool may be offered with the name of its server in front.
        let own = name.strip_prefix(view.spec.id.as_str()).and_then(|rest| rest.strip_prefix("__"));
        has_tool(view, name) || own.is_some_and(|own| has_tool(view, own))
    })?;
    let id = view.spec.id.as_str();
    let problem = Problem::not_found(
        format!("the server `{id}`, which has the tool `{name}`, is disabled: enable it on its page"),
        format!("工具 `{name}` 所属的服务器 `{id}` 已停用：可在服务器页面启用"),
    );
    Some(problem.with_server(id))
}

/// Whether the last list of a server has a tool.
fn has_tool(view: &ServerView, tool: &str) -> bool {
    let is_named = |definition: &RawJson| {
        let members = definition.object().unwrap_or_default();
        members.get("name").and_then(RawJson::text).is_some_and(|name| name == tool)
    };
    view.list.as_ref().is_some_and(|list| list.tools.iter().any(is_named))
}
