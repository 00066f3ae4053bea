//! A discovered skill: its frontmatter and location. The instructions are read on demand.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::declarations::{self, SkillTool};
use crate::diagnostic::{Diagnostic, Severity};
use crate::grants::SkillGrants;
use crate::{fields, frontmatter};

/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";
/// Maximum size of the frontmatter, in bytes.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The origin of the folder in which a skill was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillOrigin {
    /// The project, whose files are possibly written by others.
    Project,
    /// Beside the config, or a folder named in it.
    Config,
    /// The user's own folder.
    User,
}

impl SkillOrigin {
    /// The machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Config => "config",
            Self::User => "user",
        }
    }
}

/// A folder that is searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRoot {
    /// The folder; it need not exist.
    pub folder: PathBuf,
    /// Its origin.
    pub origin: SkillOrigin,
}

/// The form of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillShape {
    /// A folder with a `SKILL.md`.
    Folder,
    /// A single Python file with classes that are tools.
    PythonFile,
}

/// A skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The name.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its folder; for a single file, the folder that contains it.
    pub folder: PathBuf,
    /// Its `SKILL.md`, or the single file.
    pub file: PathBuf,
    /// The origin of the folder.
    pub origin: SkillOrigin,
    /// The form.
    pub shape: SkillShape,
    /// All fields of the frontmatter, as written.
    pub frontmatter: Map<String, Value>,
    /// Whether the frontmatter is valid YAML without repair.
    pub strict: bool,
    /// The tools.
    pub tools: Vec<SkillTool>,
    /// The grants requested for its scripts.
    pub requested: SkillGrants,
    /// The faults found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Skill {
    /// Reads the frontmatter of the skill in a folder; returns the faults if it cannot be used.
    pub fn read(folder: &Path, origin: SkillOrigin) -> Result<Self, Vec<Diagnostic>> {
        let file = manifest_in(folder).unwrap_or_else(|| folder.join(MANIFEST));
        let text = head(&file).map_err(|diagnostic| vec![*diagnostic])?;
        let frontmatter = frontmatter::read(&file, &text).map_err(|diagnostic| vec![*diagnostic])?;
        let mut diagnostics = frontmatter.diagnostics.clone();
        if file.file_name().is_some_and(|name| name != MANIFEST) {
            diagnostics.push(Diagnostic::new(
                &file,
                Severity::Error,
                LocalizedText::new("the file is not called `SKILL.md`", "文件名不是 `SKILL.md`"),
                LocalizedText::new(
                    "rename it: other agents do not find it",
                    "请改名，否则其他智能体找不到它",
                ),
            ));
        }
        let named = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let fields = fields::read(&file, &frontmatter, &named);
        let declarations = declarations::read(&file, &frontmatter.tree, folder);
        diagnostics.extend(fields.diagnostics);
        diagnostics.extend(declarations.diagnostics);
        let Some(description) = fields.description else { return Err(diagnostics) };
        Ok(Self {
            name: fields.name,
            description,
            folder: folder.to_owned(),
            file,
            origin,
            shape: SkillShape::Folder,
            frontmatter: frontmatter.fields(),
            strict: frontmatter.strict,
            tools: declarations.tools,
            requested: declarations.requested,
            diagnostics,
        })
    }

    /// Whether the skill may be served to MCP clients unchanged: a strict parser reads the same frontmatter, and the
    /// name is valid.
    pub fn is_servable(&self) -> bool {
        let named = self.frontmatter.get("name").and_then(Value::as_str) == Some(self.name.as_str());
        let described = self.frontmatter.get("description").is_some_and(Value::is_string);
        let manifest = self.file.file_name().is_some_and(|name| name == MANIFEST);
        self.shape == SkillShape::Folder
            && self.strict
            && named
            && described
            && manifest
            && fields::is_name(&self.name)
    }
}

/// Returns the `SKILL.md` of a folder, in any of the usual spellings.
pub(crate) fn manifest_in(folder: &Path) -> Option<PathBuf> {
    [MANIFEST, "skill.md", "Skill.md"].iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// Reads the first bytes of a file as text. The text may end anywhere after the frontmatter.
fn head(file: &Path) -> Result<String, Box<Diagnostic>> {
    let unreadable = |error: std::io::Error| {
        Box::new(Diagnostic::new(
            file,
            Severity::Fatal,
            LocalizedText::new(format!("it cannot be read: {error}"), format!("无法读取：{error}")),
            LocalizedText::new("correct its permissions, or remove it", "请修正权限或删除"),
        ))
    };
    let mut bytes = Vec::new();
    // A symbolic link cannot be approved: its target may change.
    let found = std::fs::symlink_metadata(file).map_err(unreadable)?;
    if !found.is_file() {
        return Err(Box::new(Diagnostic::new(
            file,
            Severity::Fatal,
            LocalizedText::new("it is a link, or no file", "它是链接，或不是文件"),
            LocalizedText::new("put the file itself there", "请放入文件本身"),
        )));
    }
    std::fs::File::open(file)
        .and_then(|open| open.take(MAX_HEAD_BYTES).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let is_complete = bytes.len() < MAX_HEAD_BYTES as usize;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text =
                String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default()).into_owned();
            // The text after the frontmatter is validated when it is read.
            if frontmatter::split(&text).is_err() {
                let line = text.lines().count().max(1);
                return Err(Box::new(
                    Diagnostic::new(
                        file,
                        Severity::Fatal,
                        LocalizedText::new("it is not UTF-8", "不是 UTF-8 编码"),
                        LocalizedText::new("save it as UTF-8", "请存为 UTF-8"),
                    )
                    .at(line),
                ));
            }
            text
        }
    };
    if !is_complete
        && frontmatter::split(&text).is_err_and(|none| none == frontmatter::SplitError::MissingEnd)
    {
        let max_kibibytes = MAX_HEAD_BYTES >> 10;
        return Err(Box::new(
            Diagnostic::new(
                file,
                Severity::Fatal,
                LocalizedText::new(
                    format!("the frontmatter does not end within {max_kibibytes} KiB"),
                    format!("文件头超过 {max_kibibytes} KiB"),
                ),
                LocalizedText::new(
                    "write a line `---` after the last field",
                    "在最后一个字段之后写一行 `---`",
                ),
            )
            .at(1),
        ));
    }
    Ok(text)
}
