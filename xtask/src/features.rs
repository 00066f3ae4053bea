//! Checks the program without its optional features: it builds, and for a configuration that needs a missing feature
//! it names the feature, in both languages.
use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    commands::no_arguments,
    run::{self, cargo},
    workspace::Workspace,
};

/// A configuration, the required feature, and whether the program exits with an error without it.
const CASES: [(&str, &str, bool); 2] = [
    ("[store]\nurl = \"postgres://ann:s3cret@localhost/hub\"\n", "--features postgres", true),
    ("[search]\nmodel = \"model\"\n", "--features encoder", false),
];

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    // Overwrites the debug binary; the next test build restores it.
    let mut build = cargo(&workspace.root);
    run::check(build.args(["build", "--quiet", "--package", "toolhub-cli", "--no-default-features"]))?;
    let program = workspace.target.join("debug/toolhub").with_extension(std::env::consts::EXE_EXTENSION);
    let folder = workspace.target.join("features");
    fs::create_dir_all(&folder)?;
    let config = folder.join("toolhub.toml");
    for (text, feature, stops) in CASES {
        fs::write(&config, text)?;
        for lang in ["en", "zh"] {
            let mut tools = Command::new(&program);
            tools.args(["--lang", lang, "--home"]).arg(folder.join("home")).arg("--config").arg(&config);
            let output = tools.args(["tools", "search", "time"]).output().context("toolhub did not start")?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(stderr.contains(feature), "`{feature}` is not named ({lang}): {stderr}");
            ensure!(!stderr.contains("s3cret"), "a password is shown ({lang}): {stderr}");
            ensure!(output.status.success() != stops, "{feature} ({lang}): {}", output.status);
        }
    }
    println!("the program without optional parts names those that are missing");
    // Tests run without jemalloc, packages with it.
    let mut build = cargo(&workspace.root);
    run::check(build.args([
        "build",
        "--quiet",
        "--package",
        "toolhub-cli",
        "--features",
        run::PACKAGED_FEATURES,
    ]))?;
    let mut call = Command::new(&program);
    call.args(["--config"]).arg(&config).arg("--home").arg(folder.join("home"));
    fs::write(&config, "")?;
    let output =
        call.args(["call", "calculate", "expression=6*7"]).output().context("toolhub did not start")?;
    ensure!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("42"),
        "the program with all optional parts does not answer: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
