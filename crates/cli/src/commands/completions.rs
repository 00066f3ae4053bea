//! `toolhub completions`: prints a static completion script for a shell.

use crate::app::App;
use crate::args::CompletionsArgs;
use crate::args::help;
use crate::exit::Exit;

pub(crate) fn run(app: &App, args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(app.lang()), "toolhub", &mut script);
    app.screen.own_text(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Done)
}
