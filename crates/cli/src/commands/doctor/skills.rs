//! The checks of `toolhub doctor` for skills.

use toolhub::Hub;
use toolhub_core::Localize as _;
use toolhub_skills::fatal_diagnostics;

use crate::app::App;
use crate::commands::doctor::{CheckResult, DoctorReport};
use crate::commands::skills::shadowing_note;

pub(crate) fn check(app: &App, hub: &Hub, report: &mut DoctorReport<'_>) {
    let (lang, snapshot) = (app.lang(), hub.skills());
    let used = snapshot.used().count();
    if used > 0 {
        report.add(
            "skills",
            CheckResult::Pass,
            &lang.choose(format!("skills: {used}"), format!("技能：{used} 个")),
        );
    }
    let waiting = snapshot.skills.iter().filter(|known| !known.approval.may_be_used());
    let names: Vec<String> = waiting.map(|known| format!("`{}`", known.skill.name)).collect();
    if !names.is_empty() {
        let names = names.join(lang.choose(", ", "、"));
        let text = lang.choose(
            format!("skills that wait for your approval: {names}; see `toolhub skills show NAME`, then `toolhub skills approve NAME`"),
            format!("等待审批的技能：{names}；见 `toolhub skills show 名称`，再用 `toolhub skills approve 名称`"),
        );
        report.add("skills", CheckResult::Warning, &text);
    }
    for known in &snapshot.skills {
        if let Some(by) = &known.hidden_by {
            let (path, by) = (known.skill.file.display(), by.display());
            let text = lang.choose(
                format!("skill `{path}` is hidden by `{by}`"),
                format!("技能 `{path}` 被 `{by}` 覆盖"),
            );
            report.add("skills", CheckResult::Warning, &text);
        }
    }
    for known in snapshot.used() {
        for tool in hub.shadowed_by(known.tool_names.iter().map(String::as_str)) {
            let name = &known.skill.name;
            let text = lang.choose(
                format!("skill `{name}`: {}", shadowing_note(&tool, lang)),
                format!("技能 `{name}`：{}", shadowing_note(&tool, lang)),
            );
            report.add("skills", CheckResult::Warning, &text);
        }
    }
    for diagnostic in fatal_diagnostics(&snapshot) {
        report.add("skills", CheckResult::Warning, &diagnostic.localize(lang));
    }
    for note in &snapshot.notes {
        report.add("skills", CheckResult::Warning, &note.localize(lang));
    }
}
