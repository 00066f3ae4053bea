//! `toolhub serve --check`, the readiness probe for containers and services.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::serving::{Serving, hub};

#[test]
fn reports_serving_hub_as_ready() {
    let serving = Serving::start(hub(""));
    let address = serving.root.strip_prefix("http://").unwrap();
    let ran = serving.cli().run(&["serve", "--check", "--bind", address]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
    let output = serving.cli().run(&["--json", "serve", "--check", "--bind", address]).json();
    assert_eq!(output["ready"], true, "{output}");
    assert_eq!(output["address"], address, "{output}");
}

#[test]
fn needs_no_token() {
    let cli = hub("");
    let made = cli.run(&["serve", "--new-token", "ann", "--json"]).json();
    let settings = format!("[[auth.tokens]]\nname = \"ann\"\nsha256 = {}\n", made["sha256"]);
    std::fs::write(cli.folder().join("toolhub.toml"), settings).unwrap();
    let serving = Serving::start(cli);
    let address = serving.root.strip_prefix("http://").unwrap();
    let ran = serving.cli().run(&["serve", "--check", "--bind", address]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
}

#[test]
fn reports_unreachable_hub() {
    // Bound and closed again: nothing listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ran = hub("").run(&["serve", "--check", "--bind", &address]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(&format!("no hub answers at {address}")), "{ran:?}");
    // Without `--bind` the configured address is used.
    let ran = hub(&format!("[serve]\nbind = \"{address}\"\n")).run(&["--lang", "zh", "serve", "--check"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(&format!("{address} 上没有 hub 响应")), "{ran:?}");
}

#[test]
fn reports_other_program_and_draining_hub() {
    for (body, code, expect) in [
        ("HTTP/1.1 200 OK\r\n\r\nhello", 3, "the response is not a hub's"),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"draining\"}", 1, "is not ready: draining"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let length = stream.read(&mut head).unwrap();
            assert!(head[..length].starts_with(b"GET /readyz HTTP/1.1\r\n"));
            stream.write_all(body.as_bytes()).unwrap();
        });
        let ran = hub("").run(&["serve", "--check", "--bind", &address]);
        answer.join().unwrap();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(expect), "{ran:?}");
    }
}
