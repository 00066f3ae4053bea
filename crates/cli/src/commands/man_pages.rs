//! Generates man pages from the clap command. Only with the feature `man-pages`, which `cargo xtask dist-assets` enables;
//! released builds do not have it.

use anyhow::Context as _;
use toolhub_core::Lang;

use crate::app::App;
use crate::args::ManPagesArgs;
use crate::args::help;
use crate::exit::Exit;

/// Writes `toolhub.1`, `toolhub-call.1`, `toolhub-servers-add.1` and so on.
pub(crate) fn run(app: &App, args: &ManPagesArgs) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    // Man pages are always in English, whatever the locale.
    clap_mangen::generate_to(help::command(Lang::En), folder)
        .with_context(|| format!("cannot write to `{}`", folder.display()))?;
    app.screen.note(&folder.display().to_string());
    Ok(Exit::Done)
}
