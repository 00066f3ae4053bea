//! The server side of the official conformance suites through `HAProxy`, which sends each request to another one of three replicas. The
//! fixture runs on a worker. The suites run on a Node version that is available for x86-64 only.

#![cfg(target_arch = "x86_64")]

use serde_json::{Value, json};
use toolhub_testkit::conformance::suite::{SERVER_RUNS, ServerReport};
use toolhub_testkit::conformance::table::{Side, compare};
use toolhub_testkit::haproxy::LoadBalancer;
use toolhub_testkit::program;

use crate::cluster_load_balancer::free_ports;
use crate::test_cluster::{Client, TEST_TIMEOUT, TestCluster, succeeded};

/// Exposes the tools of the fixture under their own names, and no others.
const PLAIN: &str = "[profiles.default]\nservers = [\"fixture\"]\nexpose = \"all\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn replicas_behind_a_load_balancer_pass_conformance() {
    // Each suite has a cluster of its own, so that they do not affect each other.
    for run in SERVER_RUNS {
        let fixture = |_: &TestCluster| -> Value {
            json!({"fixture": {"command": program("conformance-server"), "args": ["stdio"]}})
        };
        let mut cluster = TestCluster::with_servers(PLAIN, fixture);
        let _worker = cluster.worker(&[]);
        let ports = free_ports();
        let replicas: Vec<_> = ports.iter().map(|port| cluster.replica_at(*port)).collect();
        for replica in &replicas {
            let (client, since) = (Client::of(replica), std::time::Instant::now());
            while !succeeded(&client.call("test_simple_text", json!({})).await) {
                assert!(since.elapsed() < TEST_TIMEOUT, "{}", replica.stderr());
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        let balancer = LoadBalancer::start(&ports);
        let url = format!("http://127.0.0.1:{}/mcp", balancer.port());
        let report = ServerReport::of(&url, run.version, &run.selection);
        let what = format!("conformance {} {:?}", run.version, run.selection);
        assert!(report.content && report.wrong.is_empty(), "{what}: {:#?}\n{}", report.wrong, report.words);
        assert!(report.skipped.iter().eq(run.skipped), "{what}: skipped {:?}", report.skipped);
        assert_eq!(compare(&report, Side::Gateway), Ok(()), "{what}:\n{}", report.words);
        // Each replica has made calls, beside the one that showed that it is ready.
        for replica in &replicas {
            let metrics = reqwest::get(replica.url.replace("/mcp", "/metrics")).await.unwrap();
            let metrics = metrics.text().await.unwrap();
            let calls = metrics
                .lines()
                .find_map(|line| line.strip_prefix("toolhub_calls_total{result=\"succeeded\"} "));
            assert!(calls.is_some_and(|calls| calls.parse::<u64>().unwrap() > 1), "{what}: {calls:?}");
        }
    }
}
