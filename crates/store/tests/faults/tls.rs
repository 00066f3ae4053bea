//! PostgreSQL over TLS: `sslmode` and `sslrootcert` in the URL decide whether the server certificate is verified.

use std::process::Command;

use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::open_at;

/// A self-signed certificate for 127.0.0.1, and its key.
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
async fn verifies_certificates_if_the_url_requires_it() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let (certificate, key) = certificate();
    server.write_file("server.crt", &certificate);
    server.write_file("server.key", &key);
    server.write_file("postgresql.auto.conf", "ssl = on\n");
    // Connections without TLS are rejected.
    server.write_file("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    server.stop(Stop::Fast);
    server.restart();

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
            assert!(store.calls(toolhub_core::call_log::CallQuery::default()).await.unwrap().is_empty());
        }
    }
}

/// `0x7f000001` resolves to 127.0.0.1, but is not recognised as a loopback address, so that it simulates a remote host.
#[tokio::test(flavor = "multi_thread")]
async fn remote_host_without_verified_certificate_is_rejected() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let elsewhere = url.replace("127.0.0.1", "0x7f000001");
    assert_ne!(url, elsewhere);
    let refused = async |url: &str| {
        let error = open_at(url).await.map(drop).unwrap_err();
        let (message, chinese) = (error.to_string(), error.chinese().unwrap_or_default());
        assert!(message.contains("did not prove by TLS who it is"), "{url}: {message}");
        assert!(message.contains("`sslmode=disable`") && message.contains("`sslrootcert=FILE`"), "{message}");
        assert!(chinese.contains("`sslmode=verify-full`"), "{chinese}");
        message
    };
    // A server without TLS.
    let modes = ["", "?sslmode=prefer", "?sslmode=allow", "?sslmode=require"];
    for mode in modes {
        let message = refused(&format!("{elsewhere}{mode}")).await;
        assert!(message.contains("server does not support TLS"), "{message}");
    }
    assert!(open_at(&url).await.is_ok());
    let (certificate, key) = certificate();
    server.write_file("server.crt", &certificate);
    server.write_file("server.key", &key);
    server.write_file("postgresql.auto.conf", "ssl = on\n");
    server.stop(Stop::Fast);
    server.restart();
    // A certificate of an unknown authority.
    for mode in modes {
        refused(&format!("{elsewhere}{mode}")).await;
    }
    // An explicit `sslmode=disable` and a loopback address need no verified certificate.
    assert!(open_at(&format!("{elsewhere}?sslmode=disable")).await.is_ok());
    assert!(open_at(&url).await.is_ok());
}
