//! `toolhub work` and `toolhub cluster`: several machines.

pub(crate) mod status;
pub(crate) mod work;

use toolhub::settings::{Places, Settings};

use crate::app::App;

/// The settings of this machine. A cluster is of the user, never of the current folder.
fn settings(app: &App) -> anyhow::Result<(Places, Settings)> {
    let places = app.places()?;
    let settings = Settings::read(&places)?;
    Ok((places, settings))
}
