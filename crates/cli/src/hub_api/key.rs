//! The key for a hub: from a file or a variable, never from an argument, since other programs see the arguments of a process.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toolhub_core::Secret;
use toolhub_core::lang::LocalizedText;

/// The variable with the key.
pub(crate) const KEY_VARIABLE: &str = "TOOLHUB_HUB_KEY";
/// Maximum size of a file with a key.
const MAX_FILE_BYTES: u64 = 4096;

/// Reads the key from a file.
pub(crate) fn read_file(file: &Path) -> Result<Secret, LocalizedText> {
    let name = file.display();
    let mut text = String::new();
    let read = File::open(file).and_then(|open| open.take(MAX_FILE_BYTES).read_to_string(&mut text));
    if let Err(error) = read {
        return Err(LocalizedText::new(
            format!("`--hub-key-file`: `{name}` cannot be read: {error}"),
            format!("`--hub-key-file`：无法读取 `{name}`：{error}"),
        ));
    }
    checked(&text).ok_or_else(|| {
        LocalizedText::new(
            format!("`--hub-key-file`: `{name}` does not contain one key, as `toolhub keys new` prints it"),
            format!("`--hub-key-file`：`{name}` 中不是 `toolhub keys new` 输出的一个密钥"),
        )
    })
}

/// The key in the environment; `None` if the variable is not set or empty.
pub(crate) fn from_environment() -> Result<Option<Secret>, LocalizedText> {
    let Some(value) = std::env::var_os(KEY_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let key = value.to_str().and_then(checked);
    key.map(Some).ok_or_else(|| {
        LocalizedText::new(
            format!("{KEY_VARIABLE} does not contain one key, as `toolhub keys new` prints it"),
            format!("{KEY_VARIABLE} 中不是 `toolhub keys new` 输出的一个密钥"),
        )
    })
}

/// A key that can be sent in a header.
fn checked(text: &str) -> Option<Secret> {
    let key = text.trim();
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| Secret::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_one_key_only() {
        assert_eq!(checked(" thk_1 \n").unwrap().expose(), "thk_1");
        for text in ["", " \n", "two words", "one\ntwo", "a\u{1b}[2J", "键"] {
            assert!(checked(text).is_none(), "{text:?}");
        }
    }
}
