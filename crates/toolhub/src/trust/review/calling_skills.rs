//! Skills of a folder whose scripts call tools of the hub, for the person who decides about the folder.

use std::path::Path;

use toolhub_core::lang::LocalizedText;
use toolhub_skills::{CalledTools, Runner, Skill, SkillOrigin};

use crate::trust::files;

/// Bytes of a script that are searched for names of tools.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// Tools that are named of one skill.
const MAX_NAMED: usize = 20;

/// What the scripts of the skill in a folder call; `None` if they call no tools.
/// `sha256` returns the digest of a file that trust is bound to: other contents are not shown.
pub(super) fn calls_of(folder: &Path, sha256: &dyn Fn(&Path) -> Option<[u8; 32]>) -> Option<LocalizedText> {
    let skill = Skill::read(folder, SkillOrigin::Project).ok()?;
    let scripts: Vec<_> = skill.tools.iter().filter(|tool| tool.runner == Runner::Calling).collect();
    if scripts.is_empty() && !skill.requested.tools {
        return None;
    }
    let mut called = CalledTools::default();
    for tool in scripts {
        match text_of(&skill.folder.join(&tool.file), sha256) {
            Some(code) => {
                let found = CalledTools::in_script(&code);
                called.names.extend(found.names);
                called.has_others |= found.has_others;
            }
            None => called.has_others = true,
        }
    }
    let name = &skill.name;
    let mut names: Vec<String> =
        called.names.iter().take(MAX_NAMED).map(|tool| format!("`{tool}`")).collect();
    let has_more = called.names.len() > MAX_NAMED || called.has_others || names.is_empty();
    let (mut en, mut zh) = (names.clone(), std::mem::take(&mut names));
    if has_more {
        en.push("and tools that they choose while they run".to_owned());
        zh.push("以及运行时才确定的工具".to_owned());
    }
    Some(LocalizedText::new(
        format!(
            "scripts of the skill `{name}` call tools of the hub, once you approve the skill: {}",
            en.join(", ")
        ),
        format!("技能 `{name}` 的脚本会调用 hub 的工具（批准该技能后）：{}", zh.join("、")),
    ))
}

fn text_of(file: &Path, sha256: &dyn Fn(&Path) -> Option<[u8; 32]>) -> Option<String> {
    let known = sha256(file)?;
    let (bytes, state) = files::read(file).ok().flatten()?;
    String::from_utf8(bytes).ok().filter(|text| state.sha256 == known && text.len() <= MAX_SCRIPT_BYTES)
}
