//! `toolhub completions`: prints a static completion script for a shell.

use clap_complete::Shell;

use crate::app::App;
use crate::args::CompletionsArgs;
use crate::args::help;
use crate::completion::bash::with_quoted_files;
use crate::exit::Exit;

pub(crate) fn run(app: &App, args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(app.lang()), "toolhub", &mut script);
    let script = String::from_utf8_lossy(&script);
    match args.shell {
        Shell::Bash => app.screen.own_text(with_quoted_files(&script).trim_end()),
        _ => app.screen.own_text(script.trim_end()),
    }
    Ok(Exit::Done)
}
