//! Validates a skill for its author: checks every rule and reports file, line and correction.

use std::path::{Path, PathBuf};

use toolhub_core::lang::LocalizedText;

use crate::book::SkillRegistry;
use crate::book::{python_scripts, single};
use crate::declared::{Runner, SkillTool};
use crate::fault::{Fault, Weight};
use crate::frontmatter;
use crate::inputs;
use crate::interpreter::{self, NotRun};
use crate::python::{Look, Python};
use crate::resource;
use crate::skill::{MANIFEST, Origin, Skill, manifest_in};
use crate::template::is_unwritten;

/// Recommended maximum number of lines of instructions.
const MOST_LINES: usize = 500;
/// Maximum size of a `SKILL.md`, in bytes.
const LONGEST: u64 = 1 << 20;

/// Maximum number of files and folders checked per skill.
const MOST_ENTRIES: usize = 5_000;

/// The result of validating a path.
#[derive(Debug)]
pub struct Looked {
    /// The validated `SKILL.md` or single Python file.
    pub file: PathBuf,
    /// The skill, if usable.
    pub skill: Option<Skill>,
    /// The faults, in order of lines.
    pub faults: Vec<Fault>,
}

impl Looked {
    /// Whether a rule is violated.
    pub fn is_wrong(&self) -> bool {
        self.faults.iter().any(|fault| fault.weight > Weight::Advice)
    }
}

/// Validates a path: a skill's folder, its `SKILL.md`, or a folder of skills.
pub fn validate(path: &Path) -> Vec<Looked> {
    let folder = match path.is_file() {
        true => path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        false => path,
    };
    if path.is_file() || manifest_in(folder).is_some() {
        return vec![look(folder)];
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    inside.retain(|one| manifest_in(one).is_some());
    inside.sort();
    match inside.is_empty() {
        true => vec![look(folder)],
        false => inside.iter().map(|folder| look(folder)).collect(),
    }
}

/// As [`validate`], and inspects Python files, including single ones. `python` is the user's own choice.
pub async fn validate_with_python(path: &Path, python: Option<&str>) -> Vec<Looked> {
    validate_by(&Python::new(python, None, None), path).await
}

/// As [`validate_with_python`], with the interpreter of a registry, if its consent permits starting it.
pub async fn validate_with_book(path: &Path, book: &SkillRegistry) -> Vec<Looked> {
    validate_by(&book.python, path).await
}

async fn validate_by(python: &Python, path: &Path) -> Vec<Looked> {
    let is_python = |file: &Path| file.is_file() && file.extension().is_some_and(|end| end == "py");
    if is_python(path) && !inside_skill(path) {
        return vec![look_at_single(python, path).await];
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
    all.retain(|looked| single.is_empty() || looked.file.exists());
    for looked in &mut all {
        look_at_scripts(python, looked).await;
    }
    for file in &single {
        let looked = look_at_single(python, file).await;
        // A file without tools may serve another purpose.
        if looked.skill.is_some() || looked.faults.iter().any(|fault| fault.line.is_some()) {
            all.push(looked);
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

async fn look_at_single(python: &Python, file: &Path) -> Looked {
    let found = python.classes(&[(file.to_owned(), Look::Every)]).await.remove(file).unwrap_or_default();
    let mut faults = found.faults;
    if found.tools.is_empty() {
        if faults.is_empty() {
            let said = (
                LocalizedText::new("no class in it is a tool", "其中没有可用作工具的类"),
                LocalizedText::new(
                    "write a class with `name`, `description` and a method `execute`",
                    "请写一个含有 `name`、`description` 和 `execute` 方法的类",
                ),
            );
            faults.push(Fault::new(file, Weight::Fatal, said));
        }
        return Looked { file: file.to_owned(), skill: None, faults };
    }
    faults.extend(schemas_of(file, &found.tools));
    Looked { file: file.to_owned(), skill: Some(single(file, Origin::User, found.tools)), faults }
}

/// Adds the tools defined by the Python files of a skill, and the faults of those files.
async fn look_at_scripts(python: &Python, looked: &mut Looked) {
    let Some(skill) = &mut looked.skill else { return };
    let declared: Vec<&SkillTool> = skill.tools.iter().filter(|tool| tool.file.ends_with(".py")).collect();
    let mut names: Vec<String> = declared.into_iter().map(|tool| tool.file.clone()).collect();
    let classes = python_scripts(skill);
    names.extend(classes.iter().cloned());
    let files: Vec<(PathBuf, Look)> =
        names.iter().map(|name| (skill.folder.join(name), Look::Every)).collect();
    let mut found = python.classes(&files).await;
    for name in names {
        let file = skill.folder.join(&name);
        let Some(found) = found.remove(&file) else { continue };
        looked.faults.extend(found.faults);
        if classes.contains(&name) {
            looked.faults.extend(schemas_of(&file, &found.tools));
            skill.tools.extend(found.tools.into_iter().map(|tool| SkillTool { file: name.clone(), ..tool }));
        }
    }
}

/// Returns the faults of schemas that classes define explicitly.
fn schemas_of(file: &Path, tools: &[SkillTool]) -> Vec<Fault> {
    let broken = tools.iter().filter_map(|tool| {
        let (name, why) = (&tool.name, inputs::is_no_schema(&tool.schema.value())?);
        let what = LocalizedText::new(
            format!("the `input_schema` of the tool `{name}` is no JSON Schema: {why}"),
            format!("工具 `{name}` 的 `input_schema` 不是 JSON Schema：{why}"),
        );
        let instead =
            LocalizedText::new("mend it, or leave it to the signature", "请改正，或删去而由签名推断");
        Some(Fault::new(file, Weight::Wrong, (what, instead)))
    });
    broken.collect()
}

fn look(folder: &Path) -> Looked {
    // `.` has no file name, which is needed to check the name of the skill.
    let named = folder.file_name().is_none().then(|| folder.canonicalize().ok()).flatten();
    let folder = named.as_deref().unwrap_or(folder);
    let file = manifest_in(folder).unwrap_or_else(|| folder.join(MANIFEST));
    if !file.exists() {
        let fault = Fault::new(
            &file,
            Weight::Fatal,
            (
                LocalizedText::new("there is no `SKILL.md`", "没有 `SKILL.md`"),
                LocalizedText::new(
                    "make one with `toolhub skills new NAME`",
                    "可用 `toolhub skills new 名称` 新建",
                ),
            ),
        );
        return Looked { file, skill: None, faults: vec![fault] };
    }
    let (skill, mut faults) = match Skill::read(folder, Origin::User) {
        Ok(skill) => {
            let faults = skill.faults.clone();
            (Some(skill), faults)
        }
        Err(faults) => (None, faults),
    };
    faults.extend(body(folder, &file));
    if let Some(skill) = &skill {
        faults.extend(scripts(skill));
    }
    faults.extend(no_files(folder));
    faults.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
    Looked { file, skill, faults }
}

/// Returns the faults of the instructions.
fn body(folder: &Path, file: &Path) -> Vec<Fault> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = match resource::read(folder, &name, LONGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            let instead =
                LocalizedText::new("write the file itself, of at most 1 MiB", "请直接写文件，至多 1 MiB");
            return vec![Fault::new(file, Weight::Wrong, (error.text().clone(), instead))];
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let said = (
                LocalizedText::new("it is not UTF-8", "不是 UTF-8 编码"),
                LocalizedText::new("save it as UTF-8", "请存为 UTF-8"),
            );
            return vec![Fault::new(file, Weight::Wrong, said).at(line)];
        }
    };
    let mut faults = comments(file, &text);
    faults.extend(unwritten(file, &text));
    if let Ok(front) = frontmatter::read(file, &text) {
        faults.extend(inputs::faults(file, &front.tree));
    }
    let Ok(parts) = frontmatter::split(&text) else { return faults };
    let first = text.len() - parts.body.len();
    let before = text.get(..first).unwrap_or_default().lines().count();
    if parts.body.trim().is_empty() {
        faults.push(
            Fault::new(
                file,
                Weight::Advice,
                (
                    LocalizedText::new(
                        "there are no instructions below the frontmatter",
                        "文件头之后没有说明",
                    ),
                    LocalizedText::new("write what to do, step by step", "请逐步写明怎么做"),
                ),
            )
            .at(before + 1),
        );
    }
    let lines = parts.body.lines().count();
    if lines > MOST_LINES {
        faults.push(
            Fault::new(
                file,
                Weight::Advice,
                (
                    LocalizedText::new(
                        format!("the instructions have {lines} lines, more than {MOST_LINES}"),
                        format!("说明有 {lines} 行，超过 {MOST_LINES}"),
                    ),
                    LocalizedText::new("move details into `references/`", "请把细节移到 `references/`"),
                ),
            )
            .at(before + MOST_LINES),
        );
    }
    for (at, line) in parts.body.lines().enumerate() {
        for link in links(line) {
            if resource::read(folder, link, u64::MAX - 1).is_err() {
                faults.push(
                    Fault::new(
                        file,
                        Weight::Wrong,
                        (
                            LocalizedText::new(
                                format!("`{link}` is not in the skill"),
                                format!("技能中没有 `{link}`"),
                            ),
                            LocalizedText::new("add the file, or mend the link", "请添加该文件，或改正链接"),
                        ),
                    )
                    .at(before + at + 1),
                );
            }
        }
    }
    faults
}

/// Reports ` #` in an unquoted description: YAML reads the rest as a comment, which is rarely intended.
fn comments(file: &Path, text: &str) -> Vec<Fault> {
    let Ok(parts) = frontmatter::split(text) else { return Vec::new() };
    let lines = parts.yaml.lines().enumerate();
    let cut = lines.filter_map(|(at, line)| {
        let value = line.strip_prefix("description:")?.trim();
        let plain = !value.starts_with(['"', '\'', '|', '>']);
        let kept = value.split(" #").next()?.trim();
        (plain && value.contains(" #")).then_some((at, value, kept))
    });
    cut.map(|(at, value, kept)| {
        let quoted = crate::yaml_repair::quoted(value);
        Fault::new(
            file,
            Weight::Advice,
            (
                LocalizedText::new(
                    format!("what follows ` #` is a comment, so the description ends with `{kept}`"),
                    format!("` #` 之后是注释，描述到 `{kept}` 为止"),
                ),
                LocalizedText::new(
                    format!("write `description: {quoted}`"),
                    format!("请写 `description: {quoted}`"),
                ),
            ),
        )
        .at(parts.before + at + 1)
    })
    .collect()
}

/// Reports an unedited template description.
fn unwritten(file: &Path, text: &str) -> Option<Fault> {
    let parts = frontmatter::split(text).ok()?;
    let is_it =
        |line: &str| line.strip_prefix("description:").is_some_and(|value| is_unwritten(value.trim()));
    let at = parts.yaml.lines().position(is_it)?;
    let said = (
        LocalizedText::new("the description is still that of every new skill", "描述仍是新建时的样子"),
        LocalizedText::new(
            "write what the skill does and when to use it: a model sees nothing else before it uses it",
            "请写明它做什么、何时使用：模型在使用之前只看得到这些",
        ),
    );
    Some(Fault::new(file, Weight::Advice, said).at(parts.before + at + 1))
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
fn no_files(folder: &Path) -> Vec<Fault> {
    let (mut faults, mut waiting, mut seen) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().filter(|entry| entry.file_name() != ".git").collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && seen < MOST_ENTRIES {
                waiting.push(entry.path());
            } else if kind.is_symlink() {
                let said = (
                    LocalizedText::new("it is a link, and links are not followed", "这是链接，不会跟随"),
                    LocalizedText::new("put the file itself into the skill", "请把文件本身放入技能"),
                );
                faults.push(Fault::new(&entry.path(), Weight::Advice, said));
            } else if !kind.is_file() && !kind.is_dir() {
                let said = (
                    LocalizedText::new(
                        "it is no file, so the skill cannot be approved",
                        "这不是普通文件，技能无法批准",
                    ),
                    LocalizedText::new("remove it", "请删除"),
                );
                faults.push(Fault::new(&entry.path(), Weight::Wrong, said));
            }
        }
    }
    faults
}

/// Reports scripts that cannot be run.
fn scripts(skill: &Skill) -> Vec<Fault> {
    let mut faults = Vec::new();
    for tool in skill.tools.iter().filter(|tool| tool.runner == Runner::Script) {
        let path = skill.folder.join(&tool.file);
        let (weight, said) = match interpreter::of(&path) {
            Ok(_) => continue,
            Err(NotRun::Nobody(what, instead) | NotRun::Refused(what, instead)) => {
                (Weight::Wrong, (what, instead))
            }
            // The interpreter may exist on the machine where the skill is used.
            Err(NotRun::Missing(what, instead)) => (Weight::Advice, (what, instead)),
        };
        faults.push(Fault::new(&path, weight, said));
    }
    faults
}
