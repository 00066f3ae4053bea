//! `toolhub` alone: a short, friendly start.

use super::app::App;
use super::exit::Exit;
use super::screen::{BOLD, DIM, NAME};
use super::table::{Cell, lines};

pub(crate) fn run(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let head = lang.pick("one place for every tool an AI agent can use", "AI 智能体所有工具的统一入口");
    let (version, colon) = (env!("CARGO_PKG_VERSION"), lang.pick(": ", "："));
    app.screen.line(&format!("{BOLD}toolhub{BOLD:#} {version}{colon}{head}"));
    app.screen.line("");
    let examples = [
        (
            lang.pick("toolhub ask \"what time is it in Tokyo?\"", "toolhub ask \"东京现在几点？\""),
            lang.pick("ask in your own words", "用自己的话提出请求"),
        ),
        ("toolhub call calculate expression='0.1+0.2'", lang.pick("call a tool", "调用工具")),
        ("toolhub tools", lang.pick("see what tools there are", "查看所有工具")),
        (
            "toolhub servers add excel -- uvx excel-mcp-server stdio",
            lang.pick("add an MCP server", "添加 MCP 服务器"),
        ),
        (
            "toolhub explain calculate",
            lang.pick("see who would serve a call, and why", "查看调用会由谁处理，以及原因"),
        ),
        ("toolhub doctor", lang.pick("check that all is well", "检查一切是否正常")),
    ];
    let rows: Vec<Vec<Cell>> =
        examples.iter().map(|(command, what)| vec![Cell::new(*command, NAME), Cell::from(*what)]).collect();
    for line in lines(&rows, "  ", None) {
        app.screen.line(&line);
    }
    app.screen.line("");
    let more = lang.pick("All commands: toolhub --help", "全部命令：toolhub --help");
    app.screen.line(&format!("{DIM}{more}{DIM:#}"));
    Ok(Exit::Done)
}
