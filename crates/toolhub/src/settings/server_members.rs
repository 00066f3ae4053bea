//! Reports members of entries in `mcp.json` that have no effect: settings that belong into `toolhub.toml`, and typing errors.
//! Other members are ignored: they may be those of other programs, whose entries users copy.

use std::path::Path;

use toolhub_client_config::ConfigError;
use toolhub_core::Localize as _;
use toolhub_core::lang::{Lang, LocalizedText};
use toolhub_engine::similar_names;
use toolhub_mcp_client::config::{ENTRY_MEMBERS, UnreadMember, unread_members};

use super::known_keys::server_keys;

/// A note for each member without effect in a file of servers. `config` is the `toolhub.toml` that is used with it.
pub(super) fn member_notes(file: &Path, text: &str, config: &Path) -> Vec<LocalizedText> {
    let members = unread_members(text);
    let note = |member: &UnreadMember| {
        let error = ConfigError::at(file, text, member.offset, advice(member, config)?);
        Some(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)))
    };
    members.iter().filter_map(note).collect()
}

/// What to write instead of a member without effect.
fn advice(member: &UnreadMember, config: &Path) -> Option<LocalizedText> {
    let UnreadMember { server, name, .. } = member;
    let config = config.display();
    if let Some(key) = server_keys().find(|key| folded(key) == folded(name)) {
        return Some(LocalizedText::new(
            format!(
                "`{name}` of server `{server}` has no effect here: write `{key}` under `[[servers]]` in `{config}`, beside `id = \"{server}\"`"
            ),
            format!(
                "服务器 `{server}` 的 `{name}` 写在这里不起作用：请在 `{config}` 的 `[[servers]]` 下写 `{key}`，并写上 `id = \"{server}\"`"
            ),
        ));
    }
    if let Some(meant) = similar_names(name, ENTRY_MEMBERS, 1).pop() {
        return Some(LocalizedText::new(
            format!("`{name}` of server `{server}` has no effect; did you mean `{meant}`?"),
            format!("服务器 `{server}` 的 `{name}` 不起作用；是否想用 `{meant}`？"),
        ));
    }
    let meant = similar_names(name, server_keys(), 1).pop()?;
    Some(LocalizedText::new(
        format!(
            "`{name}` of server `{server}` has no effect; did you mean `{meant}` under `[[servers]]` in `{config}`?"
        ),
        format!(
            "服务器 `{server}` 的 `{name}` 不起作用；是否想用 `{config}` 中 `[[servers]]` 下的 `{meant}`？"
        ),
    ))
}

/// A name in which `connectTimeout`, `connect-timeout` and `connect_timeout` are equal.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(member: &str) -> Vec<String> {
        let text = format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"x\",\n\"{member}\": 1}}}}}}");
        let notes = member_notes(Path::new("mcp.json"), &text, Path::new("toolhub.toml"));
        notes.iter().map(|note| note.localize(Lang::En)).collect()
    }

    #[test]
    fn names_where_a_setting_belongs() {
        for (member, key) in [("connect_timeout", "connect_timeout"), ("idleTimeout", "idle_timeout")] {
            assert_eq!(
                note(member),
                [format!(
                    "`mcp.json`, line 2, column 1: `{member}` of server `s` has no effect here: write `{key}` under `[[servers]]` in `toolhub.toml`, beside `id = \"s\"`"
                )]
            );
        }
        let timeout = note("timeout");
        assert!(timeout[0].ends_with("under `[[servers]]` in `toolhub.toml`?"), "{timeout:?}");
    }

    #[test]
    fn suggests_the_member_that_was_meant() {
        for (member, meant) in
            [("argss", "args"), ("commnd", "command"), ("Env", "env"), ("header", "headers")]
        {
            let notes = note(member);
            assert_eq!(
                notes,
                [format!(
                    "`mcp.json`, line 2, column 1: `{member}` of server `s` has no effect; did you mean `{meant}`?"
                )]
            );
        }
    }

    /// Entries are copied from the files of other programs.
    #[test]
    fn ignores_members_of_other_programs() {
        for member in ["alwaysAllow", "autoApprove", "description", "vendor", "gallery", "trust"] {
            assert_eq!(note(member), [""; 0], "{member}");
        }
    }
}
