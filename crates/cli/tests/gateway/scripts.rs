//! Code mode of the gateway (`expose = "code"`): scripts of clients reach what the client may use, and nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhub_testkit::scripted::{Journal, Script};

use crate::identity_provider::await_history;
use crate::raw_client::{ERAS, Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, await_cancelled, holding, hub};
use crate::team_access::{NewKey, RealClient, new_key, team};

const CODE: &str = "[profiles.default]\nservers = [\"s\"]\nexpose = \"code\"\n";

const ANN: NewKey = NewKey { name: "ann", options: &[] };

fn arguments(code: &str) -> String {
    json!({ "code": code }).to_string()
}

pub(crate) fn called(journal: &Path) -> Vec<String> {
    let journal = Journal::read(journal);
    let messages = journal.messages().into_iter();
    let calls = messages.filter(|message| message["method"] == "tools/call");
    calls.map(|call| call["params"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn clients_find_and_call_tools_in_scripts() {
    let (serving, journal, keys) = team(CODE, &[ANN]);
    for era in ERAS {
        let client = RawClient::with_token(&serving.url(), era, Some(&keys[0])).await;
        let mut listed = client.tools().await;
        listed.sort_unstable();
        assert_eq!(listed, ["describe_tool", "run_script", "search_tools"], "{era:?}");
        let found = client.call("search_tools", r#"{"query": "read a sheet"}"#).await.text();
        assert!(found.contains("tools.s.read_sheet(") && found.contains("run_script calls them"), "{found}");
        let described = client.call("describe_tool", r#"{"name": "read_sheet"}"#).await.text();
        assert!(
            described.contains("declare const tools") && described.contains("read_sheet("),
            "{described}"
        );
        let script = "const [a, b] = await Promise.all([tools.s.read_sheet({ row: 1 }), tools['write_sheet']({ row: 2 })]);
            console.log(a); return JSON.parse(b).row";
        let answer = client.call("run_script", &arguments(script)).await;
        let result: Value = serde_json::from_str(answer.result()).unwrap();
        assert_eq!(result["content"][0]["text"], "2", "{result}");
        assert_eq!(result["_meta"]["toolhub/script"]["log"], json!(["{\"row\":1}"]), "{result}");
        assert_eq!(result["_meta"]["toolhub/script"]["calls"].as_array().unwrap().len(), 2, "{result}");
    }
    assert_eq!(called(&journal).len(), 4);
    for client in [RealClient::Python, RealClient::TypeScript] {
        let script =
            json!(["run_script", {"code": "JSON.parse(await tools.s.read_sheet({ row: 5 })).row + 1"}]);
        let details = json!({"url": serving.url(), "mode": "auto", "key": keys[0], "calls": [script]});
        let report = client.run(serving.folder(), &details);
        assert!(report.to_string().contains('6'), "{client:?} {report}");
    }
}

#[tokio::test]
async fn run_script_is_offered_only_by_profiles_that_enable_it() {
    let settings = "[profiles.default]\nexpose = \"all\"\n[profiles.search]\nexpose = \"search\"\n\
        [profiles.named]\ntools = [\"read_*\", \"run_script\"]\nexpose = \"all\"\n\
        [profiles.denied]\nexpose = \"code\"\ndeny = [\"run_script\"]\n\
        [profiles.open]\nexpose = \"code\"\n";
    let (serving, _, _) = team(settings, &[]);
    let at = |profile: &str| format!("{}/mcp/{profile}", serving.root);
    for (profile, is_offered) in
        [("default", false), ("search", false), ("named", true), ("denied", false), ("open", true)]
    {
        let client = RawClient::connect(&at(profile), Era::Modern).await;
        assert_eq!(client.tools().await.contains(&"run_script".to_owned()), is_offered, "{profile}");
        let answer = client.call("run_script", &arguments("1")).await;
        match is_offered {
            true => assert_eq!(answer.text(), "1"),
            false => assert_eq!(answer.error(), -32602, "{profile}"),
        }
    }
    let open = RawClient::connect(&at("open"), Era::Legacy).await;
    let inner =
        json!({"name": "run_script", "arguments": {"code": "await tools.calculate({ expression: '6*7' })"}});
    assert_eq!(open.call("call_tool", &inner.to_string()).await.text(), "42");
    let named = RawClient::connect(&at("named"), Era::Legacy).await;
    let seen =
        named.call("run_script", &arguments("Object.keys(tools).concat(Object.keys(tools.s)).join()")).await;
    assert!(seen.text().contains("read_sheet") && !seen.text().contains("write_sheet"), "{}", seen.text());
}

const RULES: &str = r#"
[profiles.default]
servers = ["s"]
expose = "code"
[[auth.rules]]
name = "callers read"
effect = "allow"
roles = ["caller"]
tools = ["read_sheet"]
[[auth.rules]]
name = "first rows are written after approval"
effect = "ask"
roles = ["caller"]
tools = ["write_sheet"]
"#;

#[tokio::test]
async fn rules_apply_to_each_call_of_a_script() {
    let viewer = NewKey { name: "viewer", options: &["--role", "viewer"] };
    let (serving, journal, keys) = team(RULES, &[ANN, viewer]);
    let ann = RawClient::with_token(&serving.url(), Era::Legacy, Some(&keys[0])).await;
    let script =
        "return [Object.keys(tools.s).sort(), 'delete_sheet' in tools, await tools.s.read_sheet({ row: 1 })]";
    let answer = ann.call("run_script", &arguments(script)).await.text();
    assert_eq!(answer, r#"[["read_sheet","write_sheet"],false,"{\"row\":1}"]"#);
    assert_eq!(called(&journal), ["read_sheet"]);
    let recorded = await_history(serving.cli(), &["--tool", "read_sheet"], 1);
    assert_eq!(
        (&recorded[0]["principal"], &recorded[0]["rule"]),
        (&json!("key:ann"), &json!("callers read"))
    );
    // Who may not call anything runs no script either.
    let viewer = RawClient::with_token(&serving.url(), Era::Legacy, Some(&keys[1])).await;
    let refused = viewer.call("run_script", &arguments("while (true);")).await;
    assert!(refused.result().contains("not allowed"), "{refused:?}");
}

/// Approves or denies the next call that waits.
pub(crate) async fn decide(serving: &Serving, decision: &str) {
    let since = Instant::now();
    loop {
        let waiting = serving.cli().run(&["waiting", "--json"]).json();
        if let Some(call) = waiting.as_array().unwrap().first() {
            let decided = serving.cli().run(&["waiting", decision, call["id"].as_str().unwrap()]);
            assert_eq!(decided.code, Some(0), "{decided:?}");
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "no call waits");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_waits_for_each_approval_in_its_loop() {
    let (serving, journal, keys) = team(RULES, &[ANN]);
    let mut silent = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    silent.declare(json!({}));
    let script = arguments(
        "const out = []; for (const row of [1, 2, 3]) { try { await tools.s.write_sheet({ row }); out.push(row) } catch (e) { out.push(e.message) } } return out",
    );
    let decisions = async {
        decide(&serving, "approve").await;
        decide(&serving, "deny").await;
        decide(&serving, "approve").await;
    };
    let (answer, ()) = tokio::join!(silent.call("run_script", &script), decisions);
    let text = answer.text();
    assert!(
        text.starts_with("[1,") && text.contains("denied by an approver") && text.ends_with(",3]"),
        "{text}"
    );
    assert_eq!(called(&journal), ["write_sheet", "write_sheet"]);
    let recorded = await_history(serving.cli(), &["--tool", "write_sheet", "--status", "succeeded"], 2);
    assert!(recorded.iter().all(|call| call["approver"] == "local"), "{recorded:?}");
}

#[tokio::test]
async fn a_daily_budget_counts_the_calls_of_scripts() {
    let few = NewKey { name: "few", options: &["--per-day", "3"] };
    let (serving, journal, keys) = team(RULES, &[few]);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let script = "let n = 0; try { while (n < 10) { await tools.s.read_sheet({ row: n }); n++ } } catch (e) { console.log(e.message) } return n";
    let answer = client.call("run_script", &arguments(script)).await;
    assert!(answer.text() == "2" && answer.result().contains("per_day"), "{answer:?}");
    assert_eq!(called(&journal).len(), 2);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_script_and_the_calls() {
    let mut cli = hub("[profiles.default]\nexpose = \"code\"\n");
    let journal = cli.folder().join("journal");
    cli.server("s", &holding(&journal));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let tool = {
        let listed = client.call("run_script", &arguments("Object.keys(tools.s)[0]")).await;
        listed.text()
    };
    let script = format!("await Promise.all([tools.s[{tool:?}]({{}}), tools.s[{tool:?}]({{}})])");
    let request = client.request(
        "1",
        "tools/call",
        &format!(r#""name":"run_script","arguments":{}"#, arguments(&script)),
    );
    let call = tokio::time::timeout(Duration::from_millis(1500), request.send()).await;
    drop(call);
    await_cancelled(&journal, 2).await;
}

#[tokio::test]
async fn scripts_of_one_caller_leave_room_for_others() {
    let settings = format!("{CODE}[script]\nmax_running = 2\n");
    let bob = NewKey { name: "bob", options: &[] };
    let (serving, journal, keys) = team(&settings, &[ANN, bob]);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let bob = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[1])).await;
    let long = arguments("await tools.s.read_sheet({ row: 1 }); await sleep(60000)");
    let request = ann.request("1", "tools/call", &format!(r#""name":"run_script","arguments":{long}"#));
    let mut running = Box::pin(request.send());
    // The first script runs when its call has arrived.
    let since = Instant::now();
    while !journal.exists() || called(&journal).is_empty() {
        assert!(since.elapsed() < TEST_TIMEOUT);
        let _ = tokio::time::timeout(Duration::from_millis(50), &mut running).await;
    }
    let refused = ann.call("run_script", &arguments("1")).await;
    assert!(refused.result().contains("too many of your scripts"), "{refused:?}");
    assert_eq!(bob.call("run_script", &arguments("2")).await.text(), "2");
    drop(running);
    let since = Instant::now();
    while !ann.call("run_script", &arguments("3")).await.result().contains("\"3\"") {
        assert!(since.elapsed() < TEST_TIMEOUT, "the place of a cancelled script is not free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_script_of_a_revoked_key_makes_no_further_call() {
    let (serving, journal, keys) = team(CODE, &[ANN]);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let script = arguments(
        "let n = 0; try { for (; n < 100; n++) { await tools.s.read_sheet({ row: n }); await sleep(100) } } catch (e) { } return n",
    );
    let revoke = async {
        let since = Instant::now();
        while !journal.exists() || called(&journal).is_empty() {
            assert!(since.elapsed() < TEST_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(serving.cli().run(&["keys", "revoke", "ann"]).code, Some(0));
    };
    let request = ann.request("1", "tools/call", &format!(r#""name":"run_script","arguments":{script}"#));
    let (answer, ()) = tokio::join!(request.send(), revoke);
    drop(answer);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let made = called(&journal).len();
    assert!(made < 50, "{made} calls");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(called(&journal).len(), made, "calls go on");
}

/// The credential was valid when the script began, and nothing revoked it.
#[tokio::test]
async fn a_script_of_an_expired_key_makes_no_further_call() {
    let (serving, journal, _) = team(CODE, &[ANN]);
    let expires = jiff::Timestamp::now() + Duration::from_secs(10);
    let made = serving.cli().run(&["keys", "new", "bob", "--json", "--expires", &expires.to_string()]);
    let key = made.json()["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let bob = RawClient::with_token(&serving.url(), Era::Modern, Some(&key)).await;
    let since = Instant::now();
    while bob.request("1", "tools/list", "").send().await.unwrap().status() != 200 {
        assert!(since.elapsed() < Duration::from_secs(8), "the new key is not accepted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let script = arguments(
        "let n = 0; try { for (; n < 200; n++) { await tools.s.read_sheet({ row: n }); await sleep(150) } } catch (e) { return [n, e.message] } return [n, '']",
    );
    let request = bob.request("2", "tools/call", &format!(r#""name":"run_script","arguments":{script}"#));
    let answer = request.send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("no longer valid"), "{answer}");
    let made = called(&journal).len();
    assert!((1..100).contains(&made), "{made} calls");
}

#[tokio::test]
async fn a_script_reads_no_skill_that_the_profile_hides() {
    let settings = "[profiles.default]\nexpose = \"code\"\ndeny = [\"secret\"]\ncoerce_arguments = true\n";
    let cli = hub(settings);
    for skill in ["open", "secret"] {
        let folder = cli.folder().join("skills").join(skill);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {skill}\ndescription: How to {skill}\n---\nBODY OF {skill}\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    assert_eq!(cli.run(&["skills", "approve", "--all", "--yes"]).code, Some(0));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    for (given, is_open) in [
        (r#"{ skill: "open" }"#, true),
        (r#"{ skill: "secret" }"#, false),
        (r#"{ Skill: "secret" }"#, false),
        (r#"{ skill: ["secret"] }"#, false),
        (r#"{ skill: " secret " }"#, false),
        (r#"{ skill: "SECRET" }"#, false),
        (r#"{ skill_name: "secret" }"#, false),
        (r#"{ skill: "\"secret\"" }"#, false),
        (r#"{ skill: { name: "secret" } }"#, false),
        ("{}", false),
    ] {
        let script =
            format!("try {{ return await tools.use_skill({given}) }} catch (e) {{ return e.message }}");
        let text = client.call("run_script", &arguments(&script)).await.text();
        assert_eq!(text.contains("BODY OF open"), is_open, "{given}: {text}");
        assert!(!text.contains("BODY OF secret"), "{given}: {text}");
        assert!(!text.contains("\"open\""), "the error lists skills: {text}");
    }
}

/// A server asks its user in the middle of a script: the client answers, and the script goes on.
#[tokio::test]
async fn questions_of_servers_reach_the_client_of_the_script() {
    let question = json!({"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}}});
    for server in [Script::legacy(), Script::modern()] {
        let mut cli = hub(CODE);
        let asks =
            json!([{"request": {"method": "elicitation/create", "params": question}}, {"text": "answered"}]);
        cli.server("s", &server.plain_tool("paint").on("tools/call:paint", asks));
        let key = new_key(&cli, &ANN);
        let serving = Serving::start(cli);
        for mode in ["auto", "legacy"] {
            let script = json!(["run_script", {"code": "const out = []; for (const n of [1, 2]) out.push(await tools.s.paint({})); return out.join()"}]);
            let details = json!({"url": serving.url(), "mode": mode, "key": key, "calls": [script], "elicit": "accept"});
            let report = RealClient::Python.run(serving.folder(), &details);
            assert!(report.to_string().contains("answered,answered"), "{mode} {report}");
        }
    }
}

/// The report of a script is the script's own text: nothing in it is taken for a hint to the owner, and errors inside of it name
/// no commands that only the owner can run.
#[tokio::test]
async fn reports_of_scripts_reach_clients_unchanged() {
    let settings = CODE.replace("[\"s\"]", "[\"s\", \"native\"]");
    let (serving, _, keys) = team(&settings, &[ANN]);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let thrown = "throw new Error('first part; second part `toolhub keys` third; fourth')";
    let answer = ann.call("run_script", &arguments(thrown)).await;
    let text = answer.text();
    assert!(text.contains("first part; second part `toolhub keys` third; fourth"), "{text}");
    assert!(answer.result().contains(r#""isError":true"#), "{answer:?}");
    let wrong = "try { await tools.calculate({}) } catch (e) { return [e.kind, e.message].join(': ') }";
    let text = ann.call("run_script", &arguments(wrong)).await.text();
    assert!(text.contains("invalid_arguments: wrong arguments") && !text.contains("toolhub tools"), "{text}");
    let uncaught = ann.call("run_script", &arguments("await tools.calculate({})")).await.text();
    assert!(uncaught.contains("line 1") && uncaught.contains("tools.calculate("), "{uncaught}");
    assert!(!uncaught.contains("`toolhub "), "{uncaught}");
}

/// Nothing could resume the script of a client, so that no copy of its arguments and results is written.
#[tokio::test]
async fn scripts_of_clients_leave_no_journal() {
    let (serving, _, keys) = team(CODE, &[ANN]);
    let ann = RawClient::with_token(&serving.url(), Era::Modern, Some(&keys[0])).await;
    let code = "await tools.s.read_sheet({ row: 1 }); await sleep(1500); return 'done'";
    let arguments = arguments(code);
    let running = ann.call("run_script", &arguments);
    let watched = async {
        assert!(serving.folder().join("home").is_dir());
        let journals = serving.folder().join("home/scripts");
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let files = std::fs::read_dir(&journals).map_or(0, Iterator::count);
            assert_eq!(files, 0, "{}", journals.display());
        }
    };
    let (answer, ()) = tokio::join!(running, watched);
    assert_eq!(answer.text(), "done");
}
