//! Attacks with the name of a revoked key: what a person did is stored under the name of the key, and no other person gets it.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use toolhub_server::hash_of;
use toolhub_testkit::scripted::Journal;

use crate::console::with_key;
use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT};
use crate::team_access::{HOLDING, NewKey, new_key, team};

const KEYS: [NewKey; 2] =
    [NewKey { name: "ann", options: &[] }, NewKey { name: "owner", options: &["--role", "owner"] }];

async fn status(serving: &Serving, key: &str) -> u16 {
    with_key(serving, key, Method::GET, "me").send().await.unwrap().status().as_u16()
}

/// Waits until the gateway accepts the key, or refuses it.
async fn await_status(serving: &Serving, key: &str, expected: u16) {
    let since = Instant::now();
    while status(serving, key).await != expected {
        assert!(since.elapsed() < TEST_TIMEOUT, "the status is not {expected}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The text of the calls that the key can read.
async fn history(serving: &Serving, key: &str) -> String {
    let calls = with_key(serving, key, Method::GET, "calls?details=true&limit=20").send().await.unwrap();
    calls.text().await.unwrap()
}

/// A client that cannot ask its user, so that a held call is answered at once.
async fn client(serving: &Serving, key: &str) -> RawClient {
    let mut client = RawClient::with_token(&serving.url(), Era::Modern, Some(key)).await;
    client.declare(json!({}));
    client
}

fn held_calls(serving: &Serving) -> Vec<Value> {
    serving.cli().run(&["waiting", "--all", "--json"]).json().as_array().unwrap().clone()
}

/// Every way to make a key refuses the name, and says what to do instead.
async fn check_refusals(serving: &Serving, owner: &str) {
    let cli = serving.cli();
    for command in [&["keys", "new", "ann"][..], &["keys", "rotate", "ann"], &["serve", "--new-token", "ann"]]
    {
        let ran = cli.run(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("--same-person") && ran.stderr.contains("another name"), "{ran:?}");
    }
    for body in
        [json!({"name": "ann"}), json!({"name": " ann "}), json!({"name": "ann", "same_person": false})]
    {
        let response = with_key(serving, owner, Method::POST, "keys").json(&body).send().await.unwrap();
        assert_eq!(response.status(), 409, "{body}");
        let problem: Value = response.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains("`same_person`"), "{problem}");
    }
    // Written by hand beside the revoked entry: the file is not used.
    let file = serving.folder().join("toolhub.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let hash = hash_of("th_by_hand");
    let entry = format!("{before}\n[[auth.tokens]]\nname = \"ann\"\nsha256 = \"{hash}\"\n");
    std::fs::write(&file, entry).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(status(serving, "th_by_hand").await, 401);
    std::fs::write(&file, before).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_person_does_not_get_the_data_of_a_revoked_key() {
    let (serving, journal, keys) = team(HOLDING, &KEYS);
    let (ann, owner) = (&keys[0], &keys[1]);
    let body = json!({"arguments": {"text": "PRIVATE-OF-ANN"}});
    let call = |key: &str| {
        let call = with_key(&serving, key, Method::POST, "tools/read_sheet:call");
        call.header("idempotency-key", "order-1").json(&body).send()
    };
    assert_eq!(call(ann).await.unwrap().status(), 200);
    // A held call that is approved, and has not run.
    let session = client(&serving, ann).await;
    let held = session.call("write_sheet", r#"{"row":1}"#).await;
    assert!(held.text().contains("waits for approval"), "{}", held.text());
    let held = held_calls(&serving);
    let approved = serving.cli().run(&["waiting", "approve", held[0]["id"].as_str().unwrap()]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let sent = Journal::read(&journal).count_method("tools/call");
    let since = Instant::now();
    while !history(&serving, ann).await.contains("PRIVATE-OF-ANN") {
        assert!(since.elapsed() < TEST_TIMEOUT, "the call is not in the history");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    assert_eq!(serving.cli().run(&["keys", "revoke", "ann"]).code, Some(0));
    await_status(&serving, ann, 401).await;
    check_refusals(&serving, owner).await;
    assert_eq!(status(&serving, ann).await, 401, "the revoked key is not accepted again");

    // Control: the next person gets a name of their own, and nothing of the first.
    let next = new_key(serving.cli(), &NewKey { name: "ann2", options: &[] });
    await_status(&serving, &next, 200).await;
    assert!(!history(&serving, &next).await.contains("PRIVATE-OF-ANN"));
    assert_eq!(call(&next).await.unwrap().status(), 200);
    assert_eq!(
        Journal::read(&journal).count_method("tools/call"),
        sent + 1,
        "its own call, not a stored result"
    );
    let session = client(&serving, &next).await;
    let second = session.call("write_sheet", r#"{"row":1}"#).await;
    assert!(second.text().contains("waits for approval"), "another person's approval: {}", second.text());

    // Control: the same person keeps what is stored. The revocation withdrew the approval.
    let listed = serving.cli().run(&["keys", "list", "--all", "--json"]).json();
    let revoked: Vec<&Value> =
        listed.as_array().unwrap().iter().filter(|key| key["revoked"].is_string()).collect();
    assert!(revoked.len() == 1 && revoked[0]["name"] == "ann", "{listed}");
    let shown = serving.cli().run(&["keys", "list"]).stdout;
    assert!(!shown.contains("revoked"), "{shown}");
    let same = new_key(serving.cli(), &NewKey { name: "ann", options: &["--same-person"] });
    await_status(&serving, &same, 200).await;
    assert!(history(&serving, &same).await.contains("PRIVATE-OF-ANN"));
    let session = client(&serving, &same).await;
    let third = session.call("write_sheet", r#"{"row":1}"#).await;
    assert!(third.text().contains("waits for approval"), "{}", third.text());
}

/// An entry that is replaced by hand, with another hash and other permissions, ends what the gateway holds for the name. A
/// rotated key keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_entry_withdraws_held_calls_and_a_rotated_key_keeps_them() {
    let (serving, _, keys) = team(HOLDING, &KEYS);
    let hold = async |key: &str| {
        let session = client(&serving, key).await;
        let held = session.call("write_sheet", r#"{"row":1}"#).await;
        assert!(held.text().contains("waits for approval"), "{}", held.text());
    };
    let held_count = || serving.cli().run(&["waiting", "--json"]).json().as_array().unwrap().len();
    hold(&keys[0]).await;
    let rotated = serving.cli().run(&["keys", "rotate", "ann", "--json"]).json();
    let rotated = rotated["key"].as_str().unwrap();
    await_status(&serving, rotated, 200).await;
    assert_eq!((held_count(), status(&serving, &keys[0]).await), (1, 401));

    let file = serving.folder().join("toolhub.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (old, new) = (hash_of(rotated), hash_of("th_another"));
    assert!(text.contains(&old));
    let replaced = format!("sha256 = \"{new}\"\nroles = [\"viewer\", \"caller\"]");
    std::fs::write(&file, text.replace(&format!("sha256 = \"{old}\""), &replaced)).unwrap();
    await_status(&serving, "th_another", 200).await;
    let since = Instant::now();
    while held_count() > 0 {
        assert!(since.elapsed() < TEST_TIMEOUT, "the held call of the other person is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status(&serving, rotated).await, 401);
}
