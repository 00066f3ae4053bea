//! Looking a skill over for whoever writes it: every rule, with file, line and what to write instead.

use std::path::{Path, PathBuf};

use toolhub_core::lang::Text;

use crate::declared::Runner;
use crate::fault::{Fault, Weight};
use crate::file_set::is_executable;
use crate::frontmatter;
use crate::resource;
use crate::skill::{MANIFEST, Origin, Skill, manifest_in};

/// The most lines of instructions that a model should have to read at once.
const MOST_LINES: usize = 500;
/// The longest `SKILL.md`.
const LONGEST: u64 = 1 << 20;

/// What a look at a path came to.
#[derive(Debug)]
pub struct Looked {
    /// The `SKILL.md` that was looked at.
    pub file: PathBuf,
    /// The skill, where it can be used.
    pub skill: Option<Skill>,
    /// What is wrong, in the order of the lines.
    pub faults: Vec<Fault>,
}

impl Looked {
    /// Whether it breaks a rule.
    pub fn is_wrong(&self) -> bool {
        self.faults.iter().any(|fault| fault.weight > Weight::Advice)
    }
}

/// Looks over what is at a path: a skill's folder, its `SKILL.md`, or a folder of skills.
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

fn look(folder: &Path) -> Looked {
    // `.` has no name of its own, and a skill's folder must have one.
    let named = folder.file_name().is_none().then(|| folder.canonicalize().ok()).flatten();
    let folder = named.as_deref().unwrap_or(folder);
    let file = manifest_in(folder).unwrap_or_else(|| folder.join(MANIFEST));
    if !file.exists() {
        let fault = Fault::new(
            &file,
            Weight::Fatal,
            (
                Text::new("there is no `SKILL.md`", "没有 `SKILL.md`"),
                Text::new("make one with `toolhub skills new NAME`", "可用 `toolhub skills new 名称` 新建"),
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
    faults.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
    Looked { file, skill, faults }
}

/// What is wrong with the instructions.
fn body(folder: &Path, file: &Path) -> Vec<Fault> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = match resource::read(folder, &name, LONGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            let instead = Text::new("write the file itself, of at most 1 MiB", "请直接写文件，至多 1 MiB");
            return vec![Fault::new(file, Weight::Wrong, (error.text().clone(), instead))];
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let said = (
                Text::new("it is not UTF-8", "不是 UTF-8 编码"),
                Text::new("save it as UTF-8", "请存为 UTF-8"),
            );
            return vec![Fault::new(file, Weight::Wrong, said).at(line)];
        }
    };
    let mut faults = comments(file, &text);
    let Ok(parts) = frontmatter::split(&text) else { return faults };
    let first = text.len() - parts.body.len();
    let before = text.get(..first).unwrap_or_default().lines().count();
    if parts.body.trim().is_empty() {
        faults.push(
            Fault::new(
                file,
                Weight::Advice,
                (
                    Text::new("there are no instructions below the frontmatter", "文件头之后没有说明"),
                    Text::new("write what to do, step by step", "请逐步写明怎么做"),
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
                    Text::new(
                        format!("the instructions have {lines} lines, more than {MOST_LINES}"),
                        format!("说明有 {lines} 行，超过 {MOST_LINES}"),
                    ),
                    Text::new("move details into `references/`", "请把细节移到 `references/`"),
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
                            Text::new(
                                format!("`{link}` is not in the skill"),
                                format!("技能中没有 `{link}`"),
                            ),
                            Text::new("add the file, or mend the link", "请添加该文件，或改正链接"),
                        ),
                    )
                    .at(before + at + 1),
                );
            }
        }
    }
    faults
}

/// A blank and `#` in a description that is not quoted: what follows is a comment, which few mean.
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
        let quoted = crate::mend::quoted(value);
        Fault::new(
            file,
            Weight::Advice,
            (
                Text::new(
                    format!("what follows ` #` is a comment, so the description ends with `{kept}`"),
                    format!("` #` 之后是注释，描述到 `{kept}` 为止"),
                ),
                Text::new(format!("write `description: {quoted}`"), format!("请写 `description: {quoted}`")),
            ),
        )
        .at(parts.before + at + 1)
    })
    .collect()
}

/// The targets of links in a line of Markdown that mean files of the skill.
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

/// Scripts that could not be run.
fn scripts(skill: &Skill) -> Vec<Fault> {
    let mut faults = Vec::new();
    for tool in skill.tools.iter().filter(|tool| tool.runner == Runner::Script) {
        let path = skill.folder.join(&tool.file);
        let known = [".py", ".sh", ".js", ".mjs", ".cjs"].iter().any(|end| tool.file.ends_with(end));
        let runs = known || std::fs::metadata(&path).is_ok_and(|found| is_executable(&found));
        if !runs {
            faults.push(Fault::new(
                &path,
                Weight::Wrong,
                (
                    Text::new("it may not be run", "不可执行"),
                    Text::new(
                        format!("make it executable: `chmod +x {}`", tool.file),
                        format!("请加上执行权限：`chmod +x {}`", tool.file),
                    ),
                ),
            ));
        }
    }
    faults
}
