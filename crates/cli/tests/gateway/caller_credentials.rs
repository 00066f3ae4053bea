//! Servers with credentials per caller: every principal logs in itself, through the command line or a link, or its token is
//! exchanged. A call never uses the credentials of another principal or of the hub.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use reqwest::header::{COOKIE, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use toolhub_testkit::identity_provider::IdentityProvider;
use toolhub_testkit::oauth::{OAuthPlan, OAuthServer, browse};
use toolhub_testkit::scripted::Script;
use toolhub_testkit::{CommandLine, CommandOutput};

use crate::identity_provider::{ProtectedGateway, ProtectedSettings, free_address};
use crate::raw_client::{ERAS, Era, RawClient, http};
use crate::serving::{Serving, hub};
use crate::team_access::{NewKey, new_key};

/// Another key for Bob, whose key was revoked.
const SAME_BOB: NewKey = NewKey { name: "bob", options: &["--role", "caller", "--same-person"] };
const PEOPLE: [NewKey; 2] = [
    NewKey { name: "ann", options: &["--role", "caller"] },
    NewKey { name: "bob", options: &["--role", "caller"] },
];

/// A gateway before a server that needs logins, and the keys of ann and bob. The owner has logged in, so that the tools are known.
struct Setup {
    serving: Serving,
    server: OAuthServer,
    keys: Vec<String>,
}

impl Setup {
    fn start(settings: &str) -> Self {
        Self::with_plan(OAuthPlan::default(), settings)
    }

    fn with_plan(plan: OAuthPlan, settings: &str) -> Self {
        let address = free_address();
        let text = format!(
            "[auth]\nresource = \"http://{address}\"\n[profiles.default]\nexpose = \"all\"\n\
             [[servers]]\nid = \"s\"\ncredentials = \"caller\"\n{settings}"
        );
        let mut cli = hub(&text);
        let server = OAuthServer::start(plan);
        cli.entry("s", json!({"url": server.url}));
        let keys = PEOPLE.iter().map(|key| new_key(&cli, key)).collect();
        log_in(&cli, &server, "owner", &[]);
        let command = cli.command(&["serve", "--json", "--bind", &address]);
        Self { serving: Serving::run(cli, command), server, keys }
    }

    /// Logs a principal in through the command line.
    fn log_in(&self, user: &str, principal: &str) {
        log_in(self.serving.cli(), &self.server, user, &["--as", principal]);
    }

    async fn client(&self, person: usize, era: Era) -> RawClient {
        RawClient::with_token(&self.serving.url(), era, Some(&self.keys[person])).await
    }

    /// The credentials of a call, as the server received them.
    async fn whoami(&self, person: usize, era: Era) -> String {
        self.client(person, era).await.call("whoami", "{}").await.text()
    }

    /// The link in the answer to a call without a login.
    async fn link(&self, person: usize) -> String {
        let text = self.whoami(person, Era::Legacy).await;
        let link =
            text.split(' ').find(|word| word.starts_with("http://")).unwrap_or_else(|| panic!("{text}"));
        link.trim_end_matches(',').to_owned()
    }

    fn root(&self) -> String {
        self.serving.root.clone()
    }
}

fn log_in(cli: &CommandLine, server: &OAuthServer, user: &str, args: &[&str]) -> CommandOutput {
    server.log_in_as(user);
    let mut command = cli.command(&[&["servers", "login", "s", "--no-browser"], args].concat());
    let mut child = command.spawn().unwrap();
    let mut stderr = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.trim().starts_with("http://127.0.0.1") {
            assert_eq!(browse(line.trim()).status, 200);
        }
        stderr += &format!("{line}\n");
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    CommandOutput { code: output.status.code(), stdout, stderr }
}

/// A browser that follows no redirects.
fn browser() -> Client {
    // It installs the provider of cryptography.
    let _ = http();
    Client::builder().redirect(Policy::none()).no_proxy().build().unwrap()
}

async fn send_form(browser: &Client, link: &str, credential: &str, origin: Option<&str>) -> Response {
    let encoded: String = url::form_urlencoded::byte_serialize(credential.as_bytes()).collect();
    let mut request = browser
        .post(link)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("credential={encoded}"));
    if let Some(origin) = origin {
        request = request.header(ORIGIN, origin);
    }
    request.send().await.unwrap()
}

/// The address that the page leads to, and the cookie.
async fn forwarded(response: Response) -> (String, String) {
    assert_eq!(response.status(), 200);
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let page = response.text().await.unwrap();
    let address = page.split("href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let address = address.unwrap_or_else(|| panic!("{page}")).replace("&amp;", "&");
    (address, cookie.split(';').next().unwrap().to_owned())
}

/// The redirect of the authorization server back to the gateway.
async fn authorized(browser: &Client, address: &str) -> String {
    let response = browser.get(address).send().await.unwrap();
    response.headers()["location"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_caller_uses_its_own_login() {
    let setup = Setup::start("");
    let served = setup.server.counts().served;
    for era in ERAS {
        for person in 0..2 {
            let text = setup.whoami(person, era).await;
            assert!(text.starts_with("`s` needs a login of your own: open http://"), "{text}");
        }
    }
    assert_eq!(setup.server.counts().served, served, "nothing was sent with the login of the owner");
    setup.log_in("ann", "ann");
    for era in ERAS {
        assert_eq!(setup.whoami(0, era).await, "scopes: read, user: ann");
        assert!(setup.whoami(1, era).await.contains("needs a login"));
    }
    setup.log_in("bob", "key:bob");
    for _ in 0..3 {
        let (ann, bob) = tokio::join!(setup.whoami(0, Era::Modern), setup.whoami(1, Era::Legacy));
        assert_eq!((ann.as_str(), bob.as_str()), ("scopes: read, user: ann", "scopes: read, user: bob"));
    }
    let own = setup.serving.cli().run(&["call", "whoami"]);
    assert_eq!(own.stdout, "scopes: read, user: owner\n", "{own:?}");
    let stored = fs::read_to_string(setup.serving.folder().join("home/tokens.json")).unwrap();
    for secret in setup.server.secrets() {
        assert!(!stored.contains(&secret), "`{secret}` is not encrypted");
    }
    let ran = setup.serving.cli().run(&["servers", "logout", "s", "--as", "ann"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The running gateway notices it, although the token would still be accepted.
    assert!(setup.whoami(0, Era::Modern).await.contains("needs a login"));
    // It also notices another account.
    setup.log_in("robert", "bob");
    assert_eq!(setup.whoami(1, Era::Legacy).await, "scopes: read, user: robert");
    let audit = setup.serving.cli().run(&["audit", "show", "-n", "50"]).stdout;
    for who in ["key:ann", "key:bob"] {
        assert!(audit.contains(&format!("login of {who}")), "{audit}");
    }
    assert_eq!(setup.server.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_principal_of_the_same_name_has_no_login() {
    let mut setup = Setup::start("");
    setup.log_in("bob", "bob");
    assert_eq!(setup.whoami(1, Era::Legacy).await, "scopes: read, user: bob");
    let cli = setup.serving.cli();
    assert_eq!(cli.run(&["keys", "revoke", "bob"]).code, Some(0));
    setup.keys[1] = new_key(cli, &SAME_BOB);
    let mut text = String::new();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let client = RawClient::with_token(&setup.serving.url(), Era::Modern, Some(&setup.keys[1])).await;
        let answer =
            client.request("1", "tools/call", r#""name":"whoami","arguments":{}"#).send().await.unwrap();
        if answer.status() == 200 {
            text = answer.text().await.unwrap();
            break;
        }
    }
    assert!(text.contains("needs a login of your own"), "{text}");
    assert!(!text.contains("user: bob"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_principals_and_servers_that_cannot_log_in() {
    let setup = Setup::start("");
    let cli = setup.serving.cli();
    for (args, expected) in [
        (&["servers", "login", "s", "--as", "carol"][..], "carol"),
        (
            &["servers", "login", "s", "--as", "oidc:https://other.example#ann"],
            "oidc:https://other.example#ann",
        ),
        (&["servers", "login", "none", "--as", "ann"], "none"),
    ] {
        let ran = cli.run(args);
        assert!(ran.code != Some(0) && ran.stderr.contains(expected), "{ran:?}");
    }
    let text = fs::read_to_string(setup.serving.folder().join("toolhub.toml")).unwrap();
    fs::write(setup.serving.folder().join("toolhub.toml"), text.replace("credentials = \"caller\"", ""))
        .unwrap();
    let ran = cli.run(&["servers", "login", "s", "--as", "ann"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("credentials = \"caller\""), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_logs_in_through_a_link() {
    let setup = Setup::start("");
    setup.server.log_in_as("ann");
    let (link, browser, origin) = (setup.link(0).await, browser(), setup.root());
    assert_eq!(setup.link(0).await, link, "one link until it is used");
    let page = browser.get(&link).send().await.unwrap();
    assert_eq!(
        page.headers()["content-security-policy"].to_str().unwrap().split(';').next(),
        Some("default-src 'none'")
    );
    let page = page.text().await.unwrap();
    assert!(page.contains("key:ann") && page.contains("<code>s</code>"), "{page}");
    let (address, cookie) = forwarded(send_form(&browser, &link, &setup.keys[0], Some(&origin)).await).await;
    let back = authorized(&browser, &address).await;
    let done = browser.get(&back).header(COOKIE, &cookie).send().await.unwrap();
    assert_eq!(done.status(), 200, "{}", done.text().await.unwrap());
    for era in ERAS {
        assert_eq!(setup.whoami(0, era).await, "scopes: read, user: ann");
        assert!(setup.whoami(1, era).await.contains("needs a login"));
    }
    // The link and the response are used up.
    assert_eq!(browser.get(&link).send().await.unwrap().status(), 404);
    assert_eq!(browser.get(&back).header(COOKIE, &cookie).send().await.unwrap().status(), 400);
    assert_eq!(setup.server.violations(), Vec::<String>::new());
}

/// A user cannot be led to log in for another principal, by any link, form or response.
#[tokio::test(flavor = "multi_thread")]
async fn attack_login_for_another_principal() {
    let setup = Setup::start("");
    setup.server.log_in_as("victim");
    let (link, browser, origin) = (setup.link(0).await, browser(), setup.root());
    let (ann, bob) = (&setup.keys[0], &setup.keys[1]);
    // The victim, bob, opens the link of the attacker, ann, and enters his own key.
    assert_eq!(send_form(&browser, &link, bob, Some(&origin)).await.status(), 403);
    // The attacker's page sends the form with the attacker's key from the victim's browser.
    for other in [Some("https://evil.example"), Some("null"), None] {
        assert_eq!(send_form(&browser, &link, ann, other).await.status(), 403, "{other:?}");
    }
    // The attacker begins, and leads the victim's browser to the authorization server.
    let (address, cookie) = forwarded(send_form(&browser, &link, ann, Some(&origin)).await).await;
    let back = authorized(&browser, &address).await;
    let twice = format!("{cookie}; {}=0", cookie.split('=').next().unwrap());
    for stolen in [None, Some("toolhub_login_1=0"), Some("other=1"), Some(&*twice)] {
        let mut request = browser.get(&back);
        if let Some(stolen) = stolen {
            request = request.header(COOKIE, stolen);
        }
        assert_eq!(request.send().await.unwrap().status(), 400, "{stolen:?}");
    }
    // A response with another state, even from the right browser.
    let other = back.replace("state=", "state=x");
    assert_eq!(browser.get(&other).header(COOKIE, &cookie).send().await.unwrap().status(), 400);
    assert!(setup.whoami(0, Era::Modern).await.contains("needs a login"), "no login is stored");
    assert!(setup.whoami(1, Era::Modern).await.contains("needs a login"));
    // A link ends after some wrong keys.
    let link = setup.link(1).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(send_form(&browser, &link, "thk_wrong", Some(&origin)).await.status().as_u16());
    }
    assert_eq!(statuses, [403, 403, 403, 403, 403, 404]);
    // A link of a revoked key cannot be used.
    let link = setup.link(1).await;
    assert_eq!(setup.serving.cli().run(&["keys", "revoke", "bob"]).code, Some(0));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_ne!(send_form(&browser, &link, bob, Some(&origin)).await.status(), 200);
    // Another host name (DNS rebinding) reaches no page.
    let rebound = browser.get(&link).header("host", "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), 403);
}

/// A login that began with a key ends with it, and never belongs to another key of that name.
#[tokio::test(flavor = "multi_thread")]
async fn attack_login_outlives_its_key() {
    let mut setup = Setup::start("");
    let (browser, origin) = (browser(), setup.root());
    for command in [&["keys", "rotate", "bob", "--json"][..], &["keys", "revoke", "bob"]] {
        setup.server.log_in_as("thief");
        let link = setup.link(1).await;
        let (address, cookie) =
            forwarded(send_form(&browser, &link, &setup.keys[1], Some(&origin)).await).await;
        let back = authorized(&browser, &address).await;
        let ran = setup.serving.cli().run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        setup.keys[1] = match command[1] {
            "rotate" => ran.json()["key"].as_str().unwrap().to_owned(),
            // Even for the same person, the login has ended.
            _ => new_key(setup.serving.cli(), &SAME_BOB),
        };
        let finish =
            async || browser.get(&back).header(COOKIE, &cookie).send().await.unwrap().status().as_u16();
        // At once, when the gateway may not have read its settings again, and later.
        finish().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_ne!(finish().await, 200, "{command:?}");
        let text = setup.whoami(1, Era::Modern).await;
        assert!(text.contains("needs a login"), "{command:?}: {text}");
    }
    // A key that was replaced while the gateway was down.
    setup.log_in("bob", "bob");
    assert_eq!(setup.whoami(1, Era::Modern).await, "scopes: read, user: bob");
    let file = setup.serving.folder().join("toolhub.toml");
    let old = toolhub_server::hash_of(&setup.keys[1]);
    let cli = setup.serving.stop();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(&old));
    fs::write(&file, text.replace(&old, &toolhub_server::hash_of("another"))).unwrap();
    let command = cli.command(&["serve", "--json", "--bind", "127.0.0.1:0"]);
    let serving = Serving::run(cli, command);
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some("another")).await;
    let text = client.call("whoami", "{}").await.text();
    assert!(text.contains("needs a login"), "{text}");
}

/// A renewal that is under way does not restore a login that was removed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn attack_renewal_restores_a_removed_login() {
    let plan = OAuthPlan { token_delay: Duration::from_secs(2), ..OAuthPlan::default() };
    let setup = Setup::with_plan(plan, "");
    setup.log_in("bob", "bob");
    assert_eq!(setup.whoami(1, Era::Modern).await, "scopes: read, user: bob");
    setup.server.expire_access();
    let logout = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        // Without its own request to the authorization server, which is slow.
        let file = setup.serving.folder().join("home/tokens.json");
        let mut document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        document["servers"].as_object_mut().unwrap().retain(|name, _| !name.ends_with("key:bob"));
        fs::write(&file, document.to_string()).unwrap();
    };
    let (_, ()) = tokio::join!(setup.whoami(1, Era::Modern), logout);
    let stored = fs::read_to_string(setup.serving.folder().join("home/tokens.json")).unwrap();
    assert!(!stored.contains("key:bob"), "{stored}");
    assert!(setup.whoami(1, Era::Modern).await.contains("needs a login"));
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_with_a_token_logs_in_through_a_link() {
    let server = OAuthServer::start(OAuthPlan::default());
    let mut cli = hub("");
    cli.entry("s", json!({"url": server.url}));
    log_in(&cli, &server, "owner", &[]);
    let settings = ProtectedSettings {
        sections: "[[servers]]\nid = \"s\"\ncredentials = \"caller\"\n",
        ..ProtectedSettings::default()
    };
    let gateway = ProtectedGateway::before(cli, IdentityProvider::start(), &settings);
    server.log_in_as("ann");
    let token = gateway.log_in("ann", &[]).await["access_token"].as_str().unwrap().to_owned();
    let client = RawClient::with_token(&gateway.serving.url(), Era::Modern, Some(&token)).await;
    let text = client.call("whoami", "{}").await.text();
    let link = text.split(' ').find(|word| word.starts_with("http://")).unwrap_or_else(|| panic!("{text}"));
    let (link, browser) = (link.trim_end_matches(','), browser());
    let (address, cookie) =
        forwarded(send_form(&browser, link, &token, Some(&gateway.serving.root)).await).await;
    let back = authorized(&browser, &address).await;
    assert_eq!(browser.get(&back).header(COOKIE, &cookie).send().await.unwrap().status(), 200);
    assert_eq!(client.call("whoami", "{}").await.text(), "scopes: read, user: ann");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_opens_urls_waits_for_the_login() {
    let setup = Setup::start("");
    setup.server.log_in_as("ann");
    let mut client = setup.client(0, Era::Modern).await;
    client.declare(json!({"elicitation": {"url": {}}}));
    let asked = client.call("whoami", "{}").await;
    let asked: Value = serde_json::from_str(asked.result()).unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (&request["method"], &request["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );
    let link = request["params"]["url"].as_str().unwrap();
    let (browser, origin) = (browser(), setup.root());
    let (address, cookie) = forwarded(send_form(&browser, link, &setup.keys[0], Some(&origin)).await).await;
    let back = authorized(&browser, &address).await;
    let finish = browser.get(&back).header(COOKIE, &cookie).send();
    let answers = json!({key.as_str(): {"action": "accept"}});
    let mut params = format!(r#""name":"whoami","arguments":{{}},"inputResponses":{answers}"#);
    if let Some(state) = asked.get("requestState") {
        params += &format!(r#","requestState":{state}"#);
    }
    let (answer, done) = tokio::join!(client.ask("2", "tools/call", &params), finish);
    assert_eq!(done.unwrap().status(), 200);
    assert_eq!(answer.text(), "scopes: read, user: ann");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let mut cli = hub(
        "[[servers]]\nid = \"program\"\ncredentials = \"caller\"\n[[servers]]\nid = \"header\"\ncredentials = \"caller\"\n\
         [[servers]]\nid = \"exchange\"\ncredentials = \"exchange\"\n",
    );
    cli.server("program", &Script::both().plain_tool("a"));
    cli.entry("header", json!({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer x"}}));
    cli.entry("exchange", json!({"url": "http://127.0.0.1:1/mcp"}));
    let ran = cli.run(&["servers"]);
    for (id, why) in [
        ("program", "a program has no login"),
        ("header", "`Authorization` header"),
        ("exchange", "`issuer` and `client_id`"),
    ] {
        let line = ran.stderr.lines().find(|line| line.contains(&format!("server `{id}`")));
        assert!(line.is_some_and(|line| line.contains(why)), "{id}: {ran:?}");
    }
}

/// Two gateways with one identity provider: the first exchanges the token of its caller for one of the second.
#[tokio::test(flavor = "multi_thread")]
async fn token_of_the_caller_is_exchanged() {
    let mut cli = hub("");
    cli.server("sheets", &Script::both().plain_tool("read_sheet"));
    let second = ProtectedGateway::before(cli, IdentityProvider::start(), &ProtectedSettings::default());
    let issuer = second.provider.issuer.clone();
    let exchange = |issuer: &str| {
        format!(
            "[[servers]]\nid = \"second\"\ncredentials = \"exchange\"\n\
             oauth = {{ issuer = \"{issuer}\", client_id = \"hub\", client_secret = \"hub-secret\", grant = \"client_credentials\" }}\n\
             [[auth.tokens]]\nname = \"ci\"\nsha256 = \"{}\"\nroles = [\"caller\"]\n",
            toolhub_server::hash_of("ci-key")
        )
    };
    let mut cli = hub("");
    cli.entry("second", json!({"url": second.serving.url()}));
    let provider = IdentityProvider::attach(&issuer);
    let first = ProtectedGateway::before(
        cli,
        provider,
        &ProtectedSettings { sections: &exchange(&issuer), ..ProtectedSettings::default() },
    );
    for account in ["ann", "bob"] {
        let token = first.log_in(account, &[]).await["access_token"].as_str().unwrap().to_owned();
        let client = RawClient::with_token(&first.serving.url(), Era::Modern, Some(&token)).await;
        let answer = client.call("read_sheet", "{}").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let by = format!("oidc:{issuer}#{account}");
        let mut history = String::new();
        for _ in 0..100 {
            history = second.serving.cli().run(&["history", "--by", &by, "--json"]).stdout;
            if history.contains("read_sheet") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(history.contains("read_sheet"), "the second gateway records the caller: {history}");
    }
    // A key is no token of the provider, and nothing is sent with the credentials of the hub.
    let requests = second.serving.cli().run(&["history", "--json"]).stdout.matches("read_sheet").count();
    let client = RawClient::with_token(&first.serving.url(), Era::Modern, Some("ci-key")).await;
    let refused = client.call("read_sheet", "{}").await.text();
    assert!(refused.contains("a key cannot be exchanged"), "{refused}");
    assert_eq!(
        second.serving.cli().run(&["history", "--json"]).stdout.matches("read_sheet").count(),
        requests
    );
}
