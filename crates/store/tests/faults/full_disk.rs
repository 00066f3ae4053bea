//! A full disk: a tmpfs of 8 MiB in a mount namespace of the child process.

use std::process::Command;

#[test]
fn full_disk_stops_only_calls_that_must_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let script = r#"mount -t tmpfs -o size=8m none "$1" && exec "$0" full-disk "$1""#;
    unshare.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_store-load")]).arg(folder.path());
    let output = unshare.output().expect("`unshare` starts; it is part of util-linux");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let expect = [
        "full: the store failed: the disk is full: free some space, and it will work again",
        "flush: true",
        "lost: 0",
        "read: true",
        "still full: true",
        "again: true",
        "counted: true",
        "reopened: true",
        "statistics: true",
        "integrity: ok",
    ];
    assert_eq!(stdout.lines().collect::<Vec<_>>(), expect);
}
