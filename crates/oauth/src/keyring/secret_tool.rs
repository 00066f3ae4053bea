//! The Secret Service of a desktop session, through libsecret's `secret-tool`; Cargo.toml gives the reason for not using a
//! crate.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use toolhub_core::system_program;
use zeroize::Zeroizing;

use super::KeyringEntry;

/// Only in a desktop session: otherwise no prompt can unlock it.
pub(super) fn is_available() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set("DBUS_SESSION_BUS_ADDRESS") && (set("DISPLAY") || set("WAYLAND_DISPLAY"))
}

/// The command; `None` if the program is not installed.
fn secret_tool(verb: &[&str], entry: &KeyringEntry) -> Option<Command> {
    let mut command = Command::new(system_program("secret-tool")?);
    command.args(verb).args(["service", "toolhub", "home", &entry.home, "login", &entry.key]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    Some(command)
}

pub(super) async fn read(entry: &KeyringEntry) -> Option<Zeroizing<String>> {
    let child = secret_tool(&["lookup"], entry)?.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.wait_with_output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok().map(Zeroizing::new)?;
    (output.status.success() && !text.is_empty()).then_some(text)
}

pub(super) async fn write(entry: &KeyringEntry, text: &str) -> Option<()> {
    let label = format!("--label=toolhub: {}", entry.key);
    // The text is passed through a pipe: command lines are visible to other users.
    let mut child = secret_tool(&["store", &label], entry)?.stdin(Stdio::piped()).spawn().ok()?;
    let mut input = child.stdin.take()?;
    input.write_all(text.as_bytes()).await.ok()?;
    drop(input);
    child.wait().await.ok()?.success().then_some(())
}

pub(super) async fn remove(entry: &KeyringEntry) -> Option<()> {
    secret_tool(&["clear"], entry)?.status().await.ok()?.success().then_some(())
}
