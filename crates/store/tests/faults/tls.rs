//! PostgreSQL over TLS: `sslmode` and `sslrootcert` in the URL decide whether the server certificate is verified.

use toolhub_testkit::TestAuthority;
use toolhub_testkit::postgres::{PostgresServer, Stop};

use crate::open_at;

/// A certificate for 127.0.0.1 with its key, and the authority that has issued it.
fn certificate() -> (String, String, TestAuthority) {
    let authority = TestAuthority::new();
    let (file, key) = authority.issue();
    (std::fs::read_to_string(file).unwrap(), std::fs::read_to_string(key).unwrap(), authority)
}

#[tokio::test(flavor = "multi_thread")]
async fn verifies_certificates_if_the_url_requires_it() {
    let server = PostgresServer::start();
    let url = server.new_database();
    let (certificate, key, authority) = certificate();
    server.write_file("server.crt", &certificate);
    server.write_file("server.key", &key);
    server.write_file("postgresql.auto.conf", "ssl = on\n");
    // Connections without TLS are rejected.
    server.write_file("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    server.stop(Stop::Fast);
    server.restart();

    let (trusted, other) = (authority.certificate(), TestAuthority::new());
    let with_file = format!("&sslrootcert={}", trusted.display());
    let with_other = format!("&sslrootcert={}", other.certificate().display());
    for (query, opens) in [
        ("sslmode=disable".to_owned(), false),
        ("sslmode=prefer".to_owned(), true),
        ("sslmode=require".to_owned(), false),
        ("sslmode=verify-full".to_owned(), false),
        (format!("sslmode=require{with_file}"), true),
        (format!("sslmode=verify-full{with_file}"), true),
        (format!("sslmode=verify-full{with_other}"), false),
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
    let (certificate, key, _authority) = certificate();
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
