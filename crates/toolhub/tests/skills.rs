//! Skills as a user of the program meets them: found, shown, checked, approved and run, in both languages; and what a model
//! is told of them before it uses one.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolhub_testkit::{CommandLine, Ran};

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills/tests/fixtures/five")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

fn put(folder: &Path, name: &str, text: &str) -> PathBuf {
    let own = folder.join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), text).unwrap();
    own
}

/// The program in a project below the user's home.
fn in_project(cli: &CommandLine, args: &[&str]) -> Ran {
    let folder = cli.folder().join("project");
    fs::create_dir_all(&folder).unwrap();
    let output = cli.command(args).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn skills_are_listed_and_shown_in_both_languages() {
    let cli = cli();
    let none = cli.run(&["skills"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("no skills; make one with `toolhub skills new NAME`"), "{none:?}");
    copy(&fixtures(), &cli.folder().join(".claude/skills"));
    put(&cli.folder().join(".agents/skills"), "bad", "---\nname: bad\n---\n");
    let listed = cli.run(&["skills", "list"]);
    assert_eq!(listed.code, Some(0));
    assert_eq!(listed.stdout.lines().count(), 5, "{listed:?}");
    assert!(listed.stderr.contains("SKILL.md:2: there is no `description`"), "{listed:?}");
    assert!(listed.stderr.contains("the name is not that of its folder, `Kube_Debug`"), "{listed:?}");
    let chinese = cli.run(&["skills", "list", "--lang", "zh"]);
    assert!(
        chinese.stderr.contains("已跳过：") && chinese.stderr.contains("没有 `description`"),
        "{chinese:?}"
    );
    let json = cli.run(&["skills", "list", "--json"]).json();
    let states: Vec<&str> =
        json.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["used", "used", "used", "used", "used", "skipped"]);
    assert_eq!(json[5]["faults"][0]["line"], 2);
    let shown = cli.run(&["skills", "show", "yue-bao", "--lang", "zh"]);
    assert!(shown.stdout.contains("# 部门月报") && shown.stdout.contains("文件"), "{shown:?}");
    let file = cli.run(&["skills", "show", "pdf-forms", "--file", "references/drawing.md"]);
    assert!(file.stdout.starts_with("# Drawing onto a page"), "{file:?}");
    let out = cli.run(&["skills", "show", "pdf-forms", "--file", "../../../toolhub.toml"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("leads out of the skill by `..`"), "{out:?}");
    let slip = cli.run(&["skills", "show", "pdf-form"]);
    assert_eq!(slip.code, Some(2));
    assert!(slip.stderr.contains("did you mean `pdf-forms`?"), "{slip:?}");
    let doctor = cli.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("skills: 5") && doctor.stdout.contains("there is no `description`"),
        "{doctor:?}"
    );
    fs::write(cli.folder().join("toolhub.toml"), "[skills]\nenabled = false\n").unwrap();
    assert!(cli.run(&["skills"]).stderr.contains("skills are switched off"));
    fs::write(cli.folder().join("toolhub.toml"), "[skills]\nfolder = 1\n[skills.grants.a]\nnet = true\n")
        .unwrap();
    let slips = cli.run(&["skills"]).stderr;
    assert!(slips.contains("`folder` means nothing here; did you mean `folders`?"), "{slips}");
    assert!(slips.contains("`net` means nothing here"), "{slips}");
    fs::write(cli.folder().join("toolhub.toml"), "[skills]\nallow_missing = [\"firewall\"]\n").unwrap();
    let wrong = cli.run(&["skills"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("no protection is called `firewall`"), "{wrong:?}");
}

#[test]
fn a_broken_skill_is_told_by_file_and_line_and_a_new_one_is_good() {
    let cli = cli();
    let made = cli.run(&["skills", "new", "word-count", "--tool"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let good = cli.run(&["skills", "validate", "skills/word-count"]);
    assert_eq!(
        (good.code, good.stdout.as_str()),
        (Some(0), "✓ skills/word-count/SKILL.md: good\n"),
        "{good:?}"
    );
    let ran = cli.run(&["skills", "run", "word-count", "text=one two three"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"words\": 3, \"characters\": 13}\n"), "{ran:?}");
    let called = cli.run(&["call", "word_count", "text=one", "--json"]).json();
    assert_eq!(called["_meta"]["source"], "skill");
    put(cli.folder(), "broken", "---\nname: Broken\ndescription: Use it: now\n---\n");
    let broken = cli.run(&["skills", "validate", "broken"]);
    assert_eq!(broken.code, Some(1));
    assert!(
        broken.stdout.contains("✗ broken/SKILL.md:3: this line is not valid YAML, and was read as it was probably meant; write `description: \"Use it: now\"`"),
        "{broken:?}"
    );
    assert!(broken.stdout.contains("✗ broken/SKILL.md:2: `Broken` is no name for a skill"), "{broken:?}");
    let chinese = cli.run(&["skills", "validate", "broken", "--lang", "zh"]).stdout;
    assert!(chinese.contains("请写成 `description: \"Use it: now\"`"), "{chinese}");
    let json = cli.run(&["skills", "validate", "broken", "--json"]).json();
    assert_eq!((json[0]["valid"].as_bool(), json[0]["faults"][0]["line"].as_u64()), (Some(false), Some(2)));
    assert_eq!(cli.run(&["skills", "validate", "nowhere"]).code, Some(2));
    assert_eq!(cli.run(&["skills", "new", "word-count"]).code, Some(2));
    assert_eq!(cli.run(&["skills", "new", "No Name"]).code, Some(2));
}

#[test]
fn a_skill_of_a_project_waits_for_its_owner() {
    let cli = cli();
    let skills = cli.folder().join("project/.claude/skills");
    copy(&examples().join("csv-summary"), &skills.join("csv-summary"));
    fs::write(cli.folder().join("project/people.csv"), "name,age\nAda,36\nEve,40\n").unwrap();
    let call = ["call", "summarise_csv", "path=people.csv"];
    let refused = in_project(&cli, &call);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("then `toolhub skills approve summarise_csv`"), "{refused:?}");
    let prompt = in_project(&cli, &["prompt"]).stdout;
    assert!(!prompt.contains("csv-summary") && !prompt.contains("summarise_csv"), "{prompt}");
    let tools = in_project(&cli, &["tools", "search", "summary of a csv file", "--json"]).stdout;
    assert!(!tools.contains("summarise_csv"), "{tools}");
    let approved = in_project(&cli, &["skills", "approve", "csv-summary"]);
    assert_eq!(approved.code, Some(0));
    assert!(approved.stdout.contains("its scripts may: read `.`"), "{approved:?}");
    let answer = in_project(&cli, &call);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let told: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((told["rows"].as_u64(), told["columns"][1]["mean"].as_f64()), (Some(2), Some(38.0)));
    assert!(in_project(&cli, &["prompt"]).stdout.contains("- csv-summary: Summarises CSV files"));
    // Only there: the same skill elsewhere is another one.
    copy(&skills, &cli.folder().join("other/.claude/skills"));
    let elsewhere = cli.command(&call).current_dir(cli.folder().join("other")).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(1));
    fs::write(skills.join("csv-summary/references/more.md"), "more").unwrap();
    let changed = in_project(&cli, &call);
    assert_eq!(changed.code, Some(1));
    let shown = in_project(&cli, &["skills", "show", "csv-summary", "--lang", "zh"]).stdout;
    assert!(shown.contains("批准后新增") && shown.contains("references/more.md"), "{shown}");
    fs::remove_file(skills.join("csv-summary/references/more.md")).unwrap();
    assert_eq!(in_project(&cli, &call).code, Some(0));
    assert_eq!(in_project(&cli, &["skills", "approve", "csv-summary", "--revoke"]).code, Some(0));
    assert_eq!(in_project(&cli, &call).code, Some(1));
    let again = in_project(&cli, &["skills", "approve", "csv-summary", "--revoke"]);
    assert_eq!(again.code, Some(1));
}

/// A model is told the names and descriptions of five skills, and reads the rest only of the one it uses.
#[test]
fn a_prompt_holds_names_and_descriptions_alone() {
    let cli = cli();
    let tokens = |cli: &CommandLine| cli.run(&["prompt", "--json"]).json()["tokens"].as_u64().unwrap();
    let before = tokens(&cli);
    copy(&fixtures(), &cli.folder().join(".claude/skills"));
    let with = cli.run(&["prompt", "--json"]).json();
    let system = with["system"].as_str().unwrap();
    for words in ["- sql-review: Reviews SQL queries", "- yue-bao: 编写部门月报", "**use_skill**"] {
        assert!(system.contains(words), "{words} in {system}");
    }
    for instructions in
        ["CREATE INDEX CONCURRENTLY", "口径", "CrashLoopBackOff, ImagePull", "flattened form cannot"]
    {
        assert_eq!(system.contains(instructions), instructions.starts_with("Crash"), "{instructions}");
    }
    let cost = with["tokens"].as_u64().unwrap() - before;
    let whole: usize = fs::read_dir(fixtures())
        .unwrap()
        .flatten()
        .map(|entry| {
            toolhub_agent::prompt::tokens(&fs::read_to_string(entry.path().join("SKILL.md")).unwrap())
        })
        .sum();
    // Five descriptions and the tool; the instructions would be many times that.
    assert!(cost < 700, "{cost} tokens for five skills");
    assert!(whole as u64 > 4 * cost, "{whole} tokens in all, {cost} in the prompt");
    let used = cli.run(&["call", "use_skill", "skill=sql-review"]).stdout;
    assert!(used.contains("CREATE INDEX CONCURRENTLY") && !used.contains("argument-hint"), "{used}");
    // A model is given all of it, where other results are cut.
    let brief = cli.run(&["call", "use_skill", "skill=sql-review", "--brief"]).stdout;
    assert_eq!(brief, used);
    let planning = cli.run(&["prompt", "--plan"]).stdout;
    assert!(!planning.contains("use_skill"), "{planning}");
    let chinese = cli.run(&["prompt", "--lang", "zh"]).stdout;
    assert!(chinese.contains("技能是针对某类工作的说明"), "{chinese}");
}

#[test]
fn tools_explain_and_search_know_skills() {
    let cli = cli();
    copy(&examples().join("commit-message-zh"), &cli.folder().join("skills/commit-message-zh"));
    let tools = cli.run(&["tools", "--source", "skill", "--json"]).json();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["use_skill", "check_commit_message"]);
    let explained = cli.run(&["explain", "check_commit_message", "--json"]).json();
    assert_eq!(explained["candidates"][0]["source"], "skill");
    let found = cli.run(&["tools", "search", "检查提交说明", "--json"]).json();
    assert_eq!(found[0]["name"], "check_commit_message", "{found}");
    let asked = cli.run(&["skills", "run", "commit-message-zh", "nothing"]);
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("it has `check_commit_message`"), "{asked:?}");
}
