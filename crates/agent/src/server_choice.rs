//! Which server a request means, where several servers offer a tool of the same name.
//!
//! Tools of equal names are different tools unless the owner declared their servers equivalent (`[routing] equivalent`). A
//! request names its server by the server's id: `list the tables of hr-db`. A call that names none is not sent to the
//! first of them, unless each of the tools is read-only.

use std::sync::Arc;

use toolhub_core::lang::Text;
use toolhub_core::{RawJson, Source, ToolCall, ToolName};
use toolhub_engine::{Catalog, Entry, Policy};

use crate::plan::{Plan, Step, Unproven};

/// Tools of a server that an answer names.
const SHOWN_TOOLS: usize = 8;

/// Words before a server's id that belong to it.
const BEFORE: [&str; 14] =
    ["in", "on", "of", "from", "at", "to", "into", "using", "with", "via", "through", "against", "the", "my"];
const BEFORE_ZH: [&str; 9] = ["在", "从", "用", "到", "向", "往", "给", "对", "通过"];
/// Nouns and particles after it.
const AFTER: [&str; 5] = ["'s", "’s", "server", "database", "db"];
const AFTER_ZH: [&str; 9] = ["服务器", "数据库", "这个库", "库", "里面", "里", "中", "上", "的"];
/// Quotes around text that is a value and names no server.
const QUOTES: [(char, char); 6] =
    [('"', '"'), ('“', '”'), ('「', '」'), ('『', '』'), ('`', '`'), ('\'', '\'')];

/// The tools, and which servers the owner declared equivalent.
#[derive(Debug, Clone, Copy)]
pub struct ServerChoice<'a> {
    /// The tools there are.
    pub catalog: &'a Catalog,
    /// How calls are routed.
    pub policy: &'a Policy,
}

/// A request that names one server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedServer {
    pub(crate) server: String,
    /// The request without the server's name and the words that belong to it.
    pub(crate) rest: String,
}

impl<'a> ServerChoice<'a> {
    /// The tools of different servers that share a name; empty if the name means the tools of one server, or of servers
    /// that are equivalent.
    pub(crate) fn rivals(&self, tool: &str) -> Vec<&'a Arc<Entry>> {
        let servers = self.catalog.named(tool).filter(|entry| matches!(entry.tool.source, Source::Server(_)));
        let servers: Vec<&Arc<Entry>> = servers.collect();
        let differs = |pair: &[&Arc<Entry>]| {
            let [one, other] = pair else { return false };
            !self.policy.are_equivalent(&one.tool.source, &other.tool.source)
        };
        if servers.windows(2).any(differs) { servers } else { Vec::new() }
    }

    /// Whether a call by this name might change something on a server that nobody named.
    fn is_ambiguous(&self, tool: &str) -> bool {
        self.rivals(tool).iter().any(|entry| entry.tool.hints().read_only != Some(true))
    }

    /// The call with `server__tool` read as a tool and its source, so that permissions are decided by the tool's own name.
    pub(crate) fn qualified(&self, mut call: ToolCall) -> ToolCall {
        if call.source.is_none()
            && self.catalog.named(call.tool.as_str()).next().is_none()
            && let Some((source, name)) = call.tool.as_str().split_once("__")
            && self.catalog.named(name).any(|entry| entry.tool.source.to_string() == source)
        {
            (call.source, call.tool) = (Some(source.to_owned()), ToolName::new(name));
        }
        call
    }

    /// The first tool of that name, or of `server__tool`, with the server that the name includes.
    pub(crate) fn tool(&self, name: &str) -> Option<(&'a Arc<Entry>, Option<String>)> {
        let call = self.qualified(ToolCall::new(name, RawJson::empty_object()));
        let own = |entry: &&Arc<Entry>| {
            call.source.as_ref().is_none_or(|source| entry.tool.source.to_string() == *source)
        };
        self.catalog.named(call.tool.as_str()).find(own).map(|entry| (entry, call.source.clone()))
    }

    /// Why a call that names no source is not made.
    pub(crate) fn refusal(&self, call: &ToolCall) -> Option<Text> {
        let name = call.tool.as_str();
        let named = call.source.as_deref().is_some_and(|source| {
            self.catalog.named(name).any(|entry| entry.tool.source.to_string() == source)
        });
        (!named && self.is_ambiguous(name)).then(|| self.which(name))
    }

    /// Says which servers offer a tool, and how one of them is named.
    fn which(&self, tool: &str) -> Text {
        let servers = self.servers(tool);
        let first = servers.first().map_or("SERVER", String::as_str);
        Text::new(
            format!(
                "several servers offer `{tool}`: {}; name the one that is meant (its id in the request, or `{first}__{tool}`)",
                servers.join(", ")
            ),
            format!(
                "多个服务器提供 `{tool}`：{}；请指明用哪一个（在请求中写出其 id，或用 `{first}__{tool}`）",
                servers.join("、")
            ),
        )
    }

    /// The ids of the servers that share a tool's name.
    pub(crate) fn servers(&self, tool: &str) -> Vec<String> {
        self.rivals(tool).iter().map(|entry| entry.tool.source.to_string()).collect()
    }

    /// The one server that a request names, of those that share a tool's name with another.
    pub(crate) fn named(&self, request: &str) -> Option<NamedServer> {
        let mut ids: Vec<String> = self.catalog.names().flat_map(|name| self.servers(name)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut mentions = ids.iter().filter_map(|id| Some((id, mention(request, id)?)));
        let (id, (start, end)) = mentions.next()?;
        // Two servers in one request: which part means which is not known.
        mentions
            .next()
            .is_none()
            .then(|| NamedServer { server: id.clone(), rest: without(request, start, end) })
    }

    /// Whether a server offers the tool of a step.
    pub(crate) fn is_offered(&self, step: &Step, server: &str) -> bool {
        let offers = |tool: &ToolName| {
            self.catalog.named(tool.as_str()).any(|entry| entry.tool.source.to_string() == server)
        };
        step.tool.as_ref().is_some_and(offers)
    }

    /// The answer to a request that names a server of which no tool fits.
    pub(crate) fn not_understood(&self, server: &str) -> Text {
        let tools = self.catalog.iter().filter(|entry| entry.tool.source.to_string() == server);
        let tools: Vec<String> =
            tools.take(SHOWN_TOOLS).map(|entry| format!("`{}`", entry.tool.name())).collect();
        Text::new(
            format!(
                "the request names the server `{server}`, but which of its tools is meant is not clear: {}; use `toolhub call TOOL --source {server}`",
                tools.join(", ")
            ),
            format!(
                "请求指定了服务器 `{server}`，但不清楚要用它的哪个工具：{}；可使用 `toolhub call TOOL --source {server}`",
                tools.join("、")
            ),
        )
    }

    /// Gives each step the server that the request names. A step that may change something and could mean several servers
    /// is not proven.
    pub(crate) fn settle(&self, plan: &mut Plan, named: Option<&str>) {
        for step in &mut plan.steps {
            let Some(tool) = step.tool.as_ref().map(|tool| tool.as_str().to_owned()) else { continue };
            let servers = self.servers(&tool);
            if servers.is_empty() || step.source.is_some() {
                continue;
            }
            if let Some(named) = named.filter(|named| servers.iter().any(|id| id == named)) {
                step.source = Some(named.to_owned());
                continue;
            }
            if !self.is_ambiguous(&tool) {
                continue;
            }
            if !plan.changing.contains(&step.id) {
                plan.changing.push(step.id.clone());
            }
            let reason = self.which(&tool);
            match plan.unproven.iter_mut().find(|unproven| unproven.step == step.id) {
                Some(unproven) => unproven.reasons.push(reason),
                None => plan.unproven.push(Unproven { step: step.id.clone(), reasons: vec![reason] }),
            }
        }
    }
}

/// Where a request names a server: its id as a word of its own, outside quotes, paths and addresses.
fn mention(request: &str, id: &str) -> Option<(usize, usize)> {
    let quoted = quoted(request);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./\\@:~#".contains(c);
    let lower = request.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower.get(from..)?.find(&id.to_ascii_lowercase()) {
        let (start, end) = (from + at, from + at + id.len());
        let before = request[..start].chars().next_back();
        let mut after = request[end..].chars();
        let next = after.next();
        let ends_sentence = matches!(next, Some('.' | ':')) && after.next().is_none_or(char::is_whitespace);
        let is_whole = !before.is_some_and(is_part) && (ends_sentence || !next.is_some_and(is_part));
        if is_whole && !quoted.iter().any(|&(open, close)| (open..close).contains(&start)) {
            return Some((start, end));
        }
        from = end;
    }
    None
}

/// The byte ranges inside quotes.
fn quoted(request: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut rest = request.char_indices();
    while let Some((start, open)) = rest.next() {
        let Some((_, close)) = QUOTES.iter().find(|(quote, _)| *quote == open) else { continue };
        // An apostrophe inside a word opens nothing.
        if open == '\'' && request[..start].ends_with(char::is_alphanumeric) {
            continue;
        }
        if let Some((end, _)) = rest.clone().find(|(_, c)| c == close) {
            found.push((start, end));
            rest.by_ref().find(|(at, _)| *at == end);
        }
    }
    found
}

/// The request without a server's name at `start..end` and without the words that belong to it.
fn without(request: &str, start: usize, end: usize) -> String {
    let mut head = request[..start].trim_end();
    loop {
        let word = head.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if BEFORE.iter().any(|before| head[word..].eq_ignore_ascii_case(before)) {
            head = head[..word].trim_end();
        } else if let Some(shorter) = BEFORE_ZH.iter().find_map(|before| head.strip_suffix(before)) {
            head = shorter.trim_end();
        } else {
            break;
        }
    }
    let mut tail = request[end..].trim_start();
    loop {
        let next = AFTER.iter().find_map(|after| {
            let rest = tail.strip_prefix(after)?;
            (!rest.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(rest)
        });
        match next.or_else(|| AFTER_ZH.iter().find_map(|after| tail.strip_prefix(after))) {
            Some(rest) => tail = rest.trim_start(),
            None => break,
        }
    }
    let glue = if head.is_empty() || tail.is_empty() || tail.starts_with([',', '.', ';', '，', '。']) {
        ""
    } else {
        " "
    };
    format!("{head}{glue}{tail}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::ServerId;
    use toolhub_core::tool::Tool;
    use toolhub_core::tool::ToolDefinition;

    use super::*;

    fn tool(server: &str, name: &str, read_only: bool) -> Tool {
        let definition = json!({
            "name": name, "description": "x", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": read_only},
        });
        let definition = ToolDefinition::parse(RawJson::from(definition)).unwrap();
        Tool::new(Source::Server(ServerId::new(server)), definition)
    }

    fn catalog() -> Catalog {
        Catalog::new([
            tool("sales-db", "write_query", false),
            tool("hr-db", "write_query", false),
            tool("sales-db", "list_tables", true),
            tool("hr-db", "list_tables", true),
            tool("notes", "add_note", false),
        ])
    }

    fn named(request: &str) -> Option<(String, String)> {
        let (catalog, policy) = (catalog(), Policy::default());
        let named = ServerChoice { catalog: &catalog, policy: &policy }.named(request)?;
        Some((named.server, named.rest))
    }

    #[test]
    fn finds_the_server_that_a_request_names() {
        let check = |request: &str, server: &str, rest: &str| {
            assert_eq!(named(request), Some((server.to_owned(), rest.to_owned())), "{request}");
        };
        check("list the tables of hr-db", "hr-db", "list the tables");
        check("list the tables of HR-DB.", "hr-db", "list the tables.");
        check("list hr-db's tables", "hr-db", "list tables");
        check("in the sales-db database, list the tables", "sales-db", ", list the tables");
        check("列出 hr-db 的表", "hr-db", "列出 表");
        check("在hr-db里新建表 staff", "hr-db", "新建表 staff");
        check("run 'select 1' on hr-db", "hr-db", "run 'select 1'");
    }

    #[test]
    fn takes_no_other_text_for_a_server() {
        for request in [
            "list the tables",
            "read data/hr-db/x.csv",
            "read hr-db.csv",
            "open https://hr-db/x",
            "create a note 'about hr-db'",
            "把「hr-db」写进笔记",
            "my-hr-db is slow",
            // No other server shares a tool with it.
            "add a note to notes",
            // Which part means which is not known.
            "copy the tables of hr-db to sales-db",
        ] {
            assert_eq!(named(request), None, "{request}");
        }
    }

    #[test]
    fn refuses_a_changing_call_that_names_none_of_several_servers() {
        let (catalog, policy) = (catalog(), Policy::default());
        let choice = ServerChoice { catalog: &catalog, policy: &policy };
        let call = |tool: &str, source: Option<&str>| {
            let mut call = ToolCall::new(tool, RawJson::empty_object());
            call.source = source.map(str::to_owned);
            choice.refusal(&choice.qualified(call)).is_some()
        };
        assert!(call("write_query", None));
        assert!(call("write_query", Some("mcp")), "a kind of source names no server");
        assert!(!call("write_query", Some("hr-db")));
        assert!(!call("hr-db__write_query", None));
        assert!(!call("list_tables", None), "reading the first changes nothing");
        assert!(!call("add_note", None));
        let policy = Policy::equivalent_servers([ServerId::new("sales-db"), ServerId::new("hr-db")]);
        let equivalent = ServerChoice { catalog: &catalog, policy: &policy };
        assert!(equivalent.refusal(&ToolCall::new("write_query", RawJson::empty_object())).is_none());
    }

    #[test]
    fn reads_a_prefixed_name_as_a_tool_of_its_source() {
        let (catalog, policy) = (catalog(), Policy::default());
        let choice = ServerChoice { catalog: &catalog, policy: &policy };
        let call = choice.qualified(ToolCall::new("hr-db__write_query", RawJson::empty_object()));
        assert_eq!((call.tool, call.source.as_deref()), (ToolName::new("write_query"), Some("hr-db")));
        let other = choice.qualified(ToolCall::new("other__write_query", RawJson::empty_object()));
        assert_eq!(other.source, None);
    }
}
