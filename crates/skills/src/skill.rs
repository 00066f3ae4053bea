//! One skill as it was found: what its first lines say, and where it lies. Its text is read when somebody wants it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolhub_core::lang::Text;

use crate::declared::{self, SkillTool};
use crate::fault::{Fault, Weight};
use crate::grants::Grants;
use crate::{fields, frontmatter};

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";
/// The frontmatter must end within so many bytes.
const HEAD: u64 = 64 << 10;

/// Whose folder a skill was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The project's: it came with what somebody else may have written.
    Project,
    /// Beside the config, or in a folder that it names.
    Config,
    /// The user's own.
    User,
}

impl Origin {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Config => "config",
            Self::User => "user",
        }
    }
}

/// A folder that skills are looked for in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The folder; it need not exist.
    pub folder: PathBuf,
    /// Whose it is.
    pub origin: Origin,
}

/// What a skill is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A folder with a `SKILL.md`.
    Folder,
    /// A single Python file with classes that are tools.
    PythonFile,
}

/// A skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its folder; of a single file, the folder that holds it.
    pub folder: PathBuf,
    /// Its `SKILL.md`, or its single file.
    pub file: PathBuf,
    /// Whose folder it was found in.
    pub origin: Origin,
    /// What it is made of.
    pub shape: Shape,
    /// All fields of its frontmatter, as they were written.
    pub frontmatter: Map<String, Value>,
    /// Whether its frontmatter is YAML as it stands.
    pub strict: bool,
    /// The tools it has.
    pub tools: Vec<SkillTool>,
    /// What its scripts ask to be granted.
    pub asked: Grants,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

impl Skill {
    /// Reads the head of the skill in a folder; what is wrong with it, where it cannot be used.
    pub fn read(folder: &Path, origin: Origin) -> Result<Self, Vec<Fault>> {
        let file = manifest_in(folder).unwrap_or_else(|| folder.join(MANIFEST));
        let text = head(&file).map_err(|fault| vec![*fault])?;
        let front = frontmatter::read(&file, &text).map_err(|fault| vec![*fault])?;
        let mut faults = front.faults.clone();
        if file.file_name().is_some_and(|name| name != MANIFEST) {
            faults.push(Fault::new(
                &file,
                Weight::Wrong,
                (
                    Text::new("the file is not called `SKILL.md`", "文件名不是 `SKILL.md`"),
                    Text::new("rename it: other agents do not find it", "请改名，否则其他智能体找不到它"),
                ),
            ));
        }
        let named = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let fields = fields::read(&file, &front, &named);
        let declared = declared::read(&file, &front.tree, folder);
        faults.extend(fields.faults);
        faults.extend(declared.faults);
        let Some(description) = fields.description else { return Err(faults) };
        Ok(Self {
            name: fields.name,
            description,
            folder: folder.to_owned(),
            file,
            origin,
            shape: Shape::Folder,
            frontmatter: front.fields(),
            strict: front.strict,
            tools: declared.tools,
            asked: declared.asked,
            faults,
        })
    }

    /// Whether it may be served to others as it stands: its frontmatter is what a strict reader reads, and its name
    /// keeps the rules.
    pub fn is_servable(&self) -> bool {
        let named = self.frontmatter.get("name").and_then(Value::as_str) == Some(self.name.as_str());
        let described = self.frontmatter.get("description").is_some_and(Value::is_string);
        let manifest = self.file.file_name().is_some_and(|name| name == MANIFEST);
        self.shape == Shape::Folder
            && self.strict
            && named
            && described
            && manifest
            && fields::is_name(&self.name)
    }
}

/// The `SKILL.md` of a folder, in whatever case somebody wrote it.
pub(crate) fn manifest_in(folder: &Path) -> Option<PathBuf> {
    [MANIFEST, "skill.md", "Skill.md"].iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// The first bytes of a file as text; what lies behind the frontmatter may be cut anywhere.
fn head(file: &Path) -> Result<String, Box<Fault>> {
    let unreadable = |error: std::io::Error| {
        Box::new(Fault::new(
            file,
            Weight::Fatal,
            (
                Text::new(format!("it cannot be read: {error}"), format!("无法读取：{error}")),
                Text::new("mend its permissions, or remove it", "请修正权限或删除"),
            ),
        ))
    };
    let mut bytes = Vec::new();
    // Behind a link stands what nobody can agree to: it may be another file tomorrow.
    let found = std::fs::symlink_metadata(file).map_err(unreadable)?;
    if !found.is_file() {
        return Err(Box::new(Fault::new(
            file,
            Weight::Fatal,
            (
                Text::new("it is a link, or no file", "它是链接，或不是文件"),
                Text::new("put the file itself there", "请放入文件本身"),
            ),
        )));
    }
    std::fs::File::open(file).and_then(|open| open.take(HEAD).read_to_end(&mut bytes)).map_err(unreadable)?;
    let whole = bytes.len() < HEAD as usize;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text =
                String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default()).into_owned();
            // What follows the frontmatter is looked at when it is wanted.
            if frontmatter::split(&text).is_err() {
                let line = text.lines().count().max(1);
                return Err(Box::new(
                    Fault::new(
                        file,
                        Weight::Fatal,
                        (
                            Text::new("it is not UTF-8", "不是 UTF-8 编码"),
                            Text::new("save it as UTF-8", "请存为 UTF-8"),
                        ),
                    )
                    .at(line),
                ));
            }
            text
        }
    };
    if !whole && frontmatter::split(&text).is_err_and(|none| none == frontmatter::NoParts::NoEnd) {
        let most = HEAD >> 10;
        return Err(Box::new(
            Fault::new(
                file,
                Weight::Fatal,
                (
                    Text::new(
                        format!("the frontmatter does not end within {most} KiB"),
                        format!("文件头超过 {most} KiB"),
                    ),
                    Text::new("write a line `---` after the last field", "在最后一个字段之后写一行 `---`"),
                ),
            )
            .at(1),
        ));
    }
    Ok(text)
}
