//! `toolhub servers list`: the state of the servers, without connecting to them. A command is short-lived, so the state is mostly
//! that of a running hub, or that stored by earlier runs; values that are not stored, such as the number of restarts, are shown
//! only if they are known.

use crate::app::App;
use crate::commands::servers::live;
use crate::commands::servers::report::{self, ServerReport};
use crate::exit::Exit;

pub(crate) async fn run(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let mut servers = hub.servers();
    live::add_live_states(app, hub, &mut servers).await;
    if servers.is_empty() && !app.screen.json {
        app.screen.line(lang.choose(
            "no servers yet; add one with `toolhub servers add NAME -- COMMAND` or `toolhub servers add NAME --url URL`",
            "还没有服务器；用 `toolhub servers add 名称 -- 命令` 或 `toolhub servers add 名称 --url 地址` 添加",
        ));
        return Ok(Exit::Done);
    }
    let reports: Vec<ServerReport> =
        servers.iter().map(|server| ServerReport::new(hub, server, lang)).collect();
    report::print(app, &reports);
    Ok(Exit::Done)
}
