//! Texts of an entry as its program gets them: with its variables expanded, and paths without `.` and `..`.

use std::path::{Component, Path, PathBuf};

use toolhub_client_config::expand_variables;

/// Expands the variables of a text. Returns the text unchanged if one of them is not set.
pub(in crate::trust) fn expand_if_set(text: &str) -> String {
    expand_variables(text, &|name| std::env::var(name).ok()).unwrap_or_else(|_| text.to_owned())
}

/// Replaces `$PWD`, the initial folder of a shell, by `.`.
pub(in crate::trust) fn without_folder_variable(text: &str) -> String {
    text.replace("${PWD}", ".").replace("$PWD", ".")
}

/// Removes `.` and `..` lexically, without following links.
pub(in crate::trust) fn normalize_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
