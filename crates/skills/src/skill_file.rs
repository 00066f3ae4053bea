//! Reads a file of a skill without ever leaving its folder, even if the path is hostile or files are replaced
//! meanwhile.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toolhub_core::lang::LocalizedText;

#[cfg(unix)]
use crate::file_set::HardLinks;

/// Maximum size of a file, in bytes.
pub const MAX_SKILL_FILE_BYTES: u64 = 16 << 20;

/// Why a file of a skill cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillFileError {
    /// The path leads out of the skill's folder, or may do so.
    #[error("{0}")]
    Refused(LocalizedText),
    /// There is no such file.
    #[error("{0}")]
    Missing(LocalizedText),
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(LocalizedText),
}

impl SkillFileError {
    /// The message.
    pub fn text(&self) -> &LocalizedText {
        match self {
            Self::Refused(text) | Self::Missing(text) | Self::Unreadable(text) => text,
        }
    }
}

/// Checks that a path is relative and stays inside a folder.
fn inside(path: &str) -> Result<PathBuf, SkillFileError> {
    let refuse = |en: &str, zh: &str| {
        let truncated = toolhub_core::text::truncate(path, 200).unwrap_or_else(|| path.to_owned());
        SkillFileError::Refused(LocalizedText::new(
            format!("`{truncated}` {en}; name a file inside the skill, such as `references/guide.md`"),
            format!("`{truncated}` {zh}；请给出技能内的文件，例如 `references/guide.md`"),
        ))
    };
    if path.contains('\0') {
        return Err(refuse("is no path", "不是路径"));
    }
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                return Err(refuse("leads out of the skill by `..`", "用 `..` 离开了技能目录"));
            }
            Component::RootDir | Component::Prefix(_) => {
                return Err(refuse("is an absolute path", "是绝对路径"));
            }
        }
    }
    if parts.as_os_str().is_empty() {
        return Err(refuse("names no file", "没有指明文件"));
    }
    Ok(parts)
}

/// Reads a file in a skill's folder. Symbolic links are never followed.
pub fn read(folder: &Path, path: &str, largest: u64) -> Result<Vec<u8>, SkillFileError> {
    let parts = inside(path)?;
    let unreadable = |error: std::io::Error| {
        SkillFileError::Unreadable(LocalizedText::new(
            format!("`{path}` cannot be read: {error}"),
            format!("无法读取 `{path}`：{error}"),
        ))
    };
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(unreadable)?;
    let mut way = PathBuf::new();
    let count = parts.components().count();
    for (at, part) in parts.components().enumerate() {
        way.push(part);
        let found = match dir.symlink_metadata(&way) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing(path)),
            Err(error) => return Err(unreadable(error)),
        };
        if found.is_symlink() {
            let link = way.display();
            return Err(SkillFileError::Refused(LocalizedText::new(
                format!("`{link}` is a link, and links are not followed; put the file itself into the skill"),
                format!("`{link}` 是链接，不会跟随；请把文件本身放入技能"),
            )));
        }
        let last = at + 1 == count;
        if last && !found.is_file() || !last && !found.is_dir() {
            return Err(missing(path));
        }
        if last && found.len() > largest {
            return Err(too_large(path, largest));
        }
    }
    // If the file has been replaced by a symbolic link since, `Dir::open` still cannot leave the folder.
    let open = dir.open(&parts).map_err(unreadable)?;
    let found = open.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(missing(path));
    }
    if is_foreign(&found, &dir).map_err(unreadable)? {
        return Err(SkillFileError::Refused(LocalizedText::new(
            format!("`{path}` is another user's file, linked into the skill; put a copy into the skill"),
            format!("`{path}` 是硬链接进来的他人文件；请把副本放入技能"),
        )));
    }
    let mut bytes = Vec::new();
    open.take(largest + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() as u64 > largest {
        true => Err(too_large(path, largest)),
        false => Ok(bytes),
    }
}

/// Whether a file belongs to another user and has further hard links.
#[cfg(unix)]
fn is_foreign(found: &cap_std::fs::Metadata, dir: &Dir) -> std::io::Result<bool> {
    use cap_std::fs::MetadataExt as _;
    let user = dir.dir_metadata()?.uid();
    Ok(HardLinks::new(found.nlink(), found.uid(), user) == HardLinks::Foreign)
}

#[cfg(not(unix))]
fn is_foreign(_: &cap_std::fs::Metadata, _: &Dir) -> std::io::Result<bool> {
    Ok(false)
}

fn missing(path: &str) -> SkillFileError {
    let truncated = toolhub_core::text::truncate(path, 200).unwrap_or_else(|| path.to_owned());
    SkillFileError::Missing(LocalizedText::new(
        format!("the skill has no file `{truncated}`; its files are named with its instructions"),
        format!("技能中没有文件 `{truncated}`；可用的文件列在说明之后"),
    ))
}

fn too_large(path: &str, largest: u64) -> SkillFileError {
    SkillFileError::Unreadable(LocalizedText::new(
        format!("`{path}` is larger than {} KiB", largest >> 10),
        format!("`{path}` 超过 {} KiB", largest >> 10),
    ))
}

/// Returns the MIME type for a file extension.
pub fn mime_of(path: &str) -> &'static str {
    let end =
        Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    match end.as_str() {
        "md" | "markdown" => "text/markdown",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "sh" => "application/x-sh",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "txt" | "toml" | "ini" | "rs" | "ts" | "tsv" | "" => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_paths_outside_the_skill() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("skill");
        std::fs::create_dir_all(root.join("references")).unwrap();
        std::fs::write(root.join("references/a.md"), "text").unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        assert_eq!(read(&root, "references/a.md", 10).unwrap(), b"text");
        assert_eq!(read(&root, "./references//a.md", 10).unwrap(), b"text");
        let refused = |path: &str| matches!(read(&root, path, 10), Err(SkillFileError::Refused(_)));
        for path in ["../secret", "/etc/passwd", "references/../../secret", "", ".", "a\0b"] {
            assert!(refused(path), "{path:?}");
        }
        assert!(matches!(read(&root, "references", 10), Err(SkillFileError::Missing(_))));
        assert!(matches!(read(&root, "references/a.md/b", 10), Err(SkillFileError::Missing(_))));
        assert!(matches!(read(&root, "references/a.md", 3), Err(SkillFileError::Unreadable(_))));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
            std::os::unix::fs::symlink("..", root.join("up")).unwrap();
            std::os::unix::fs::symlink("references", root.join("within")).unwrap();
            for path in ["link", "up/secret", "within/a.md"] {
                assert!(refused(path), "{path}");
            }
            // A hard link to a file outside: readable if both have the same owner, otherwise refused.
            std::fs::hard_link(folder.path().join("secret"), root.join("hard")).unwrap();
            assert_eq!(read(&root, "hard", 10).unwrap(), b"secret");
            // Only root can change the owner.
            if std::os::unix::fs::chown(root.join("hard"), Some(65534), None).is_ok() {
                assert!(refused("hard"));
            }
        }
    }
}
