//! `toolhub` without a command: an introduction if nothing is configured, otherwise the current state.

pub(crate) mod state;

use std::path::Path;

use toolhub::settings::Paths;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::exit::Exit;
use crate::render::screen::{BOLD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

/// Whether settings or servers exist.
fn is_configured(paths: &Paths) -> bool {
    let of_project =
        [".mcp.json", "toolhub.toml"].iter().any(|name| paths.workspace.has_trusted(Path::new(name)));
    of_project || paths.config.is_file() || paths.servers.is_file()
}

pub(crate) async fn run(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    // Without a configuration, the notice about the folder is omitted, since nothing of the folder is used.
    let (config, home) = (app.global.config.as_deref(), app.global.home.as_deref());
    let paths = Paths::find_trusting(config, home, &app.run_trust());
    if config.is_some() || paths.is_ok_and(|paths| is_configured(&paths)) {
        return state::run(app).await;
    }
    if app.screen.json {
        let next = ["toolhub init", "toolhub servers add NAME -- COMMAND", "toolhub ask REQUEST"];
        let json = RawObject::default()
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("configured", false)
            .with("next", RawJson::of(&next));
        app.screen.json(&json.into_raw());
        return Ok(Exit::Done);
    }
    let head = lang.choose("one place for every tool an AI agent can use", "AI 智能体所有工具的统一入口");
    let (version, colon) = (env!("CARGO_PKG_VERSION"), lang.choose(": ", "："));
    app.screen.line(&format!("{BOLD}toolhub{BOLD:#} {version}{colon}{head}"));
    app.screen.line("");
    let examples = [
        (
            "toolhub init",
            lang.choose(
                "set up your MCP clients (Claude, Cursor, …)",
                "设置你的 MCP 客户端（Claude、Cursor 等）",
            ),
        ),
        (
            lang.choose("toolhub ask \"what time is it in Tokyo?\"", "toolhub ask \"东京现在几点？\""),
            lang.choose("ask in your own words", "用自己的话提出请求"),
        ),
        ("toolhub call calculate expression='0.1+0.2'", lang.choose("call a tool", "调用工具")),
        ("toolhub tools", lang.choose("see what tools there are", "查看所有工具")),
        (
            "toolhub servers add excel -- uvx excel-mcp-server stdio",
            lang.choose("add an MCP server", "添加 MCP 服务器"),
        ),
        (
            "toolhub explain calculate",
            lang.choose("see who would serve a call, and why", "查看调用会由谁处理，以及原因"),
        ),
        ("toolhub doctor", lang.choose("check that all is well", "检查一切是否正常")),
    ];
    let rows: Vec<Vec<Cell>> =
        examples.iter().map(|(command, what)| vec![Cell::new(*command, NAME), Cell::from(*what)]).collect();
    for line in table_lines(&rows, "  ", None) {
        app.screen.line(&line);
    }
    app.screen.line("");
    let more = lang.choose("All commands: toolhub --help", "全部命令：toolhub --help");
    app.screen.line(&format!("{DIM}{more}{DIM:#}"));
    Ok(Exit::Done)
}
