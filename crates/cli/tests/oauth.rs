//! Servers that require a login: the real program and the hub against a scripted authorization server; the test acts as the
//! browser.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use serde_json::json;
use toolhub::{ToolCall, ToolError};
use toolhub_testkit::oauth::{BrowserPage, Counts, Iss, OAuthPlan, OAuthServer, browse};
use toolhub_testkit::scripted::{HttpServer, Script};
use toolhub_testkit::{CommandLine, CommandOutput, TestHub};

/// The program with one protected server, `s`.
struct OAuthSetup {
    cli: CommandLine,
    server: OAuthServer,
    /// Everything the program has printed so far.
    output: std::cell::RefCell<String>,
}

impl OAuthSetup {
    fn new(plan: OAuthPlan) -> Self {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let server = OAuthServer::start(plan);
        cli.entry("s", json!({"url": server.url}));
        Self { cli, server, output: std::cell::RefCell::default() }
    }

    fn configured(plan: OAuthPlan, oauth: &str) -> Self {
        let setup = Self::new(plan);
        let text = format!("[[servers]]\nid = \"s\"\noauth = {oauth}\n");
        fs::write(setup.cli.folder().join("toolhub.toml"), text).unwrap();
        setup
    }

    fn record_output(&self, ran: CommandOutput) -> CommandOutput {
        self.output.borrow_mut().push_str(&format!("{}{}", ran.stdout, ran.stderr));
        ran
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.record_output(self.cli.run(args))
    }

    /// Runs `servers login` and opens every URL it prints.
    fn login(&self, args: &[&str]) -> (CommandOutput, Vec<BrowserPage>) {
        self.login_with(args, &[])
    }

    fn login_with(&self, args: &[&str], environment: &[(&str, &str)]) -> (CommandOutput, Vec<BrowserPage>) {
        let mut command = self.cli.command(&[&["servers", "login", "s", "--no-browser"], args].concat());
        let mut child = command.envs(environment.iter().copied()).spawn().unwrap();
        let mut stderr = String::new();
        let mut visits = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            let address = line.trim();
            if address.starts_with("http://127.0.0.1") {
                visits.push(browse(address));
            }
            stderr += &line;
            stderr.push('\n');
        }
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = child.wait().unwrap().code();
        (self.record_output(CommandOutput { code, stdout, stderr }), visits)
    }

    fn logged_in(plan: OAuthPlan) -> Self {
        let setup = Self::new(plan);
        let (ran, _) = setup.login(&[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        setup
    }

    fn tokens(&self) -> String {
        fs::read_to_string(self.cli.folder().join("home/tokens.json")).unwrap_or_default()
    }

    /// Checks that no secret is in the output or in the database, and that the server reported no protocol violation.
    fn close(self) {
        assert_eq!(self.server.violations(), Vec::<String>::new());
        let output = self.output.borrow();
        let home = self.cli.folder().join("home");
        let stored: Vec<u8> = ["toolhub.db", "toolhub.db-wal"]
            .iter()
            .flat_map(|name| fs::read(home.join(name)).unwrap_or_default())
            .collect();
        let stored = String::from_utf8_lossy(&stored);
        for secret in self.server.secrets() {
            assert!(!output.contains(&secret), "`{secret}` was shown:\n{output}");
            assert!(!stored.contains(&secret), "`{secret}` is in the database");
        }
    }
}

fn plan() -> OAuthPlan {
    OAuthPlan::default()
}

#[test]
fn login_authorizes_calls_and_persists() {
    let setup = OAuthSetup::new(plan());
    for (lang, says) in [
        ("en", "error: server `s` requires a login: run `toolhub servers login s`\n"),
        ("zh", "错误：服务器 `s` 需要登录：请运行 `toolhub servers login s`\n"),
    ] {
        let ran = setup.run(&["call", "whoami", "--source", "s", "--lang", lang]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), says));
    }
    let (ran, visits) = setup.login(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "✓ s  logged in, 2 tools\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("open this in a browser to log in:\n"), "{ran:?}");
    let page = &visits[0];
    assert_eq!(page.status, 200);
    assert!(page.page.contains("You can close this page") && page.page.contains("可以关闭本页"), "{page:?}");
    for _ in 0..2 {
        let ran = setup.run(&["call", "whoami", "--trace"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: read\n"), "{ran:?}");
    }
    let counts = setup.server.counts();
    assert_eq!((counts.registered, counts.authorized, counts.codes, counts.refreshed), (1, 1, 1, 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(setup.cli.folder().join("home/tokens.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // A registered client is reused, as long as the same port is free.
    assert_eq!(setup.login(&["--json"]).0.json(), json!({"id": "s", "success": true, "tools": 2}));
    assert!(setup.server.counts().registered <= 2);
    setup.close();
}

/// A server that requires a login was reached: the error is a failed request, not an unreachable server.
#[test]
fn missing_login_is_not_reported_as_unreachable() {
    let mut setup = OAuthSetup::new(plan());
    let commands = [&["servers", "test"][..], &["servers", "refresh"], &["doctor"]];
    for args in commands {
        let ran = setup.run(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        assert!(ran.stdout.contains("run `toolhub servers login s`"), "{args:?} {ran:?}");
    }
    let report = setup.run(&["doctor", "--json"]);
    assert_eq!((report.code, &report.json()["ok"]), (Some(1), &json!(false)), "{report:?}");
    setup.cli.entry("gone", json!({"command": "toolhub-test-none"}));
    for args in commands {
        assert_eq!(setup.run(args).code, Some(3), "{args:?}");
    }
    assert_eq!(setup.login(&[]).0.code, Some(0));
    assert_eq!(setup.run(&["servers", "refresh", "s"]).code, Some(0));
    setup.close();
}

/// HTTP+SSE answers on its stream and rejects a message by the status of the POST: that counts as a missing login, too.
#[test]
fn sse_401_is_reported_as_missing_login() {
    let stream = json!([
        {"content_type": "text/event-stream"},
        {"raw": "event: endpoint\ndata: /messages\n\n"},
        {"delay_ms": 60000},
    ]);
    let challenge = json!([{"status": 401}, {"header": {"www-authenticate": "Bearer scope=\"read\""}}]);
    let script = Script::legacy().on("*", json!([{"status": 405}])).on("GET", stream);
    let protected = HttpServer::start(&script.clone().on("POST /messages", challenge));
    let busy = HttpServer::start(&script.on("POST /messages", json!([{"status": 503}])));
    let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
    cli.entry("named", json!({"type": "sse", "url": protected.url}));
    cli.entry("found", json!({"url": protected.url}));
    cli.entry("busy", json!({"type": "sse", "url": busy.url}));
    let check = |server: &str, kind: &str, says: &str| {
        let ran = cli.run(&["call", "t", "--source", server, "--json"]);
        assert_eq!((ran.code, &ran.json()["_meta"]["error_kind"]), (Some(1), &json!(kind)), "{ran:?}");
        assert!(ran.json()["error"].as_str().unwrap().contains(says), "{ran:?}");
    };
    check("named", "login_needed", "run `toolhub servers login named`");
    check("found", "login_needed", "run `toolhub servers login found`");
    check("busy", "http_status", "HTTP status 503");
}

#[test]
fn discovers_authorization_servers_at_all_locations() {
    let plans = [
        OAuthPlan { issuer_path: "/tenant", ..plan() },
        OAuthPlan { issuer_path: "/tenant", openid_only: true, iss: Iss::Silent, ..plan() },
        OAuthPlan { names_metadata: false, ..plan() },
        OAuthPlan { openid_only: true, ..plan() },
        OAuthPlan { describes: false, scope: "", ..plan() },
    ];
    for plan in plans {
        let plan_text = format!("{plan:?}");
        let setup = OAuthSetup::new(plan);
        let (ran, _) = setup.login(&[]);
        assert_eq!(ran.code, Some(0), "{plan_text}: {ran:?}");
        assert_eq!(setup.run(&["call", "whoami"]).code, Some(0), "{plan_text}");
        setup.close();
    }
}

#[test]
fn rejects_untrustworthy_metadata() {
    let check = |plan: OAuthPlan, says: &str| {
        let plan_text = format!("{plan:?}");
        let setup = OAuthSetup::new(plan);
        let (ran, visits) = setup.login(&["--trace"]);
        assert_eq!(ran.code, Some(1), "{plan_text}: {ran:?}");
        assert!(ran.stderr.contains("error: the login to `s` failed: "), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says}: {ran:?}");
        assert!(visits.iter().all(|visit| visit.status == 400), "{visits:?}");
        assert_eq!((setup.tokens().as_str(), setup.server.counts().codes), ("", 0));
        setup.close();
    };
    check(OAuthPlan { wrong_issuer: true, ..plan() }, "names `https://honest.example`: it is not trusted");
    check(OAuthPlan { pkce: false, ..plan() }, "does not offer PKCE with S256");
    check(
        OAuthPlan { wrong_resource: true, ..plan() },
        "describes itself as `https://elsewhere.example/mcp`",
    );
    check(OAuthPlan { iss: Iss::Wrong, ..plan() }, "names `https://attacker.example`");
    check(OAuthPlan { iss: Iss::Missing, ..plan() }, "names ``: it is not trusted");
    check(OAuthPlan { denies: true, ..plan() }, "the login was refused: `access_denied`: not today");
    check(OAuthPlan { denies: true, iss: Iss::Wrong, ..plan() }, "names `https://attacker.example`");
    check(OAuthPlan { registration: false, ..plan() }, "requires registered clients");
}

#[test]
fn expired_login_exits_with_code_one() {
    let setup = OAuthSetup::logged_in(plan());
    setup.server.revoke_all();
    for _ in 0..2 {
        let ran = setup.run(&["call", "whoami", "--json", "--trace"]);
        assert_eq!(
            (ran.code, &ran.json()["_meta"]["error_kind"]),
            (Some(1), &json!("login_needed")),
            "{ran:?}"
        );
    }
    // An invalid refresh token is not used again.
    assert_eq!(setup.server.counts().refreshed, 1);
    let (ran, _) = setup.login(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(0));
    setup.close();
}

#[test]
fn uses_rotated_refresh_tokens_once_across_processes() {
    let setup = OAuthSetup::logged_in(OAuthPlan { token_delay: Duration::from_millis(150), ..plan() });
    for round in 1..=3 {
        setup.server.expire_access();
        let children: Vec<_> =
            (0..5).map(|_| setup.cli.command(&["call", "whoami", "--trace"]).spawn().unwrap()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            setup.output.borrow_mut().push_str(&String::from_utf8_lossy(&output.stderr));
        }
        let counts = setup.server.counts();
        assert_eq!((counts.refreshed, counts.reused), (round, 0));
    }
    setup.close();
}

#[test]
fn refreshes_token_before_expiry() {
    let setup = OAuthSetup::logged_in(OAuthPlan { lifetime: Duration::ZERO, ..plan() });
    let before = setup.server.counts();
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(0));
    assert!(setup.server.counts().refreshed > before.refreshed);
    setup.close();
}

#[test]
fn next_login_requests_additional_scopes() {
    let setup = OAuthSetup::logged_in(plan());
    let ran = setup.run(&["call", "write_note", "--trace"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("needs the scopes `write`"), "{ran:?}");
    assert!(ran.stderr.contains("requires a login"), "{ran:?}");
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(0), "the old login serves on");
    let (ran, _) = setup.login(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(setup.server.last_scopes(), "read write");
    assert_eq!(setup.run(&["call", "write_note"]).stdout, "scopes: read write\n");
    setup.close();
}

#[test]
fn does_not_request_denied_scope_again() {
    let setup = OAuthSetup::new(OAuthPlan { gives: Some("read"), ..plan() });
    assert_eq!(setup.login(&[]).0.code, Some(0));
    assert_eq!(setup.run(&["call", "write_note"]).code, Some(1));
    assert_eq!(setup.login(&[]).0.code, Some(0));
    let ran = setup.run(&["call", "write_note", "--json"]);
    assert_eq!(ran.json()["_meta"]["error_kind"], "http_status", "{ran:?}");
    setup.close();
}

#[test]
fn step_up_login_is_retried_a_bounded_number_of_times() {
    for (gives, code) in [(None, 0), (Some("mine"), 1)] {
        let plan = OAuthPlan { gives, names_scope: false, ..plan() };
        let setup = OAuthSetup::configured(plan, "{ scopes = [\"mine\"] }");
        let (ran, visits) = setup.login(&[]);
        assert_eq!((ran.code, visits.len()), (Some(code), 2), "{ran:?}");
        assert_eq!(setup.server.last_scopes(), "mine read");
        setup.close();
    }
}

#[test]
fn configured_client_skips_registration() {
    let client = Some(("known", Some("pass:word/1")));
    let setup = OAuthSetup::configured(
        OAuthPlan { client, registration: false, ..plan() },
        "{ client_id = \"known\", client_secret = \"${OAUTH_TEST_SECRET:-pass:word/1}\", scopes = [\"read\", \"write\"] }",
    );
    let (ran, _) = setup.login(&["--trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(setup.server.last_scopes(), "read write");
    setup.server.expire_access();
    assert_eq!(setup.run(&["call", "write_note"]).code, Some(0));
    let counts = setup.server.counts();
    assert_eq!((counts.registered, counts.refreshed), (0, 1));
    assert!(!setup.tokens().contains("pass:word"), "values of the config are not written again");
    setup.close();
}

#[test]
fn supports_client_id_metadata_document() {
    let setup = OAuthSetup::configured(
        OAuthPlan { client_documents: true, ..plan() },
        "{ client_metadata_url = \"https://toolhub.example/client.json\", redirect_port = 0 }",
    );
    assert_eq!(setup.login(&[]).0.code, Some(0));
    assert_eq!(setup.server.counts().registered, 0);
    // The client's id is stored: the token is renewed with it.
    setup.server.expire_access();
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(0));
    let counts = setup.server.counts();
    assert_eq!((counts.registered, counts.refreshed), (0, 1));
    setup.close();
}

#[test]
fn supports_client_credentials_grant() {
    let client = Some(("robot", Some("secret-of-robot")));
    let setup = OAuthSetup::configured(
        OAuthPlan { client, ..plan() },
        "{ client_id = \"robot\", client_secret = \"secret-of-robot\", grant = \"client_credentials\" }",
    );
    for _ in 0..2 {
        let ran = setup.run(&["call", "whoami", "--source", "s", "--trace"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: read\n"), "{ran:?}");
    }
    assert_eq!(setup.server.counts().by_client, 1, "the token is kept");
    setup.server.expire_access();
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(0));
    // A missing scope is requested by the hub itself.
    let ran = setup.run(&["call", "write_note"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: write read\n"), "{ran:?}");
    let counts = setup.server.counts();
    assert_eq!((counts.by_client, counts.authorized), (3, 0));
    setup.close();
}

#[test]
fn logout_revokes_tokens() {
    let setup = OAuthSetup::logged_in(plan());
    let ran = setup.run(&["servers", "logout", "s"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "logged out of `s`\n"));
    assert_eq!(setup.server.counts().revoked, 1);
    assert!(!setup.tokens().contains("access"), "{}", setup.tokens());
    assert_eq!(setup.run(&["call", "whoami"]).code, Some(1));
    let ran = setup.run(&["servers", "logout", "s", "--json"]);
    assert_eq!(ran.json(), json!({"id": "s", "success": true, "was_logged_in": false}));
    setup.close();
}

#[test]
fn tokens_are_sent_only_to_their_server() {
    let mut setup = OAuthSetup::logged_in(plan());
    let other = OAuthServer::start(plan());
    setup.cli.entry("s", json!({"url": other.url}));
    let ran = setup.run(&["call", "whoami", "--source", "s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(other.counts(), Counts::default());
    setup.cli.entry("s", json!({"url": setup.server.url}));
    assert_eq!(
        setup.run(&["call", "whoami", "--source", "s"]).code,
        Some(0),
        "the first login is still there"
    );
    setup.close();
}

#[test]
fn reports_server_without_login() {
    let mut setup = OAuthSetup::new(plan());
    let url = setup.server.url.clone();
    setup.cli.entry("own", json!({"url": url, "headers": {"authorization": "Bearer mine"}}));
    setup.cli.entry("program", json!({"command": "true"}));
    let check = |args: &[&str], code: i32, says: &str| {
        let ran = setup.run(args);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        assert!(ran.stderr.contains(says), "{args:?} {ran:?}");
    };
    check(&["servers", "login", "own"], 2, "its config sets the header `Authorization`");
    check(&["servers", "login", "program"], 2, "it is started as a program");
    check(&["servers", "login", "sss"], 2, "there is no server `sss`");
    check(&["servers", "logout", "program", "--lang", "zh"], 2, "它以程序方式启动");
    // A server with a configured token gets no hint to log in.
    check(&["call", "whoami", "--source", "own"], 1, "HTTP status 401");
    let silent = HttpServer::start(&Script::legacy().on("*", json!([{"status": 401}])));
    setup.cli.entry("silent", json!({"url": silent.url}));
    let ran = setup.run(&["call", "x", "--source", "silent"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("set `headers` for it in mcp.json"), "{ran:?}");
    let ran = setup.run(&["servers", "login", "silent"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("it does not say where to log in"), "{ran:?}");
    setup.close();
}

#[test]
fn unreadable_token_file_affects_only_servers_with_login() {
    let mut setup = OAuthSetup::new(plan());
    let open = HttpServer::start(&Script::legacy().plain_tool("echo"));
    setup.cli.entry("open", json!({"url": open.url}));
    let home = setup.cli.folder().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("tokens.json"), "{ \"servers\": hunter2").unwrap();
    let ran = setup.run(&["call", "echo", "--source", "open", "--trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("tokens.json` cannot be read at line 1"), "{ran:?}");
    let (ran, visits) = setup.login(&[]);
    assert_eq!((ran.code, visits.len()), (Some(1), 0), "no browser is opened without need: {ran:?}");
    assert!(ran.stderr.contains("mend it, or remove it and log in again"), "{ran:?}");
    assert!(!setup.output.borrow().contains("hunter2"));
    assert!(setup.tokens().contains("hunter2"), "it is left as it is");
    setup.close();
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_aborts_login() {
    let setup = OAuthSetup::new(plan());
    let mut child = setup.cli.command(&["servers", "login", "s", "--no-browser"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().trim().starts_with("http://127.0.0.1")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(setup.tokens(), "");
}

/// The key that encrypts logins is in a working keyring, else in a file; here a shell script simulates the keyring.
#[cfg(target_os = "linux")]
#[test]
fn uses_keyring_and_falls_back_to_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let store = "out=\"$RING/$(echo \"$*\" | tr -c 'a-z0-9' _ | tail -c 60)\"\n";
    let tool = |stored: &str| {
        format!(
            "#!/bin/sh\nverb=$1; shift; [ \"$verb\" = store ] && shift\n{store}case $verb in\nstore) {stored} ;;\nlookup) cat \"$out\" ;;\nclear) rm -f \"$out\" ;;\nesac\n"
        )
    };
    for (stored, in_keyring) in
        [("cat > \"$out\"", true), ("head -c 10 > \"$out\"", false), ("exit 1", false)]
    {
        let setup = OAuthSetup::new(plan());
        // Programs of the current folder are not used.
        let outside = tempfile::tempdir().unwrap();
        let (folder, ring) = (outside.path().join("bin"), outside.path().join("ring"));
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(&ring).unwrap();
        let program = folder.join("secret-tool");
        fs::write(&program, tool(stored)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let environment = [
            ("PATH", path.as_str()),
            ("RING", ring.to_str().unwrap()),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere"),
            ("DISPLAY", ":99"),
        ];
        let (ran, _) = setup.login_with(&[], &environment);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!setup.tokens().contains("access-"), "{}", setup.tokens());
        assert_eq!(setup.cli.folder().join("home/tokens.key").exists(), !in_keyring);
        assert_eq!(fs::read_dir(&ring).unwrap().count(), usize::from(in_keyring));
        setup.server.expire_access();
        let output = setup.cli.command(&["call", "whoami"]).envs(environment).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let output = setup.cli.command(&["servers", "remove", "s"]).envs(environment).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        // The key stays for other logins.
        assert_eq!(fs::read_dir(&ring).unwrap().count(), usize::from(in_keyring));
        let stored: serde_json::Value = serde_json::from_str(&setup.tokens()).unwrap_or_default();
        assert!(!stored.to_string().contains(&setup.server.url), "{stored}");
        setup.close();
    }
}

#[tokio::test]
async fn concurrent_calls_share_one_token_refresh() {
    let server = OAuthServer::start(OAuthPlan { token_delay: Duration::from_millis(100), ..plan() });
    let hub = TestHub::builder().entry("s", json!({"url": server.url})).build().await;
    let show = |address: &str| {
        let address = address.to_owned();
        std::thread::spawn(move || drop(browse(&address)));
    };
    let list = hub.login("s", &show).await.unwrap();
    assert_eq!(list.tools.len(), 2);
    for round in 1..=2 {
        server.expire_access();
        let calls = (0..20).map(|_| hub.call(ToolCall::new("whoami", json!({}))));
        for outcome in futures_util::future::join_all(calls).await {
            assert!(outcome.success(), "{outcome:?}");
        }
        let counts = server.counts();
        assert_eq!((counts.refreshed, counts.reused), (round, 0));
    }
    // After the login was revoked, all waiting calls fail with the same error.
    server.revoke_all();
    let calls = (0..20).map(|_| hub.call(ToolCall::new("whoami", json!({}))));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(matches!(outcome.result, Err(ToolError::LoginNeeded { .. })), "{outcome:?}");
    }
    assert_eq!(server.counts().refreshed, 3);
    let logged = format!("{:?} {hub:?}", hub.events.texts());
    for secret in server.secrets() {
        assert!(!logged.contains(&secret), "`{secret}` was told: {logged}");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
    hub.close().await;
}

const ROBOT: &str =
    "{ client_id = \"robot\", client_secret = \"secret-of-robot\", grant = \"client_credentials\" }";

fn robots() -> OAuthPlan {
    OAuthPlan { client: Some(("robot", Some("secret-of-robot"))), ..plan() }
}

/// A server whose login uses the client secret of its config, and a second authorization server that accepts the same secret.
fn bound() -> (OAuthSetup, OAuthServer) {
    let setup = OAuthSetup::configured(robots(), ROBOT);
    assert_eq!(setup.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    setup.server.expire_access();
    (setup, OAuthServer::start(robots()))
}

fn refused_for(setup: &OAuthSetup, named: &str) {
    for args in [&["call", "whoami", "--source", "s"][..], &["servers", "login", "s", "--no-browser"]] {
        let ran = setup.run(args);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        let own = setup.server.issuer();
        assert!(ran.stderr.contains(&own) && ran.stderr.contains(named), "{ran:?}");
        assert!(ran.stderr.contains("toolhub servers login s --issuer "), "{ran:?}");
    }
}

#[test]
fn client_secret_is_not_sent_to_another_issuer() {
    let (setup, other) = bound();
    setup.server.name_issuers(&[&other.issuer()]);
    refused_for(&setup, &other.issuer());
    assert_eq!(other.counts(), Counts::default(), "nothing was sent there");
    // With `--issuer` the owner selects the other one; from then on the first one is no longer used.
    let ran = setup.run(&["servers", "login", "s", "--no-browser", "--issuer", &other.issuer()]);
    assert!(other.counts().by_client > 0, "{ran:?}");
    setup.server.name_issuers(&[&setup.server.issuer()]);
    let ran = setup.run(&["servers", "login", "s", "--no-browser"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer"), "{ran:?}");
    let own = setup.server.issuer();
    let ran = setup.run(&["servers", "login", "s", "--no-browser", "--issuer", &own]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(setup.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    setup.close();
}

#[test]
fn client_secret_stays_bound_to_issuer_despite_spelling_and_moved_endpoint() {
    let (setup, other) = bound();
    let own = setup.server.issuer();
    for named in [format!("{own}/"), own.replace("http://", "HTTP://"), own.replace("127.0.0.1", "localhost")]
    {
        setup.server.name_issuers(&[&named]);
        let before = setup.server.counts().by_client;
        refused_for(&setup, &named);
        assert_eq!(setup.server.counts().by_client, before, "{named}");
    }
    // If several issuers are listed, the bound one is used, not the first one.
    setup.server.name_issuers(&[&other.issuer(), &own]);
    assert_eq!(setup.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    setup.server.expire_access();
    setup.server.name_issuers(&[&own]);
    setup.server.move_tokens_to(&format!("{}/token", other.issuer()));
    refused_for(&setup, &other.issuer());
    assert_eq!(other.counts(), Counts::default(), "nothing was sent there");
    setup.close();
}

#[test]
fn user_login_stays_bound_to_issuer_after_logout() {
    let client = Some(("known", Some("pass:word/1")));
    let known = || OAuthPlan { client, registration: false, ..plan() };
    let setup = OAuthSetup::configured(known(), "{ client_id = \"known\", client_secret = \"pass:word/1\" }");
    assert_eq!(setup.login(&[]).0.code, Some(0));
    assert_eq!(setup.run(&["servers", "logout", "s"]).code, Some(0));
    let other = OAuthServer::start(known());
    setup.server.name_issuers(&[&other.issuer()]);
    let (ran, visits) = setup.login(&[]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer") && visits.is_empty(), "{ran:?}");
    assert_eq!(other.counts(), Counts::default());
    setup.server.name_issuers(&[&setup.server.issuer()]);
    assert_eq!(setup.login(&[]).0.code, Some(0));
    setup.close();
}

/// Without configured client credentials, the issuer may change once the login has ended.
#[test]
fn registered_client_stays_bound_while_logged_in() {
    let setup = OAuthSetup::logged_in(plan());
    let other = OAuthServer::start(plan());
    setup.server.name_issuers(&[&other.issuer()]);
    let (ran, visits) = setup.login(&[]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer") && visits.is_empty(), "{ran:?}");
    // The refresh token is sent to its issuer only, independent of the issuers that are listed now.
    setup.server.expire_access();
    assert_eq!(setup.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    assert_eq!((setup.server.counts().refreshed, other.counts()), (1, Counts::default()));
    assert_eq!(setup.run(&["servers", "logout", "s"]).code, Some(0));
    setup.login(&[]);
    assert_eq!(other.counts().registered, 1);
    drop(other);
    setup.close();
}
