//! Validates a skill for its author: checks every rule and reports file, line and correction.

use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;

use crate::calling_check;
use crate::calling_script::MAX_SCRIPT_BYTES;
use crate::declarations::{Runner, SkillTool};
use crate::diagnostic::{Diagnostic, Severity};
use crate::frontmatter;
use crate::inputs;
use crate::interpreter::{self, ScriptError};
use crate::python::{InspectionMode, Python};
use crate::registry::SkillRegistry;
use crate::registry::{python_scripts, single_file_skill};
use crate::skill::{MANIFEST, Skill, SkillOrigin, manifest_in};
use crate::skill_file;
use crate::template::is_placeholder;

/// Recommended maximum number of lines of instructions.
const MAX_BODY_LINES: usize = 500;
/// Maximum size of a `SKILL.md`, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Maximum number of files and folders checked per skill.
const MAX_CHECKED_ENTRIES: usize = 5_000;

/// The result of validating a path.
#[derive(Debug)]
pub struct SkillValidation {
    /// The validated `SKILL.md` or single Python file.
    pub file: PathBuf,
    /// The skill, if usable.
    pub skill: Option<Skill>,
    /// The faults, in order of lines.
    pub diagnostics: Vec<Diagnostic>,
}

impl SkillValidation {
    /// Whether a rule is violated.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity > Severity::Advice)
    }
}

/// Validates a path: a skill's folder, its `SKILL.md`, or a folder of skills.
pub fn validate(path: &Path) -> Vec<SkillValidation> {
    let folder = match path.is_file() {
        true => path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        false => path,
    };
    if path.is_file() || manifest_in(folder).is_some() {
        return vec![validate_folder(folder)];
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    inside.retain(|one| manifest_in(one).is_some());
    inside.sort();
    match inside.is_empty() {
        true => vec![validate_folder(folder)],
        false => inside.iter().map(|folder| validate_folder(folder)).collect(),
    }
}

/// As [`validate`], and inspects Python files, including single ones. `python` is the user's own choice.
pub async fn validate_with_python(path: &Path, python: Option<&str>) -> Vec<SkillValidation> {
    validate_by(&Python::new(python, None, None), path).await
}

/// As [`validate_with_python`], with the interpreter of a registry, if its consent permits starting it.
pub async fn validate_with_registry(path: &Path, registry: &SkillRegistry) -> Vec<SkillValidation> {
    validate_by(&registry.python, path).await
}

async fn validate_by(python: &Python, path: &Path) -> Vec<SkillValidation> {
    let is_python = |file: &Path| file.is_file() && file.extension().is_some_and(|end| end == "py");
    if is_python(path) && !inside_skill(path) {
        return vec![validate_file(python, path).await];
    }
    let mut all = validate(path);
    let mut single: Vec<PathBuf> = match path.is_dir() && manifest_in(path).is_none() {
        true => std::fs::read_dir(path)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default(),
        false => Vec::new(),
    };
    single.retain(|file| is_python(file));
    single.sort();
    // A folder of single files needs no `SKILL.md`.
    all.retain(|validation| single.is_empty() || validation.file.exists());
    for validation in &mut all {
        validate_scripts(python, validation).await;
    }
    for file in &single {
        let validation = validate_file(python, file).await;
        // A file without tools may serve another purpose.
        if validation.skill.is_some()
            || validation.diagnostics.iter().any(|diagnostic| diagnostic.line.is_some())
        {
            all.push(validation);
        }
    }
    all
}

/// Whether a Python file is a script of a skill, not a skill by itself.
fn inside_skill(file: &Path) -> bool {
    let folder = file.parent().unwrap_or(Path::new(""));
    let above = folder.canonicalize().ok();
    let above = above.as_deref().and_then(Path::parent);
    manifest_in(folder).is_some() || above.is_some_and(|above| manifest_in(above).is_some())
}

async fn validate_file(python: &Python, file: &Path) -> SkillValidation {
    let found =
        python.classes(&[(file.to_owned(), InspectionMode::Every)]).await.remove(file).unwrap_or_default();
    let mut diagnostics = found.diagnostics;
    if found.tools.is_empty() {
        if diagnostics.is_empty() {
            let (problem, remedy) = (
                LocalizedText::new("no class in it is a tool", "其中没有可用作工具的类"),
                LocalizedText::new(
                    "write a class with `name`, `description` and a method `execute`",
                    "请写一个含有 `name`、`description` 和 `execute` 方法的类",
                ),
            );
            diagnostics.push(Diagnostic::new(file, Severity::Fatal, problem, remedy));
        }
        return SkillValidation { file: file.to_owned(), skill: None, diagnostics };
    }
    diagnostics.extend(schemas_of(file, &found.tools));
    SkillValidation {
        file: file.to_owned(),
        skill: Some(single_file_skill(file, SkillOrigin::User, found.tools)),
        diagnostics,
    }
}

/// Adds the tools defined by the Python files of a skill, and the faults of those files.
async fn validate_scripts(python: &Python, validation: &mut SkillValidation) {
    let Some(skill) = &mut validation.skill else { return };
    let declarations: Vec<&SkillTool> =
        skill.tools.iter().filter(|tool| tool.file.ends_with(".py")).collect();
    let mut names: Vec<String> = declarations.into_iter().map(|tool| tool.file.clone()).collect();
    let classes = python_scripts(skill);
    names.extend(classes.iter().cloned());
    let files: Vec<(PathBuf, InspectionMode)> =
        names.iter().map(|name| (skill.folder.join(name), InspectionMode::Every)).collect();
    let mut found = python.classes(&files).await;
    for name in names {
        let file = skill.folder.join(&name);
        let Some(found) = found.remove(&file) else { continue };
        validation.diagnostics.extend(found.diagnostics);
        if classes.contains(&name) {
            validation.diagnostics.extend(schemas_of(&file, &found.tools));
            skill.tools.extend(found.tools.into_iter().map(|tool| SkillTool { file: name.clone(), ..tool }));
        }
    }
}

/// Returns the faults of schemas that classes define explicitly.
fn schemas_of(file: &Path, tools: &[SkillTool]) -> Vec<Diagnostic> {
    let broken = tools.iter().filter_map(|tool| {
        let (name, why) = (&tool.name, inputs::invalid_schema(&tool.schema.value())?);
        let problem = LocalizedText::new(
            format!("the `input_schema` of the tool `{name}` is no JSON Schema: {why}"),
            format!("工具 `{name}` 的 `input_schema` 不是 JSON Schema：{why}"),
        );
        let remedy = LocalizedText::new(
            "correct it, or omit it so that the signature is used",
            "请改正，或删去而由签名推断",
        );
        Some(Diagnostic::new(file, Severity::Error, problem, remedy))
    });
    broken.collect()
}

fn validate_folder(folder: &Path) -> SkillValidation {
    // `.` has no file name, which is needed to check the name of the skill.
    let named = folder.file_name().is_none().then(|| folder.canonicalize().ok()).flatten();
    let folder = named.as_deref().unwrap_or(folder);
    let file = manifest_in(folder).unwrap_or_else(|| folder.join(MANIFEST));
    if !file.exists() {
        let diagnostic = Diagnostic::new(
            &file,
            Severity::Fatal,
            LocalizedText::new("there is no `SKILL.md`", "没有 `SKILL.md`"),
            LocalizedText::new(
                "make one with `toolhub skills new NAME`",
                "可用 `toolhub skills new 名称` 新建",
            ),
        );
        return SkillValidation { file, skill: None, diagnostics: vec![diagnostic] };
    }
    let (skill, mut diagnostics) = match Skill::read(folder, SkillOrigin::User) {
        Ok(skill) => {
            let diagnostics = skill.diagnostics.clone();
            (Some(skill), diagnostics)
        }
        Err(diagnostics) => (None, diagnostics),
    };
    diagnostics.extend(body(folder, &file));
    if let Some(skill) = &skill {
        diagnostics.extend(scripts(skill));
        let instructions = std::fs::read_to_string(&file).unwrap_or_default();
        diagnostics.extend(calling_check::diagnostics(skill, &instructions));
    }
    diagnostics.extend(no_files(folder));
    diagnostics.sort_by_key(|diagnostic| diagnostic.line.unwrap_or(usize::MAX));
    SkillValidation { file, skill, diagnostics }
}

/// Returns the faults of the instructions.
fn body(folder: &Path, file: &Path) -> Vec<Diagnostic> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = match skill_file::read(folder, &name, MAX_MANIFEST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            let remedy =
                LocalizedText::new("write the file itself, of at most 1 MiB", "请直接写文件，至多 1 MiB");
            return vec![Diagnostic::new(file, Severity::Error, error.text().clone(), remedy)];
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let (problem, remedy) = (
                LocalizedText::new("it is not UTF-8", "不是 UTF-8 编码"),
                LocalizedText::new("save it as UTF-8", "请存为 UTF-8"),
            );
            return vec![Diagnostic::new(file, Severity::Error, problem, remedy).at(line)];
        }
    };
    let mut diagnostics = comments(file, &text);
    diagnostics.extend(placeholder_diagnostic(file, &text));
    if let Ok(frontmatter) = frontmatter::read(file, &text) {
        diagnostics.extend(inputs::diagnostics(file, &frontmatter.tree));
    }
    let Ok(parts) = frontmatter::split(&text) else { return diagnostics };
    let first = text.len() - parts.body.len();
    let before = text.get(..first).unwrap_or_default().lines().count();
    if parts.body.trim().is_empty() {
        diagnostics.push(
            Diagnostic::new(
                file,
                Severity::Advice,
                LocalizedText::new("there are no instructions below the frontmatter", "文件头之后没有说明"),
                LocalizedText::new("write what to do, step by step", "请逐步写明怎么做"),
            )
            .at(before + 1),
        );
    }
    let lines = parts.body.lines().count();
    if lines > MAX_BODY_LINES {
        diagnostics.push(
            Diagnostic::new(
                file,
                Severity::Advice,
                LocalizedText::new(
                    format!("the instructions have {lines} lines, more than {MAX_BODY_LINES}"),
                    format!("说明有 {lines} 行，超过 {MAX_BODY_LINES}"),
                ),
                LocalizedText::new("move details into `references/`", "请把细节移到 `references/`"),
            )
            .at(before + MAX_BODY_LINES),
        );
    }
    for (at, line) in parts.body.lines().enumerate() {
        for link in links(line) {
            if skill_file::read(folder, link, u64::MAX - 1).is_err() {
                diagnostics.push(
                    Diagnostic::new(
                        file,
                        Severity::Error,
                        LocalizedText::new(
                            format!("`{link}` is not in the skill"),
                            format!("技能中没有 `{link}`"),
                        ),
                        LocalizedText::new("add the file, or correct the link", "请添加该文件，或改正链接"),
                    )
                    .at(before + at + 1),
                );
            }
        }
    }
    diagnostics
}

/// Reports ` #` in an unquoted description: YAML reads the rest as a comment, which is rarely intended.
fn comments(file: &Path, text: &str) -> Vec<Diagnostic> {
    let Ok(parts) = frontmatter::split(text) else { return Vec::new() };
    let lines = parts.yaml.lines().enumerate();
    let cut = lines.filter_map(|(at, line)| {
        let value = line.strip_prefix("description:")?.trim();
        let plain = !value.starts_with(['"', '\'', '|', '>']);
        let before_comment = value.split(" #").next()?.trim();
        (plain && value.contains(" #")).then_some((at, value, before_comment))
    });
    cut.map(|(at, value, before_comment)| {
        let quoted = crate::yaml_repair::quote_scalar(value);
        Diagnostic::new(
            file,
            Severity::Advice,
            LocalizedText::new(
                format!("what follows ` #` is a comment, so the description ends with `{before_comment}`"),
                format!("` #` 之后是注释，描述到 `{before_comment}` 为止"),
            ),
            LocalizedText::new(
                format!("write `description: {quoted}`"),
                format!("请写 `description: {quoted}`"),
            ),
        )
        .at(parts.before + at + 1)
    })
    .collect()
}

/// Reports an unedited template description.
fn placeholder_diagnostic(file: &Path, text: &str) -> Option<Diagnostic> {
    let parts = frontmatter::split(text).ok()?;
    let is_it =
        |line: &str| line.strip_prefix("description:").is_some_and(|value| is_placeholder(value.trim()));
    let at = parts.yaml.lines().position(is_it)?;
    let (problem, remedy) = (
        LocalizedText::new("the description is still that of every new skill", "描述仍是新建时的样子"),
        LocalizedText::new(
            "write what the skill does and when to use it: a model sees nothing else before it uses it",
            "请写明它做什么、何时使用：模型在使用之前只看得到这些",
        ),
    );
    Some(Diagnostic::new(file, Severity::Advice, problem, remedy).at(parts.before + at + 1))
}

/// Returns the link targets in a line of Markdown that refer to files of the skill.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once("](") {
        let Some((target, tail)) = after.split_once(')') else { break };
        rest = tail;
        let target = target.split(['#', ' ']).next().unwrap_or_default();
        let local =
            ["references/", "scripts/", "assets/", "./"].iter().any(|start| target.starts_with(start));
        if local && !target.ends_with('/') {
            found.push(target);
        }
    }
    found
}

/// Reports entries that are not regular files: symbolic links are not followed, and other types prevent approval.
fn no_files(folder: &Path) -> Vec<Diagnostic> {
    let (mut diagnostics, mut waiting, mut seen) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().filter(|entry| entry.file_name() != ".git").collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && seen < MAX_CHECKED_ENTRIES {
                waiting.push(entry.path());
            } else if kind.is_symlink() {
                let (problem, remedy) = (
                    LocalizedText::new("it is a link, and links are not followed", "这是链接，不会跟随"),
                    LocalizedText::new("put the file itself into the skill", "请把文件本身放入技能"),
                );
                diagnostics.push(Diagnostic::new(&entry.path(), Severity::Advice, problem, remedy));
            } else if !kind.is_file() && !kind.is_dir() {
                let (problem, remedy) = (
                    LocalizedText::new(
                        "it is no file, so the skill cannot be approved",
                        "这不是普通文件，技能无法批准",
                    ),
                    LocalizedText::new("remove it", "请删除"),
                );
                diagnostics.push(Diagnostic::new(&entry.path(), Severity::Error, problem, remedy));
            }
        }
    }
    diagnostics
}

/// Reports scripts that cannot be run.
fn scripts(skill: &Skill) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for tool in &skill.tools {
        let path = skill.folder.join(&tool.file);
        if tool.runner == Runner::Calling {
            diagnostics.extend(unusable_calling_script(&path));
        }
        if tool.runner != Runner::Script {
            continue;
        }
        let (severity, (problem, remedy)) = match interpreter::of(&path) {
            Ok(_) => continue,
            Err(ScriptError::NoInterpreter(problem, remedy) | ScriptError::Refused(problem, remedy)) => {
                (Severity::Error, (problem, remedy))
            }
            // The interpreter may exist on the machine where the skill is used.
            Err(ScriptError::Missing(problem, remedy)) => (Severity::Advice, (problem, remedy)),
        };
        diagnostics.push(Diagnostic::new(&path, severity, problem, remedy));
    }
    diagnostics
}

/// Reports a script that calls tools if it is too long or not UTF-8. Its syntax is checked when it runs.
fn unusable_calling_script(path: &Path) -> Option<Diagnostic> {
    let (problem, remedy) = match std::fs::read(path) {
        Ok(bytes) if bytes.len() as u64 > MAX_SCRIPT_BYTES => {
            let limit = MAX_SCRIPT_BYTES >> 10;
            (
                LocalizedText::new(
                    format!("the script is larger than {limit} KiB"),
                    format!("脚本超过 {limit} KiB"),
                ),
                LocalizedText::new("make it smaller", "请缩短"),
            )
        }
        Ok(bytes) if std::str::from_utf8(&bytes).is_err() => (
            LocalizedText::new("the script is not UTF-8", "脚本不是 UTF-8"),
            LocalizedText::new("save it as UTF-8", "请以 UTF-8 保存"),
        ),
        // A file that is missing is reported with its declaration.
        _ => return None,
    };
    Some(Diagnostic::new(path, Severity::Error, problem, remedy))
}
