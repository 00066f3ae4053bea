//! Skills written for Claude Code and Codex, in two languages and with unusual frontmatter: discovered, parsed, shadowed by one
//! another, and validated; also with far too many of them.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolhub_core::{Lang, Localize as _};
use toolhub_skills::{
    ApprovalState, Severity, SkillOptions, SkillOrigin, SkillRegistry, SkillRoot, TemplateKind, create_skill,
    frontmatter_of, use_skill, validate,
};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/five")
}

fn root(folder: impl Into<PathBuf>, origin: SkillOrigin) -> SkillRoot {
    SkillRoot { folder: folder.into(), origin }
}

async fn registry(roots: Vec<SkillRoot>) -> Arc<SkillRegistry> {
    let registry = Arc::new(SkillRegistry::new(SkillOptions { roots, ..SkillOptions::default() }));
    registry.refresh().await;
    registry
}

/// Creates a skill in a folder of skills.
fn skill(folder: &Path, name: &str, text: &str) -> PathBuf {
    let own = folder.join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), text).unwrap();
    own
}

fn plain(name: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} does\n---\nHow {name} is done.\n")
}

#[tokio::test]
async fn loads_skills_of_other_agents() {
    let registry = registry(vec![root(fixtures(), SkillOrigin::User)]).await;
    let snapshot = registry.snapshot();
    assert!(snapshot.skipped.is_empty(), "{:?}", snapshot.skipped);
    let names: Vec<&str> = snapshot.skills.iter().map(|known| known.skill.name.as_str()).collect();
    assert_eq!(names, ["kubernetes-debug", "pdf-forms", "release-notes", "sql-review", "yue-bao"]);
    let messages = |name: &str| -> Vec<String> {
        let known = snapshot.named(name).unwrap();
        let diagnostics =
            known.skill.diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Advice);
        diagnostics
            .map(|diagnostic| format!("{}: {}", diagnostic.line.unwrap(), diagnostic.advice(Lang::En)))
            .collect()
    };
    assert_eq!(
        messages("pdf-forms"),
        [
            "3: this line is not valid YAML, and was read as it was probably meant; write `description: \"Fill, read and flatten PDF forms. Use when: the user has a PDF with fields, says \\\"fill this form\\\", or wants the values of one\"`"
        ]
    );
    assert_eq!(messages("release-notes"), Vec::<String>::new());
    assert_eq!(messages("sql-review"), Vec::<String>::new());
    assert_eq!(messages("yue-bao").len(), 3, "{:?}", messages("yue-bao"));
    assert_eq!(
        messages("kubernetes-debug"),
        ["2: the name is not that of its folder, `Kube_Debug`; rename the folder to `kubernetes-debug`"]
    );
    let described = |name: &str| snapshot.named(name).unwrap().skill.description.clone();
    assert!(described("pdf-forms").ends_with("says \"fill this form\", or wants the values of one"));
    assert_eq!(
        described("yue-bao"),
        "编写部门月报：汇总本月数据、对比上月、列出风险。触发词: 月报, 月度总结, 本月汇报"
    );
    assert!(
        described("sql-review")
            .starts_with("Reviews SQL queries and migrations for correctness, locking and speed. Use")
    );
    // Keys of other agents are kept.
    let sql = &snapshot.named("sql-review").unwrap().skill;
    assert_eq!(sql.frontmatter["hooks"]["PostToolUse"][0]["matcher"], "Write|Edit");
    assert_eq!(sql.frontmatter["disable-model-invocation"], false);
    assert_eq!(snapshot.named("yue-bao").unwrap().skill.frontmatter["metadata"]["审核"], "是");
    // Only skills that a strict YAML parser reads identically are served to other programs.
    let servable: Vec<&str> = snapshot
        .skills
        .iter()
        .filter(|known| known.skill.is_servable())
        .map(|known| known.skill.name.as_str())
        .collect();
    assert_eq!(servable, ["kubernetes-debug", "release-notes", "sql-review"]);
    for known in &snapshot.skills {
        let text = use_skill::instructions(&registry, &known.skill).unwrap();
        assert!(text.starts_with('#') && !text.contains("description:"), "{text}");
    }
}

#[tokio::test]
async fn reports_unusable_skills_and_loads_others() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path();
    skill(location, "good", &plain("good"));
    skill(location, "bad-yaml", "---\nname: a\ndescription: b\n- c\n---\n");
    skill(location, "no-description", "---\nname: no-description\n---\nText.\n");
    skill(location, "no-frontmatter", "# Only text\n");
    skill(location, "no-end", "---\nname: x\ndescription: y\n");
    let latin = skill(location, "latin", "");
    fs::write(latin.join("SKILL.md"), b"---\nname: latin\ndescription: caf\xe9\n---\n").unwrap();
    let late = skill(location, "late", "");
    fs::write(late.join("SKILL.md"), b"---\nname: late\ndescription: d\n---\none\ncaf\xe9\n").unwrap();
    let huge = skill(location, "huge", "");
    fs::write(
        huge.join("SKILL.md"),
        format!("---\nname: huge\ndescription: d\n---\n{}", "x\n".repeat(2 << 20)),
    )
    .unwrap();
    let head = skill(location, "endless-head", "");
    fs::write(head.join("SKILL.md"), format!("---\nname: a\n{}", "# x\n".repeat(1 << 20))).unwrap();
    fs::create_dir_all(location.join("folder/SKILL.md")).unwrap();
    fs::create_dir(location.join("linked")).unwrap();
    std::os::unix::fs::symlink("../good/SKILL.md", location.join("linked/SKILL.md")).unwrap();
    let registry = registry(vec![root(location, SkillOrigin::User)]).await;
    let snapshot = registry.snapshot();
    let names: Vec<&str> = snapshot.skills.iter().map(|known| known.skill.name.as_str()).collect();
    assert_eq!(names, ["good", "huge", "late"]);
    let mut messages: Vec<String> = snapshot
        .skipped
        .iter()
        .map(|skipped| {
            let diagnostic =
                skipped.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Fatal).unwrap();
            let location =
                diagnostic.file.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
            format!("{location}:{} {}", diagnostic.line.unwrap_or(0), diagnostic.problem.localize(Lang::En))
        })
        .collect();
    messages.sort();
    assert_eq!(messages.len(), 7, "{messages:#?}");
    assert!(messages[0].starts_with("bad-yaml:") && messages[0].contains("not valid YAML"), "{messages:#?}");
    assert_eq!(messages[1], "endless-head:1 the frontmatter does not end within 64 KiB");
    assert_eq!(messages[2], "latin:3 it is not UTF-8");
    assert_eq!(messages[3], "linked:0 it is a link, or no file");
    assert!(messages[4].starts_with("no-description:2 there is no `description`"), "{messages:#?}");
    assert_eq!(messages[5], "no-end:1 the frontmatter has no end");
    assert_eq!(messages[6], "no-frontmatter:1 the file does not begin with `---`");
    // Errors in the body are reported when the body is read.
    let text = |name: &str| use_skill::instructions(&registry, &snapshot.named(name).unwrap().skill);
    assert!(text("late").unwrap_err().localize(Lang::En).contains("is not UTF-8 from line 6 on"));
    assert!(text("huge").unwrap_err().localize(Lang::En).contains("larger than 1024 KiB"));
    assert_eq!(&*text("good").unwrap(), "How good is done.");
}

#[tokio::test]
async fn reads_instructions_lazily_and_after_changes() {
    let folder = tempfile::tempdir().unwrap();
    let own = skill(folder.path(), "one", &plain("one"));
    let registry = registry(vec![root(folder.path(), SkillOrigin::User)]).await;
    let skill = Arc::clone(&registry.snapshot().named("one").unwrap().skill);
    let first = use_skill::instructions(&registry, &skill).unwrap();
    assert!(Arc::ptr_eq(&first, &use_skill::instructions(&registry, &skill).unwrap()), "it was read twice");
    fs::write(own.join("SKILL.md"), plain("one") + "And more.\n").unwrap();
    assert!(use_skill::instructions(&registry, &skill).unwrap().ends_with("And more."));
}

#[tokio::test]
async fn approved_project_skills_take_precedence() {
    let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    skill(project.path(), "same", &plain("same"));
    skill(user.path(), "same", &plain("same"));
    let registry =
        registry(vec![root(project.path(), SkillOrigin::Project), root(user.path(), SkillOrigin::User)])
            .await;
    let state = || {
        let snapshot = registry.snapshot();
        let state: Vec<(&'static str, bool)> =
            snapshot.skills.iter().map(|known| (known.approval.name(), known.is_used())).collect();
        state
    };
    // An unapproved skill does not shadow others.
    assert_eq!(state(), [("unapproved", false), ("own", true)]);
    let theirs = Arc::clone(&registry.snapshot().skills[0].skill);
    let digest = registry.files_of(&theirs).unwrap().digest();
    registry.approvals().insert(theirs.key(), digest);
    registry.rebuild_snapshot().await;
    assert_eq!(state(), [("approved", true), ("own", false)]);
    assert_eq!(registry.snapshot().skills[1].hidden_by.as_deref(), Some(theirs.file.as_path()));
    // Any change invalidates the approval: a new file, a changed text, an executable bit.
    fs::write(theirs.folder.join("new.md"), "x").unwrap();
    registry.rebuild_snapshot().await;
    assert_eq!(state(), [("changed", false), ("own", true)]);
    fs::remove_file(theirs.folder.join("new.md")).unwrap();
    registry.rebuild_snapshot().await;
    assert_eq!(state(), [("approved", true), ("own", false)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&theirs.file, fs::Permissions::from_mode(0o755)).unwrap();
        registry.rebuild_snapshot().await;
        assert_eq!(state()[0], ("changed", false));
    }
}

#[tokio::test]
async fn skill_with_additional_grants_needs_approval_from_any_origin() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\nname: asks\ndescription: d\nmetadata:\n  toolhub:\n    grants: {network: true, read: [\".\"]}\n---\n";
    skill(folder.path(), "asks", text);
    let own = registry(vec![root(folder.path(), SkillOrigin::User)]).await;
    assert_eq!(own.snapshot().skills[0].approval, ApprovalState::Unapproved);
    // Grants in the config need no approval.
    let grants =
        toolhub_skills::SkillGrants { network: true, read: vec![".".to_owned()], ..Default::default() };
    let options = SkillOptions {
        roots: vec![root(folder.path(), SkillOrigin::User)],
        grants: [("asks".to_owned(), grants)].into(),
        ..SkillOptions::default()
    };
    let granted = Arc::new(SkillRegistry::new(options));
    granted.refresh().await;
    assert_eq!(granted.snapshot().skills[0].approval, ApprovalState::NotRequired);
}

#[tokio::test]
async fn bounds_skill_discovery() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path();
    for number in 0..3_000 {
        fs::create_dir(location.join(format!("empty-{number:05}"))).unwrap();
    }
    skill(location, "a-first", &plain("a-first"));
    skill(location, "zzz-last", &plain("zzz-last"));
    skill(&location.join("node_modules"), "package", &plain("package"));
    skill(&location.join(".git"), "hook", &plain("hook"));
    skill(&location.join("a/b/c"), "deep", &plain("deep"));
    skill(&location.join("a/b/c/d/e"), "deeper", &plain("deeper"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(location, location.join("a/loop")).unwrap();
        std::os::unix::fs::symlink(location.join("a-first"), location.join("a/again")).unwrap();
    }
    let registry = registry(vec![root(location, SkillOrigin::User)]).await;
    let snapshot = registry.snapshot();
    let names: Vec<&str> = snapshot.skills.iter().map(|known| known.skill.name.as_str()).collect();
    assert_eq!(names, ["a-first"], "those that lie behind too many folders are not found");
    assert!(
        snapshot.notes[0].localize(Lang::En).contains("has more than 2000 folders"),
        "{:?}",
        snapshot.notes
    );
    for number in 0..3_000 {
        fs::remove_dir(location.join(format!("empty-{number:05}"))).unwrap();
    }
    registry.refresh().await;
    let snapshot = registry.snapshot();
    let names: Vec<&str> = snapshot.skills.iter().map(|known| known.skill.name.as_str()).collect();
    assert_eq!(names, ["a-first", "zzz-last", "deep"]);
    assert!(snapshot.notes.is_empty());
}

#[tokio::test]
async fn offers_use_skill_only_with_skills() {
    let folder = tempfile::tempdir().unwrap();
    let none = registry(vec![root(folder.path(), SkillOrigin::User)]).await;
    assert!(none.tools().is_empty());
    let some = registry(vec![root(fixtures(), SkillOrigin::User)]).await;
    let tools = some.tools();
    let definition = &tools[0].definition;
    assert_eq!(definition.name().as_str(), "use_skill");
    let schema = definition.input_schema().value();
    assert_eq!(schema["properties"]["skill"]["enum"].as_array().unwrap().len(), 5);
    assert!(definition.description().contains("- yue-bao: 编写部门月报"));
    assert!(!definition.description().contains("CONCURRENTLY"), "instructions stay where they are");
}

#[test]
fn created_skill_validates() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind, lang) in [
        ("plain-one", TemplateKind::Instructions, Lang::En),
        ("with-tool", TemplateKind::WithTool, Lang::En),
        ("zhong-wen", TemplateKind::WithTool, Lang::Zh),
    ] {
        let made = create_skill(folder.path(), name, kind, lang).unwrap();
        let validation = validate(&made);
        // The only remaining advice is to write the description.
        assert_eq!(validation[0].diagnostics.len(), 1, "{validation:#?}");
        let diagnostic = &validation[0].diagnostics[0];
        assert_eq!((diagnostic.severity, diagnostic.line), (Severity::Advice, Some(3)), "{diagnostic:?}");
        assert!(diagnostic.localize(Lang::En).contains("the description is still that of every new skill"));
        assert_eq!(
            validation[0].skill.as_ref().unwrap().tools.len(),
            usize::from(kind == TemplateKind::WithTool)
        );
        let text = fs::read_to_string(made.join("SKILL.md")).unwrap();
        assert_eq!(frontmatter_of(&text).unwrap()["name"], name);
    }
    let existing_error =
        create_skill(folder.path(), "plain-one", TemplateKind::Instructions, Lang::En).unwrap_err();
    assert!(existing_error.0.localize(Lang::En).contains("exists already"));
    let error = create_skill(folder.path(), "My Skill", TemplateKind::Instructions, Lang::En).unwrap_err();
    assert!(error.0.localize(Lang::En).ends_with("such as `my-skill`"), "{error}");
    let up = create_skill(folder.path(), "../up", TemplateKind::Instructions, Lang::En).unwrap_err();
    assert!(up.0.localize(Lang::En).contains("is no name for a skill"));
}

#[test]
fn reports_every_invalid_line_of_a_skill() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\nname: Other\ndescription: Use it: now #1\ncompatibility: 7\nmetadata:\n  toolhub:\n    tools:\n      - name: run it\n        description: d\n        script: scripts/a.py\n      - name: b\n        description: d\n        script: ../b.py\n      - name: c\n        description: d\n        script: scripts/missing.py\n        hint: {}\n    grants: {disk: all}\n---\nSee [this](references/none.md).\n";
    let own = skill(folder.path(), "broken", text);
    let validation = validate(&own);
    let messages: Vec<String> = validation[0]
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let line = diagnostic.line.map_or("?".to_owned(), |line| line.to_string());
            format!("{line} {} {}", diagnostic.severity.name(), diagnostic.advice(Lang::En))
        })
        .collect();
    let expect = [
        "2 wrong `Other` is no name for a skill: 1 to 64 lower-case letters, digits and single hyphens; write `name: broken`",
        "3 wrong this line is not valid YAML, and was read as it was probably meant; write `description: \"Use it: now #1\"`",
        "3 advice what follows ` #` is a comment",
        "4 wrong `compatibility` must be a text; write `compatibility: \"…\"`",
        "8 wrong `run it` is no name for a tool; use up to 64 letters, digits, `_` and `-`",
        "13 wrong `../b.py` is not in `scripts/`; put it there, and write `script: scripts/NAME`",
        "16 wrong there is no `scripts/missing.py`; write the script, or mend its name",
        "17 wrong unknown key `hint`; there are `name`",
        "18 wrong unknown key `disk`; there are `read`, `write`, `network`, `environment`",
        "20 wrong `references/none.md` is not in the skill; add the file, or correct the link",
    ];
    for (messages, expect) in messages.iter().zip(expect) {
        assert!(messages.starts_with(expect), "{messages}\n{expect}");
    }
    assert_eq!(messages.len(), expect.len(), "{messages:#?}");
    assert!(validation[0].has_errors());
    for diagnostic in &validation[0].diagnostics {
        assert!(
            diagnostic.localize(Lang::Zh).contains('；') && !diagnostic.localize(Lang::Zh).contains("; "),
            "{}",
            diagnostic.localize(Lang::Zh)
        );
    }
}
