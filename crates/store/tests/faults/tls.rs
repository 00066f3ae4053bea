//! PostgreSQL over TLS: who is at the other end is asked where the URL says so.

use std::process::Command;

use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::open_at;

/// A certificate for 127.0.0.1 that only its own file vouches for, and its key.
fn certificate() -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("certificate"), folder.path().join("key"));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&file)
        .output()
        .expect("`openssl` starts; PostgreSQL's packages bring it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (std::fs::read_to_string(file).unwrap(), std::fs::read_to_string(key).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked_where_the_url_asks_for_it() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let (certificate, key) = certificate();
    server.give("server.crt", &certificate);
    server.give("server.key", &key);
    server.give("postgresql.auto.conf", "ssl = on\n");
    // Nobody comes in without TLS.
    server.give("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    server.stop(Stop::Fast);
    server.start_again();

    let trusted = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(trusted.path(), &certificate).unwrap();
    let with_file = format!("&sslrootcert={}", trusted.path().display());
    for (query, opens) in [
        ("sslmode=disable".to_owned(), false),
        ("sslmode=prefer".to_owned(), true),
        ("sslmode=require".to_owned(), false),
        ("sslmode=verify-full".to_owned(), false),
        (format!("sslmode=require{with_file}"), true),
        (format!("sslmode=verify-full{with_file}"), true),
    ] {
        let opened = open_at(&format!("{url}?{query}")).await;
        assert_eq!(opened.is_ok(), opens, "{query}: {:?}", opened.err());
        if let Ok(store) = opened {
            assert!(store.calls(toolhub_core::memory::CallQuery::default()).await.unwrap().is_empty());
        }
    }
}
