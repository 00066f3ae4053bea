//! The files of a skill with their digests, and one digest over all of them, which an approval refers to.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use toolhub_core::hex;
use toolhub_core::lang::LocalizedText;

use crate::skill::{Skill, SkillShape};

/// Maximum number of files of a skill that can be approved.
const MAX_FILES: usize = 5_000;
/// Maximum total size of those files, in bytes.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// Excluded from the digest: other tools write to them, and scripts run by toolhub do not read them (Python runs with
/// another cache prefix).
const IGNORED_FOLDERS: [&str; 2] = [".git", "__pycache__"];

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// SHA-256, in hexadecimal.
    pub digest: String,
    /// Size in bytes.
    pub size: u64,
    /// File type and mode as far as they matter: executable or symbolic link.
    pub kind: FileKind,
    /// Whether the file has other hard links.
    pub names: HardLinks,
}

/// The hard links of a file: with more than one, the same inode is also reachable outside the skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardLinks {
    /// One hard link.
    One,
    /// Several hard links, all owned by the owner of the skill's folder.
    Several,
    /// Several hard links, and the file belongs to another user than the skill's folder: the author of the skill may
    /// have had no permission to read it. Such a file is never read.
    Foreign,
}

impl HardLinks {
    #[cfg(unix)]
    pub(crate) fn new(count: u64, user: u32, folder_user: u32) -> Self {
        match count {
            0 | 1 => Self::One,
            _ if user == folder_user => Self::Several,
            _ => Self::Foreign,
        }
    }

    /// Counts the names of a file in a skill's folder.
    fn of(found: &std::fs::Metadata, folder: &Path) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let user = std::fs::metadata(folder).map_or(u32::MAX, |folder| folder.uid());
            Self::new(found.nlink(), found.uid(), user)
        }
        #[cfg(not(unix))]
        {
            let _ = (found, folder);
            Self::One
        }
    }
}

/// The type of a file, as covered by the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Plain,
    /// An executable file.
    Executable,
    /// A symbolic link, which is never followed; its digest is that of the target path.
    Link,
}

/// All files of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    /// The files by relative path, with `/` as separator.
    pub files: BTreeMap<String, SkillFile>,
}

impl FileSet {
    /// One digest over all files, in hexadecimal.
    pub fn digest(&self) -> String {
        let mut all = Sha256::new();
        for (path, file) in &self.files {
            all.update(digest_line(path, file));
        }
        hex::encode(&all.finalize())
    }

    /// Total size in bytes.
    pub fn size(&self) -> u64 {
        self.files.values().map(|file| file.size).sum()
    }
}

/// The digest input of one file: path, mark and content digest, unambiguously separated. The separators (NUL, newline)
/// and the backslash are escaped in the path.
fn digest_line(path: &str, file: &SkillFile) -> String {
    let kind = match file.kind {
        FileKind::Plain => "-",
        FileKind::Executable => "x",
        FileKind::Link => "l",
    };
    let path = path.replace('\\', "\\\\").replace('\n', "\\n").replace('\0', "\\0");
    format!("{path}\0{kind}\0{}\n", file.digest)
}

/// Detects a change of a file. Its owner cannot reset the ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    changed: (i64, i64),
    modified: Option<SystemTime>,
    size: u64,
    number: u64,
}

impl Stamp {
    pub(crate) fn of(found: &std::fs::Metadata) -> Self {
        #[cfg(unix)]
        let (changed, number) = {
            use std::os::unix::fs::MetadataExt as _;
            ((found.ctime(), found.ctime_nsec()), found.ino())
        };
        #[cfg(not(unix))]
        let (changed, number) = ((0, 0), 0);
        Self { changed, modified: found.modified().ok(), size: found.len(), number }
    }
}

/// Cache of content digests, by file and stamp.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<HashMap<PathBuf, (Stamp, String)>>);

impl Digests {
    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current files of a skill, or the reason why they cannot be read.
    pub(crate) fn files_of(&self, skill: &Skill) -> Result<FileSet, LocalizedText> {
        let mut set = FileSet::default();
        if skill.shape == SkillShape::PythonFile {
            let name =
                skill.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            self.add(&mut set, name, &skill.file, &skill.folder)?;
            return Ok(set);
        }
        let mut waiting = vec![(skill.folder.clone(), String::new())];
        while let Some((folder, inside)) = waiting.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))?;
            for entry in entries {
                let entry = entry.map_err(|error| unreadable(&folder, &error))?;
                let name = entry.file_name();
                let Some(name) = name.to_str() else {
                    let displayed = entry.path().display().to_string();
                    return Err(LocalizedText::new(
                        format!("the name of `{displayed}` is not UTF-8; rename it"),
                        format!("`{displayed}` 的文件名不是 UTF-8，请改名"),
                    ));
                };
                if IGNORED_FOLDERS.contains(&name) {
                    continue;
                }
                let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
                let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
                if kind.is_dir() {
                    waiting.push((entry.path(), path));
                } else {
                    self.add(&mut set, path, &entry.path(), &skill.folder)?;
                }
            }
        }
        Ok(set)
    }

    fn add(&self, set: &mut FileSet, path: String, file: &Path, folder: &Path) -> Result<(), LocalizedText> {
        let found = std::fs::symlink_metadata(file).map_err(|error| unreadable(file, &error))?;
        let one = if found.is_symlink() {
            let target = std::fs::read_link(file).map_err(|error| unreadable(file, &error))?;
            let digest = hex::sha256(target.as_os_str().as_encoded_bytes());
            SkillFile { digest, size: 0, kind: FileKind::Link, names: HardLinks::One }
        } else if found.is_file() {
            let kind = if is_executable(&found) { FileKind::Executable } else { FileKind::Plain };
            let names = HardLinks::of(&found, folder);
            SkillFile { digest: self.digest(file, &found)?, size: found.len(), kind, names }
        } else {
            // Pipes, sockets and devices have no content to approve.
            let displayed = file.display();
            return Err(LocalizedText::new(
                format!("`{displayed}` is no file; remove it"),
                format!("`{displayed}` 不是普通文件，请删除"),
            ));
        };
        set.files.insert(path, one);
        if set.files.len() > MAX_FILES || set.size() > MAX_TOTAL_BYTES {
            let max_mebibytes = MAX_TOTAL_BYTES >> 20;
            return Err(LocalizedText::new(
                format!(
                    "the skill has more than {MAX_FILES} files or {max_mebibytes} MiB: remove what it does not need"
                ),
                format!("技能超过 {MAX_FILES} 个文件或 {max_mebibytes} MiB：请删除不需要的内容"),
            ));
        }
        Ok(())
    }

    fn digest(&self, file: &Path, found: &std::fs::Metadata) -> Result<String, LocalizedText> {
        let stamp = Stamp::of(found);
        if let Some((known, digest)) = self.known().get(file)
            && *known == stamp
        {
            return Ok(digest.clone());
        }
        if found.len() > MAX_TOTAL_BYTES {
            return Err(LocalizedText::new(
                format!("`{}` is larger than {} MiB", file.display(), MAX_TOTAL_BYTES >> 20),
                format!("`{}` 超过 {} MiB", file.display(), MAX_TOTAL_BYTES >> 20),
            ));
        }
        let digest = digest_of(file).map_err(|error| unreadable(file, &error))?;
        self.known().insert(file.to_owned(), (stamp, digest.clone()));
        Ok(digest)
    }
}

fn digest_of(file: &Path) -> std::io::Result<String> {
    let mut open = std::fs::File::open(file)?.take(MAX_TOTAL_BYTES + 1);
    let mut all = Sha256::new();
    let mut some = vec![0; 64 << 10];
    loop {
        match open.read(&mut some)? {
            0 => return Ok(hex::encode(&all.finalize())),
            many => all.update(some.get(..many).unwrap_or_default()),
        }
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> LocalizedText {
    let file = file.display();
    LocalizedText::new(format!("`{file}` cannot be read: {error}"), format!("无法读取 `{file}`：{error}"))
}

#[cfg(unix)]
pub(crate) fn is_executable(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
pub(crate) fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Entries = BTreeMap<String, (Vec<u8>, u8)>;

    fn set_of(entries: &Entries) -> FileSet {
        let marks = [FileKind::Plain, FileKind::Executable, FileKind::Link];
        let file = |(content, kind): &(Vec<u8>, u8)| SkillFile {
            digest: hex::sha256(content),
            size: content.len() as u64,
            kind: marks[usize::from(*kind)],
            names: HardLinks::One,
        };
        FileSet { files: entries.iter().map(|(name, entry)| (name.clone(), file(entry))).collect() }
    }

    fn input_of(set: &FileSet) -> String {
        set.files.iter().map(|(path, file)| digest_line(path, file)).collect()
    }

    /// Decodes digest input into paths, marks and digests.
    fn entries_of(input: &str) -> BTreeMap<String, (String, String)> {
        let mut entries = BTreeMap::new();
        for line in input.split_terminator('\n') {
            let parts: Vec<&str> = line.split('\0').collect();
            let [path, kind, digest] = parts[..] else { panic!("{line:?}") };
            let mut name = String::new();
            let mut letters = path.chars();
            while let Some(letter) = letters.next() {
                name.push(match letter {
                    '\\' => match letters.next() {
                        Some('n') => '\n',
                        Some('0') => '\0',
                        Some('\\') => '\\',
                        other => panic!("{other:?} in {path:?}"),
                    },
                    usual => usual,
                });
            }
            assert!(entries.insert(name, (kind.to_owned(), digest.to_owned())).is_none(), "{input:?}");
        }
        entries
    }

    fn entries() -> impl Strategy<Value = Entries> {
        // A small alphabet makes similar names likely.
        let name = "[ab0n\\\\\n\0/-]{1,4}";
        proptest::collection::btree_map(name, (proptest::collection::vec(0_u8..2, 0..2), 0_u8..3), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Digest input can be decoded, so different sets never have the same input.
        #[test]
        fn digest_input_is_injective(one in entries(), other in entries()) {
            let (first, second) = (set_of(&one), set_of(&other));
            prop_assert_eq!(one == other, input_of(&first) == input_of(&second));
            let read = entries_of(&input_of(&first));
            prop_assert_eq!(read.keys().collect::<Vec<_>>(), first.files.keys().collect::<Vec<_>>());
            for (name, file) in &first.files {
                prop_assert_eq!(&read[name].1, &file.digest);
            }
        }
    }

    const SKILL: &str = "---\nname: s\ndescription: Does something.\n---\n";

    fn skill_in(folder: &Path) -> Skill {
        std::fs::write(folder.join("SKILL.md"), SKILL).unwrap();
        Skill::read(folder, crate::SkillOrigin::User).unwrap()
    }

    /// Size, inode and mtime can be restored after a change; the ctime cannot.
    #[cfg(unix)]
    #[test]
    fn rewritten_file_with_restored_modification_time_changes_the_digest() {
        let folder = tempfile::tempdir().unwrap();
        let skill = skill_in(folder.path());
        let script = folder.path().join("run.sh");
        std::fs::write(&script, "echo good").unwrap();
        let before = std::fs::metadata(&script).unwrap();
        let digests = Digests::default();
        let approved = digests.files_of(&skill).unwrap().digest();
        // The timestamp granularity of the file system is a few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::write(&script, "echo evil").unwrap();
        let file = std::fs::File::options().write(true).open(&script).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
        let (old, new) = (Stamp::of(&before), Stamp::of(&std::fs::metadata(&script).unwrap()));
        assert_eq!((old.modified, old.size, old.number), (new.modified, new.size, new.number));
        assert_ne!(digests.files_of(&skill).unwrap().digest(), approved);
    }

    /// A script may load any file in the folder, so only files that no script run by toolhub reads are excluded.
    #[test]
    fn digest_covers_hidden_and_installed_files() {
        let folder = tempfile::tempdir().unwrap();
        let skill = skill_in(folder.path());
        let covered = ["node_modules/left-pad/index.js", ".venv/bin/activate", ".env", "vendor/.hidden/x.py"];
        let left_out = [".git/config", "__pycache__/x.pyc", "node_modules/p/__pycache__/y.pyc"];
        let digests = Digests::default();
        let mut last = digests.files_of(&skill).unwrap().digest();
        for (paths, is_covered) in [(&covered[..], true), (&left_out[..], false)] {
            for path in paths {
                let file = folder.path().join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, "x").unwrap();
                let files = digests.files_of(&skill).unwrap();
                assert_eq!(files.files.contains_key(*path), is_covered, "{path}");
                assert_eq!(files.digest() != last, is_covered, "{path}");
                last = files.digest();
            }
        }
    }

    #[test]
    fn renamed_file_changes_the_digest_and_usual_names_keep_theirs() {
        let of = |name: &str| set_of(&[(name.to_owned(), (b"x".to_vec(), 0))].into()).digest();
        assert_ne!(of("a\nb"), of("a\\nb"));
        assert_ne!(of("a\\nb"), of("a\\\\nb"));
        // Keeps approvals of earlier versions valid.
        let line = format!("SKILL.md\0-\0{}\n", hex::sha256(b"x"));
        assert_eq!(of("SKILL.md"), hex::sha256(line.as_bytes()));
    }
}
