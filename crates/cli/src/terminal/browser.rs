//! Opens a URL in the user's browser, if there is one.

use std::process::Stdio;

use tokio::process::Command;
use toolhub_core::system_program;

/// Opens `address`. Returns whether a process was started; does not wait for it, since some browsers run until they are closed.
pub(crate) fn open(address: &str) -> bool {
    let web = address.starts_with("https://") || address.starts_with("http://");
    let Some((name, before)) = opener().filter(|_| web) else { return false };
    let Some(program) = system_program(name) else { return false };
    let mut command = Command::new(program);
    command.args(before).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The program that opens URLs, and its arguments before the URL.
fn opener() -> Option<(&'static str, &'static [&'static str])> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(windows) {
        // Not `start`: it is a builtin of `cmd`, which interprets `&` in a URL as a command separator.
        Some(("rundll32.exe", &["url.dll,FileProtocolHandler"]))
    } else if cfg!(target_os = "macos") {
        (!set("SSH_CONNECTION")).then_some(("open", &[]))
    } else {
        (set("DISPLAY") || set("WAYLAND_DISPLAY")).then_some(("xdg-open", &[]))
    }
}
