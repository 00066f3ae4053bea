//! `toolhub servers show`: all available information about one server, without connecting to it.

use std::sync::Arc;

use toolhub_client_config::TransportSpec;
use toolhub_core::{RawJson, RawObject};
use toolhub_engine::CatalogEntry;

use crate::app::App;
use crate::commands::servers::report::ServerReport;
use crate::commands::servers::{live, unknown_server};
use crate::exit::Exit;
use crate::render::findings;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

pub(crate) async fn run(app: &App, id: &str) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let view = hub.servers().into_iter().find(|server| server.spec.id.as_str() == id);
    let mut view = view.ok_or_else(|| unknown_server(app, hub, id))?;
    live::add_live_states(app, hub, std::slice::from_mut(&mut view)).await;
    let catalog = hub.catalog();
    let tools: Vec<Arc<CatalogEntry>> =
        catalog.iter().filter(|entry| entry.tool.source.to_string() == id).cloned().collect();
    let described = DescribedServer {
        report: ServerReport::new(hub, &view, lang),
        is_enabled: view.spec.enabled,
        reached_by: reached_by(&view.spec.transport),
        tools,
    };
    described.show(app);
    Ok(Exit::Done)
}

/// All that is known about a server.
pub(crate) struct DescribedServer {
    pub(crate) report: ServerReport,
    pub(crate) is_enabled: bool,
    pub(crate) reached_by: String,
    pub(crate) tools: Vec<Arc<CatalogEntry>>,
}

impl DescribedServer {
    pub(crate) fn show(&self, app: &App) {
        let (lang, report) = (app.lang(), &self.report);
        if app.screen.json {
            let tools: Vec<RawObject> =
                self.tools.iter().map(|entry| findings::described(entry, lang)).collect();
            let json = report
                .as_json()
                .with("enabled", self.is_enabled)
                .with("reached_by", self.reached_by.as_str())
                .with("definitions", RawJson::of(&tools));
            app.screen.json(&json.into_raw());
            return;
        }
        app.screen.line(&format!("{NAME}{}{NAME:#}  {}", report.id, report.state_line(lang)));
        let facts = [
            (lang.choose("reached by", "连接方式"), self.reached_by.as_str()),
            (lang.choose("config", "配置文件"), report.origin.as_str()),
        ];
        let rows: Vec<Vec<Cell>> =
            facts.iter().map(|(name, value)| vec![Cell::new(*name, DIM), Cell::from(*value)]).collect();
        for line in table_lines(&rows, "  ", app.screen.width()) {
            app.screen.line(&line);
        }
        for detail in report.details(lang) {
            app.screen.line(&format!("  {DIM}{detail}{DIM:#}"));
        }
        show_tools(app, self.tools.iter().map(AsRef::as_ref));
    }
}

/// Prints the tools as a table, with suspicious findings.
pub(crate) fn show_tools<'a>(app: &App, entries: impl Iterator<Item = &'a CatalogEntry>) {
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
        for line in table_lines(&[row], "  ", app.screen.width()) {
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
