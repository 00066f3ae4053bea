//! Commands through the JSON API of a running hub (`--hub`). They print what the local commands print. A command that is not here
//! is refused: it must not run on this machine by mistake.

pub(crate) mod access;
pub(crate) mod call;
pub(crate) mod remote_tool;
pub(crate) mod servers;
pub(crate) mod tools;

use crate::app::App;
use crate::args::{Command, ServersCommand, ToolsCommand};
use crate::commands::history::archive::CallArchive;
use crate::commands::{completions, history};
use crate::exit::{Exit, UsageError};
use crate::hub_api::HubApi;

#[cfg(feature = "man-pages")]
use crate::commands::man_pages;

/// The commands that work with `--hub`, for the error about others.
const SUPPORTED: &str = "`call`, `explain`, `tools` (list, show, search), `servers` (list, show, test, restart, enable, disable, logs), `history`, `result`, `stats`, `waiting`, `audit` (show, verify, export) and `keys`";
const SUPPORTED_ZH: &str = "`call`、`explain`、`tools`（list、show、search）、`servers`（list、show、test、restart、enable、disable、logs）、`history`、`result`、`stats`、`waiting`、`audit`（show、verify、export）、`keys`";

/// Runs a command through a hub.
pub(crate) async fn run(app: &App, api: &HubApi, command: Option<Command>) -> anyhow::Result<Exit> {
    if app.global.verbose > 0 {
        let root = api.root();
        app.screen
            .note(&app.lang().choose(format!("through the hub at {root}"), format!("通过 {root} 的 hub")));
    }
    match command {
        // These handle Ctrl-C themselves: a call reports its outcome, and it is the normal end of `history --follow`.
        Some(Command::Call(args)) => call::run(app, api, &args).await,
        Some(Command::History(args)) if args.follow => {
            history::run(app, &CallArchive::Remote(api), args).await
        }
        command => app.interruptible(dispatch(app, api, command)).await?,
    }
}

async fn dispatch(app: &App, api: &HubApi, command: Option<Command>) -> anyhow::Result<Exit> {
    match command {
        Some(Command::Explain(args)) => tools::explain(app, api, &args).await,
        Some(Command::Tools(args)) => match &args.command {
            None | Some(ToolsCommand::List) => tools::list(app, api, &args).await,
            Some(ToolsCommand::Show(show)) => tools::show(app, api, show).await,
            Some(ToolsCommand::Search(search)) => tools::search(app, api, search).await,
            Some(ToolsCommand::Diff(_) | ToolsCommand::Approve(_)) => Err(unsupported(app)),
        },
        Some(Command::Servers(args)) => match &args.command {
            None | Some(ServersCommand::List) => servers::list(app, api).await,
            Some(ServersCommand::Show(server)) => servers::show(app, api, &server.id).await,
            Some(ServersCommand::Test(test)) => servers::test(app, api, &test.ids).await,
            Some(ServersCommand::Restart(server)) => servers::restart(app, api, &server.id).await,
            Some(ServersCommand::Enable(server)) => servers::enable(app, api, &server.id, true).await,
            Some(ServersCommand::Disable(server)) => servers::enable(app, api, &server.id, false).await,
            Some(ServersCommand::Logs(server)) => servers::logs(app, api, &server.id).await,
            Some(_) => Err(unsupported(app)),
        },
        Some(Command::History(args)) => history::run(app, &CallArchive::Remote(api), args).await,
        Some(Command::Result(args)) => history::result::run(app, &CallArchive::Remote(api), args).await,
        Some(Command::Stats(args)) => history::stats::run(app, &CallArchive::Remote(api), args).await,
        Some(Command::Waiting(args)) => access::held_calls(app, api, &args).await,
        Some(Command::Audit(args)) => access::audit(app, api, args).await,
        Some(Command::Keys(args)) => access::keys(app, api, &args).await,
        // Texts that are the same everywhere.
        Some(Command::Help(args)) => crate::args::help::show(app, &args.command),
        Some(Command::Completions(args)) => completions::run(app, &args),
        #[cfg(feature = "man-pages")]
        Some(Command::ManPages(args)) => man_pages::run(app, &args),
        _ => Err(unsupported(app)),
    }
}

/// The error for a command that does not work through a hub.
fn unsupported(app: &App) -> anyhow::Error {
    UsageError(app.lang().choose(
        format!("this command does not work with `--hub` or TOOLHUB_HUB; these do: {SUPPORTED}. For this machine, leave `--hub` out; `--no-hub` overrides TOOLHUB_HUB"),
        format!("此命令不能与 `--hub` 或 TOOLHUB_HUB 合用；可用的命令：{SUPPORTED_ZH}。要在本机执行，请去掉 `--hub`；`--no-hub` 可覆盖 TOOLHUB_HUB"),
    ))
    .into()
}

/// The error for options that do not work through a hub. Each is given by its name if it is set.
fn refuse_options(app: &App, options: &[(&str, bool)]) -> Result<(), UsageError> {
    let given: Vec<String> =
        options.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("`{name}`")).collect();
    if given.is_empty() {
        return Ok(());
    }
    let given = given.join(app.lang().choose(", ", "、"));
    Err(UsageError(
        app.lang()
            .choose(format!("{given} does not work with `--hub`"), format!("{given} 不能与 `--hub` 合用")),
    ))
}
