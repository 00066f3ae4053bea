//! Scripts of skills (`runtime: toolhub`) for clients of the gateway: they reach the tools of their client, and nothing else.

use std::path::Path;

use serde_json::{Value, json};

use crate::identity_provider::await_history;
use crate::raw_client::{Era, RawClient};
use crate::scripts::{called, decide};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key, sheets};

const ANN: NewKey = NewKey { name: "ann", options: &[] };

/// Callers read, write after an approval, and do not delete.
const RULES: &str = r#"
[[auth.rules]]
name = "callers read"
effect = "allow"
roles = ["caller"]
tools = ["read_sheet", "copy_rows", "calculate"]
[[auth.rules]]
name = "writes are approved"
effect = "ask"
roles = ["caller"]
tools = ["write_sheet"]
"#;

fn put_script(folder: &Path, code: &str) {
    std::fs::write(folder.join(".agents/skills/rows/scripts/copy.js"), code).unwrap();
}

/// A gateway with a skill whose tool `copy_rows` runs this script, and the key of a caller.
fn serving(settings: &str, code: &str) -> (Serving, std::path::PathBuf, String) {
    let mut cli = hub(&format!("{settings}{RULES}"));
    let folder = cli.folder().join(".agents/skills/rows");
    std::fs::create_dir_all(folder.join("scripts")).unwrap();
    let text = "---\nname: rows\ndescription: Copies rows. Use it for copies.\nmetadata:\n  toolhub:\n    tools:\n      - name: copy_rows\n        description: Copies rows\n        script: scripts/copy.js\n        runtime: toolhub\n        input: {properties: {row: {type: integer}}, required: [row]}\n---\nText\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    put_script(cli.folder(), code);
    assert_eq!(cli.run(&["skills", "approve", "rows", "--yes"]).code, Some(0));
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let key = new_key(&cli, &ANN);
    (Serving::start(cli), journal, key)
}

const COPY: &str = "const names = Object.keys(tools).concat(Object.keys(tools.s)).sort();
let deleted = 'no';
try { await tools['delete_sheet']({ row: 1 }); deleted = 'yes' } catch (e) { deleted = e.kind }
const row = JSON.parse(await tools.s.read_sheet({ row: input.row })).row;
let written;
try { await tools.s.write_sheet({ row }); written = 'yes' } catch (e) { written = e.message }
return { names, deleted, row, written };
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_apply_to_each_call_of_a_skill_script() {
    for settings in ["[profiles.default]\nexpose = \"all\"\n", "[profiles.default]\nexpose = \"code\"\n"] {
        let (serving, journal, key) = serving(settings, COPY);
        let mut ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
        ann.declare(json!({}));
        let is_code = settings.contains("code");
        let listed = ann.tools().await;
        assert_eq!(listed.contains(&"copy_rows".to_owned()), !is_code, "{listed:?}");
        let (tool, arguments) = match is_code {
            // A script of the client calls the script of the skill.
            true => ("run_script", json!({"code": "return await tools.copy_rows({ row: 5 })"})),
            false => ("copy_rows", json!({"row": 5})),
        };
        let arguments = arguments.to_string();
        let decision = decide(&serving, "approve");
        let (answer, ()) = tokio::join!(ann.call(tool, &arguments), decision);
        let result: Value = serde_json::from_str(&answer.text()).unwrap_or_else(|_| panic!("{answer:?}"));
        assert_eq!(result["deleted"], "unknown_tool", "{result}");
        assert_eq!((&result["row"], &result["written"]), (&json!(5), &json!("yes")), "{result}");
        let names = result["names"].to_string();
        for hidden in ["delete_sheet", "copy_rows", "run_script", "call_tool"] {
            assert!(!names.contains(hidden), "{hidden}: {names}");
        }
        assert_eq!(called(&journal), ["read_sheet", "write_sheet"]);
        let written = await_history(serving.cli(), &["--tool", "write_sheet", "--status", "succeeded"], 1);
        assert_eq!(
            (&written[0]["principal"], &written[0]["approver"]),
            (&json!("key:ann"), &json!("local")),
            "{written:?}"
        );
    }
}

#[tokio::test]
async fn a_changed_or_withdrawn_script_is_not_run() {
    let (serving, journal, key) = serving("", COPY);
    let ann = RawClient::with_token(&serving.url(), Era::Legacy, Some(&key)).await;
    put_script(serving.folder(), "return await tools.s.read_sheet({ row: 7 })");
    let changed = ann.call("copy_rows", r#"{"row": 5}"#).await.text();
    assert!(changed.contains("changed since it was approved"), "{changed}");
    assert_eq!(called(&journal), [""; 0]);
    put_script(serving.folder(), COPY.replace("await tools.s.write_sheet({ row });", "").as_str());
    assert_eq!(serving.cli().run(&["skills", "approve", "rows", "--yes"]).code, Some(0));
    // The approval reaches the running gateway within some seconds; only the approved code runs then.
    let since = std::time::Instant::now();
    loop {
        let answer = ann.call("copy_rows", r#"{"row": 5}"#).await.text();
        if answer.contains("\"row\":5") {
            break;
        }
        assert!(since.elapsed() < crate::serving::TEST_TIMEOUT, "{answer}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(called(&journal), ["read_sheet"]);
}

/// A script cannot multiply its number of calls by calling scripts of skills, which get their values back as they returned them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_share_the_limit_of_calls_with_those_that_they_call() {
    let settings = "[profiles.default]\nexpose = \"code\"\n[script]\ncalls = 10\nmax_running = 2\n";
    let each = "let made = 0; try { for (let i = 0; i < input.row; i++) { await tools.s.read_sheet({ row: i }); made++ } } catch (e) { if (e.kind != 'limit') throw e } return made";
    let (serving, journal, key) = serving(settings, each);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let within = json!({"code": "const n = await Promise.all([1, 2, 1].map(row => tools.copy_rows({ row }))); return n.reduce((a, b) => a + b)"});
    // More scripts of skills at the same time than there are places: they wait for each other.
    assert_eq!(ann.call("run_script", &within.to_string()).await.text(), "4");
    assert_eq!(called(&journal).len(), 4);
    let beyond = json!({"code": "const n = await Promise.all([6, 6, 6].map(row => tools.copy_rows({ row }))); return n.reduce((a, b) => a + b)"});
    assert_eq!(ann.call("run_script", &beyond.to_string()).await.text(), "7");
    assert_eq!(called(&journal).len(), 4 + 7);
}
