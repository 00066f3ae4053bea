//! `toolhub tools`: lists the catalog, and shows one tool.

pub(crate) mod approve;
pub(crate) mod call;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod explain_access;
pub(crate) mod search;

use std::sync::Arc;

use serde_json::Value;
use toolhub::{Hub, RouteRequest};
use toolhub_core::shell;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Localize as _, RawJson, RawObject, Source, ToolError, json};
use toolhub_engine::definition_scan::escape_invisible;
use toolhub_engine::{Catalog, CatalogEntry};
use toolhub_mcp_gateway::make_portable;

use crate::app::App;
use crate::args::{ShowArgs, ToolsArgs, ToolsCommand};
use crate::exit::{Exit, UsageError};
use crate::render::findings;
use crate::render::listing_progress::show_listing_progress;
use crate::render::plural::plural;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines, wrap_text, wrapped_table_lines};

pub(crate) async fn run(app: &App, args: ToolsArgs) -> anyhow::Result<Exit> {
    match args.command {
        Some(ToolsCommand::Show(args)) => show(app, args).await,
        Some(ToolsCommand::Diff(args)) => diff::run(app, args).await,
        Some(ToolsCommand::Search(args)) => search::run(app, args).await,
        Some(ToolsCommand::Approve(args)) => approve::run(app, args).await,
        None | Some(ToolsCommand::List) => list(app, args).await,
    }
}

async fn list(app: &App, args: ToolsArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let sources = sources(hub);
    check_source(app, args.source.as_deref(), &sources)?;
    if args.refresh {
        show_listing_progress(app, hub, hub.list_again_of(args.source.as_deref())).await?;
    } else if !args.cached {
        show_listing_progress(app, hub, hub.list_missing()).await?;
    }
    warn_of_failures(app, hub);
    print_list(app, SourceTools { catalog: &hub.catalog(), sources }, &args);
    Ok(Exit::Done)
}

/// Fails if a source is requested that does not exist.
pub(crate) fn check_source(app: &App, requested: Option<&str>, sources: &[Source]) -> Result<(), UsageError> {
    let Some(requested) = requested else { return Ok(()) };
    if sources.iter().any(|source| source.to_string() == requested) {
        return Ok(());
    }
    let known = sources.iter().map(|source| format!("`{source}`")).collect::<Vec<_>>().join(", ");
    Err(UsageError(app.lang().choose(
        format!("there is no source `{requested}`: there are {known}"),
        format!("没有来源 `{requested}`：现有 {known}"),
    )))
}

/// The tools to list, and the order of their sources.
pub(crate) struct SourceTools<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) sources: Vec<Source>,
}

/// Prints the tools that the options select.
pub(crate) fn print_list(app: &App, SourceTools { catalog, sources }: SourceTools<'_>, args: &ToolsArgs) {
    let requested =
        |source: &Source| args.source.as_ref().is_none_or(|requested| source.to_string() == *requested);
    let groups: Vec<(Source, Vec<Arc<CatalogEntry>>)> = sources
        .into_iter()
        .filter(requested)
        .map(|source| {
            let tagged =
                |entry: &Arc<CatalogEntry>| args.tag.as_ref().is_none_or(|tag| entry.tags().contains(tag));
            let own = catalog.iter().filter(|entry| entry.tool.source == source && tagged(entry));
            let own = own.cloned().collect();
            (source, own)
        })
        .filter(|(_, tools): &(Source, Vec<Arc<CatalogEntry>>)| args.tag.is_none() || !tools.is_empty())
        .collect();
    if let (Some(tag), true) = (&args.tag, groups.is_empty()) {
        let known = catalog.capabilities().join(", ");
        app.screen.warn(&app.lang().choose(
            format!("no tool is known to be good for `{tag}`; there is: {known}"),
            format!("没有适用于 `{tag}` 的工具；现有类别：{known}"),
        ));
    }
    if app.screen.json {
        let all: Vec<RawObject> = groups
            .iter()
            .flat_map(|(_, tools)| tools)
            .map(|entry| findings::described(entry, app.lang()))
            .collect();
        app.screen.json(&RawJson::of(&all));
    } else {
        print(app, &groups);
    }
}

/// All sources in routing order.
fn sources(hub: &Hub) -> Vec<Source> {
    let servers = hub.servers().into_iter().filter(|server| server.spec.enabled);
    let skills =
        hub.catalog().iter().any(|entry| entry.tool.source == Source::Skill).then_some(Source::Skill);
    servers.map(|server| Source::Server(server.spec.id)).chain(skills).chain([Source::Native]).collect()
}

fn warn_of_failures(app: &App, hub: &Hub) {
    let lang = app.lang();
    for server in hub.servers() {
        let id = &server.spec.id;
        let Some(list) = server.list.filter(|_| server.spec.enabled) else { continue };
        if let (Some(why), None) = (list.known_problem(), list.listed_at) {
            let why = why.localize(lang);
            app.screen.warn(&lang.choose(
                format!(
                    "the tools of `{id}` are not known: {why}; see `toolhub servers test {}`",
                    shell::shell_quote(id.as_str())
                ),
                format!(
                    "`{id}` 的工具未知：{why}；见 `toolhub servers test {}`",
                    shell::shell_quote(id.as_str())
                ),
            ));
        }
        for skipped in list.skipped.iter().map(|skipped| skipped.localize(lang)) {
            app.screen
                .warn(&lang.choose(format!("`{id}` skipped {skipped}"), format!("`{id}` 跳过 {skipped}")));
        }
    }
}

fn print(app: &App, groups: &[(Source, Vec<Arc<CatalogEntry>>)]) {
    let lang = app.lang();
    let mut total = 0;
    for (source, tools) in groups {
        total += tools.len();
        app.screen.line(&format!("{BOLD}{source}{BOLD:#} {DIM}({}){DIM:#}", tools.len()));
        let marks: Vec<Cell> = tools.iter().map(|entry| findings::mark(entry, lang)).collect();
        let any = marks.iter().any(|mark| !mark.is_empty());
        let rows: Vec<Vec<Cell>> = tools
            .iter()
            .zip(marks)
            .map(|(entry, mark)| {
                let tool = &entry.tool;
                let mut row = vec![Cell::new(tool.name().as_str(), NAME)];
                // The column is omitted if no tool has a mark.
                row.extend(any.then_some(mark));
                row.extend([
                    Cell::new(entry.tags().iter().take(2).cloned().collect::<Vec<_>>().join(" "), DIM),
                    Cell::from(first_line(tool.definition.description())),
                ]);
                row
            })
            .collect();
        for line in table_lines(&rows, "  ", app.screen.width()) {
            app.screen.line(&line);
        }
    }
    app.screen.note(&lang.choose(
        format!("{} from {}", plural(total, "tool"), plural(groups.len(), "source")),
        format!("{} 个来源，共 {total} 个工具", groups.len()),
    ));
    let all: Vec<&CatalogEntry> = groups.iter().flat_map(|(_, tools)| tools).map(AsRef::as_ref).collect();
    warn_of_changes(app, &all);
}

/// Explains the marks in the list, and how to resolve them.
fn warn_of_changes(app: &App, tools: &[&CatalogEntry]) {
    let lang = app.lang();
    let names_of = |test: fn(&CatalogEntry) -> bool| {
        let mut found = tools.iter().copied().filter(|entry| test(entry)).peekable();
        found.peek().is_some().then(|| findings::names(found, lang))
    };
    if let Some(names) = names_of(|entry| {
        entry.tool.source == Source::Skill && entry.tool.approval == ApprovalStatus::Quarantined
    }) {
        app.screen.warn(&lang.choose(
            format!("of skills that wait for your approval: {names}; see `toolhub skills list`"),
            format!("所属技能等待审批：{names}；见 `toolhub skills list`"),
        ));
    }
    if let Some(names) = names_of(|entry| {
        entry.tool.source != Source::Skill
            && matches!(entry.tool.approval, ApprovalStatus::Changed | ApprovalStatus::Quarantined)
    }) {
        app.screen.warn(&lang.choose(
            format!("changed since approved: {names}; see `toolhub tools diff TOOL`"),
            format!("批准后有改动：{names}；见 `toolhub tools diff 工具名`"),
        ));
    }
    if let Some(names) = names_of(|entry| make_portable(entry.tool.definition.raw()).is_err()) {
        app.screen.warn(&lang.choose(
            format!("not offered to clients of the gateway: {names}; `toolhub doctor` shows why"),
            format!("不会提供给网关的客户端：{names}；原因见 `toolhub doctor`"),
        ));
    }
    if let Some(names) = names_of(|entry| !entry.findings().is_empty()) {
        app.screen.warn(&lang.choose(
            format!("suspicious: {names}; see `toolhub tools show TOOL`"),
            format!("内容可疑：{names}；见 `toolhub tools show 工具名`"),
        ));
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default().trim()
}

/// The tools with that name, in routing order; followed by quarantined tools, which cannot be called.
pub(crate) async fn find_tools(
    app: &App,
    hub: &Hub,
    args: &ShowArgs,
) -> anyhow::Result<Result<Vec<Arc<CatalogEntry>>, ToolError>> {
    let source = args.source.as_deref();
    let request = RouteRequest { source, ..RouteRequest::named(&args.tool) };
    let mut found: Vec<Arc<CatalogEntry>> = match app.interruptible(hub.explain(request)).await? {
        Ok(route) => route.candidates.into_iter().map(|candidate| candidate.entry).collect(),
        Err(ToolError::Quarantined { .. }) => Vec::new(),
        Err(error) => return Ok(Err(error)),
    };
    for entry in hub.catalog().named(&args.tool) {
        if !found.iter().any(|known| Arc::ptr_eq(known, entry)) {
            found.push(Arc::clone(entry));
        }
    }
    // `--source native` selects only native tools here, though a call would try other sources first.
    let is_of_source = |entry: &Arc<CatalogEntry>| Some(entry.tool.source.to_string().as_str()) == source;
    if found.iter().any(is_of_source) {
        found.retain(is_of_source);
    }
    Ok(Ok(found))
}

async fn show(app: &App, args: ShowArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    let found = match find_tools(app, hub, &args).await? {
        Ok(found) => found,
        Err(error) => {
            app.screen.error(&error.localize(app.lang()));
            return Ok(Exit::from(&error));
        }
    };
    let Some(entry) = found.first() else { return Ok(Exit::Failed) };
    let tool = &entry.tool;
    let also: Vec<String> = hub
        .catalog()
        .named(&args.tool)
        .map(|entry| &entry.tool.source)
        .filter(|other| **other != tool.source)
        .map(ToString::to_string)
        .collect();
    print_tool(app, entry, &also);
    Ok(Exit::Done)
}

/// Prints one tool. `also` are the other sources that have it.
pub(crate) fn print_tool(app: &App, entry: &CatalogEntry, also: &[String]) {
    if !app.screen.json {
        return describe_as_text(app, entry, also);
    }
    let mut json = findings::described(entry, app.lang());
    if !also.is_empty() {
        json.set("also_in", RawJson::of(also));
    }
    app.screen.json(&json.into_raw());
}

fn describe_as_text(app: &App, entry: &CatalogEntry, also: &[String]) {
    let (lang, tool) = (app.lang(), &entry.tool);
    let definition = &tool.definition;
    let title = definition.title().map(|title| format!("  {}", escape_invisible(title))).unwrap_or_default();
    let name = escape_invisible(tool.name().as_str());
    app.screen.line(&format!("{BOLD}{name}{BOLD:#}  {DIM}({}){DIM:#}{title}", tool.source));
    for line in escape_invisible(definition.description()).trim().lines() {
        for line in wrap_text(line.trim_end(), app.screen.width().map(|width| width.saturating_sub(2))) {
            app.screen.line(&format!("  {line}"));
        }
    }
    let schema = definition.input_schema().value();
    let rows = parameters(app, &schema);
    app.screen.line("");
    if rows.is_empty() {
        app.screen.line(lang.choose("no arguments", "没有参数"));
    } else {
        app.screen.line(lang.choose("arguments:", "参数："));
        for line in wrapped_table_lines(&rows, "  ", app.screen.width()) {
            app.screen.line(&line);
        }
    }
    app.screen.line("");
    let hints = tool.hints();
    let yes = |flag: Option<bool>, en: &'static str, zh: &'static str| {
        (flag == Some(true)).then(|| lang.choose(en, zh))
    };
    let by_name = tool.needs_confirmation() && hints.destructive != Some(true);
    let hint_names: Vec<&str> = [
        yes(hints.read_only, "read-only", "只读"),
        yes(hints.destructive, "destructive", "有破坏性"),
        yes(Some(by_name), "destructive by its name", "名称有破坏性"),
        yes(hints.idempotent, "idempotent", "幂等"),
        yes(hints.open_world, "open world", "访问外部"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let hint_names =
        if hint_names.is_empty() { lang.choose("none", "无").to_owned() } else { hint_names.join(", ") };
    app.screen.line(&format!("{}{hint_names}", lang.choose("hints:   ", "提示：")));
    if !entry.tags().is_empty() {
        app.screen.line(&format!("{}{}", lang.choose("good for: ", "适用于："), entry.tags().join(", ")));
    }
    app.screen.line(&format!("{}{}", lang.choose("version: ", "版本："), definition.version()));
    if let Some(trust_label) = findings::trust_label(tool.approval, lang) {
        app.screen.line(&format!("{}{trust_label}", lang.choose("trust:   ", "信任：")));
    }
    if !also.is_empty() {
        app.screen.line(&format!("{}{}", lang.choose("also in: ", "也在：  "), also.join(", ")));
    }
    if !entry.findings().is_empty() {
        app.screen.line(lang.choose("suspicious:", "可疑："));
        findings::show(app, entry.findings(), "  ");
    }
}

/// One row per argument: name, type, whether it is required, description.
fn parameters(app: &App, schema: &Value) -> Vec<Vec<Cell>> {
    let lang = app.lang();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let row = |(name, property): (&String, &Value)| {
        let must = if required.contains(&name.as_str()) {
            lang.choose("required", "必填").to_owned()
        } else {
            match property.get("default") {
                Some(default) if !default.is_null() => {
                    lang.choose(format!("default {default}"), format!("默认 {default}"))
                }
                _ => lang.choose("optional", "可选").to_owned(),
            }
        };
        let text = property["description"]
            .as_str()
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        vec![
            Cell::new(name.as_str(), NAME),
            Cell::from(kind(schema, property)),
            Cell::new(must, DIM),
            Cell::from(text.unwrap_or_default()),
        ]
    };
    properties.iter().map(row).collect()
}

/// The type of an argument, abbreviated.
fn kind(root: &Value, property: &Value) -> String {
    let linked = property["$ref"].as_str().and_then(|link| link.strip_prefix('#'));
    let property = linked.and_then(|pointer| root.pointer(pointer)).unwrap_or(property);
    if let Some(options) = property["enum"].as_array() {
        return options
            .iter()
            .map(|option| json::pretty_json(&option.to_string()))
            .collect::<Vec<_>>()
            .join(" | ");
    }
    match &property["type"] {
        Value::String(kind) if kind == "array" => {
            let items = kind_of_items(root, property);
            if items.is_empty() { "array".to_owned() } else { format!("array of {items}") }
        }
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => {
            let branches = property["anyOf"].as_array().or(property["oneOf"].as_array());
            let kinds: Vec<String> =
                branches.into_iter().flatten().map(|branch| kind(root, branch)).collect();
            if kinds.is_empty() { "any".to_owned() } else { kinds.join(" | ") }
        }
    }
}

fn kind_of_items(root: &Value, property: &Value) -> String {
    match &property["items"] {
        // Shows one level; schemas may be nested to any depth.
        items if items["type"] == "array" => "array".to_owned(),
        Value::Object(items) if !items.contains_key("$ref") => kind(root, &property["items"]),
        _ => String::new(),
    }
}
