//! Half a minute of what `cargo xtask soak` does for a quarter of an hour: load through the gateway while its servers are
//! killed and come back.

#![cfg(target_os = "linux")]

use std::process::Command;

use toolhub_testkit::program;

#[test]
fn killed_servers_cost_nobody_but_those_who_call_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut soak = Command::new(program("gateway-load"));
    soak.arg("soak").arg(env!("CARGO_BIN_EXE_toolhub")).arg(folder.path()).args(["30", "20260728"]);
    // It starts servers of this program, and says which it is built from.
    let _ = program("scripted-mcp");
    let ran = soak.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("verdict: no wrong answer, no leak"), "{said}");
}
