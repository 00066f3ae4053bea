//! `toolhub tools approve`: approves definitions in their current state, after showing them.

use std::io::IsTerminal as _;
use std::sync::Arc;

use toolhub::Hub;
use toolhub_core::approval::Approval;
use toolhub_core::millis::unix_millis;
use toolhub_core::principal::LOCAL;
use toolhub_core::shell;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Localize as _, RawJson, RawObject, Source};
use toolhub_engine::CatalogEntry;
use toolhub_engine::definition_scan::escape_invisible;

use crate::app::App;
use crate::args::{ApproveArgs, ShowArgs};
use crate::commands::servers::report::ago;
use crate::commands::servers::unknown_server;
use crate::commands::tools::diff::{show_difference, unified_diff};
use crate::commands::tools::{find_tools, first_line};
use crate::exit::{Exit, UsageError};
use crate::render::findings;
use crate::render::listing_progress::show_listing_progress;
use crate::render::screen::{BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, table_lines, wrap_text};

pub(crate) async fn run(app: &App, args: ApproveArgs) -> anyhow::Result<Exit> {
    let hub = app.hub().await?;
    if args.list {
        list(app, hub);
        return Ok(Exit::Done);
    }
    if args.revoke {
        return revoke(app, hub, &args).await;
    }
    let selected = match selected(app, hub, &args).await? {
        Ok(selected) => selected,
        Err(exit) => return Ok(exit),
    };
    let mut json = Vec::new();
    let mut left = Vec::new();
    let local = Arc::from(LOCAL);
    let length = if args.tool.is_some() { Length::Whole } else { Length::FirstLine };
    for entry in &selected {
        let before = entry.tool.approval;
        let change = change(hub, entry);
        if !app.screen.json {
            present(app, entry, &change, length);
        }
        let suspicious = !entry.findings().is_empty() && before != ApprovalStatus::Approved;
        let agreed = !suspicious || args.yes || ask_consent(app, entry).await?;
        if agreed {
            hub.approve(&entry.tool, &local).await?;
        } else {
            left.push(Arc::clone(entry));
        }
        if app.screen.json {
            json.push(
                RawObject::default()
                    .with("tool", entry.tool.name().as_str())
                    .with("source", entry.tool.source.to_string())
                    .with("approved", agreed)
                    .with("before", before.name())
                    .with("digest", entry.tool.definition.digest())
                    .with("diff", change)
                    .with("suspicious", findings::as_json(entry.findings(), app.lang())),
            );
        }
    }
    if app.screen.json {
        app.screen.json(&RawJson::of(&json));
    }
    Ok(report(app, selected.len() - left.len(), &left))
}

/// Prints which tools were approved and which were not.
fn report(app: &App, approved: usize, left: &[Arc<CatalogEntry>]) -> Exit {
    let lang = app.lang();
    if approved > 0 || left.is_empty() {
        app.screen.note(&lang.choose(
            format!("{GOOD}✓{GOOD:#} approved: {approved}"),
            format!("{GOOD}✓{GOOD:#} 已批准 {approved} 个"),
        ));
    }
    if left.is_empty() {
        return Exit::Done;
    }
    let names = findings::names(left.iter().map(AsRef::as_ref), lang);
    app.screen.error(&lang.choose(
        format!("not approved, as something about it is suspicious: {names}; read it, then add `--yes` if you agree"),
        format!("因内容可疑而未批准：{names}；看过之后如果同意，请加 `--yes`"),
    ));
    Exit::Failed
}

/// The selected tools; only tools of servers are approved.
async fn selected(
    app: &App,
    hub: &Hub,
    args: &ApproveArgs,
) -> anyhow::Result<Result<Vec<Arc<CatalogEntry>>, Exit>> {
    let lang = app.lang();
    if let Some(tool) = &args.tool {
        let show_args = ShowArgs { tool: tool.clone(), source: args.source.clone() };
        let found = match find_tools(app, hub, &show_args).await? {
            Ok(found) => found,
            Err(error) => {
                app.screen.error(&error.localize(lang));
                return Ok(Err(Exit::from(&error)));
            }
        };
        return Ok(Ok(vec![one_of(app, tool, &found)?]));
    }
    if let Some(id) = &args.server {
        let Some(server) = hub.servers().into_iter().find(|server| server.spec.id.as_str() == id) else {
            return Err(unknown_server(app, hub, id).into());
        };
        if server.list.is_none_or(|list| list.listed_at.is_none())
            && let Some(Err(error)) = app.interruptible(hub.list_server(id)).await?
        {
            app.screen.error(&error.localize(lang));
            return Ok(Err(Exit::from(&error)));
        }
    } else {
        show_listing_progress(app, hub, hub.list_missing()).await?;
    }
    let meant = |entry: &&Arc<CatalogEntry>| match (&entry.tool.source, &args.server) {
        (Source::Server(id), Some(only)) => id.as_str() == only,
        (Source::Server(_), None) => true,
        _ => false,
    };
    Ok(Ok(hub.catalog().iter().filter(meant).cloned().collect()))
}

/// Of several tools with the same name, the one that changed since its approval; otherwise `--source` is required.
fn one_of(app: &App, tool: &str, found: &[Arc<CatalogEntry>]) -> Result<Arc<CatalogEntry>, UsageError> {
    let lang = app.lang();
    let of_servers: Vec<&Arc<CatalogEntry>> =
        found.iter().filter(|entry| matches!(entry.tool.source, Source::Server(_))).collect();
    let is_changed = |entry: &&&Arc<CatalogEntry>| {
        matches!(entry.tool.approval, ApprovalStatus::Changed | ApprovalStatus::Quarantined)
    };
    let changed: Vec<&Arc<CatalogEntry>> = of_servers.iter().filter(is_changed).copied().collect();
    match (&of_servers[..], &changed[..]) {
        ([], _) if found.iter().any(|entry| entry.tool.source == Source::Skill) => {
            Err(UsageError(lang.choose(
                format!(
                    "`{tool}` belongs to a skill, which is approved as a whole: `toolhub skills approve {}`",
                    shell::shell_quote(tool)
                ),
                format!(
                    "`{tool}` 属于技能，须整体批准：`toolhub skills approve {}`",
                    shell::shell_quote(tool)
                ),
            )))
        }
        ([], _) => Err(UsageError(lang.choose(
            format!("`{tool}` is built in and needs no approval"),
            format!("`{tool}` 是内置工具，无需批准"),
        ))),
        ([one], _) | (_, [one]) => Ok(Arc::clone(one)),
        (several, _) => {
            let places: Vec<String> =
                several.iter().map(|entry| format!("`{}`", entry.tool.source)).collect();
            let places = places.join(", ");
            Err(UsageError(lang.choose(
                format!("`{tool}` is in {places}: say which with `--source`"),
                format!("`{tool}` 在 {places} 中都有：请用 `--source` 指明"),
            )))
        }
    }
}

/// The changes since the last approval; empty without changes or without an approval.
fn change(hub: &Hub, entry: &CatalogEntry) -> String {
    let approval = hub.approval_of(&entry.tool).filter(|_| entry.tool.approval != ApprovalStatus::Approved);
    approval.map(|old| unified_diff(&old.definition, entry.tool.definition.raw())).unwrap_or_default()
}

/// How much of a description is shown.
#[derive(Clone, Copy)]
enum Length {
    Whole,
    FirstLine,
}

/// Prints a tool before it is approved.
fn present(app: &App, entry: &CatalogEntry, change: &str, length: Length) {
    let (lang, tool) = (app.lang(), &entry.tool);
    let trust_label =
        findings::trust_label(tool.approval, lang).unwrap_or(lang.choose("not approved yet", "尚未批准"));
    let (name, style) = (escape_invisible(tool.name().as_str()), NAME);
    app.screen.line(&format!("{style}{name}{style:#} {DIM}({}){DIM:#}  {trust_label}", tool.source));
    let text = match length {
        Length::Whole => tool.definition.description().trim(),
        Length::FirstLine => first_line(tool.definition.description()),
    };
    let width = app.screen.width().map(|width| width.saturating_sub(2));
    for line in escape_invisible(text).lines().flat_map(|line| wrap_text(line.trim_end(), width)) {
        app.screen.line(&format!("  {line}"));
    }
    show_difference(app, change, "  ");
    if tool.approval != ApprovalStatus::Approved {
        findings::show(app, entry.findings(), "  ");
    }
}

/// Prompts for confirmation; `false` without a terminal.
async fn ask_consent(app: &App, entry: &CatalogEntry) -> anyhow::Result<bool> {
    if app.screen.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    let name = escape_invisible(entry.tool.name().as_str());
    let question = app
        .lang()
        .choose(format!("approve `{name}` all the same? [y/N] "), format!("仍要批准 `{name}` 吗？[y/N] "));
    app.confirm(&question).await
}

fn list(app: &App, hub: &Hub) {
    let (lang, catalog) = (app.lang(), hub.catalog());
    let trust_of = |approval: &Approval| {
        let mut named = catalog.named(approval.tool.as_str());
        named.find(|entry| entry.tool.source == approval.source).map(|entry| entry.tool.approval)
    };
    let all = hub.approvals();
    if app.screen.json {
        let json: Vec<RawObject> = all
            .iter()
            .map(|approval| {
                RawObject::default()
                    .with("tool", approval.tool.as_str())
                    .with("source", approval.source.to_string())
                    .with("digest", approval.version.as_str())
                    .with("approved_at_ms", unix_millis(approval.at))
                    .with("trust", RawJson::of(&trust_of(approval).map(ApprovalStatus::name)))
                    .with("definition", approval.definition.clone())
            })
            .collect();
        app.screen.json(&RawJson::of(&json));
        return;
    }
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|approval| {
            let ago = ago(approval.at, lang);
            let trust = trust_of(approval);
            let trust_label = match trust {
                Some(trust) => findings::trust_label(trust, lang).unwrap_or_default(),
                None => lang.choose("not there now", "现在没有"),
            };
            let style = if trust == Some(ApprovalStatus::Approved) { GOOD } else { ODD };
            vec![
                Cell::new(approval.tool.as_str(), NAME),
                Cell::new(approval.source.to_string(), BOLD),
                Cell::new(lang.choose(format!("{ago} ago"), format!("{ago}前")), DIM),
                Cell::new(trust_label, style),
            ]
        })
        .collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
    if all.is_empty() {
        app.screen.note(lang.choose("nothing is approved yet", "尚未批准任何工具"));
    }
}

async fn revoke(app: &App, hub: &Hub, args: &ApproveArgs) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let meant = |approval: &Approval| {
        let source = args.source.as_ref().or(args.server.as_ref());
        args.tool.as_deref().is_none_or(|tool| tool == approval.tool.as_str())
            && source.is_none_or(|source| *source == approval.source.to_string())
    };
    let local = Arc::from(LOCAL);
    let mut revoked = Vec::new();
    for approval in hub.approvals().iter().filter(|approval| meant(approval)) {
        hub.revoke(&approval.source, &approval.tool, &local).await?;
        let (name, source) = (escape_invisible(approval.tool.as_str()), &approval.source);
        if !app.screen.json {
            app.screen.line(&lang.choose(
                format!("`{name}` ({source}) is no longer approved"),
                format!("已撤销对 `{name}`（{source}）的批准"),
            ));
        }
        revoked.push(
            RawObject::default().with("tool", approval.tool.as_str()).with("source", source.to_string()),
        );
    }
    if app.screen.json {
        app.screen.json(&RawJson::of(&revoked));
    }
    if revoked.is_empty() && args.tool.is_some() {
        app.screen.error(lang.choose("there is no such approval", "没有这样的批准"));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}
