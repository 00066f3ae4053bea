//! Attempts of a host that a script has taken over to use the system: files, network, processes, the hub.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use toolhub_sandbox::{Isolation, Protection, support};
use toolhub_script::{FailureKind, HostConfig, RunnerConfig, Script, ScriptRunner};

use super::harness::{TestTools, config, failed, host, value};

async fn attack(isolation: Isolation) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let pid = std::process::id().to_string();
    let mut config = config();
    config.host = HostConfig {
        arguments: vec!["attack".into(), secret.clone().into(), port.into(), pid.into()],
        isolation,
        ..host()
    };
    let runner = ScriptRunner::new(config);
    let report = runner.run(&Script::new("1"), &TestTools::default(), None).await;
    assert!(listener.accept().is_err(), "a connection arrived");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    assert!(!Path::new(&format!("{}.new", secret.display())).exists());
    value(&report)
}

#[tokio::test]
async fn nothing_of_the_system_can_be_used() {
    let support = support();
    for isolation in [Isolation::Builtin, Isolation::Bubblewrap] {
        if !support.missing(isolation).is_empty() {
            continue;
        }
        let result = attack(isolation).await;
        assert_eq!(result["worked"], json!([]), "{isolation:?}");
        assert!(result["tried"].as_u64().is_some_and(|tried| tried >= 30), "{result}");
    }
}

#[tokio::test]
async fn a_host_that_keeps_its_system_calls_gets_no_script() {
    // The forged host says that it is restricted; this one says the truth.
    let line = "{\"ready\":{\"version\":2,\"restricted\":false}}";
    let unrestricted = |allow_missing: Vec<Protection>| {
        let mut config = config();
        config.host.program = "/bin/sh".into();
        config.host.arguments = vec!["-c".into(), format!("echo '{line}'; read run; echo '{{\"started\":{{}}}}'; echo '{{\"finished\":{{\"value\":7,\"dropped_lines\":0}}}}'; read end").into()];
        config.host.allow_missing = allow_missing;
        ScriptRunner::new(config)
    };
    let report = unrestricted(Vec::new()).run(&Script::new("1"), &TestTools::default(), None).await;
    let text = failed(&report, FailureKind::NotStarted);
    assert!(text.contains("seccomp"), "{text}");
    // The user may allow it.
    let report =
        unrestricted(vec![Protection::Seccomp]).run(&Script::new("1"), &TestTools::default(), None).await;
    assert_eq!(value(&report), json!(7));
}

#[tokio::test]
async fn refuses_to_start_without_a_protection() {
    // A path that the sandbox refuses stands for a system that lacks a protection.
    let mut config = config();
    config.host.program = "relative/script-host".into();
    let report = ScriptRunner::new(config.clone()).run(&Script::new("1"), &TestTools::default(), None).await;
    failed(&report, FailureKind::NotStarted);
    let warm = ScriptRunner::new(RunnerConfig { warm_hosts: 1, ..config });
    assert!(warm.warm_up().await.is_err());
}
