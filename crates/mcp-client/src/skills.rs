//! Skills of a server (extension `io.modelcontextprotocol/skills`): listed with the digest and size of each file, fetched file
//! by file, and used only if the content matches the list.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use toolhub_core::{RawJson, RawObject, hex};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::era::SKILLS;

use crate::config::Credentials;
use crate::forward::ForwardedRequest;
use crate::listing;
use crate::server_status::RequestPurpose;
use crate::supervisor::Server;

/// The main file of a skill.
const MANIFEST: &str = "/SKILL.md";
/// Maximum number of files of a skill. Every host accepts up to this number.
pub const MAX_SKILL_FILES: usize = 512;
/// Maximum total size of these files in bytes. Every host accepts up to this size.
pub const MAX_SKILL_BYTES: u64 = 16 << 20;
/// Timeout for reading a file.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A file of a skill, as listed by the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SkillFileEntry {
    /// The URI.
    pub uri: String,
    /// `sha256:` and the digest of the content.
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
}

/// A skill, as listed by the server.
#[derive(Debug, Clone)]
pub struct SkillEntry {
    /// The entry as received.
    pub raw: RawJson,
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The description: its purpose and when to use it.
    pub description: String,
    /// All fields of the frontmatter.
    pub frontmatter: RawJson,
    /// The files; `None` if they are generated dynamically, so that nothing can be verified.
    pub files: Option<Vec<SkillFileEntry>>,
}

impl SkillEntry {
    /// Parses an entry; the error states why it cannot be used.
    pub fn parse(raw: RawJson) -> Result<Self, String> {
        let members = raw.object().ok_or("it is not an object")?;
        if let Some(problem) = raw.key_problem() {
            return Err(format!("it is ambiguous: {problem}"));
        }
        let uri = members.get("uri").and_then(|uri| uri.decode::<String>().ok()).ok_or("it has no `uri`")?;
        let root = uri.strip_suffix(MANIFEST).ok_or("its `uri` does not end in `/SKILL.md`")?;
        let frontmatter = members.get("frontmatter").filter(|front| front.is_object()).cloned();
        let frontmatter = frontmatter.ok_or("it has no `frontmatter`")?;
        let fields = frontmatter.object().unwrap_or_default();
        let text = |key: &str| {
            fields.get(key).and_then(|value| value.decode::<String>().ok()).filter(|text| !text.is_empty())
        };
        let name = text("name").ok_or("its frontmatter has no `name`")?;
        let description = text("description").ok_or("its frontmatter has no `description`")?;
        if root.rsplit('/').next() != Some(name.as_str()) {
            return Err(format!("its address is not that of a skill called `{name}`"));
        }
        let files = match members.get("resources") {
            Some(word) if word.get() == "\"dynamic\"" => None,
            Some(list) => Some(
                list.decode::<Vec<SkillFileEntry>>()
                    .map_err(|error| format!("its `resources` cannot be read: {error}"))?,
            ),
            None => return Err("it has no `resources`".to_owned()),
        };
        if let Some(files) = &files {
            check_files(files, &uri, root)?;
        }
        Ok(Self { raw, uri, name, description, frontmatter, files })
    }

    /// The URI of its folder.
    pub fn root(&self) -> &str {
        self.uri.strip_suffix(MANIFEST).unwrap_or(&self.uri)
    }

    /// The file with this URI, if it belongs to the skill.
    pub fn file(&self, uri: &str) -> Option<&SkillFileEntry> {
        self.files.as_ref()?.iter().find(|file| file.uri == uri)
    }
}

fn check_files(files: &[SkillFileEntry], uri: &str, root: &str) -> Result<(), String> {
    if files.len() > MAX_SKILL_FILES {
        return Err(format!("it has {} files, more than {MAX_SKILL_FILES}", files.len()));
    }
    let total = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if total > MAX_SKILL_BYTES {
        return Err(format!("it has {total} bytes, more than {MAX_SKILL_BYTES}"));
    }
    if !files.iter().any(|file| file.uri == uri) {
        return Err("its `resources` lack its own `SKILL.md`".to_owned());
    }
    for file in files {
        let below = file.uri.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        let plain = below.is_some_and(|path| !path.split('/').any(|part| matches!(part, "" | "." | "..")));
        if !plain {
            return Err(format!("`{}` is not in its folder", file.uri));
        }
        let hex = file.digest.strip_prefix("sha256:").unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format!("the digest of `{}` is none", file.uri));
        }
    }
    Ok(())
}

impl SkillFileEntry {
    /// Checks that the bytes match size and digest.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.size {
            return Err(format!("`{}` has {} bytes where {} were listed", self.uri, bytes.len(), self.size));
        }
        let digest = hex::sha256(bytes);
        match self.digest.strip_prefix("sha256:") == Some(digest.as_str()) {
            true => Ok(()),
            false => Err(format!("`{}` is not what was listed: its digest differs", self.uri)),
        }
    }
}

/// The content of a `resources/read` result.
pub fn content_bytes(result: &RawJson) -> Result<Vec<u8>, String> {
    #[derive(Deserialize)]
    struct Content {
        text: Option<String>,
        blob: Option<String>,
    }
    let contents = result.object().and_then(|members| members.get("contents")?.decode::<Vec<Content>>().ok());
    let mut contents = contents.unwrap_or_default().into_iter();
    match (contents.next(), contents.next()) {
        (Some(Content { text: Some(text), .. }), None) => Ok(text.into_bytes()),
        (Some(Content { blob: Some(blob), .. }), None) => {
            STANDARD.decode(blob).map_err(|error| format!("its content is no base64: {error}"))
        }
        _ => Err("it was not answered with one content".to_owned()),
    }
}

impl Server {
    /// Whether it declares the skills extension; `None` if it is not connected.
    pub fn supports_skills(&self) -> Option<bool> {
        // Skills are cached for all callers, and read with the credentials of the hub.
        if self.spec().credentials != Credentials::Shared {
            return Some(false);
        }
        let extensions = self.capabilities()?.get("extensions").and_then(RawJson::object).unwrap_or_default();
        Some(extensions.contains(SKILLS))
    }

    /// Lists its skills, connecting if necessary; empty if it does not declare the extension. Invalid entries are skipped.
    pub async fn skills(self: &Arc<Self>) -> Result<Vec<SkillEntry>, McpError> {
        let _in_use = self.begin_request(RequestPurpose::CallerRequest);
        let connection = self.connection().await?;
        if self.supports_skills() != Some(true) {
            return Ok(Vec::new());
        }
        let timeout = self.spec().connect_timeout;
        let listed = tokio::time::timeout(timeout, listing::list_skills(&connection)).await;
        let listed = listed.map_err(|_| McpError::TimedOut(timeout))??;
        Ok(listed.into_iter().filter_map(|raw| SkillEntry::parse(raw).ok()).collect())
    }

    /// Fetches the current entry of the skill at `uri`.
    pub async fn skill(self: &Arc<Self>, uri: &str) -> Result<SkillEntry, McpError> {
        let result = self.forward(read_request("skills/get", uri)).await?;
        let entry = result.object().and_then(|members| members.get("skill").cloned());
        let entry = entry
            .ok_or_else(|| McpError::unreadable("`skills/get` was answered without a `skill`".to_owned()))?;
        SkillEntry::parse(entry)
            .map_err(|why| McpError::unreadable(format!("the skill cannot be used: {why}")))
    }

    /// Reads a file of a skill and verifies it against the list. A file that is not listed is not requested.
    pub async fn skill_resource(
        self: &Arc<Self>,
        entry: &SkillEntry,
        uri: &str,
    ) -> Result<RawJson, McpError> {
        let unreadable = |why: String| McpError::unreadable(why);
        let file = match &entry.files {
            None => None,
            Some(_) => Some(
                entry
                    .file(uri)
                    .ok_or_else(|| unreadable(format!("`{uri}` is no listed file of the skill")))?,
            ),
        };
        let inside = uri.strip_prefix(entry.root()).is_some_and(|rest| rest.starts_with('/'));
        if !inside {
            return Err(unreadable(format!("`{uri}` is not in the skill's folder")));
        }
        let result = self.forward(read_request("resources/read", uri)).await?;
        let bytes = content_bytes(&result).map_err(|why| unreadable(format!("`{uri}`: {why}")))?;
        if bytes.len() as u64 > MAX_SKILL_BYTES {
            return Err(unreadable(format!("`{uri}` has more than {MAX_SKILL_BYTES} bytes")));
        }
        if let Some(file) = file {
            file.check(&bytes).map_err(unreadable)?;
        }
        Ok(result)
    }
}

fn read_request(method: &str, uri: &str) -> ForwardedRequest {
    ForwardedRequest {
        method: method.to_owned(),
        params: RawObject::default().with("uri", uri),
        name: (method == "resources/read").then(|| uri.to_owned()),
        caller: None,
        timeout: READ_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(change: impl FnOnce(&mut Value)) -> Result<SkillEntry, String> {
        let digest = hex::sha256(b"text");
        let mut entry = json!({
            "uri": "skill://acme/refunds/SKILL.md",
            "frontmatter": {"name": "refunds", "description": "d"},
            "resources": [{"uri": "skill://acme/refunds/SKILL.md", "digest": format!("sha256:{digest}"), "size": 4}],
        });
        change(&mut entry);
        SkillEntry::parse(RawJson::from(entry))
    }

    #[test]
    fn rejects_invalid_skill_entries() {
        let check = |change: fn(&mut Value), expect: &str| {
            assert_eq!(entry(change).unwrap_err(), expect);
        };
        let good = entry(|_| ()).unwrap();
        assert_eq!((good.name.as_str(), good.root()), ("refunds", "skill://acme/refunds"));
        assert!(entry(|entry| entry["resources"] = json!("dynamic")).unwrap().files.is_none());
        check(|entry| entry["uri"] = json!("skill://x"), "its `uri` does not end in `/SKILL.md`");
        check(
            |entry| entry["frontmatter"]["name"] = json!("other"),
            "its address is not that of a skill called `other`",
        );
        check(|entry| drop(entry.as_object_mut().unwrap().remove("resources")), "it has no `resources`");
        check(|entry| entry["resources"] = json!([]), "its `resources` lack its own `SKILL.md`");
        check(
            |entry| entry["resources"][0]["digest"] = json!("sha256:00"),
            "the digest of `skill://acme/refunds/SKILL.md` is none",
        );
        check(
            |entry| {
                let mut other = entry["resources"][0].clone();
                other["uri"] = json!("skill://acme/refunds/../secret");
                entry["resources"].as_array_mut().unwrap().push(other);
            },
            "`skill://acme/refunds/../secret` is not in its folder",
        );
    }

    #[test]
    fn verifies_size_and_digest_of_files() {
        let good = entry(|_| ()).unwrap();
        let file = good.file("skill://acme/refunds/SKILL.md").unwrap();
        assert!(file.check(b"text").is_ok());
        assert!(file.check(b"texts").unwrap_err().contains("has 5 bytes where 4 were listed"));
        assert!(file.check(b"tex!").unwrap_err().contains("its digest differs"));
    }
}
