//! The checks of `toolhub doctor` for the sandbox: the supported and missing protections of this machine, and how to enable them.

use toolhub::Hub;
use toolhub_core::Lang;
use toolhub_sandbox::{Isolation, MissingProtection, Protection, SandboxSupport, support};

use crate::app::App;
use crate::commands::doctor::{CheckResult, DoctorReport};

pub(crate) fn check(app: &App, hub: &Hub, report: &mut DoctorReport<'_>) {
    let snapshot = hub.skills();
    let allowed = hub.settings().skills.allow_missing.iter().map(|allowed| allowed.0).collect();
    let scripts = snapshot.skills.iter().any(|known| !known.skill.tools.is_empty());
    for (finding, text) in check_results(&support(), &Requirements { scripts, allowed }, app.lang()) {
        report.add("sandbox", finding, &text);
    }
}

/// How the sandbox is used by this configuration.
struct Requirements {
    /// Whether there are scripts that run in it.
    scripts: bool,
    /// Protections that may be missing for these scripts.
    allowed: Vec<Protection>,
}

fn check_results(
    support: &SandboxSupport,
    requirements: &Requirements,
    lang: Lang,
) -> Vec<(CheckResult, String)> {
    let present: Vec<&str> = support.present(Isolation::Auto).map(Protection::name).collect();
    let present = present.join(lang.choose(", ", "、"));
    let missing = support.missing(Isolation::Auto);
    let how = match (missing.is_empty(), support.chosen(Isolation::Auto)) {
        (true, Isolation::Bubblewrap) => lang.choose("complete, with Bubblewrap", "完整，使用 Bubblewrap"),
        (true, _) => lang.choose("complete, built in", "完整，使用内置方式"),
        (false, _) => lang.choose("not complete", "不完整"),
    };
    let mut all = vec![(
        CheckResult::Pass,
        lang.choose(format!("sandbox: {how} ({present})"), format!("沙箱：{how}（{present}）")),
    )];
    all.extend(missing.iter().map(|one| missing_result(one, requirements, lang)));
    if let Some(text) = improvement(support, lang) {
        all.push((CheckResult::Pass, text));
    }
    all
}

/// A missing protection. It is a warning if scripts would run in the sandbox.
fn missing_result(
    missing: &MissingProtection,
    requirements: &Requirements,
    lang: Lang,
) -> (CheckResult, String) {
    let (name, why) = (missing.protection, lang.choose(&missing.english, &missing.chinese));
    let head =
        lang.choose(format!("sandbox: `{name}` is missing ({why})"), format!("沙箱：缺少 `{name}`（{why}）"));
    if requirements.allowed.contains(&missing.protection) {
        let rest =
            lang.choose(", and you allowed scripts of skills to go without", "，已允许技能的脚本不要它");
        return (CheckResult::Warning, head + rest);
    }
    let rest = lang.choose(
        format!(", so scripts of skills and servers with `sandbox` are not run; if they may do without it: `[skills] allow_missing = [\"{name}\"]`, or `allow_missing` in the server's `sandbox`"),
        format!("，因此不运行技能的脚本和设有 `sandbox` 的服务器；如可不要它：`[skills] allow_missing = [\"{name}\"]`，或在服务器的 `sandbox` 中写 `allow_missing`"),
    );
    (if requirements.scripts { CheckResult::Warning } else { CheckResult::Pass }, head + &rest)
}

/// Suggestions that make the sandbox stricter or more compatible although no protection is missing.
fn improvement(support: &SandboxSupport, lang: Lang) -> Option<String> {
    if support.landlock == 0 && !support.mount_namespace && support.bubblewrap_program.is_none() {
        // Another operating system, or one without most protections, which has been reported already.
        return None;
    }
    if !support.mount_namespace {
        return Some(lang.choose(
            "sandbox: this user may not make user namespaces, so every change of modes, owners and times is refused and `cp -p` fails in it; an administrator can allow them (Ubuntu: an AppArmor profile for toolhub)",
            "沙箱：此用户不能建立用户命名空间，因此一切对权限、属主和时间的修改都被拒绝，`cp -p` 会失败；管理员可以允许（Ubuntu：为 toolhub 配置 AppArmor）",
        ).to_owned());
    }
    if support.bubblewrap_program.is_some() {
        return None;
    }
    let why = support.bubblewrap.iter().find(|one| one.protection == Protection::Bubblewrap)?;
    let why = lang.choose(&why.english, &why.chinese);
    Some(lang.choose(
        format!(
            "sandbox: it would be stricter with Bubblewrap, by which other files are not even seen ({why})"
        ),
        format!("沙箱：使用 Bubblewrap 会更严格，其他文件完全不可见（{why}）"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(protection: Protection) -> MissingProtection {
        MissingProtection { protection, english: "the kernel is old".into(), chinese: "内核过旧".into() }
    }

    fn system(builtin: Vec<MissingProtection>) -> SandboxSupport {
        SandboxSupport {
            builtin,
            bubblewrap: vec![missing(Protection::Bubblewrap)],
            auto: Isolation::Builtin,
            bubblewrap_program: None,
            landlock: 6,
            mount_namespace: true,
        }
    }

    fn lines(support: &SandboxSupport, requirements: &Requirements, lang: Lang) -> Vec<String> {
        let sign = |finding| if matches!(finding, CheckResult::Pass) { "✓" } else { "!" };
        check_results(support, requirements, lang)
            .into_iter()
            .map(|(finding, text)| format!("{} {text}", sign(finding)))
            .collect()
    }

    #[test]
    fn reports_available_and_missing_protections() {
        let scripts = Requirements { scripts: true, allowed: Vec::new() };
        let complete = lines(&system(Vec::new()), &scripts, Lang::En);
        assert!(complete[0].starts_with("✓ sandbox: complete, built in (process-group, "), "{complete:?}");
        assert!(complete[0].contains("landlock") && !complete[0].contains("bubblewrap"), "{complete:?}");
        assert!(complete[1].contains("stricter with Bubblewrap"), "{complete:?}");
        let old = system(vec![missing(Protection::Signals)]);
        let check_results = lines(&old, &scripts, Lang::En);
        assert!(
            check_results[0].contains("not complete") && !check_results[0].contains("signals"),
            "{check_results:?}"
        );
        assert!(
            check_results[1].starts_with("! sandbox: `signals` is missing (the kernel is old), so"),
            "{check_results:?}"
        );
        assert!(check_results[1].contains("`[skills] allow_missing = [\"signals\"]`"), "{check_results:?}");
        let chinese = lines(&old, &scripts, Lang::Zh);
        assert!(chinese[1].starts_with("! 沙箱：缺少 `signals`（内核过旧）"), "{chinese:?}");
        // Unused and explicitly allowed protections cause no further warning.
        let none = Requirements { scripts: false, allowed: Vec::new() };
        assert!(lines(&old, &none, Lang::En).iter().all(|line| line.starts_with('✓')));
        let allowed = Requirements { scripts: true, allowed: vec![Protection::Signals] };
        assert!(lines(&old, &allowed, Lang::En)[1].ends_with("you allowed scripts of skills to go without"));
        let bare = SandboxSupport { mount_namespace: false, ..system(Vec::new()) };
        assert!(lines(&bare, &scripts, Lang::Zh)[1].contains("用户命名空间"));
    }
}
