//! TLS between the parts: NATS with certificates of an authority of its own, users by NKey with permissions below the prefix alone, and
//! PostgreSQL with `sslmode=verify-full`. A part that does not prove who it is gets nothing.

use std::fs;

use serde_json::json;
use toolhub_testkit::TestAuthority;
use toolhub_testkit::nats::{NatsServer, NatsUser};
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::test_cluster::{Client, TestCluster, succeeded};

/// A PostgreSQL server that accepts connections over TLS alone, with the URL of a database.
fn postgres(authority: &TestAuthority) -> (PostgresServer, String) {
    let server = PostgresServer::start();
    let url = server.new_database();
    let (certificate, key) = authority.issue();
    server.write_file("server.crt", &fs::read_to_string(certificate).unwrap());
    server.write_file("server.key", &fs::read_to_string(key).unwrap());
    server.write_file("postgresql.auto.conf", "ssl = on\n");
    server.write_file("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    server.stop(Stop::Fast);
    server.restart();
    (server, url)
}

/// A NATS server that accepts connections over TLS alone, from this user, who may use subjects below `toolhub` alone.
fn nats(authority: &TestAuthority, user: &NatsUser) -> NatsServer {
    let (certificate, key) = authority.issue();
    NatsServer::start_with(&format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n\
         authorization {{ users: [ {{ nkey: {}, permissions: {{ publish: \"toolhub.>\", subscribe: \"toolhub.>\" }} }} ] }}\n",
        certificate.display(),
        key.display(),
        user.public,
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_prove_who_they_are_work_together_and_others_get_nothing() {
    let (of_nats, of_postgres, other) = (TestAuthority::new(), TestAuthority::new(), TestAuthority::new());
    let (user, stranger) = (NatsUser::new(), NatsUser::new());
    let (_postgres, plain) = postgres(&of_postgres);
    let database = |authority: &TestAuthority| {
        format!("{plain}?sslmode=verify-full&sslrootcert={}", authority.certificate().display())
    };
    let mut cluster = TestCluster::of_parts(nats(&of_nats, &user), database(&of_postgres));
    cluster.use_journal();
    fs::write(cluster.path("user.nk"), format!("# the user of the cluster\n{}\n", user.seed)).unwrap();
    fs::write(cluster.path("stranger.nk"), &stranger.seed).unwrap();
    let url = format!("tls://127.0.0.1:{}", cluster.nats.port());
    let settings = |authority: &TestAuthority, credentials: &str| {
        format!(
            "authorities = \"{}\"\n{credentials}scripts = \"workers\"\n[native]\nenabled = true\n[profiles.default]\nexpose = \"all\"\n\
             [profiles.code]\nservers = [\"journal\"]\nexpose = \"code\"\n",
            authority.certificate().display()
        )
    };
    cluster.configure(&url, &settings(&of_nats, "credentials = \"user.nk\"\n"));
    let (replica, _worker) = (cluster.replica(), cluster.worker(&[]));
    let client = Client::of(&replica);
    client.await_ready().await;
    // Large messages, whose parts travel to other subjects; and a script on the worker.
    let text = "x".repeat(3 << 20);
    let answer = client.call("append", json!({"id": "large", "text": text})).await;
    assert!(succeeded(&answer) && answer.contains(&text), "{}", answer.len());
    let coder = Client::of(&format!("{}/code", replica.url));
    let code = "await tools.journal.append({ id: 'script' })";
    let answer = coder.call("run_script", json!({ "code": code })).await;
    assert!(succeeded(&answer), "{answer}");
    let status = cluster.status();
    assert_eq!(status["degraded"], json!([]), "{status:#}");

    // A server of another authority, another user, and no user at all.
    for (authority, credentials) in [
        (&other, "credentials = \"user.nk\"\n"),
        (&of_nats, "credentials = \"stranger.nk\"\n"),
        (&of_nats, ""),
    ] {
        cluster.configure(&url, &settings(authority, credentials));
        let status = cluster.status();
        let degraded = status["degraded"].to_string();
        assert!(degraded.contains("NATS cannot be reached"), "{credentials}: {status:#}");
    }
    // A database of another authority, and one without TLS.
    let home = cluster.path("refused");
    for url in [database(&other), format!("{plain}?sslmode=disable")] {
        let file = cluster.path("toolhub.toml");
        fs::write(&file, format!("[store]\nurl = \"{url}\"\n[cluster]\nnats = \"nats://127.0.0.1:1\"\n"))
            .unwrap();
        let output = cluster.command(&home, &["cluster", "status"]).output().unwrap();
        assert!(!output.status.success(), "{url}: {output:?}");
    }
    let mut ran = cluster.ran();
    ran.retain(|id| id != "ready");
    assert_eq!(ran, ["large", "script"]);
}
