//! The hub's own skills as served to clients: each file with a URI, a digest and a size.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_client::skills::{MAX_SKILL_BYTES, MAX_SKILL_FILES};
use toolhub_skills::{FileKind, HardLinks, MANIFEST, SkillRegistry, skill_file};

/// A served file of a skill.
#[derive(Debug, Clone)]
pub(crate) struct ServedFile {
    pub(crate) uri: String,
    /// Its path relative to the skill.
    pub(crate) path: String,
    pub(crate) size: u64,
    /// The SHA-256 digest in its listing.
    digest: String,
}

/// A served skill.
#[derive(Debug, Clone)]
pub(crate) struct ServedSkill {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The URI of its `SKILL.md`.
    pub(crate) uri: String,
    pub(crate) folder: PathBuf,
    pub(crate) files: Vec<ServedFile>,
    /// Its entry in `skills/list`.
    pub(crate) entry: RawJson,
}

impl ServedSkill {
    /// Reads one of its files, if its digest matches the listing. Blocking. The file is opened once, and the digest is computed
    /// from the bytes that are returned, so that a file replaced since the listing is never served.
    pub(crate) fn read(&self, file: &ServedFile) -> Result<Vec<u8>, LocalizedText> {
        let read = skill_file::read(&self.folder, &file.path, skill_file::MAX_SKILL_FILE_BYTES);
        let bytes = read.map_err(|error| error.text().clone())?;
        if hex::sha256(&bytes) == file.digest {
            return Ok(bytes);
        }
        let path = &file.path;
        Err(LocalizedText::new(
            format!("`{path}` has just been changed, so it is not what is listed; read it again"),
            format!("`{path}` 刚被改动，与列出的不符；请重新读取"),
        ))
    }
}

/// The skills that are in use and can be served. Blocking: reads files for their digests.
pub(crate) fn served(registry: &SkillRegistry) -> Vec<ServedSkill> {
    let snapshot = registry.snapshot();
    let mut served_skills = Vec::new();
    for registered_skill in snapshot.used().filter(|registered_skill| registered_skill.skill.is_servable()) {
        let skill = &registered_skill.skill;
        // A skill that changed since its approval is not served.
        let Some(set) = registry.files_if_usable(skill) else { continue };
        let root = format!("skill://{}", skill.name);
        // Links are not followed, and hard links to files of other users are not served.
        let plain = set
            .files
            .iter()
            .filter(|(_, file)| file.kind != FileKind::Link && file.names != HardLinks::Foreign);
        let mut files = Vec::new();
        let mut listed: Vec<Value> = Vec::new();
        for (path, file) in plain {
            let uri = format!("{root}/{}", encode_path(path));
            listed.push(json!({"uri": uri, "digest": format!("sha256:{}", file.digest), "size": file.size}));
            files.push(ServedFile { uri, path: path.clone(), size: file.size, digest: file.digest.clone() });
        }
        if files.len() > MAX_SKILL_FILES || set.size() > MAX_SKILL_BYTES || !set.files.contains_key(MANIFEST)
        {
            continue;
        }
        let uri = format!("{root}/{MANIFEST}");
        let entry = json!({"uri": uri, "frontmatter": skill.frontmatter, "resources": listed});
        served_skills.push(ServedSkill {
            name: skill.name.clone(),
            description: skill.description.clone(),
            uri,
            folder: skill.folder.clone(),
            files,
            entry: RawJson::from(entry),
        });
    }
    served_skills
}

/// Percent-encodes a path for a URI.
pub(crate) fn encode_path(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(byte as char);
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use toolhub_core::{Lang, Localize as _};
    use toolhub_skills::{SkillOptions, SkillOrigin, SkillRoot};

    use super::*;

    #[tokio::test]
    async fn does_not_serve_skill_changed_since_approval() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("weed");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("SKILL.md"), "---\nname: weed\ndescription: How to weed\n---\nWeed.\n").unwrap();
        fs::write(own.join("more.md"), "more").unwrap();
        let roots = vec![SkillRoot { folder: folder.path().to_owned(), origin: SkillOrigin::Project }];
        let registry = Arc::new(SkillRegistry::new(SkillOptions { roots, ..SkillOptions::default() }));
        registry.refresh().await;
        assert!(served(&registry).is_empty());
        let skill = Arc::clone(&registry.snapshot().skills[0].skill);
        let digest = registry.files_of(&skill).unwrap().digest();
        registry.approvals().insert(skill.key(), digest);
        registry.rebuild_snapshot().await;
        let listed = served(&registry).remove(0);
        let [_, more] = &listed.files[..] else { panic!("{listed:?}") };
        assert_eq!(listed.read(more).unwrap(), b"more");
        fs::write(own.join("more.md"), "changed").unwrap();
        assert!(served(&registry).is_empty());
        // Changed between listing and reading: the contents, or the kind of the file.
        assert!(listed.read(more).unwrap_err().localize(Lang::En).contains("has just been changed"));
        #[cfg(unix)]
        {
            fs::remove_file(own.join("more.md")).unwrap();
            std::os::unix::fs::symlink("SKILL.md", own.join("more.md")).unwrap();
            assert!(listed.read(more).is_err());
            fs::remove_file(own.join("more.md")).unwrap();
        }
        fs::write(own.join("more.md"), "more").unwrap();
        assert_eq!(served(&registry).len(), 1);
        registry.approvals().clear();
        assert!(served(&registry).is_empty());
    }
}
