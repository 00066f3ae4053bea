//! Tests with `#[ignore]`, which need something that not every machine has: runs those whose requirement is met, and
//! lists the others.

use std::net::UdpSocket;

use anyhow::Result;

use crate::{
    e2e_model,
    run::{cargo, check},
    workspace::Workspace,
};

/// Tests with a common requirement.
struct IgnoredTests {
    /// The requirement, for the report.
    needs: &'static str,
    is_satisfied: fn() -> bool,
    /// Arguments that select them for `cargo test --workspace`. A single package would be recompiled with other
    /// features.
    selection: &'static [&'static str],
}

const IGNORED: [IgnoredTests; 5] = [
    IgnoredTests {
        needs: "a language model, named in `TOOLHUB_E2E_MODEL_URL` (`cargo xtask e2e-model` starts one)",
        is_satisfied: || is_set(e2e_model::VARIABLE),
        selection: &["--test", "e2e_model", "--test", "e2e_ways", "--test", "openai"],
    },
    IgnoredTests {
        needs: "data sets, in the folder that `TOOLHUB_DATA` names",
        is_satisfied: || is_set("TOOLHUB_DATA"),
        selection: &["--test", "browser", "--test", "gateway", "--test", "planning"],
    },
    IgnoredTests {
        needs: "data sets, in the folder that `TOOLHUB_DATA` names",
        is_satisfied: || is_set("TOOLHUB_DATA"),
        selection: &["--test", "quality"],
    },
    IgnoredTests {
        needs: "the official test suite of JSON Schema, in the folder that `JSON_SCHEMA_TEST_SUITE` names",
        is_satisfied: || is_set("JSON_SCHEMA_TEST_SUITE"),
        selection: &["--lib"],
    },
    IgnoredTests {
        needs: "an address of this machine that is not a loopback one",
        is_satisfied: has_own_address,
        selection: &["--test", "upstream"],
    },
];

/// Runs the ignored tests whose requirement is met. Fails if one of them fails.
pub(crate) fn run_possible(workspace: &Workspace) -> Result<()> {
    for tests in &IGNORED {
        if !(tests.is_satisfied)() {
            println!("ignored: {} (needs {})", tests.selection.join(" "), tests.needs);
            continue;
        }
        let mut command = cargo(&workspace.root);
        command.args(["test", "--workspace"]).args(tests.selection).args([
            "--",
            "--ignored",
            "--test-threads=1",
        ]);
        check(&mut command)?;
    }
    Ok(())
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether the machine has a route with a non-loopback source address. `connect` on a UDP socket sends no packet.
fn has_own_address() -> bool {
    let address = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    address.is_ok_and(|address| !address.ip().is_loopback() && !address.ip().is_unspecified())
}

#[cfg(test)]
mod tests {

    use std::{fs, path::Path};

    /// Counts the tests with `#[ignore]` in a file or in all files of a directory.
    fn ignored_in(path: &Path) -> usize {
        if path.is_dir() {
            return fs::read_dir(path).unwrap().map(|entry| ignored_in(&entry.unwrap().path())).sum();
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().filter(|line| line.trim_start().starts_with("#[ignore")).count()
    }

    /// An ignored test in a target that is not listed would never run.
    #[test]
    fn every_ignored_test_is_in_a_listed_target() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let listed = [
            "cli/tests/browser",
            "cli/tests/e2e_model.rs",
            "cli/tests/e2e_ways",
            "cli/tests/gateway",
            "cli/tests/openai",
            "cli/tests/planning.rs",
            "search/tests/quality.rs",
            "engine/src",
            "cli/tests/upstream",
        ];
        let counts = listed.map(|path| ignored_in(&crates.join(path)));
        assert_eq!(counts, [1, 1, 7, 1, 6, 1, 1, 1, 1]);
        assert_eq!(ignored_in(&crates), counts.iter().sum::<usize>());
    }
}
