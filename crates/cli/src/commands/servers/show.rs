//! `toolhub servers show`: all available information about one server, without connecting to it.

use toolhub_client_config::TransportSpec;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::commands::servers::list::{as_json, details, state_line};
use crate::commands::servers::unknown;
use crate::exit::Exit;
use crate::render::findings;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, lines};

pub(crate) async fn run(app: &App, id: &str) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let view = hub.servers().into_iter().find(|server| server.spec.id.as_str() == id);
    let view = view.ok_or_else(|| unknown(app, hub, id))?;
    let catalog = hub.catalog();
    let own = || catalog.iter().filter(|entry| entry.tool.source.to_string() == id);
    if app.screen.json {
        let tools: Vec<RawObject> = own().map(|entry| findings::described(entry, lang)).collect();
        let json = as_json(hub, &view, lang)
            .with("enabled", view.spec.enabled)
            .with("reached_by", reached_by(&view.spec.transport))
            .with("definitions", RawJson::of(&tools));
        app.screen.json(&json.into_raw());
        return Ok(Exit::Done);
    }
    app.screen.line(&format!("{NAME}{id}{NAME:#}  {}", state_line(&view, lang)));
    let facts = [
        (lang.choose("reached by", "连接方式"), reached_by(&view.spec.transport)),
        (lang.choose("config", "配置文件"), view.spec.origin.display().to_string()),
    ];
    let rows: Vec<Vec<Cell>> =
        facts.iter().map(|(name, value)| vec![Cell::new(*name, DIM), Cell::from(value.as_str())]).collect();
    for line in lines(&rows, "  ", app.screen.width()) {
        app.screen.line(&line);
    }
    for detail in details(hub, &view, lang) {
        app.screen.line(&format!("  {DIM}{detail}{DIM:#}"));
    }
    show_tools(app, own().map(AsRef::as_ref));
    Ok(Exit::Done)
}

/// Prints the tools as a table, with suspicious findings.
pub(crate) fn show_tools<'a>(app: &App, entries: impl Iterator<Item = &'a toolhub_engine::Entry>) {
    let lang = app.lang();
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        return;
    }
    app.screen.line(&format!(
        "{BOLD}{}{BOLD:#} {DIM}({}){DIM:#}",
        lang.choose("tools", "工具"),
        entries.len()
    ));
    for entry in entries {
        let description = entry.tool.definition.description();
        let row = vec![
            Cell::new(entry.tool.name().as_str(), NAME),
            findings::mark(entry, lang),
            Cell::from(description.lines().next().unwrap_or_default()),
        ];
        let row: Vec<Cell> = row.into_iter().filter(|cell| !cell.is_empty()).collect();
        for line in lines(&[row], "  ", app.screen.width()) {
            app.screen.line(&line);
        }
        findings::show(app, entry.findings(), "    ");
    }
}

/// The command line or URL. Values of variables and headers are omitted, since they may be secrets.
fn reached_by(transport: &TransportSpec) -> String {
    match transport {
        TransportSpec::Stdio(spec) => {
            std::iter::once(&spec.command).chain(&spec.args).cloned().collect::<Vec<_>>().join(" ")
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            spec.url.split(['?', '#']).next().unwrap_or_default().to_owned()
        }
    }
}
