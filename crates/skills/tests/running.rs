//! Scripts of skills, executed in the real sandbox: results, failures, timeouts and cancellation, and that nothing runs without
//! the consent of the owner.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toolhub_core::consent::ConsentScope;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::NullSink;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{
    BoxFuture, CallContext, CallId, Consent, Effect, Lang, Localize as _, RawJson, ToolError, ToolHost as _,
    ToolOutput,
};
use toolhub_skills::{
    RemoteSkill, SkillFetcher, SkillHost, SkillOptions, SkillOrigin, SkillRegistry, SkillRoot,
};

/// A source without remote skills.
struct NoFetch;

impl SkillFetcher for NoFetch {
    fn fetch<'a>(
        &'a self,
        _: &'a RemoteSkill,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<u8>, LocalizedText>> {
        Box::pin(async { Err(LocalizedText::new("nowhere", "无")) })
    }
}

struct TestSkill {
    folder: tempfile::TempDir,
    registry: Arc<SkillRegistry>,
    host: SkillHost,
}

impl TestSkill {
    /// A skill with these scripts; each is a tool named like its file.
    async fn new(scripts: &[(&str, &str)]) -> Self {
        Self::with(scripts, "", SkillOrigin::User).await
    }

    async fn with(scripts: &[(&str, &str)], grants: &str, origin: SkillOrigin) -> Self {
        Self::with_registry(scripts, grants, origin, SkillRegistry::new).await
    }

    async fn with_registry(
        scripts: &[(&str, &str)],
        grants: &str,
        origin: SkillOrigin,
        make: impl FnOnce(SkillOptions) -> SkillRegistry,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("bench");
        fs::create_dir_all(own.join("scripts")).unwrap();
        let mut text = "---\nname: bench\ndescription: For tests\nmetadata:\n  toolhub:\n".to_owned();
        if !grants.is_empty() {
            text += &format!("    grants: {grants}\n");
        }
        text += "    tools:\n";
        for (file, code) in scripts {
            fs::write(own.join("scripts").join(file), code).unwrap();
            let name = file.split('.').next().unwrap();
            text += &format!("      - {{name: {name}, description: d, script: scripts/{file}}}\n");
        }
        text += "---\nDo it.\n";
        fs::write(own.join("SKILL.md"), text).unwrap();
        let data = folder.path().join("data");
        let options = SkillOptions {
            roots: vec![SkillRoot { folder: folder.path().to_owned(), origin }],
            data: Some(data),
            ..SkillOptions::default()
        };
        let registry = Arc::new(make(options));
        registry.refresh().await;
        let host = SkillHost::new(Arc::clone(&registry), Arc::new(NoFetch));
        Self { folder, registry, host }
    }

    fn skill(&self) -> PathBuf {
        self.folder.path().join("bench")
    }

    async fn approve(&self) {
        let skill = Arc::clone(&self.registry.snapshot().skills[0].skill);
        let digest = self.registry.files_of(&skill).unwrap().digest();
        self.registry.approvals().insert(skill.key(), digest);
        self.registry.rebuild_snapshot().await;
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<ToolOutput, ToolError> {
        let tools = self.registry.tools();
        let tool = tools.iter().find(|one| one.name().as_str() == tool).expect("the tool is there");
        let context = CallContext {
            call: CallId::generate(),
            conversation: None,
            caller: None,
            events: Arc::new(NullSink),
            nested: None,
        };
        self.host.call(tool, &RawJson::parse(arguments).unwrap(), &context).await
    }

    async fn fails(&self, tool: &str) -> String {
        let error = self.call(tool, "{}").await.unwrap_err();
        assert!(!error.localize(Lang::Zh).is_empty());
        error.localize(Lang::En)
    }
}

/// Whether a process with this text in its command line exists.
fn runs(words: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).any(|line| line.contains(words))
}

async fn wait_until_gone(words: &str) {
    let started = Instant::now();
    while runs(words) {
        assert!(started.elapsed() < Duration::from_secs(20), "`{words}` still runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn scripts_receive_json_and_return_json_or_text() {
    let test_skill = TestSkill::new(&[
        ("double.py", "import json, sys\njson.dump({'n': json.load(sys.stdin)['n'] * 2}, sys.stdout)\n"),
        ("echo.sh", "cat\n"),
        ("where.sh", "echo \"$PWD|$SKILL_DIR\"; cat \"$SKILL_DIR/SKILL.md\" | head -2 | tail -1\n"),
        ("beside.py", "import helper\nprint(helper.WORD)\n"),
        ("bash.sh", "#!/bin/bash\nwords=(one two)\necho \"${words[1]} $BASH_VERSION\" | cut -c1-3\n"),
        ("python.sh", "#!/usr/bin/env python3\nprint(6 * 7)\n"),
    ])
    .await;
    fs::write(test_skill.skill().join("scripts/helper.py"), "WORD = '你好'\n").unwrap();
    let answer = test_skill.call("double", r#"{"n": 21}"#).await.unwrap();
    assert_eq!(answer.structured().unwrap().get(), r#"{"n": 42}"#);
    let big = r#"{"n":12345678901234567890123456789012345678901234567890}"#;
    assert_eq!(test_skill.call("echo", big).await.unwrap().structured().unwrap().get(), big);
    let here = test_skill.skill().canonicalize().unwrap().display().to_string();
    let text = test_skill.call("where", "{}").await.unwrap().texts().0.concat();
    assert_eq!(text, format!("{here}|{here}\nname: bench"));
    assert_eq!(test_skill.call("beside", "{}").await.unwrap().texts().0.concat(), "你好");
    // The shebang selects the interpreter, although the files are not executable.
    assert_eq!(test_skill.call("bash", "{}").await.unwrap().texts().0.concat(), "two");
    assert_eq!(test_skill.call("python", "{}").await.unwrap().texts().0.concat(), "42");
    assert!(!test_skill.skill().join("scripts/__pycache__").exists(), "nothing is written beside scripts");
}

#[tokio::test]
async fn failures_include_the_reason() {
    let test_skill = TestSkill::new(&[
        ("three.sh", "echo 'no paper' >&2; exit 3\n"),
        ("raises.py", "raise ValueError('too small')\n"),
        ("binary.sh", "printf '\\377\\376'\n"),
        ("strange", "x\n"),
        ("nobody.sh", "#!/usr/bin/env no-such-shell\n"),
    ])
    .await;
    assert_eq!(
        test_skill.fails("three").await,
        "the script failed: it ended with exit code 3\nlast stderr output:\n  no paper"
    );
    assert!(test_skill.fails("raises").await.ends_with("ValueError: too small"));
    assert!(test_skill.fails("binary").await.contains("is not UTF-8"));
    let error = test_skill.call("strange", "{}").await.unwrap_err();
    assert!(error.localize(Lang::En).contains("`strange` may not be run"), "{error}");
    assert_eq!(error.effect(), Effect::None);
    let nobody = test_skill.call("nobody", "{}").await.unwrap_err().localize(Lang::En);
    assert!(nobody.contains("names `no-such-shell`, which is not on this machine"), "{nobody}");
}

#[tokio::test]
async fn timeout_stops_script_and_its_children() {
    let test_skill = TestSkill::new(&[
        ("endless.sh", "yes endless-4711\n"),
        ("complains.sh", "yes complains-4711 >&2\n"),
        ("leaves.sh", "(setsid sleep 4711.25 &)\nsleep 4712.25 &\necho done\n"),
        ("waits.sh", "sleep 4713.25\n"),
    ])
    .await;
    assert!(test_skill.fails("endless").await.contains("answered more than 1 MiB and was stopped"));
    wait_until_gone("endless-4711").await;
    assert!(test_skill.fails("complains").await.contains("wrote to its standard error more than 16 MiB"));
    wait_until_gone("complains-4711").await;
    let answer = test_skill.call("leaves", "{}").await.unwrap();
    assert_eq!(answer.texts().0.concat(), "done");
    wait_until_gone("sleep 4711.25").await;
    wait_until_gone("sleep 4712.25").await;
    // Dropping the future cancels the script.
    let waited = tokio::time::timeout(Duration::from_secs(3), test_skill.call("waits", "{}")).await;
    assert!(waited.is_err());
    wait_until_gone("sleep 4713.25").await;
}

#[tokio::test]
async fn scripts_are_sandboxed_and_error_names_denied_access() {
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("secret"), "secret").unwrap();
    let path = secret.path().canonicalize().unwrap().join("secret");
    let displayed = path.display().to_string();
    let read = format!("print(open({displayed:?}).read())\n");
    let write = "open('SKILL.md', 'a').write('x')\n";
    let connect = "import socket\nsocket.create_connection(('127.0.0.1', 9), 2)\n";
    let scripts =
        [("read.py", read.as_str()), ("write.py", write), ("connect.py", connect), ("env.sh", "env\n")];
    let test_skill = TestSkill::new(&scripts).await;
    assert!(test_skill.fails("read").await.contains(&displayed), "{}", test_skill.fails("read").await);
    let before = fs::read(test_skill.skill().join("SKILL.md")).unwrap();
    test_skill.fails("write").await;
    assert_eq!(fs::read(test_skill.skill().join("SKILL.md")).unwrap(), before);
    assert!(test_skill.fails("connect").await.contains("kept it from the network"));
    let env = test_skill.call("env", "{}").await.unwrap().texts().0.concat();
    assert!(!env.contains("CARGO"), "{env}");
    // With a grant that the owner has approved, access is allowed.
    let parent = secret.path().canonicalize().unwrap().display().to_string();
    let granted = TestSkill::with(&scripts, &format!("{{read: [{parent:?}]}}"), SkillOrigin::User).await;
    assert_eq!(
        granted.registry.tools()[0].approval,
        ApprovalStatus::Quarantined,
        "{:?}",
        granted.registry.tools()
    );
    granted.approve().await;
    assert_eq!(granted.call("read", "{}").await.unwrap().texts().0.concat(), "secret");
}

#[tokio::test]
async fn runs_only_approved_files() {
    let test_skill =
        TestSkill::with(&[("say.sh", "echo one; cat \"$SKILL_DIR/data\"\n")], "", SkillOrigin::Project).await;
    fs::write(test_skill.skill().join("data"), "a").unwrap();
    assert!(test_skill.registry.tools().iter().all(|tool| tool.approval == ApprovalStatus::Quarantined));
    let error = test_skill.call("say", "{}").await.unwrap_err();
    assert!(error.localize(Lang::En).contains("is held back: not approved yet"), "{error}");
    assert_eq!(error.effect(), Effect::None);
    test_skill.approve().await;
    assert_eq!(test_skill.call("say", "{}").await.unwrap().texts().0.concat(), "one\na");
    // Without a refresh of the folders a changed skill is still not run.
    fs::write(test_skill.skill().join("data"), "b").unwrap();
    let error = test_skill.call("say", "{}").await.unwrap_err();
    assert!(error.localize(Lang::En).contains("changed since it was approved"), "{error}");
    // It is not read either.
    assert!(test_skill.call("use_skill", r#"{"skill": "bench"}"#).await.is_err());
    fs::write(test_skill.skill().join("data"), "a").unwrap();
    assert!(test_skill.call("say", "{}").await.is_ok());
    assert!(
        test_skill
            .call("use_skill", r#"{"skill": "bench"}"#)
            .await
            .unwrap()
            .texts()
            .0
            .concat()
            .starts_with("Do it.")
    );
    let data = test_skill.call("use_skill", r#"{"skill": "bench", "file": "./data"}"#).await.unwrap();
    assert_eq!(data.texts().0.concat(), "a");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/hostname", test_skill.skill().join("link")).unwrap();
        assert!(test_skill.call("say", "{}").await.is_err());
    }
}

#[tokio::test]
async fn constantly_changing_files_never_run_unapproved() {
    let test_skill = TestSkill::with(&[("say.sh", "echo good\n")], "", SkillOrigin::Project).await;
    test_skill.approve().await;
    let script = test_skill.skill().join("scripts/say.sh");
    let stop = Arc::new(AtomicBool::new(false));
    let (theirs, stopped) = (script.clone(), Arc::clone(&stop));
    let changing = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for code in ["echo evil\n", "echo good\n"] {
                let new = theirs.with_extension("new");
                fs::write(&new, code).unwrap();
                fs::rename(&new, &theirs).unwrap();
            }
        }
    });
    for _ in 0..30 {
        if let Ok(answer) = test_skill.call("say", "{}").await {
            assert_eq!(answer.texts().0.concat(), "good");
        }
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
}

const CLASSES: &str = r#"
from typing import Literal, Optional
raise_on_import = __name__ == "__never__"
open("imported", "w") if False else None

class Greeter:
    name = "greet_someone"
    description = "Greets somebody"
    read_only = True

    def execute(self, who: str, times: int = 1, tone: Literal["warm", "cool"] = "warm", tags: Optional[list[str]] = None):
        """Greets.

        Args:
            who: Whom to greet
        """
        print("noise on stdout")
        return {"said": f"Hello, {who}!" * times, "tone": tone}

class Broken:
    name = "break_down"
    description = "Fails"
    async def execute(self, params: dict):
        raise KeyError(params["what"])

class Strange:
    name = "be_strange"
    description = "Returns what is no JSON"
    def execute(self, what: str):
        return {"object": object(), "nan": float("nan"), "keys": {(1, 2): 3}, "path": __import__("pathlib").Path("/a")}[what]

class NoTool:
    name = "no_tool"
"#;

#[tokio::test]
async fn derives_tools_from_python_class_signatures() {
    let test_skill = TestSkill::new(&[("other.sh", "true\n")]).await;
    fs::write(test_skill.skill().join("scripts/classes.py"), CLASSES).unwrap();
    fs::write(test_skill.folder.path().join("single.py"), CLASSES.replace("greet_someone", "greet_again"))
        .unwrap();
    fs::write(test_skill.folder.path().join("broken.py"), "class A:\n  def execute(:\n").unwrap();
    test_skill.registry.refresh().await;
    let tools = test_skill.registry.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "use_skill",
            "other",
            "greet_someone",
            "break_down",
            "be_strange",
            "greet_again",
            "single__break_down",
            "single__be_strange"
        ]
    );
    let greet = &tools[2];
    let schema = greet.definition.input_schema().value();
    assert_eq!(
        schema["properties"]["who"],
        serde_json::json!({"type": "string", "description": "Whom to greet"})
    );
    assert_eq!(schema["properties"]["times"]["default"], 1);
    assert_eq!(schema["properties"]["tone"]["enum"], serde_json::json!(["warm", "cool"]));
    assert_eq!(schema["required"], serde_json::json!(["who"]));
    assert_eq!(greet.hints().read_only, Some(true));
    let answer = test_skill.call("greet_someone", r#"{"who": "阿达"}"#).await.unwrap();
    assert_eq!(answer.structured().unwrap().value()["said"], "Hello, 阿达!");
    assert_eq!(
        test_skill
            .call("greet_again", r#"{"who": "Eve", "times": 2}"#)
            .await
            .unwrap()
            .structured()
            .unwrap()
            .value()["said"],
        "Hello, Eve!Hello, Eve!"
    );
    let error = test_skill.call("break_down", r#"{"what": "paper"}"#).await.unwrap_err();
    assert_eq!(error.localize(Lang::En), "KeyError: 'paper'");
    for what in ["object", "nan", "keys"] {
        let error = test_skill.call("be_strange", &format!(r#"{{"what": "{what}"}}"#)).await.unwrap_err();
        let text = error.localize(Lang::En);
        assert!(
            text.starts_with("execute returned what is no JSON (") && text.contains("return a text"),
            "{text}"
        );
    }
    assert_eq!(test_skill.call("be_strange", r#"{"what": "path"}"#).await.unwrap().texts().0.concat(), "/a");
    let snapshot = test_skill.registry.snapshot();
    let broken: Vec<String> = snapshot
        .skipped
        .iter()
        .flat_map(|one| &one.diagnostics)
        .map(|diagnostic| diagnostic.localize(Lang::En))
        .collect();
    assert!(broken.len() == 1 && broken[0].contains("broken.py:2: Python cannot read it"), "{broken:?}");
    // A file whose syntax error precedes any tool is reported, too; a file without tools is ignored.
    fs::write(test_skill.folder.path().join("slip.py"), "\nclss Greeter:\n  pass\n").unwrap();
    fs::write(test_skill.folder.path().join("plain.py"), "X = 1\n").unwrap();
    test_skill.registry.refresh().await;
    let skipped: Vec<String> = test_skill
        .registry
        .snapshot()
        .skipped
        .iter()
        .map(|one| one.diagnostics[0].localize(Lang::En))
        .collect();
    assert!(skipped.len() == 2 && skipped[1].contains("slip.py:2: Python cannot read it"), "{skipped:?}");
    let inspect = async |name: &str| {
        let validation =
            toolhub_skills::validate_with_python(&test_skill.folder.path().join(name), None).await;
        let text: Vec<String> = validation
            .iter()
            .flat_map(|one| &one.diagnostics)
            .map(|diagnostic| diagnostic.localize(Lang::En))
            .collect();
        (validation.first().and_then(|one| one.skill.as_ref()).map_or(0, |skill| skill.tools.len()), text)
    };
    assert_eq!(inspect("single.py").await, (3, Vec::new()));
    assert_eq!(inspect("bench").await, (4, Vec::new()));
    assert!(inspect("slip.py").await.1[0].contains("slip.py:2: Python cannot read it"));
    assert!(inspect("plain.py").await.1[0].contains("no class in it is a tool"));
    fs::remove_file(test_skill.folder.path().join("slip.py")).unwrap();
    // The inspected tools are cached: a machine without Python still lists them.
    let options = SkillOptions {
        roots: vec![SkillRoot { folder: test_skill.folder.path().to_owned(), origin: SkillOrigin::User }],
        data: Some(test_skill.folder.path().join("data")),
        python: Some("no-such-python".to_owned()),
        ..SkillOptions::default()
    };
    let second_registry = Arc::new(SkillRegistry::new(options));
    second_registry.refresh().await;
    assert_eq!(second_registry.tools().len(), tools.len());
    let host = SkillHost::new(Arc::clone(&second_registry), Arc::new(NoFetch));
    let without = TestSkill { folder: tempfile::tempdir().unwrap(), registry: second_registry, host };
    let error = without.call("greet_someone", r#"{"who": "x"}"#).await.unwrap_err();
    assert!(
        error.localize(Lang::En).contains("there is no Python to run it with: `no-such-python`"),
        "{error}"
    );
}

#[tokio::test]
async fn bundled_examples_work() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
    let folder = tempfile::tempdir().unwrap();
    let options = SkillOptions {
        roots: vec![SkillRoot { folder: examples.clone(), origin: SkillOrigin::User }],
        data: Some(folder.path().to_owned()),
        ..SkillOptions::default()
    };
    let registry = Arc::new(SkillRegistry::new(options));
    registry.refresh().await;
    for validation in toolhub_skills::validate(&examples) {
        assert!(validation.diagnostics.is_empty(), "{validation:#?}");
    }
    let host = SkillHost::new(Arc::clone(&registry), Arc::new(NoFetch));
    let test_skill = TestSkill { folder, registry, host };
    let commit = test_skill.call("check_commit_message", r#"{"message": "更新了。\n正文"}"#).await.unwrap();
    let found = commit.structured().unwrap().value();
    assert_eq!(found["good"], false);
    assert_eq!(found["problems"].as_array().unwrap().len(), 2, "{found}");
    let good =
        test_skill.call("check_commit_message", r#"{"message": "读取空文件时不再崩溃"}"#).await.unwrap();
    assert_eq!(good.structured().unwrap().value()["good"], true);
    let csv = test_skill.registry.snapshot();
    let csv = csv.named("csv-summary").unwrap();
    assert!(!csv.is_used(), "it asks to read where the user works");
}

/// A shim of a version manager: logs each start and executes the Python of the system. Like pyenv, it would let a file in the
/// current folder select the version.
struct Shim {
    folder: tempfile::TempDir,
}

impl Shim {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        let text = format!(
            "#!/bin/sh\npwd >> {here}/started\nenv > {here}/variables\nexec /usr/bin/python3 \"$@\"\n"
        );
        let program = folder.path().join("python3");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn command(&self) -> String {
        self.folder.path().join("python3").display().to_string()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

const ADD: (&str, &str) = ("add.py", "print('{\"n\": 42}')\n");
const CLASS: &str = "class Greeter:\n    name = 'greet'\n    description = 'd'\n    def execute(self) -> str:\n        return 'hello'\n";

#[tokio::test]
async fn probes_python_without_variables_and_outside_the_current_folder() {
    let shim = Shim::new();
    let command = shim.command();
    let test_skill = TestSkill::with_registry(&[ADD], "", SkillOrigin::User, |options| {
        SkillRegistry::new(SkillOptions { python: Some(command), ..options })
    })
    .await;
    assert_eq!(test_skill.call("add", "{}").await.unwrap().structured().unwrap().get(), r#"{"n": 42}"#);
    assert_eq!(shim.read("started"), "/\n");
    // The shell adds some variables.
    let usual = ["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"];
    let variables = shim.read("variables");
    let names = variables.lines().filter_map(|line| Some(line.split_once('=')?.0));
    let others: Vec<&str> = names.filter(|name| !usual.contains(name)).collect();
    assert_eq!(others, [""; 0], "{variables}");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is something to hide");
}

#[tokio::test]
async fn rejects_python_from_current_directory() {
    for relative in ["./python3", "venv/bin/python3"] {
        let test_skill = TestSkill::with_registry(&[ADD], "", SkillOrigin::User, |options| {
            SkillRegistry::new(SkillOptions { python: Some(relative.to_owned()), ..options })
        })
        .await;
        let text = test_skill.fails("add").await;
        assert!(
            text.contains(&format!("`{relative}` is a relative path: write the absolute path")),
            "{text}"
        );
    }
}

/// Consent that is valid while the flag is true.
struct Files(Arc<AtomicBool>);

impl ConsentScope for Files {
    fn digest(&self) -> &str {
        "d"
    }

    fn verify(&self) -> Result<(), LocalizedText> {
        match self.0.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(LocalizedText::new("its files have changed", "文件已改动")),
        }
    }
}

#[tokio::test]
async fn starts_a_configured_python_only_with_consent() {
    let with = |python: Option<String>, consent: Consent| {
        move |options| SkillRegistry::new(SkillOptions { python, ..options }).with_python_consent(consent)
    };
    let shim = Shim::new();
    let make = with(Some(shim.command()), Consent::default());
    let test_skill = TestSkill::with_registry(&[ADD], "", SkillOrigin::User, make).await;
    let text = test_skill.fails("add").await;
    assert!(
        text.contains("was not started") && text.contains("is not trusted; run `toolhub trust`"),
        "{text}"
    );
    fs::write(test_skill.skill().join("scripts/tools.py"), CLASS).unwrap();
    test_skill.registry.refresh().await;
    let skill = Arc::clone(&test_skill.registry.snapshot().skills[0].skill);
    assert!(
        skill.diagnostics.iter().any(|diagnostic| diagnostic.localize(Lang::En).contains("not trusted")),
        "{skill:#?}"
    );
    toolhub_skills::validate_with_registry(&test_skill.skill(), &test_skill.registry).await;
    assert_eq!(shim.read("started"), "");

    // Consent is checked again before each start.
    let unchanged = Arc::new(AtomicBool::new(true));
    let consent = Consent::bound(Arc::new(Files(Arc::clone(&unchanged))));
    let test_skill =
        TestSkill::with_registry(&[ADD], "", SkillOrigin::User, with(Some(shim.command()), consent)).await;
    assert_eq!(test_skill.call("add", "{}").await.unwrap().structured().unwrap().get(), r#"{"n": 42}"#);
    assert!(!shim.read("started").is_empty());
    unchanged.store(false, Ordering::Relaxed);
    let text = test_skill.fails("add").await;
    assert!(text.contains("its files have changed"), "{text}");

    // The default Python of the owner needs no consent.
    let test_skill =
        TestSkill::with_registry(&[ADD], "", SkillOrigin::User, with(None, Consent::default())).await;
    assert!(test_skill.call("add", "{}").await.is_ok());
}

#[tokio::test]
async fn approval_does_not_cover_a_file_under_another_name() {
    let test_skill = TestSkill::with(&[("run.sh", "cat\n")], "", SkillOrigin::Project).await;
    let path = test_skill.skill();
    fs::write(path.join("a\nb"), "data").unwrap();
    test_skill.approve().await;
    assert!(test_skill.call("run", "{}").await.is_ok());
    fs::rename(path.join("a\nb"), path.join("a\\nb")).unwrap();
    let text = test_skill.fails("run").await;
    assert!(text.contains("held back"), "{text}");
}
