//! Thirty seconds of the test that `cargo xtask soak` runs for fifteen minutes: load through the gateway while its servers are
//! killed and restarted.

#![cfg(target_os = "linux")]

use std::process::Command;

use toolhub_testkit::program;

#[test]
fn killed_servers_fail_only_their_own_calls() {
    let folder = tempfile::tempdir().unwrap();
    let mut soak = Command::new(program("gateway-load"));
    soak.arg("soak").arg(env!("CARGO_BIN_EXE_toolhub")).arg(folder.path()).args(["30", "20260728"]);
    // Builds `scripted-mcp` if needed: `gateway-load` starts it.
    let _ = program("scripted-mcp");
    let ran = soak.output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{output}");
    assert!(output.contains("verdict: no wrong answer, no leak"), "{output}");
}
