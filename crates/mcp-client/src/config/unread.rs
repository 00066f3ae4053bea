//! Finds members of servers' entries that are not read.

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// The members of an entry that are read.
pub const ENTRY_MEMBERS: [&str; 9] =
    ["type", "command", "args", "env", "cwd", "url", "headers", "enabled", "disabled"];

/// A member of a server's entry that is not read.
#[derive(Debug, PartialEq, Eq)]
pub struct UnreadMember {
    /// The server.
    pub server: String,
    /// The name of the member.
    pub name: String,
    /// Where the member begins in the text, in bytes.
    pub offset: usize,
}

/// The members that are not read, in the order of the text. An invalid text has none.
pub fn unread_members(text: &str) -> Vec<UnreadMember> {
    let json = text.trim_start_matches('\u{feff}');
    let skipped = text.len() - json.len();
    let Ok(parsed) = parse_to_ast(json, &CollectOptions::default(), &ParseOptions::default()) else {
        return Vec::new();
    };
    let root = parsed.value.as_ref().and_then(|root| root.as_object());
    let servers = root.and_then(|root| root.get("mcpServers")?.value.as_object());
    let mut unread = Vec::new();
    for entry in servers.into_iter().flat_map(|servers| &servers.properties) {
        for member in entry.value.as_object().into_iter().flat_map(|entry| &entry.properties) {
            let name = member.name.as_str();
            if !ENTRY_MEMBERS.contains(&name) {
                let server = entry.name.as_str().to_owned();
                unread.push(UnreadMember { server, name: name.to_owned(), offset: skipped + member.start() });
            }
        }
    }
    unread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_unread_members_with_their_places() {
        let text = "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\", \"argss\": []}, \"b\": {\"url\": \"y\", \"vendor\": {\"args\": 1}}}}";
        let unread = unread_members(text);
        let found: Vec<_> = unread.iter().map(|one| (one.server.as_str(), one.name.as_str())).collect();
        assert_eq!(found, [("a", "argss"), ("b", "vendor")]);
        assert!(unread.iter().all(|one| text[one.offset..].starts_with(&format!("\"{}\"", one.name))));
        for nothing in ["", "[", "[]", "{}", r#"{"mcpServers": 1}"#, r#"{"mcpServers": {"a": 1}}"#] {
            assert_eq!(unread_members(nothing), []);
        }
    }

    #[test]
    fn every_listed_member_is_read() {
        let all = r#"{"mcpServers": {
            "p": {"type": "stdio", "command": "x", "args": ["a"], "env": {"A": "b"}, "cwd": "/", "enabled": false},
            "h": {"url": "http://localhost", "headers": {"A": "b"}, "disabled": true}}}"#;
        assert_eq!(unread_members(all), []);
        let read = |text: &str| {
            let servers = super::super::parse_servers(std::path::Path::new("m"), text).unwrap();
            servers
                .iter()
                .map(|spec| format!("{} {}", spec.transport_json(), spec.enabled))
                .collect::<String>()
        };
        for member in ENTRY_MEMBERS {
            let without = all.replace(&format!("\"{member}\""), &format!("\"un{member}\""));
            let needed = ["command", "url"].contains(&member);
            if !needed && member != "type" {
                assert_ne!(read(&without), read(all), "{member}");
            }
        }
    }
}
