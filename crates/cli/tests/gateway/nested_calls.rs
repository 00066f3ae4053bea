//! A script and the calls that it made: in the history, through a hub, in the API and in the console.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolhub_core::call_log::{CallLog as _, CallStatus, RecordId};
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::HubStore as _;
use toolhub_core::{CallId, RawJson};
use toolhub_store::SqliteStore;
use toolhub_testkit::{CommandLine, recorded_call};

use crate::console::{Browser, sheets};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};
use crate::through_hub::{command, output};

const AUDITOR: NewKey = NewKey { name: "auditor", options: &["--role", "auditor"] };
const CODE: &str = "// <reads> two sheets\nfor (const s of input) {\n  await tools.s.read_sheet(s);\n}";

/// The records of a script: itself, and the calls that it made.
struct Script {
    call: CallId,
    record: RecordId,
    nested: [RecordId; 2],
}

/// Writes the records of a script that failed to read its second sheet. Its id is not unique.
async fn record_script(cli: &CommandLine, started: SystemTime) -> Script {
    let store = SqliteStore::open(&cli.folder().join("home")).unwrap();
    let after = |millis| started + Duration::from_millis(millis);
    let (mut start, mut end) =
        recorded_call("run_script", json!({"code": CODE, "input": ["a", "b"]}), started);
    let call = CallId::new("call_of_a_model");
    start.call = call.clone();
    end.took = Duration::from_secs(1);
    let result = json!({"content": [], "_meta": {"toolhub/script": {"log": ["<one> of two", "done"]}}});
    end.output = Some(RawJson::from(result));
    let record = start.record.clone();
    let nested = [(100, None), (900, Some("no sheet `b`"))].map(|(millis, error)| {
        let (mut start, mut end) = recorded_call("read_sheet", json!({}), after(millis));
        start.parent = Some(call.clone());
        if let Some(error) = error {
            end.status = CallStatus::Failed;
            end.error = Some(("failed".to_owned(), LocalizedText::from(error)));
        }
        (start, end)
    });
    let records = nested.each_ref().map(|(start, _)| start.record.clone());
    for (start, end) in nested.into_iter().chain([(start, end)]) {
        store.record_finished(start, end);
    }
    store.flush().await.unwrap();
    Script { call, record, nested: records }
}

async fn hub_with_scripts() -> (Serving, String, Script) {
    let mut cli = hub("");
    cli.server("s", &sheets());
    let key = new_key(&cli, &AUDITOR);
    let now = SystemTime::now();
    record_script(&cli, now - Duration::from_secs(7_200)).await;
    let script = record_script(&cli, now - Duration::from_secs(600)).await;
    (Serving::start(cli), key, script)
}

#[tokio::test]
async fn history_shows_script_with_its_calls_here_and_through_a_hub() {
    let (serving, key, script) = hub_with_scripts().await;
    let Script { call, record, nested } = &script;
    let run = |args: &[&str]| {
        let local = serving.cli().run(args);
        let remote = output(&mut command(serving.cli(), &serving.root, &key, args));
        assert_eq!(
            (remote.code, &remote.stdout, &remote.stderr),
            (local.code, &local.stdout, &local.stderr),
            "{args:?}"
        );
        local
    };
    let list = run(&["history"]).stdout;
    assert_eq!(list.matches("↳ read_sheet").count(), 4, "{list}");
    let shown = run(&["history", record.as_str()]);
    assert_eq!(shown.code, Some(0));
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("script")).unwrap();
    let code: Vec<String> = CODE.lines().map(|line| format!("  {line}")).collect();
    assert_eq!(lines[at + 1..=code.len() + at], code, "{}", shown.stdout);
    let made = lines.iter().position(|line| line.starts_with("calls that it made")).unwrap();
    let [first, second] = lines[made + 1..] else { panic!("{}", shown.stdout) };
    for (line, parts) in [
        (first, ["ok", "read_sheet", "5 ms", nested[0].as_str()]),
        (second, ["failed", "no sheet `b`", "5 ms", nested[1].as_str()]),
    ] {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
    assert!(!shown.stdout.contains("made by call"), "{}", shown.stdout);
    let chinese = run(&["--lang", "zh", "history", record.as_str()]).stdout;
    assert!(chinese.contains("\n脚本\n") && chinese.contains("\n它发起的调用\n"), "{chinese}");
    // A nested call names its parent, and shows its arguments.
    let inner = run(&["history", nested[1].as_str()]).stdout;
    assert!(inner.contains("made by call") && inner.contains(record.as_str()), "{inner}");
    assert!(inner.contains("no sheet `b`") && inner.contains("\narguments\n  {}"), "{inner}");
    let json = |id: &RecordId| -> Value {
        let value = serving.cli().run(&["--json", "history", id.as_str()]).json();
        let mut through_hub =
            output(&mut command(serving.cli(), &serving.root, &key, &["--json", "history", id.as_str()]))
                .json();
        // The API has milliseconds.
        through_hub["started_at"] = value["started_at"].clone();
        assert_eq!(through_hub, value);
        value
    };
    let outer = json(record);
    assert_eq!((&outer["call_id"], &outer["parent"]), (&json!(call.as_str()), &Value::Null));
    let ids: Vec<&str> =
        outer["nested"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, nested.each_ref().map(RecordId::as_str));
    assert_eq!(
        outer["nested"][1],
        json!({"id": nested[1].as_str(), "tool": "read_sheet", "status": "failed", "duration_ms": 5,
            "error": "no sheet `b`"})
    );
    let inner = json(&nested[0]);
    assert_eq!((&inner["parent"], &inner["parent_id"]), (&json!(call.as_str()), &json!(record.as_str())));
    assert_eq!(inner["nested"], json!([]));
    // The newest call, one that does not exist, and options that do not fit.
    assert!(run(&["history", "last"]).stdout.contains(nested[1].as_str()));
    let absent = run(&["history", "absent"]);
    assert!(absent.code == Some(1) && absent.stderr.contains("no call `absent`"), "{absent:?}");
    assert_eq!(serving.cli().run(&["history", "last", "--tool", "t"]).code, Some(2));
}

#[tokio::test]
async fn api_and_console_link_script_and_its_calls() {
    let (serving, _, script) = hub_with_scripts().await;
    let Script { call, record, nested } = &script;
    let browser = Browser::open(&serving).await;
    let listed = browser.api(&format!("calls?parent={call}")).await;
    let found = listed["items"].as_array().unwrap();
    assert_eq!(found.len(), 4, "two scripts with the same id: {listed}");
    assert_eq!((&found[0]["id"], &found[0]["parent"]), (&json!(nested[1].as_str()), &json!(call.as_str())));
    assert_eq!(browser.api("calls?parent=call").await["items"], json!([]));
    let outer = browser.api(&format!("calls/{record}")).await;
    assert_eq!((&outer["parent"], &outer["parent_id"]), (&Value::Null, &Value::Null));
    let ids: Vec<&str> =
        outer["nested"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, nested.each_ref().map(RecordId::as_str), "only those of this script, oldest first");
    let inner = browser.api(&format!("calls/{}", nested[0])).await;
    assert_eq!((&inner["parent_id"], &inner["nested"]), (&json!(record.as_str()), &json!([])));
    let page = browser.page(&format!("calls/{record}")).await;
    for id in nested {
        assert!(page.contains(&format!("href=\"../calls/{id}\"")), "{page}");
    }
    let escaped = CODE.replace('<', "&lt;").replace('>', "&gt;");
    assert!(page.contains(&format!("aria-label=\"Script\">{escaped}</pre>")), "{page}");
    assert!(page.contains("aria-label=\"Log\">&lt;one&gt; of two\ndone</pre>"), "{page}");
    assert!(page.contains("Other arguments") && !page.contains("Made by call"), "{page}");
    let page = browser.page(&format!("calls/{}", nested[0])).await;
    assert!(page.contains(&format!("<a href=\"../calls/{record}\">{call}</a>")), "{page}");
    assert!(!page.contains("Calls that it made"), "{page}");
}
