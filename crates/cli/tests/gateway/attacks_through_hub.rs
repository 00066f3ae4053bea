//! What must never happen when commands use a running hub: a key at another address, a call that runs twice or on the wrong
//! machine, and answers that control the terminal. Each is an attempt.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use toolhub_testkit::CommandLine;

use crate::console::sheets;
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};
use crate::through_hub::{command, output};

const KEY: &str = "thk_secret_of_this_test";

/// A program that answers HTTP requests and records what it receives.
struct Listening {
    url: String,
    received: Arc<Mutex<Vec<String>>>,
}

impl Listening {
    /// Answers each request with the text that `answer` returns for it; an empty one closes the connection.
    fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    fn on(listener: TcpListener, answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                requests.lock().unwrap().push(request.clone());
                let _ = stream.write_all(answer(&request).as_bytes());
            }
        });
        Self { url, received }
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// Reads one request.
fn read(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return text;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        text.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    text + &String::from_utf8_lossy(&body)
}

fn response(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn cli() -> CommandLine {
    hub("[native]\nenabled = false\n")
}

#[test]
fn attack_redirect_to_another_host() {
    let cli = cli();
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let target = Listening::start(|_| response("200 OK", "application/json", r#"{"items":[]}"#));
        let location = format!("{}/api/v1/servers", target.url);
        let text = format!(
            "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let hub = Listening::start(move |_| text.clone());
        for args in [&["servers"][..], &["call", "x"]] {
            let ran = output(&mut command(&cli, &hub.url, KEY, args));
            assert!(ran.code == Some(2) && ran.stderr.contains("which is not followed"), "{status}: {ran:?}");
        }
        assert_eq!(hub.received().len(), 2);
        assert_eq!(target.received(), Vec::<String>::new(), "{status}");
    }
}

#[test]
fn attack_plain_http_to_another_host() {
    let cli = cli();
    for url in [
        "http://hub.example",
        "http://192.0.2.1:7460",
        "http://localhost.example:7460",
        "http://127.0.0.1@hub.example",
    ] {
        let ran = output(&mut command(&cli, url, KEY, &["tools"]));
        assert_eq!(ran.code, Some(2), "{url}: {ran:?}");
        assert!(!ran.stderr.contains(KEY), "{ran:?}");
    }
}

/// A proxy would receive the key of a request to this machine.
#[test]
fn attack_proxy_of_the_environment() {
    let proxy = Listening::start(|_| response("200 OK", "application/json", r#"{"items":[]}"#));
    let hub = Listening::start(|_| response("200 OK", "application/json", r#"{"items":[]}"#));
    let cli = cli();
    let mut through = command(&cli, &hub.url, KEY, &["servers"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        through.env(name, &proxy.url);
    }
    let ran = output(&mut through);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(hub.received().len(), 1);
    assert_eq!(proxy.received(), Vec::<String>::new());
}

/// Binds an address. A connection of another test may have its port as a source port for a moment.
fn bind_when_free(address: &str) -> TcpListener {
    let since = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(error)
                if error.kind() == ErrorKind::AddrInUse && since.elapsed() < Duration::from_secs(30) =>
            {
                thread::sleep(Duration::from_millis(50));
            }
            bound => return bound.unwrap(),
        }
    }
}

/// The port of a hub that was killed is taken by another program: commands that find running hubs by themselves send it nothing.
#[test]
fn attack_leftover_port() {
    let mut cli = cli();
    cli.server("s", &sheets());
    let serving = Serving::start(cli);
    let address = serving.root.strip_prefix("http://").unwrap().to_owned();
    let cli = serving.kill();
    let addresses = cli.folder().join("home/console/addresses");
    assert_eq!(addresses.read_dir().unwrap().count(), 1, "what the killed hub left");
    let program = Listening::on(bind_when_free(&address), |_| response("200 OK", "application/json", "{}"));
    let listed = cli.run(&["--json", "servers"]);
    assert!(listed.code == Some(0) && !listed.stderr.contains("live state"), "{listed:?}");
    assert_eq!(cli.run(&["servers", "restart", "s"]).code, Some(2));
    assert_eq!(cli.run(&["servers", "show", "s"]).code, Some(0));
    assert_eq!(program.received(), Vec::<String>::new());
}

/// Inserted into every text of the hub.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{8}\rback\u{202e}rtl\u{fdd0}g\nerror: forged";

#[test]
fn attack_terminal_through_answers() {
    let answer = |request: &str| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let definition =
            json!({"name": format!("t{HOSTILE}"), "description": HOSTILE, "inputSchema": {"type": "object"}});
        let tool = json!({"name": HOSTILE, "sources": [HOSTILE], "tags": [HOSTILE], "approval": HOSTILE, "definition": definition});
        let body = match path.split('?').next().unwrap_or_default() {
            "/api/v1/servers" => {
                json!({"items": [{"id": HOSTILE, "transport": HOSTILE, "state": HOSTILE, "era": HOSTILE, "tools": 1, "error": HOSTILE, "peer": HOSTILE, "restarts": 0, "listed_at": HOSTILE, "circuit_open_until": null}]})
            }
            "/api/v1/tools" => json!({"items": [tool], "next": null}),
            "/api/v1/tools/shown" => tool,
            "/api/v1/explain" => {
                json!({"strategy": HOSTILE, "batch": 1, "candidates": [{"source": HOSTILE, "tool": HOSTILE, "why": HOSTILE}], "reasons": [HOSTILE]})
            }
            "/api/v1/keys" => {
                json!({"items": [{"name": HOSTILE, "roles": [HOSTILE], "profiles": [HOSTILE], "expires": HOSTILE, "per_day": 1}]})
            }
            "/api/v1/tools/failing:call" => json!({"success": false, "result": null, "error": HOSTILE}),
            _ => {
                let problem = json!({"type": "urn:toolhub:problem:not-found", "status": 404, "title": "", "detail": HOSTILE});
                return response("404 Not Found", "application/problem+json", &problem.to_string());
            }
        };
        response("200 OK", "application/json", &body.to_string())
    };
    let (hub, cli) = (Listening::start(answer), cli());
    for args in [
        &["servers"][..],
        &["tools"],
        &["tools", "show", "shown"],
        &["explain", "x"],
        &["keys"],
        &["call", "failing"],
        &["audit"],
        &["history"],
        &["waiting", "approve", "x"],
        &["servers", "logs", "x"],
    ] {
        let ran = output(&mut command(&cli, &hub.url, KEY, args));
        for text in [&ran.stdout, &ran.stderr] {
            assert!(
                !text.contains(['\u{1b}', '\u{9b}', '\u{8}', '\r', '\u{7}', '\u{202e}']),
                "{args:?}: {text:?}"
            );
            assert!(!text.lines().any(|line| line == "error: forged"), "{args:?}: {text:?}");
        }
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("pwned"), "{args:?}: {ran:?}");
    }
}

/// The answer to a call is lost after the hub has received it: it is not sent again.
#[test]
fn attack_repeat_of_a_call_with_a_lost_answer() {
    let cli = cli();
    for lost in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", "HTTP/1.1 2"] {
        let hub = Listening::start(move |_| lost.to_owned());
        let ran = output(&mut command(&cli, &hub.url, KEY, &["call", "write"]));
        assert_eq!(ran.code, Some(3), "{lost:?}: {ran:?}");
        assert!(ran.stderr.contains("may have taken effect"), "{ran:?}");
        let received = hub.received();
        assert_eq!(received.len(), 1, "{lost:?}: {received:?}");
        let head = received[0].to_ascii_lowercase();
        assert!(
            head.starts_with("post /api/v1/tools/write:call ") && head.contains("idempotency-key: cli-"),
            "{head}"
        );
    }
}

/// Commands that do not exist through a hub are refused before anything happens on this machine.
#[test]
fn attack_local_run_of_an_unsupported_command() {
    let mut cli = cli();
    let journal = cli.folder().join("journal");
    cli.server("s", &sheets().journal(&journal));
    let config = cli.folder().join("toolhub.toml");
    let files = || (fs::read(&config).unwrap(), fs::read(cli.folder().join("mcp.json")).unwrap());
    let before = files();
    let hub = Listening::start(|_| response("200 OK", "application/json", "{}"));
    for args in [
        &[][..],
        &["init"],
        &["ask", "read a sheet"],
        &["chat"],
        &["prompt"],
        &["run"],
        &["parse"],
        &["recommend"],
        &["doctor"],
        &["trust"],
        &["console"],
        &["serve", "--bind", "127.0.0.1:0"],
        &["serve", "--stdio"],
        &["skills"],
        &["eval", "plan", "--tools", "file", "--requests", "file"],
        &["tools", "diff", "read_sheet"],
        &["tools", "approve", "read_sheet"],
        &["servers", "add", "new", "--", "true"],
        &["servers", "remove", "s"],
        &["servers", "refresh"],
        &["servers", "offers", "s"],
        &["servers", "read", "s", "uri:x"],
        &["servers", "prompt", "s", "x"],
        &["servers", "login", "s"],
        &["servers", "logout", "s"],
        &["servers", "import"],
        &["servers", "export", "cursor"],
    ] {
        let ran = output(&mut command(&cli, &hub.url, KEY, args));
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("does not work with `--hub`"), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("`call`, `explain`, `tools`"), "{args:?}: {ran:?}");
    }
    assert_eq!(files(), before);
    assert!(!journal.exists(), "no server was started");
    assert_eq!(hub.received(), Vec::<String>::new());
}

/// No output contains the key, however much is printed.
#[test]
fn attack_key_in_output() {
    let cli = cli();
    let key = new_key(&cli, &NewKey { name: "ci", options: &["--role", "owner"] });
    let serving = Serving::start(cli);
    for args in
        [&["-vv", "--trace", "tools"][..], &["-vv", "--trace", "--json", "call", "absent"], &["-vv", "keys"]]
    {
        let ran = output(&mut command(serving.cli(), &serving.root, &key, args));
        assert!(!ran.stdout.contains(&key) && !ran.stderr.contains(&key), "{args:?}: {ran:?}");
    }
    // A key in the address would be visible in the list of processes.
    let address = serving.root.replace("http://", &format!("http://x:{key}@"));
    let ran = output(&mut command(serving.cli(), &address, &key, &["tools"]));
    assert!(ran.code == Some(2) && !ran.stderr.contains(&key), "{ran:?}");
}
