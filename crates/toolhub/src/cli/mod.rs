//! The command line: parses arguments, runs a command, and converts its result to text and an exit code.

mod app;
mod arguments;
mod ask;
mod ask_interrupted;
mod browser;
mod call;
mod chat;
mod complete;
mod complete_bash;
mod complete_values;
mod completions;
mod doctor;
mod doctor_model;
mod doctor_sandbox;
mod doctor_skills;
mod elicitation;
mod eval_files;
mod eval_model;
mod eval_plan;
mod eval_search;
mod exit;
mod explain;
mod export;
mod extras;
mod findings;
mod foreign;
mod help;
mod history;
mod import;
mod import_files;
mod init;
mod init_files;
mod init_plan;
mod init_record;
mod init_report;
mod init_trial;
mod init_undo;
mod line_editor;
mod listing_progress;
mod live;
mod login;
#[cfg(feature = "man-pages")]
mod man_pages;
mod offers;
mod options;
mod options_ask;
mod options_eval;
mod options_init;
mod options_memory;
mod options_serve;
mod options_skills;
mod options_text;
mod options_trust;
mod parse;
mod prompt;
mod recommend;
mod record_table;
mod result;
mod run;
mod screen;
mod serve;
mod serve_check;
mod serve_outlook;
#[cfg(unix)]
mod serve_relay;
mod serve_reload;
mod serve_stdio;
mod server_edit;
mod server_list;
mod server_read;
mod server_show;
mod servers;
mod skills;
mod skills_approve;
mod skills_make;
mod skills_run;
mod start;
mod state;
mod stats;
mod status;
mod table;
mod terminal_input;
mod tools;
mod tools_approve;
mod tools_diff;
mod tools_search;
mod trace;
mod transfer;
mod trust;
mod usage_error;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use app::App;
pub(crate) use complete::run_if_requested as complete_if_requested;
use exit::Exit;
use options::{Cli, Command, ServersCommand};
use options_eval::EvalCommand;

/// Runs one command.
pub(crate) async fn run(args: Vec<OsString>) -> ExitCode {
    let lang = help::language(&args);
    let command = help::command(lang);
    let parsed =
        command.clone().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage_error::refuse(&error, lang),
    };
    let app = App::new(cli.global, lang);
    let exit = dispatch(&app, cli.command).await;
    app.close().await;
    let exit = exit.unwrap_or_else(|error| app.fail(&error));
    app.checked(exit).into()
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
    if matches!(command, Some(Command::Tools(_) | Command::Servers(_) | Command::Doctor(_))) {
        app.only_lists();
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
        Some(Command::Ask(args)) => ask::run(app, args).await,
        Some(Command::Chat(args)) => chat::run(app, args).await,
        Some(Command::Prompt(args)) => prompt::run(app, args).await,
        Some(Command::Call(args)) => call::run(app, args).await,
        Some(Command::Eval(args)) => match args.command {
            EvalCommand::Search(args) => eval_search::run(app, &args),
            EvalCommand::Plan(args) => eval_plan::run(app, &args).await,
        },
        Some(Command::History(args)) => history::run(app, args).await,
        Some(Command::Stats(args)) => stats::run(app, args).await,
        Some(Command::Recommend(args)) => recommend::run(app, args).await,
        Some(Command::Result(args)) => result::run(app, args).await,
        Some(Command::Run(args)) => run::run(app, &args).await,
        Some(Command::Parse(args)) => parse::run(app, &args).await,
        Some(Command::Explain(args)) => explain::run(app, args).await,
        Some(Command::Tools(args)) => tools::run(app, args).await,
        Some(Command::Servers(args)) => servers::run(app, args).await,
        Some(Command::Skills(args)) => skills::run(app, args).await,
        Some(Command::Serve(args)) => serve::run(app, args).await,
        Some(Command::Trust(args)) => trust::run(app, &args).await,
        Some(Command::Doctor(args)) => doctor::run(app, &args).await,
        Some(Command::Completions(args)) => completions::run(app, &args),
        #[cfg(feature = "man-pages")]
        Some(Command::ManPages(args)) => man_pages::run(app, &args),
        Some(Command::Help(args)) => help::show(app, &args.command),
    }
}
