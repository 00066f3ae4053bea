//! The live state of the servers of a running hub with the same data folder, and their restart. A server counts as the same only if
//! the hub has it from the same entry of the same file: a project may configure another server under the same name.

use toolhub::{Hub, ServerView};

use crate::app::App;
use crate::commands::servers::trial::{ServerTest, exit_of};
use crate::commands::servers::unknown_server;
use crate::exit::{Exit, UsageError};

/// Replaces the states of servers by those at a running hub that has them. The others keep the state that earlier runs stored.
#[cfg(unix)]
pub(crate) async fn add_live_states(app: &App, hub: &Hub, servers: &mut [ServerView]) {
    use toolhub_core::Localize as _;

    let lang = app.lang();
    let specs: Vec<_> = servers.iter().filter(|view| view.spec.enabled).map(|view| &view.spec).collect();
    if app.global.no_hub || specs.is_empty() {
        return;
    }
    let live = toolhub::live_servers(&hub.paths().data_dir, &specs).await;
    for problem in &live.problems {
        let problem = problem.localize(lang);
        app.screen.warn(&lang.choose(
            format!("the state of a running hub is not shown: {problem}"),
            format!("未显示正在运行的 hub 的状态：{problem}"),
        ));
    }
    let mut shown = Vec::new();
    for state in live.servers {
        let Some(view) = servers.iter_mut().find(|view| view.spec.id.as_str() == state.id) else { continue };
        view.state = state.state;
        view.restarts = state.restarts;
        view.stderr = state.stderr;
        shown.push(format!("`{}`", state.id));
    }
    if !shown.is_empty() {
        let shown = shown.join(lang.choose(", ", "、"));
        app.screen.note(&lang.choose(
            format!("live state of the running hub: {shown} (`--no-hub` shows what is stored)"),
            format!("正在运行的 hub 的实时状态：{shown}（`--no-hub` 显示已保存的状态）"),
        ));
    }
}

#[cfg(not(unix))]
pub(crate) async fn add_live_states(_: &App, _: &Hub, _: &mut [ServerView]) {}

pub(crate) async fn restart(app: &App, id: &str) -> anyhow::Result<Exit> {
    let lang = app.lang();
    if app.global.no_hub {
        let why = lang.choose(
            "`servers restart` needs a running hub, which `--no-hub` (or TOOLHUB_NO_HUB) excludes",
            "`servers restart` 需要正在运行的 hub，与 `--no-hub`（或 TOOLHUB_NO_HUB）矛盾",
        );
        return Err(UsageError(why.to_owned()).into());
    }
    let hub = app.hub().await?;
    let view = hub.servers().into_iter().find(|view| view.spec.id.as_str() == id);
    let view = view.ok_or_else(|| unknown_server(app, hub, id))?;
    let Some(test) = app.interruptible(restart_at_hub(app, hub, &view)).await?? else {
        return Err(UsageError(lang.choose(
            format!("no running hub of this data folder has the server `{id}` with this configuration: there is nothing to restart. Commands start servers themselves; `--hub URL` restarts one at another hub"),
            format!("此数据目录没有以相同配置运行服务器 `{id}` 的 hub：无需重启。命令会自行启动服务器；`--hub URL` 可重启其他 hub 的服务器"),
        ))
        .into());
    };
    test.report(app);
    Ok(exit_of(&[test]))
}

/// Restarts a server at the running hub. Returns `None` if there is no hub that has it.
#[cfg(unix)]
async fn restart_at_hub(app: &App, hub: &Hub, view: &ServerView) -> anyhow::Result<Option<ServerTest>> {
    use std::time::Instant;

    use toolhub_core::Localize as _;
    use toolhub_mcp_client::RestartOutcome;

    use crate::commands::servers::trial::{TestedServer, TrialFailure};

    let lang = app.lang();
    let started = Instant::now();
    let outcome = toolhub::restart_at_hubs(&hub.paths().data_dir, &view.spec).await.map_err(|problem| {
        let problem = problem.localize(lang);
        anyhow::anyhow!(lang.choose(
            format!("the running hub did not restart it: {problem}"),
            format!("正在运行的 hub 未能重启它：{problem}"),
        ))
    })?;
    let Some(outcome) = outcome else { return Ok(None) };
    let (result, version, stderr) = match outcome {
        RestartOutcome::Works { tools, era, peer, version, skipped } => {
            let skipped = skipped.iter().map(|one| one.localize(lang)).collect();
            (Ok(TestedServer { tools, era, peer, skipped }), version, Vec::new())
        }
        RestartOutcome::Failed { text, brief, kind, stderr } => {
            let needs_login = kind == "login_needed";
            let (text, brief) = (text.localize(lang), brief.localize(lang));
            (Err(TrialFailure { text, brief, kind, needs_login }), None, stderr)
        }
    };
    let id = view.spec.id.to_string();
    Ok(Some(ServerTest { id, took: started.elapsed(), result, version, stderr }))
}

#[cfg(not(unix))]
async fn restart_at_hub(_: &App, _: &Hub, _: &ServerView) -> anyhow::Result<Option<ServerTest>> {
    Ok(None)
}
