//! The state of the cluster in the JSON API and in the console of a replica.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::test_cluster::{Process, TEST_TIMEOUT, TestCluster};

/// A key with a role.
fn key(cluster: &TestCluster, role: &str) -> String {
    let command = ["keys", "new", role, "--role", role, "--json"];
    let output = cluster.command(&cluster.path("keys"), &command).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    made["key"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

async fn get(replica: &Process, path: &str, key: &str) -> (StatusCode, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().timeout(TEST_TIMEOUT).build().unwrap();
    let url = replica.url.replace("/mcp", path);
    let response = http.get(url).bearer_auth(key).send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

/// A page of the console of the replica with this data folder, in a session that a one-time link opens.
async fn console_page(cluster: &TestCluster, home: &str, path: &str) -> String {
    let command = ["console", "--no-browser", "--json"];
    let output = cluster.command(&cluster.path(home), &command).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let link = printed["url"].as_str().unwrap();
    let (root, _) = link.split_once("/console/").unwrap();
    let (_, address) = root.split_once("://").unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    // Browsers resolve this name to the machine itself.
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
    let http = builder.resolve(host, address).build().unwrap();
    let opened = http.get(link).send().await.unwrap();
    assert_eq!(opened.status(), StatusCode::SEE_OTHER);
    let cookie = opened.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = http.get(format!("{root}/console/{path}")).header("cookie", cookie).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    page.text().await.unwrap()
}

/// Reads the cluster at a replica until the condition is met.
async fn await_cluster(replica: &Process, key: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let (status, body) = get(replica, "/api/v1/cluster", key).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let cluster: Value = serde_json::from_str(&body).unwrap();
        if is_met(&cluster) {
            return cluster;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{cluster:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn count(cluster: &Value, what: &str) -> usize {
    cluster[what].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn console_shows_members_placements_and_problems() {
    let mut cluster = TestCluster::new("");
    let (operator, viewer) = (key(&cluster, "operator"), key(&cluster, "viewer"));
    let (one, other) = (cluster.replica(), cluster.replica());
    let mut worker = cluster.worker(&["--labels", "office"]);
    let is_complete = |seen: &Value| count(seen, "workers") == 1 && count(seen, "replicas") == 2;
    let seen = await_cluster(&other, &operator, is_complete).await;
    assert_eq!(seen["enabled"], true, "{seen:#}");
    assert_eq!(seen["workers"][0]["id"], worker.id.as_str(), "{seen:#}");
    assert_eq!(seen["workers"][0]["labels"], json!(["office"]), "{seen:#}");

    // Each replica names the same members as the command.
    let status = cluster.status();
    for replica in [&one, &other] {
        let seen = await_cluster(replica, &operator, |_| true).await;
        for (kind, member) in [("replicas", 0), ("replicas", 1), ("workers", 0)] {
            let id = &status[kind][member]["id"];
            let found = seen[kind].as_array().unwrap().iter().any(|other| other["id"] == *id);
            assert!(found, "{id} of {kind}: {seen:#}");
        }
    }
    let page = console_page(&cluster, "home-1", "cluster").await;
    for text in [worker.id.as_str(), "office", "Servers on workers"] {
        assert!(page.contains(text), "{text}: {page}");
    }

    // Viewers do not see the names of machines.
    let (status, body) = get(&one, "/api/v1/cluster", &viewer).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert!(!body.contains(&worker.id), "{body}");

    // A worker that died is a problem as long as it is listed.
    worker.kill();
    let seen = await_cluster(&one, &operator, |seen| count(seen, "degraded") > 0).await;
    assert!(seen["degraded"].to_string().contains(&worker.id), "{seen:#}");
}
