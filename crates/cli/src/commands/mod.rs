//! The commands: each one is a module with a function `run`. [`run`] parses the arguments and calls it.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod history;
pub(crate) mod init;
#[cfg(feature = "man-pages")]
pub(crate) mod man_pages;
pub(crate) mod script;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod skills;
pub(crate) mod start;
pub(crate) mod text;
pub(crate) mod through_hub;
pub(crate) mod tools;
pub(crate) mod trust;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::app::App;
use crate::args::eval::EvalCommand;
use crate::args::{Cli, Command, ServersCommand, help, usage_error};
use crate::commands::history::archive::CallArchive;
use crate::exit::Exit;
use crate::hub_api::HubApi;

/// Runs one command.
pub(crate) async fn run(args: Vec<OsString>) -> ExitCode {
    let lang = help::language(&args);
    let command = help::command(lang);
    let parsed = command
        .clone()
        .try_get_matches_from(args.clone())
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            return usage_error::refuse(&usage_error::with_suggestion(error, &command, &args), lang);
        }
    };
    let app = App::new(cli.global, lang);
    let exit = Box::pin(dispatch(&app, cli.command)).await;
    app.close().await;
    let exit = exit.unwrap_or_else(|error| app.fail(&error));
    app.with_write_check(exit).into()
}

/// Whether a command may use the servers of a running `toolhub serve`. The others, such as `doctor`, need servers that they start
/// themselves.
fn uses_running_hub(command: Option<&Command>) -> bool {
    match command {
        Some(
            Command::Ask(_)
            | Command::Chat(_)
            | Command::Prompt(_)
            | Command::Call(_)
            | Command::Script(_)
            | Command::Run(_)
            | Command::Explain(_)
            | Command::Tools(_),
        ) => true,
        Some(Command::Servers(args)) => matches!(
            args.command,
            Some(ServersCommand::Offers(_) | ServersCommand::Read(_) | ServersCommand::Prompt(_))
        ),
        _ => false,
    }
}

async fn dispatch(app: &App, command: Option<Command>) -> anyhow::Result<Exit> {
    if let Some(api) = HubApi::requested(app)? {
        return through_hub::run(app, &api, command).await;
    }
    if matches!(command, Some(Command::Tools(_) | Command::Servers(_) | Command::Doctor(_))) {
        app.declare_list_only();
    }
    if matches!(command, Some(Command::Doctor(_))) {
        app.report_notes();
    }
    if uses_running_hub(command.as_ref()) {
        app.use_running_hub();
    }
    match command {
        None => start::run(app).await,
        Some(Command::Init(args)) => init::run(app, &args).await,
        Some(Command::Ask(args)) => agent::ask::run(app, args).await,
        Some(Command::Chat(args)) => agent::chat::run(app, args).await,
        Some(Command::Prompt(args)) => agent::prompt::run(app, args).await,
        Some(Command::Call(args)) => tools::call::run(app, args).await,
        Some(Command::Script(args)) => script::run(app, args).await,
        Some(Command::Eval(args)) => match args.command {
            EvalCommand::Search(args) => eval::search::run(app, &args),
            EvalCommand::Plan(args) => eval::plan::run(app, &args).await,
        },
        Some(Command::Keys(args)) => access::keys::run(app, &args).await,
        Some(Command::Waiting(args)) => access::held_calls::run(app, &args).await,
        Some(Command::Audit(args)) => access::audit::run(app, args).await,
        Some(Command::History(args)) => history::run(app, &CallArchive::Local(app.hub().await?), args).await,
        Some(Command::Stats(args)) => {
            history::stats::run(app, &CallArchive::Local(app.hub().await?), args).await
        }
        Some(Command::Recommend(args)) => history::recommend::run(app, args).await,
        Some(Command::Result(args)) => {
            history::result::run(app, &CallArchive::Local(app.hub().await?), args).await
        }
        Some(Command::Run(args)) => text::run::run(app, &args).await,
        Some(Command::Parse(args)) => text::parse::run(app, &args).await,
        Some(Command::Explain(args)) => tools::explain::run(app, args).await,
        Some(Command::Tools(args)) => tools::run(app, args).await,
        Some(Command::Servers(args)) => servers::run(app, args).await,
        Some(Command::Skills(args)) => skills::run(app, args).await,
        Some(Command::Serve(args)) => serve::run(app, args).await,
        Some(Command::Work(args)) => Box::pin(cluster::work::run(app, args)).await,
        Some(Command::Cluster(args)) => match args.command {
            crate::args::cluster::ClusterCommand::Status => cluster::status::run(app).await,
        },
        Some(Command::Console(args)) => Box::pin(console::run(app, args)).await,
        Some(Command::Trust(args)) => trust::run(app, &args).await,
        Some(Command::Doctor(args)) => doctor::run(app, &args).await,
        Some(Command::Completions(args)) => completions::run(app, &args),
        #[cfg(feature = "man-pages")]
        Some(Command::ManPages(args)) => man_pages::run(app, &args),
        Some(Command::Help(args)) => help::show(app, &args.command),
    }
}
