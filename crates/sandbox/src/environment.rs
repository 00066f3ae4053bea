//! The clean environment: no inherited variables except those that every program needs.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use crate::policy::SandboxPolicy;

/// The folders of system programs.
#[cfg(unix)]
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// Variables that are set to the private folder.
const PRIVATE: [&str; 4] = ["HOME", "TMPDIR", "TMP", "TEMP"];

/// Replaces the environment of `command`. Variables that the caller set explicitly on the command are kept; those of
/// the policy take precedence.
pub(crate) fn clean(command: &mut Command, policy: &SandboxPolicy, private: &Path) {
    let meant: Vec<(OsString, OsString)> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command.env_clear();
    #[cfg(unix)]
    command.env("PATH", PATH);
    #[cfg(windows)]
    for name in ["PATH", "SYSTEMROOT", "PATHEXT"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("LANG", language());
    command.envs(meant);
    command.envs(PRIVATE.map(|name| (name, private)));
    command.envs(policy.environment.iter().map(|(name, value)| (name, value)));
}

/// The user's `LANG` if its encoding is UTF-8, otherwise `C.UTF-8`.
fn language() -> OsString {
    let own = std::env::var_os("LANG").filter(|own| is_utf8(own));
    own.unwrap_or_else(|| "C.UTF-8".into())
}

fn is_utf8(locale: &OsStr) -> bool {
    let name = locale.to_string_lossy().to_ascii_lowercase();
    name.ends_with("utf-8") || name.ends_with("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_only_allowed_environment() {
        let mut command = Command::new("x");
        command.env("MEANT", "1").env("HOME", "/home/user").env_remove("GONE");
        let policy = SandboxPolicy {
            environment: vec![("GIVEN".into(), "2".into()), ("TMP".into(), "/t".into())],
            ..SandboxPolicy::default()
        };
        clean(&mut command, &policy, Path::new("/private"));
        let mut seen: Vec<String> = command
            .get_envs()
            .map(|(name, value)| format!("{}={}", name.display(), value.unwrap_or_default().display()))
            .filter(|pair| !pair.starts_with("LANG=") && !pair.starts_with("PATH="))
            .collect();
        seen.sort();
        assert_eq!(
            seen,
            ["GIVEN=2", "HOME=/private", "MEANT=1", "TEMP=/private", "TMP=/t", "TMPDIR=/private"]
        );
    }
}
