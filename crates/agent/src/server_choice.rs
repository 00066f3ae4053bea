//! Selects the server that a request refers to, if several servers offer a tool of the same name.
//!
//! Tools of the same name are different tools unless the owner declared their servers equivalent (`[routing] equivalent`). A
//! request refers to a server by its id: `list the tables of hr-db`. A call that names no server is not sent to the first
//! one, unless each of the tools is read-only.

use std::sync::Arc;

use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;
use toolhub_core::{CallBy, RawJson, Source, ToolCall, ToolName};
use toolhub_engine::{Catalog, CatalogEntry, RoutingPolicy, SourceFilter};

use crate::call_tool;
use toolhub_planner::plan::{Plan, PlanStep, UnprovenStep};

/// Maximum number of tools of a server listed in an answer.
const MAX_SHOWN_TOOLS: usize = 8;

/// Prepositions before a server's id.
const PREPOSITIONS: [&str; 12] =
    ["in", "on", "of", "from", "at", "to", "into", "using", "with", "via", "through", "against"];
const PREPOSITIONS_ZH: [&str; 9] = ["在", "从", "用", "到", "向", "往", "给", "对", "通过"];
/// Words between a preposition and the id.
const ARTICLES: [&str; 4] = ["the", "my", "our", "server"];
/// Nouns after an id that mark it as a server.
const KINDS: [&str; 4] = ["server", "database", "db", "repo"];
const KINDS_ZH: [&str; 4] = ["服务器", "数据库", "这个库", "库"];
/// Particles after an id that mark it as a reference to the server.
const PARTICLES: [&str; 2] = ["'s", "’s"];
const PARTICLES_ZH: [&str; 5] = ["里面", "里", "中", "上", "的"];
/// Quotation marks. Quoted text is a value and names no server.
const QUOTES: [(char, char); 9] = [
    ('"', '"'),
    ('“', '”'),
    ('‘', '’'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
    ('`', '`'),
    ('\'', '\''),
];
/// Punctuation that may adjoin a word.
const PUNCTUATION: &str = ",;!?()，。；！？：（）、…";

/// The tools, and which servers the owner declared equivalent.
#[derive(Debug, Clone, Copy)]
pub struct ServerChoice<'a> {
    /// The available tools.
    pub catalog: &'a Catalog,
    /// Routing policy.
    pub policy: &'a RoutingPolicy,
    /// Configured servers that have no tools now: disabled, or not listed.
    pub unavailable: &'a [String],
}

/// A request that names one server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedServer {
    pub(crate) server: String,
    /// The request without the server's name and the words that belong to it.
    pub(crate) rest: String,
    /// Whether the server is named before anything else, for all parts of the request.
    pub(crate) leads: bool,
}

impl<'a> ServerChoice<'a> {
    /// The tools of different servers that share a name; empty if only one server, or only equivalent servers, offer it.
    pub(crate) fn rivals(&self, tool: &str) -> Vec<&'a Arc<CatalogEntry>> {
        let servers = self.catalog.named(tool).filter(|entry| matches!(entry.tool.source, Source::Server(_)));
        let servers: Vec<&Arc<CatalogEntry>> = servers.collect();
        let differs = |pair: &[&Arc<CatalogEntry>]| {
            let [one, other] = pair else { return false };
            !self.policy.are_equivalent(&one.tool.source, &other.tool.source)
        };
        if servers.windows(2).any(differs) { servers } else { Vec::new() }
    }

    /// Whether a call by this name might change something on a server that the request does not name.
    fn is_ambiguous(&self, tool: &str) -> bool {
        self.rivals(tool).iter().any(|entry| entry.tool.hints().read_only != Some(true))
    }

    /// The source to which the call's `source` restricts it, as the router interprets it.
    fn only(&self, call: &ToolCall) -> Option<Source> {
        match self.policy.source_filter(call.source.as_deref()) {
            Ok(SourceFilter::Only(source)) => Some(source),
            _ => None,
        }
    }

    /// The call with `call_tool` unwrapped and `source__tool` split into source and tool, at any nesting, so that permissions
    /// are decided by the tool's own name.
    pub(crate) fn resolved(&self, call: ToolCall) -> ToolCall {
        let mut call = call_tool::resolved(call);
        while let Some((source, name)) = self.prefix(&call) {
            call.source = Some(source);
            call.tool = ToolName::new(name);
            call = call_tool::resolved(call);
        }
        call
    }

    /// Splits a prefixed name into source and tool, by the same rule as the router.
    fn prefix(&self, call: &ToolCall) -> Option<(String, String)> {
        let name = call.tool.as_str();
        let is_plain = call.by == CallBy::Name && self.only(call).is_none();
        if !is_plain || self.catalog.named(name).next().is_some() {
            return None;
        }
        let (source, tool) = name.split_once("__")?;
        let offers = self.catalog.named(tool).any(|entry| entry.tool.source.to_string() == source);
        offers.then(|| (source.to_owned(), tool.to_owned()))
    }

    /// The tools that a call may reach.
    pub(crate) fn reachable(&self, call: &ToolCall) -> Vec<&'a Arc<CatalogEntry>> {
        let only = self.only(call);
        let admitted =
            |entry: &&Arc<CatalogEntry>| only.as_ref().is_none_or(|only| entry.tool.source == *only);
        match call.by {
            CallBy::Name => self.catalog.named(call.tool.as_str()).filter(admitted).collect(),
            CallBy::Capability => {
                let tagged = self.catalog.tagged(call.tool.as_str());
                tagged.flat_map(|(.., entries)| entries).filter(admitted).collect()
            }
        }
    }

    /// The first tool of that name, or of `server__tool`, with the server that the name includes.
    pub(crate) fn tool(&self, name: &str) -> Option<(&'a Arc<CatalogEntry>, Option<String>)> {
        let call = ToolCall::new(name, RawJson::empty_object());
        match self.prefix(&call) {
            None => self.catalog.named(name).next().map(|entry| (entry, None)),
            Some((source, tool)) => {
                let entry =
                    self.catalog.named(&tool).find(|entry| entry.tool.source.to_string() == source)?;
                Some((entry, Some(source)))
            }
        }
    }

    /// The reason to reject a call: it names none of several servers, or a server other than the request does.
    pub(crate) fn refusal(&self, call: &ToolCall, request: &str) -> Option<LocalizedText> {
        let name = call.tool.as_str();
        if call.by != CallBy::Name || !self.is_ambiguous(name) {
            return None;
        }
        let Some(only) = self.only(call) else { return Some(self.ambiguity_message(name)) };
        let named = self.named(request)?.server;
        let other = only.to_string();
        (named != other && self.servers(name).contains(&named)).then(|| {
            LocalizedText::new(
                format!("the request names the server `{named}`, and this call goes to `{other}`"),
                format!("请求指定了服务器 `{named}`，而该调用发往 `{other}`"),
            )
        })
    }

    /// The name of a tool for a question to the user; includes the server if several offer the tool.
    pub(crate) fn shown_name(&self, call: &ToolCall) -> ToolName {
        match (self.rivals(call.tool.as_str()).is_empty(), self.only(call)) {
            (false, Some(source)) => ToolName::new(format!("{source}__{}", call.tool)),
            _ => call.tool.clone(),
        }
    }

    /// The message that lists the servers that offer a tool, and how to name one of them.
    fn ambiguity_message(&self, tool: &str) -> LocalizedText {
        let servers = self.servers(tool);
        let first = servers.first().map_or("SERVER", String::as_str);
        LocalizedText::new(
            format!(
                "several servers offer `{tool}`: {}; name the one that is meant (`… in {first}`, or `{first}__{tool}`)",
                servers.join(", ")
            ),
            format!(
                "多个服务器提供 `{tool}`：{}；请指明用哪一个（如“在 {first} 里……”，或用 `{first}__{tool}`）",
                servers.join("、")
            ),
        )
    }

    /// The ids of the servers that share a tool's name.
    pub(crate) fn servers(&self, tool: &str) -> Vec<String> {
        self.rivals(tool).iter().map(|entry| entry.tool.source.to_string()).collect()
    }

    /// The one server that a request names, among the servers that share a tool name with another server.
    pub(crate) fn named(&self, request: &str) -> Option<NamedServer> {
        let mut ids: Vec<String> = self.catalog.names().flat_map(|name| self.servers(name)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut mentions = ids.iter().filter_map(|id| Some((id, mention(request, id)?)));
        let (id, (start, end)) = mentions.next()?;
        // With two servers in a request, it is not known which part refers to which.
        if mentions.next().is_some() {
            return None;
        }
        let (before, after) = (before(&request[..start]), after(&request[end..]));
        if !before.is_reference && !after.is_reference {
            return None;
        }
        let glue = match before.rest.is_empty()
            || after.rest.is_empty()
            || after.rest.starts_with([',', '.', ';', '，', '。'])
        {
            true => "",
            false => " ",
        };
        let leads = before.rest.is_empty();
        Some(NamedServer { server: id.clone(), rest: format!("{}{glue}{}", before.rest, after.rest), leads })
    }

    /// The unavailable server that a request mentions, if any.
    pub(crate) fn unavailable_mention(&self, request: &str) -> Option<&'a str> {
        self.unavailable.iter().map(String::as_str).find(|id| mention(request, id).is_some())
    }

    /// Whether a server offers the tool of a step.
    pub(crate) fn is_offered(&self, step: &PlanStep, server: &str) -> bool {
        let offers = |tool: &ToolName| {
            self.catalog.named(tool.as_str()).any(|entry| entry.tool.source.to_string() == server)
        };
        step.tool.as_ref().is_some_and(offers)
    }

    /// The message for a request that names a server none of whose tools matches.
    pub(crate) fn not_understood(&self, server: &str) -> LocalizedText {
        let tools = self.catalog.iter().filter(|entry| entry.tool.source.to_string() == server);
        let tools: Vec<String> =
            tools.take(MAX_SHOWN_TOOLS).map(|entry| format!("`{}`", entry.tool.name())).collect();
        let shown = shell::shell_quote(server);
        LocalizedText::new(
            format!(
                "the request names the server `{server}`, but which of its tools is meant is not clear: {}; use `toolhub call TOOL --source {shown}`",
                tools.join(", ")
            ),
            format!(
                "请求指定了服务器 `{server}`，但不清楚要用它的哪个工具：{}；可使用 `toolhub call TOOL --source {shown}`",
                tools.join("、")
            ),
        )
    }

    /// Sets the server of each step to the one that the request names. A step that could refer to several servers is unproven if
    /// the request mentions one of them, or if one of their tools may change something. A changing step is also unproven if the
    /// request mentions a server that is not available.
    pub(crate) fn assign_servers(&self, plan: &mut Plan, request: &str, named: Option<&NamedServer>) {
        let shared =
            |step: &&PlanStep| step.tool.as_ref().is_some_and(|tool| self.is_ambiguous(tool.as_str()));
        // A server named in one of several parts may not apply to the others.
        let several = plan.steps.iter().filter(shared).count() > 1;
        let named = named.filter(|named| named.leads || !several).map(|named| named.server.as_str());
        let absent = self.unavailable_mention(request);
        for step in &mut plan.steps {
            let Some(tool) = step.tool.as_ref().map(|tool| tool.as_str().to_owned()) else { continue };
            let changes = plan.changing.contains(&step.id);
            let servers = self.servers(&tool);
            let own = self.named(&step.description).map(|named| named.server);
            let meant = named.map(str::to_owned).or(own).filter(|meant| servers.contains(meant));
            let is_mentioned = servers.iter().any(|id| mention(request, id).is_some() && !step.uses(id));
            let reason = match (meant, absent) {
                _ if step.source.is_some() => continue,
                (Some(meant), _) => {
                    step.source = Some(meant);
                    continue;
                }
                // It is not known which server this step refers to.
                (None, _) if is_mentioned => self.ambiguity_message(&tool),
                (None, _) if self.is_ambiguous(&tool) => self.ambiguity_message(&tool),
                (None, Some(absent)) if changes => LocalizedText::new(
                    format!(
                        "the request names the server `{absent}`, which is not available (`toolhub servers test {}`)",
                        shell::shell_quote(absent)
                    ),
                    format!(
                        "请求指定了服务器 `{absent}`，但它现在不可用（`toolhub servers test {}`）",
                        shell::shell_quote(absent)
                    ),
                ),
                _ => continue,
            };
            if !changes {
                plan.changing.push(step.id.clone());
            }
            match plan.unproven.iter_mut().find(|unproven| unproven.step == step.id) {
                Some(unproven) => unproven.reasons.push(reason),
                None => plan.unproven.push(UnprovenStep { step: step.id.clone(), reasons: vec![reason] }),
            }
        }
    }
}

/// The byte range of a server's id in a request, as a separate word outside quotes, paths and addresses.
fn mention(request: &str, id: &str) -> Option<(usize, usize)> {
    let quoted = quoted(request);
    // Chinese has no spaces between words: any non-ASCII character ends an id.
    let is_beside = |c: char| c.is_whitespace() || PUNCTUATION.contains(c) || !c.is_ascii();
    let lower = request.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower.get(from..)?.find(&id.to_ascii_lowercase()) {
        let (start, end) = (from + at, from + at + id.len());
        let before = request[..start].chars().next_back();
        let rest = &request[end..];
        let mut after = rest.chars();
        let next = after.next();
        let ends_sentence = matches!(next, Some('.' | ':')) && after.next().is_none_or(char::is_whitespace);
        let owns = rest.starts_with("'s") || rest.starts_with("’s");
        // 销售库存 is another word than 销售库: only a noun for a server or a particle may follow a Chinese id.
        let han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        let continues = id.ends_with(han)
            && next.is_some_and(han)
            && !KINDS_ZH
                .iter()
                .chain(&PARTICLES_ZH)
                .chain(&["有", "下", "内"])
                .any(|word| rest.starts_with(word));
        let is_whole = !continues
            && before.is_none_or(is_beside)
            && (ends_sentence || owns || next.is_none_or(is_beside));
        if is_whole && !quoted.iter().any(|&(open, close)| (open..close).contains(&start)) {
            return Some((start, end));
        }
        from = end;
    }
    None
}

/// The byte ranges inside quotes. An unclosed quote extends to the end.
fn quoted(request: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut rest = request.char_indices();
    while let Some((start, open)) = rest.next() {
        let Some((_, close)) = QUOTES.iter().find(|(quote, _)| *quote == open) else { continue };
        // An apostrophe inside a word does not open a quote.
        if open == '\'' && request[..start].ends_with(char::is_alphanumeric) {
            continue;
        }
        match rest.clone().find(|(_, c)| c == close) {
            Some((end, _)) => {
                found.push((start, end));
                rest.by_ref().find(|(at, _)| *at == end);
            }
            None if open == '\'' => {}
            None => found.push((start, request.len())),
        }
    }
    found
}

/// The text on one side of a server's id.
struct AdjacentText<'a> {
    /// The text without the words that belong to the id.
    rest: &'a str,
    /// Whether these words mark the id as a reference to the server.
    is_reference: bool,
}

fn before(text: &str) -> AdjacentText<'_> {
    let mut rest = text.trim_end();
    loop {
        let word = rest.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let is = |words: &[&str]| words.iter().any(|known| rest[word..].eq_ignore_ascii_case(known));
        if is(&PREPOSITIONS) {
            return AdjacentText { rest: rest[..word].trim_end(), is_reference: true };
        }
        if let Some(shorter) = PREPOSITIONS_ZH.iter().find_map(|word| rest.strip_suffix(word)) {
            return AdjacentText { rest: shorter.trim_end(), is_reference: true };
        }
        if !is(&ARTICLES) {
            return AdjacentText { rest, is_reference: false };
        }
        rest = rest[..word].trim_end();
    }
}

fn after(text: &str) -> AdjacentText<'_> {
    let mut rest = text.trim_start();
    let mut is_reference = false;
    let ascii = |rest: &'_ str, words: &[&str]| {
        words.iter().find_map(|word| {
            let shorter = rest.strip_prefix(word)?;
            (!shorter.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(rest.len() - shorter.len())
        })
    };
    loop {
        let kind = ascii(rest, &KINDS)
            .or_else(|| KINDS_ZH.iter().find(|kind| rest.starts_with(*kind)).map(|kind| kind.len()));
        let particle = ascii(rest, &PARTICLES).or_else(|| {
            PARTICLES_ZH.iter().find(|particle| rest.starts_with(*particle)).map(|particle| particle.len())
        });
        match kind.or(particle) {
            Some(length) => rest = rest[length..].trim_start(),
            None => return AdjacentText { rest, is_reference },
        }
        is_reference = true;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::ServerId;
    use toolhub_core::tool::{Tool, ToolDefinition};

    use super::*;

    const IDS: [&str; 5] = ["hr-db", "sales-db", "Sales", "notes", "销售库"];

    fn tool(source: Source, name: &str, read_only: bool) -> Tool {
        let definition = json!({
            "name": name, "description": "x", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": read_only},
        });
        Tool::new(source, ToolDefinition::parse(RawJson::from(definition)).unwrap())
    }

    fn server(id: &str) -> Source {
        Source::Server(ServerId::new(id))
    }

    fn catalog() -> Catalog {
        let shared = ["sales-db", "hr-db", "Sales", "销售库"];
        let write = shared.map(|id| tool(server(id), "write_query", false));
        let list = shared.map(|id| tool(server(id), "list_tables", true));
        let own = tool(server("notes"), "add_note", false);
        let native = tool(Source::Native, "call_tool", false);
        Catalog::new(write.into_iter().chain(list).chain([own, native]))
    }

    fn policy() -> RoutingPolicy {
        RoutingPolicy { servers: IDS.map(ServerId::new).to_vec(), ..RoutingPolicy::default() }
    }

    fn named(request: &str) -> Option<(String, String)> {
        let (catalog, policy) = (catalog(), policy());
        let named = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] }.named(request)?;
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
        check("在销售库里新建表 staff", "销售库", "新建表 staff");
        check("run 'select 1' on hr-db", "hr-db", "run 'select 1'");
        check("list the tables of my hr-db server", "hr-db", "list the tables");
    }

    #[test]
    fn does_not_take_other_text_for_server_name() {
        for request in [
            "list the tables",
            "read data/hr-db/x.csv",
            "read hr-db.csv",
            "open https://hr-db/x",
            "create a note 'about hr-db'",
            "把「hr-db」写进笔记",
            "my-hr-db is slow",
            "在销售库存表里新建列",
            "列出销售库存的表",
            // Values, not references to a server.
            "drop the table Sales",
            "create a table named sales",
            "drop the tables \"staff\" and Sales",
            "drop the table \"Sales",
            "drop the table in ‘Sales’",
            "drop the table in «Sales»",
            "drop x in $Sales",
            "drop x in Sales*",
            // No other server shares a tool with it.
            "add a note to notes",
            // It is not known which part refers to which server.
            "copy the tables of hr-db to sales-db",
        ] {
            assert_eq!(named(request), None, "{request}");
        }
    }

    #[test]
    fn rejects_changing_call_without_server_among_several() {
        let (catalog, policy) = (catalog(), policy());
        let choice = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] };
        let refused = |tool: &str, source: Option<&str>, request: &str| {
            let mut call = ToolCall::new(tool, RawJson::empty_object());
            call.source = source.map(str::to_owned);
            choice.refusal(&choice.resolved(call), request).is_some()
        };
        assert!(refused("write_query", None, ""));
        assert!(refused("write_query", Some("native"), ""), "a habit of models names no server");
        assert!(!refused("write_query", Some("hr-db"), ""));
        assert!(!refused("hr-db__write_query", None, ""));
        assert!(!refused("list_tables", None, ""), "reading the first changes nothing");
        assert!(!refused("add_note", None, ""));
        assert!(
            refused("sales-db__write_query", None, "empty the table t of hr-db"),
            "the request names another"
        );
        assert!(!refused("hr-db__write_query", None, "empty the table t of hr-db"));
        let policy =
            RoutingPolicy::equivalent_servers(["sales-db", "hr-db", "Sales", "销售库"].map(ServerId::new));
        let equivalent = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] };
        assert!(equivalent.refusal(&ToolCall::new("write_query", RawJson::empty_object()), "").is_none());
    }

    #[test]
    fn resolves_wrapped_calls_to_the_executed_tool() {
        let (catalog, policy) = (catalog(), policy());
        let choice = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &[] };
        let wrapped = json!({"name": "hr-db__write_query", "arguments": {}});
        let nested = json!({"name": "native__call_tool", "arguments": wrapped});
        for (tool, source, arguments) in [
            ("hr-db__write_query", None, json!({})),
            ("hr-db__write_query", Some("native"), json!({})),
            ("hr-db__write_query", Some("appflowy"), json!({})),
            ("call_tool", None, wrapped.clone()),
            ("native__call_tool", None, wrapped.clone()),
            ("native__call_tool", Some("native"), wrapped),
            ("call_tool", None, nested),
        ] {
            let mut call = ToolCall::new(tool, RawJson::from(arguments));
            call.source = source.map(str::to_owned);
            let call = choice.resolved(call);
            assert_eq!(call.tool, ToolName::new("write_query"), "{tool} {source:?}");
            assert_eq!(call.source.as_deref(), Some("hr-db"), "{tool} {source:?}");
        }
        let other = choice.resolved(ToolCall::new("other__write_query", RawJson::empty_object()));
        assert!(choice.reachable(&other).is_empty());
    }

    #[test]
    fn does_not_prove_change_if_request_mentions_unavailable_server() {
        let (catalog, policy) = (catalog(), policy());
        let unavailable = ["archive".to_owned()];
        let choice = ServerChoice { catalog: &catalog, policy: &policy, unavailable: &unavailable };
        assert_eq!(choice.unavailable_mention("add the note \"x\" to archive"), Some("archive"));
        assert_eq!(choice.unavailable_mention("add the note \"archive\""), None);
    }
}
