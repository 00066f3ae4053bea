//! Servers that require a login: the real program and the hub against a scripted authorization server; the test acts as the
//! browser.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use serde_json::json;
use toolhub::{ToolCall, ToolError};
use toolhub_testkit::oauth::{Counts, Iss, OAuthPlan, OAuthServer, Visited, browse};
use toolhub_testkit::scripted::{HttpServer, Script};
use toolhub_testkit::{CommandLine, Ran, TestHub};

/// The program with one protected server, `s`.
struct Den {
    cli: CommandLine,
    server: OAuthServer,
    /// Everything the program has printed so far.
    said: std::cell::RefCell<String>,
}

impl Den {
    fn new(plan: OAuthPlan) -> Self {
        let mut cli = CommandLine::new(env!("CARGO_BIN_EXE_toolhub"));
        let server = OAuthServer::start(plan);
        cli.entry("s", json!({"url": server.url}));
        Self { cli, server, said: std::cell::RefCell::default() }
    }

    fn configured(plan: OAuthPlan, oauth: &str) -> Self {
        let den = Self::new(plan);
        let text = format!("[[servers]]\nid = \"s\"\noauth = {oauth}\n");
        fs::write(den.cli.folder().join("toolhub.toml"), text).unwrap();
        den
    }

    fn heard(&self, ran: Ran) -> Ran {
        self.said.borrow_mut().push_str(&format!("{}{}", ran.stdout, ran.stderr));
        ran
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.heard(self.cli.run(args))
    }

    /// Runs `servers login` and opens every URL it prints.
    fn login(&self, args: &[&str]) -> (Ran, Vec<Visited>) {
        self.login_with(args, &[])
    }

    fn login_with(&self, args: &[&str], environment: &[(&str, &str)]) -> (Ran, Vec<Visited>) {
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
        (self.heard(Ran { code, stdout, stderr }), visits)
    }

    fn logged_in(plan: OAuthPlan) -> Self {
        let den = Self::new(plan);
        let (ran, _) = den.login(&[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        den
    }

    fn tokens(&self) -> String {
        fs::read_to_string(self.cli.folder().join("home/tokens.json")).unwrap_or_default()
    }

    /// Checks that no secret is in the output or in the database, and that the server reported no protocol violation.
    fn close(self) {
        assert_eq!(self.server.complaints(), Vec::<String>::new());
        let said = self.said.borrow();
        let home = self.cli.folder().join("home");
        let kept: Vec<u8> = ["toolhub.db", "toolhub.db-wal"]
            .iter()
            .flat_map(|name| fs::read(home.join(name)).unwrap_or_default())
            .collect();
        let kept = String::from_utf8_lossy(&kept);
        for secret in self.server.secrets() {
            assert!(!said.contains(&secret), "`{secret}` was shown:\n{said}");
            assert!(!kept.contains(&secret), "`{secret}` is in the database");
        }
    }
}

fn plan() -> OAuthPlan {
    OAuthPlan::default()
}

#[test]
fn a_login_lets_calls_in_and_lasts() {
    let den = Den::new(plan());
    for (lang, says) in [
        ("en", "error: server `s` wants you to log in: run `toolhub servers login s`\n"),
        ("zh", "错误：服务器 `s` 需要登录：请运行 `toolhub servers login s`\n"),
    ] {
        let ran = den.run(&["call", "whoami", "--source", "s", "--lang", lang]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), says));
    }
    let (ran, visits) = den.login(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "✓ s  logged in, 2 tools\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("open this in a browser to log in:\n"), "{ran:?}");
    let page = &visits[0];
    assert_eq!(page.status, 200);
    assert!(page.page.contains("You can close this page") && page.page.contains("可以关闭本页"), "{page:?}");
    for _ in 0..2 {
        let ran = den.run(&["call", "whoami", "--trace"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: read\n"), "{ran:?}");
    }
    let counts = den.server.counts();
    assert_eq!((counts.registered, counts.authorized, counts.codes, counts.refreshed), (1, 1, 1, 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(den.cli.folder().join("home/tokens.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // A registered client is reused, as long as the same port is free.
    assert_eq!(den.login(&["--json"]).0.json(), json!({"id": "s", "success": true, "tools": 2}));
    assert!(den.server.counts().registered <= 2);
    den.close();
}

/// A server that requires a login was reached: the error is a failed request, not an unreachable server.
#[test]
fn a_missing_login_is_no_server_out_of_reach() {
    let mut den = Den::new(plan());
    let commands = [&["servers", "test"][..], &["servers", "refresh"], &["doctor"]];
    for args in commands {
        let ran = den.run(args);
        assert_eq!(ran.code, Some(1), "{args:?} {ran:?}");
        assert!(ran.stdout.contains("run `toolhub servers login s`"), "{args:?} {ran:?}");
    }
    let report = den.run(&["doctor", "--json"]);
    assert_eq!((report.code, &report.json()["ok"]), (Some(1), &json!(false)), "{report:?}");
    den.cli.entry("gone", json!({"command": "toolhub-test-none"}));
    for args in commands {
        assert_eq!(den.run(args).code, Some(3), "{args:?}");
    }
    assert_eq!(den.login(&[]).0.code, Some(0));
    assert_eq!(den.run(&["servers", "refresh", "s"]).code, Some(0));
    den.close();
}

/// HTTP+SSE answers on its stream and rejects a message by the status of the POST: that counts as a missing login, too.
#[test]
fn a_refused_message_of_the_old_transport_is_a_missing_login() {
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
fn authorization_servers_are_found_wherever_they_may_be() {
    let plans = [
        OAuthPlan { issuer_path: "/tenant", ..plan() },
        OAuthPlan { issuer_path: "/tenant", openid_only: true, iss: Iss::Silent, ..plan() },
        OAuthPlan { names_metadata: false, ..plan() },
        OAuthPlan { openid_only: true, ..plan() },
        OAuthPlan { describes: false, scope: "", ..plan() },
    ];
    for plan in plans {
        let shown = format!("{plan:?}");
        let den = Den::new(plan);
        let (ran, _) = den.login(&[]);
        assert_eq!(ran.code, Some(0), "{shown}: {ran:?}");
        assert_eq!(den.run(&["call", "whoami"]).code, Some(0), "{shown}");
        den.close();
    }
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    let check = |plan: OAuthPlan, says: &str| {
        let shown = format!("{plan:?}");
        let den = Den::new(plan);
        let (ran, visits) = den.login(&["--trace"]);
        assert_eq!(ran.code, Some(1), "{shown}: {ran:?}");
        assert!(ran.stderr.contains("error: the login to `s` failed: "), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says}: {ran:?}");
        assert!(visits.iter().all(|visit| visit.status == 400), "{visits:?}");
        assert_eq!((den.tokens().as_str(), den.server.counts().codes), ("", 0));
        den.close();
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
    check(OAuthPlan { registration: false, ..plan() }, "wants to know its clients");
}

#[test]
fn a_login_that_has_ended_is_told_with_exit_code_one() {
    let den = Den::logged_in(plan());
    den.server.revoke_all();
    for _ in 0..2 {
        let ran = den.run(&["call", "whoami", "--json", "--trace"]);
        assert_eq!(
            (ran.code, &ran.json()["_meta"]["error_kind"]),
            (Some(1), &json!("login_needed")),
            "{ran:?}"
        );
    }
    // An invalid refresh token is not used again.
    assert_eq!(den.server.counts().refreshed, 1);
    let (ran, _) = den.login(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(den.run(&["call", "whoami"]).code, Some(0));
    den.close();
}

#[test]
fn refresh_tokens_rotate_and_are_used_once_even_by_many_programs() {
    let den = Den::logged_in(OAuthPlan { token_delay: Duration::from_millis(150), ..plan() });
    for round in 1..=3 {
        den.server.expire_access();
        let children: Vec<_> =
            (0..5).map(|_| den.cli.command(&["call", "whoami", "--trace"]).spawn().unwrap()).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            den.said.borrow_mut().push_str(&String::from_utf8_lossy(&output.stderr));
        }
        let counts = den.server.counts();
        assert_eq!((counts.refreshed, counts.reused), (round, 0));
    }
    den.close();
}

#[test]
fn a_token_is_renewed_before_it_runs_out() {
    let den = Den::logged_in(OAuthPlan { lifetime: Duration::ZERO, ..plan() });
    let before = den.server.counts();
    assert_eq!(den.run(&["call", "whoami"]).code, Some(0));
    assert!(den.server.counts().refreshed > before.refreshed);
    den.close();
}

#[test]
fn what_a_tool_needs_beyond_the_login_is_asked_for_at_the_next() {
    let den = Den::logged_in(plan());
    let ran = den.run(&["call", "write_note", "--trace"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("needs the scopes `write`"), "{ran:?}");
    assert!(ran.stderr.contains("wants you to log in"), "{ran:?}");
    assert_eq!(den.run(&["call", "whoami"]).code, Some(0), "the old login serves on");
    let (ran, _) = den.login(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(den.server.last_scopes(), "read write");
    assert_eq!(den.run(&["call", "write_note"]).stdout, "scopes: read write\n");
    den.close();
}

#[test]
fn what_was_asked_for_and_not_given_is_not_asked_for_again() {
    let den = Den::new(OAuthPlan { gives: Some("read"), ..plan() });
    assert_eq!(den.login(&[]).0.code, Some(0));
    assert_eq!(den.run(&["call", "write_note"]).code, Some(1));
    assert_eq!(den.login(&[]).0.code, Some(0));
    let ran = den.run(&["call", "write_note", "--json"]);
    assert_eq!(ran.json()["_meta"]["error_kind"], "http_status", "{ran:?}");
    den.close();
}

#[test]
fn a_login_whose_server_wants_more_is_made_again_but_not_for_ever() {
    for (gives, code) in [(None, 0), (Some("mine"), 1)] {
        let plan = OAuthPlan { gives, names_scope: false, ..plan() };
        let den = Den::configured(plan, "{ scopes = [\"mine\"] }");
        let (ran, visits) = den.login(&[]);
        assert_eq!((ran.code, visits.len()), (Some(code), 2), "{ran:?}");
        assert_eq!(den.server.last_scopes(), "mine read");
        den.close();
    }
}

#[test]
fn a_client_that_is_known_needs_no_registration() {
    let client = Some(("known", Some("pass:word/1")));
    let den = Den::configured(
        OAuthPlan { client, registration: false, ..plan() },
        "{ client_id = \"known\", client_secret = \"${OAUTH_TEST_SECRET:-pass:word/1}\", scopes = [\"read\", \"write\"] }",
    );
    let (ran, _) = den.login(&["--trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(den.server.last_scopes(), "read write");
    den.server.expire_access();
    assert_eq!(den.run(&["call", "write_note"]).code, Some(0));
    let counts = den.server.counts();
    assert_eq!((counts.registered, counts.refreshed), (0, 1));
    assert!(!den.tokens().contains("pass:word"), "what stands in the config is not written again");
    den.close();
}

#[test]
fn a_client_may_be_named_by_its_description() {
    let den = Den::configured(
        OAuthPlan { client_documents: true, ..plan() },
        "{ client_metadata_url = \"https://toolhub.example/client.json\", redirect_port = 0 }",
    );
    assert_eq!(den.login(&[]).0.code, Some(0));
    assert_eq!(den.server.counts().registered, 0);
    assert!(den.tokens().contains("https://toolhub.example/client.json"));
    den.close();
}

#[test]
fn a_client_may_log_in_by_itself() {
    let client = Some(("robot", Some("secret-of-robot")));
    let den = Den::configured(
        OAuthPlan { client, ..plan() },
        "{ client_id = \"robot\", client_secret = \"secret-of-robot\", grant = \"client_credentials\" }",
    );
    for _ in 0..2 {
        let ran = den.run(&["call", "whoami", "--source", "s", "--trace"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: read\n"), "{ran:?}");
    }
    assert_eq!(den.server.counts().by_client, 1, "the token is kept");
    den.server.expire_access();
    assert_eq!(den.run(&["call", "whoami"]).code, Some(0));
    // A missing scope is requested by the hub itself.
    let ran = den.run(&["call", "write_note"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "scopes: write read\n"), "{ran:?}");
    let counts = den.server.counts();
    assert_eq!((counts.by_client, counts.authorized), (3, 0));
    den.close();
}

#[test]
fn logging_out_gives_the_tokens_back() {
    let den = Den::logged_in(plan());
    let ran = den.run(&["servers", "logout", "s"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "logged out of `s`\n"));
    assert_eq!(den.server.counts().revoked, 1);
    assert!(!den.tokens().contains("access"), "{}", den.tokens());
    assert_eq!(den.run(&["call", "whoami"]).code, Some(1));
    let ran = den.run(&["servers", "logout", "s", "--json"]);
    assert_eq!(ran.json(), json!({"id": "s", "success": true, "was_logged_in": false}));
    den.close();
}

#[test]
fn tokens_go_nowhere_else() {
    let mut den = Den::logged_in(plan());
    let other = OAuthServer::start(plan());
    den.cli.entry("s", json!({"url": other.url}));
    let ran = den.run(&["call", "whoami", "--source", "s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(other.counts(), Counts::default());
    den.cli.entry("s", json!({"url": den.server.url}));
    assert_eq!(den.run(&["call", "whoami", "--source", "s"]).code, Some(0), "the first login is still there");
    den.close();
}

#[test]
fn where_there_is_no_login_that_is_said() {
    let mut den = Den::new(plan());
    let url = den.server.url.clone();
    den.cli.entry("own", json!({"url": url, "headers": {"authorization": "Bearer mine"}}));
    den.cli.entry("program", json!({"command": "true"}));
    let check = |args: &[&str], code: i32, says: &str| {
        let ran = den.run(args);
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
    den.cli.entry("silent", json!({"url": silent.url}));
    let ran = den.run(&["call", "x", "--source", "silent"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("set `headers` for it in mcp.json"), "{ran:?}");
    let ran = den.run(&["servers", "login", "silent"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("it does not say where to log in"), "{ran:?}");
    den.close();
}

#[test]
fn a_file_of_tokens_that_cannot_be_read_harms_nobody_who_needs_none() {
    let mut den = Den::new(plan());
    let open = HttpServer::start(&Script::legacy().plain_tool("echo"));
    den.cli.entry("open", json!({"url": open.url}));
    let home = den.cli.folder().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("tokens.json"), "{ \"servers\": hunter2").unwrap();
    let ran = den.run(&["call", "echo", "--source", "open", "--trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("tokens.json` cannot be read at line 1"), "{ran:?}");
    let (ran, visits) = den.login(&[]);
    assert_eq!((ran.code, visits.len()), (Some(1), 0), "nobody is sent to a browser for nothing: {ran:?}");
    assert!(ran.stderr.contains("mend it, or remove it and log in again"), "{ran:?}");
    assert!(!den.said.borrow().contains("hunter2"));
    assert!(den.tokens().contains("hunter2"), "it is left as it is");
    den.close();
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_wait_for_the_browser() {
    let den = Den::new(plan());
    let mut child = den.cli.command(&["servers", "login", "s", "--no-browser"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().trim().starts_with("http://127.0.0.1")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(den.tokens(), "");
}

/// A working keyring is used; here a shell script simulates it.
#[cfg(target_os = "linux")]
#[test]
fn a_keyring_that_works_is_used_and_one_that_does_not_is_not_missed() {
    use std::os::unix::fs::PermissionsExt as _;
    let store = "out=\"$RING/$(echo \"$*\" | tr -c 'a-z0-9' _ | tail -c 60)\"\n";
    let tool = |kept: &str| {
        format!(
            "#!/bin/sh\nverb=$1; shift; [ \"$verb\" = store ] && shift\n{store}case $verb in\nstore) {kept} ;;\nlookup) cat \"$out\" ;;\nclear) rm -f \"$out\" ;;\nesac\n"
        )
    };
    for (kept, in_keyring) in [("cat > \"$out\"", true), ("head -c 100 > \"$out\"", false), ("exit 1", false)]
    {
        let den = Den::new(plan());
        let folder = den.cli.folder().join("bin");
        let ring = den.cli.folder().join("ring");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(&ring).unwrap();
        let program = folder.join("secret-tool");
        fs::write(&program, tool(kept)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let environment = [
            ("PATH", path.as_str()),
            ("RING", ring.to_str().unwrap()),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere"),
            ("DISPLAY", ":99"),
        ];
        let (ran, _) = den.login_with(&[], &environment);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(!den.tokens().contains("access-"), in_keyring, "{}", den.tokens());
        assert_eq!(fs::read_dir(&ring).unwrap().count(), usize::from(in_keyring));
        den.server.expire_access();
        let output = den.cli.command(&["call", "whoami"]).envs(environment).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let output = den.cli.command(&["servers", "remove", "s"]).envs(environment).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(fs::read_dir(&ring).unwrap().count(), 0);
        assert!(!den.tokens().contains("access-"), "{}", den.tokens());
        den.close();
    }
}

#[tokio::test]
async fn twenty_calls_share_one_renewal() {
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
    let told = format!("{:?} {hub:?}", hub.events.texts());
    for secret in server.secrets() {
        assert!(!told.contains(&secret), "`{secret}` was told: {told}");
    }
    assert_eq!(server.complaints(), Vec::<String>::new());
    hub.close().await;
}

const ROBOT: &str =
    "{ client_id = \"robot\", client_secret = \"secret-of-robot\", grant = \"client_credentials\" }";

fn robots() -> OAuthPlan {
    OAuthPlan { client: Some(("robot", Some("secret-of-robot"))), ..plan() }
}

/// A server whose login uses the client secret of its config, and a second authorization server that accepts the same secret.
fn bound() -> (Den, OAuthServer) {
    let den = Den::configured(robots(), ROBOT);
    assert_eq!(den.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    den.server.expire_access();
    (den, OAuthServer::start(robots()))
}

fn refused_for(den: &Den, named: &str) {
    for args in [&["call", "whoami", "--source", "s"][..], &["servers", "login", "s", "--no-browser"]] {
        let ran = den.run(args);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        let own = den.server.issuer();
        assert!(ran.stderr.contains(&own) && ran.stderr.contains(named), "{ran:?}");
        assert!(ran.stderr.contains("toolhub servers login s --issuer "), "{ran:?}");
    }
}

#[test]
fn attack_secret_is_not_sent_to_another_issuer() {
    let (den, other) = bound();
    den.server.name_issuers(&[&other.issuer()]);
    refused_for(&den, &other.issuer());
    assert_eq!(other.counts(), Counts::default(), "nothing was sent there");
    // With `--issuer` the owner selects the other one; from then on the first one is no longer used.
    let ran = den.run(&["servers", "login", "s", "--no-browser", "--issuer", &other.issuer()]);
    assert!(other.counts().by_client > 0, "{ran:?}");
    den.server.name_issuers(&[&den.server.issuer()]);
    let ran = den.run(&["servers", "login", "s", "--no-browser"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer"), "{ran:?}");
    let own = den.server.issuer();
    let ran = den.run(&["servers", "login", "s", "--no-browser", "--issuer", &own]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(den.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    den.close();
}

#[test]
fn attack_secret_stays_bound_under_other_spellings_and_a_moved_token_endpoint() {
    let (den, other) = bound();
    let own = den.server.issuer();
    for named in [format!("{own}/"), own.replace("http://", "HTTP://"), own.replace("127.0.0.1", "localhost")]
    {
        den.server.name_issuers(&[&named]);
        let before = den.server.counts().by_client;
        refused_for(&den, &named);
        assert_eq!(den.server.counts().by_client, before, "{named}");
    }
    // If several issuers are listed, the bound one is used, not the first one.
    den.server.name_issuers(&[&other.issuer(), &own]);
    assert_eq!(den.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    den.server.expire_access();
    den.server.name_issuers(&[&own]);
    den.server.move_tokens_to(&format!("{}/token", other.issuer()));
    refused_for(&den, &other.issuer());
    assert_eq!(other.counts(), Counts::default(), "nothing was sent there");
    den.close();
}

#[test]
fn attack_login_of_a_person_stays_bound_after_logout() {
    let client = Some(("known", Some("pass:word/1")));
    let known = || OAuthPlan { client, registration: false, ..plan() };
    let den = Den::configured(known(), "{ client_id = \"known\", client_secret = \"pass:word/1\" }");
    assert_eq!(den.login(&[]).0.code, Some(0));
    assert_eq!(den.run(&["servers", "logout", "s"]).code, Some(0));
    let other = OAuthServer::start(known());
    den.server.name_issuers(&[&other.issuer()]);
    let (ran, visits) = den.login(&[]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer") && visits.is_empty(), "{ran:?}");
    assert_eq!(other.counts(), Counts::default());
    den.server.name_issuers(&[&den.server.issuer()]);
    assert_eq!(den.login(&[]).0.code, Some(0));
    den.close();
}

/// Without configured client credentials, the issuer may change once the login has ended.
#[test]
fn registered_client_is_bound_as_long_as_the_login_lasts() {
    let den = Den::logged_in(plan());
    let other = OAuthServer::start(plan());
    den.server.name_issuers(&[&other.issuer()]);
    let (ran, visits) = den.login(&[]);
    assert!(ran.code != Some(0) && ran.stderr.contains("--issuer") && visits.is_empty(), "{ran:?}");
    // The refresh token is sent to its issuer only, independent of the issuers that are listed now.
    den.server.expire_access();
    assert_eq!(den.run(&["call", "whoami", "--source", "s"]).code, Some(0));
    assert_eq!((den.server.counts().refreshed, other.counts()), (1, Counts::default()));
    assert_eq!(den.run(&["servers", "logout", "s"]).code, Some(0));
    den.login(&[]);
    assert_eq!(other.counts().registered, 1);
    drop(other);
    den.close();
}
