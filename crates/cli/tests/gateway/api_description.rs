//! Schemathesis: requests generated from the OpenAPI document, with valid and invalid data. Responses must be as described.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use toolhub_testkit::peers::peers;
use toolhub_testkit::scripted::Script;

use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// A key with every role.
const KEY: NewKey = NewKey {
    name: "all",
    options: &[
        "--role", "viewer", "--role", "caller", "--role", "approver", "--role", "operator", "--role",
        "auditor", "--role", "owner",
    ],
};

/// The stream of events does not end, and the other two would revoke the key of the test.
const EXCLUDED: [&str; 3] = ["get_events", "delete_keys_name", "post_keys_name_rotate"];

#[test]
fn responses_are_as_the_document_describes() {
    let mut cli = hub("[audit]\nenabled = true\n");
    cli.server("sheets", &Script::legacy().plain_tool("read_sheet").plain_tool("write_sheet"));
    let key = new_key(&cli, &KEY);
    for args in [&["servers", "refresh", "sheets"][..], &["call", "read_sheet", "--args", "{}"]] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let folder = cli.folder().to_owned();
    let serving = Serving::start(cli);
    let report = folder.join("report.json");
    let mut command = Command::new(peers().join("schemathesis/bin/schemathesis"));
    command.args(["run", &format!("{}/api/v1/openapi.json", serving.root)]);
    command.args(["--header", &format!("Authorization: Bearer {key}")]);
    // The seed makes the run repeatable.
    command.args(["--seed", "1", "--max-examples", "40", "--no-color"]);
    // A request that the schema allows may be refused, such as a key with an empty name.
    command.args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"]);
    command.arg("--report-json-path").arg(&report);
    for operation in EXCLUDED {
        command.args(["--exclude-operation-id", operation]);
    }
    // A server that fails is no failure of the hub: a generated entry names a program or a folder that does not exist.
    let settings = "[checks]\nnot_a_server_error.expected-statuses = [\"2xx\", \"3xx\", \"4xx\", 502]\n";
    fs::write(folder.join("schemathesis.toml"), settings).unwrap();
    // No proxy, and no files outside of the folder.
    command.env_clear().env("HOME", &folder).current_dir(&folder);
    let output = command.output().unwrap();
    let [text, error] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{text}\n{error}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let count = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap();
    assert_eq!(count("/operations/tested") + 3, count("/operations/total"), "{text}");
    assert!(count("/test_cases/generated") > 1_500, "{text}");
    assert_eq!(report["failures"], json!([]), "{text}");
}
