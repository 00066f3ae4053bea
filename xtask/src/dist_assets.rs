//! Writes what packages contain beside the program: man pages and shell completions, both from the program itself, and the
//! notices of data that the program carries.
use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    commands::no_arguments,
    run::{self, cargo},
    workspace::Workspace,
};

/// Under the target folder; `dist-workspace.toml` and the metadata of `cargo-deb` name it.
const FOLDER: &str = "assets";

/// Shells, and what their completion files are called where packages put them.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "toolhub.bash"),
    ("zsh", "_toolhub"),
    ("fish", "toolhub.fish"),
    ("elvish", "toolhub.elv"),
    ("powershell", "_toolhub.ps1"),
];

/// Licences of data inside the program ask for their notices to go with it: the file, and its name in packages.
const NOTICES: &[(&str, &str)] =
    &[("crates/core/NOTICE", "NOTICE-CLDR.txt"), ("crates/search/data/README.md", "NOTICE-CEDICT.md")];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let folder = workspace.target.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    let (man, completions, notices) =
        (folder.join("man"), folder.join("completions"), folder.join("notices"));
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&notices)?;
    for (file, name) in NOTICES {
        fs::copy(workspace.root.join(file), notices.join(name))
            .with_context(|| format!("cannot copy `{file}`"))?;
    }
    let toolhub = || {
        let mut run = cargo(&workspace.root);
        run.args(["run", "--quiet", "--package", "toolhub", "--features", "man-pages", "--", "--lang", "en"]);
        run
    };
    run::check(toolhub().args(["--quiet", "man-pages"]).arg(&man))?;
    for (shell, file) in COMPLETIONS {
        fs::write(completions.join(file), run::read(toolhub().args(["completions", shell]))?)?;
    }
    println!("{} man pages in `{}`", count(&man)?, man.display());
    println!("{} completions in `{}`", count(&completions)?, completions.display());
    Ok(())
}

fn count(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}
