//! `toolhub work` and `toolhub cluster`: several machines.

pub(crate) mod status;
pub(crate) mod work;

use toolhub::settings::{Paths, Settings};

use crate::app::App;

/// The settings of this machine. A cluster is of the user, never of the current folder.
fn user_settings(app: &App) -> anyhow::Result<(Paths, Settings)> {
    let paths = app.paths()?;
    let settings = Settings::read(&paths)?;
    Ok((paths, settings))
}
