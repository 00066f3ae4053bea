//! People log in to the console at a real identity provider (npm `oidc-provider`), and see what their roles allow.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use toolhub_testkit::identity_provider::IdentityProvider;
use url::Url;

use crate::console::sheets;
use crate::identity_provider::free_address;
use crate::raw_client::http;
use crate::serving::{Serving, TEST_TIMEOUT, hub};

/// The public URL of the hub. A reverse proxy would end TLS there; these tests send what it would send.
const ROOT: &str = "https://hub.example";

/// A hub with a public name whose console has logins at a provider.
struct Team {
    provider: IdentityProvider,
    serving: Serving,
    client: Client,
}

fn settings(provider: &IdentityProvider, client_id: &str) -> String {
    format!(
        "[serve]\nhosts = [\"hub.example\"]\n[audit]\nenabled = true\n[auth]\nresource = \"{ROOT}\"\n\
         [[auth.issuers]]\nurl = \"{}\"\nclient_id = \"{client_id}\"\nroles = {ROLES}\n",
        provider.issuer
    )
}

const ROLES: &str = r#"{ caller = "groups:office", owner = "groups:platform", auditor = "groups:platform" }"#;

impl Team {
    async fn start() -> Self {
        let provider = IdentityProvider::start();
        let address: SocketAddr = free_address().parse().unwrap();
        http();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        let registration = json!({
            "redirect_uris": [format!("{ROOT}/console/callback")],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code"],
            "response_types": ["code"],
        });
        let registered = client.post(provider.url("/reg")).header("content-type", "application/json");
        let registered = registered.body(registration.to_string()).send().await.unwrap();
        let registered: Value = registered.json().await.unwrap();
        let id = registered["client_id"].as_str().unwrap_or_else(|| panic!("{registered}"));
        let mut cli = hub(&settings(&provider, id));
        cli.server("s", &sheets());
        let command = cli.command(&["serve", "--json", "--bind", &address.to_string()]);
        Self { provider, serving: Serving::run(cli, command), client }
    }

    async fn get(&self, path: &str, cookie: &str) -> Response {
        let path = path.strip_prefix(ROOT).unwrap_or(path);
        let request = self.client.get(format!("{}{path}", self.serving.root)).header("host", "hub.example");
        request.header("cookie", cookie).send().await.unwrap()
    }

    /// Begins a login. Returns the cookie and the address at the provider.
    async fn begin(&self, next: &str) -> (String, String) {
        let begun = self.get(&format!("/console/login?next={next}"), "").await;
        assert_eq!(begun.status(), StatusCode::SEE_OTHER);
        let address = begun.headers()["location"].to_str().unwrap().to_owned();
        assert!(address.starts_with(&self.provider.issuer), "{address}");
        (cookie(&begun, "toolhub_login").unwrap(), address)
    }

    /// The redirect back to the console of an account that accepts everything.
    async fn approve(&self, account: &str, address: &str) -> String {
        let mut url = Url::parse(&self.provider.url("/test/approve")).unwrap();
        url.query_pairs_mut().append_pair("account", account).append_pair("to", address);
        let answer = self.client.get(url).send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        answer["location"].as_str().unwrap().to_owned()
    }

    /// Logs in. Returns the response of the callback.
    async fn log_in(&self, account: &str) -> Response {
        let (begun, address) = self.begin("tools%3Fq%3Dadd").await;
        let callback = self.approve(account, &address).await;
        self.get(&callback, &begun).await
    }

    async fn session(&self, account: &str) -> String {
        cookie(&self.log_in(account).await, "toolhub_console").unwrap()
    }

    /// Waits until a request with this cookie has this status.
    async fn await_status(&self, path: &str, cookie: &str, status: u16) {
        let since = Instant::now();
        while self.get(path, cookie).await.status() != status {
            assert!(since.elapsed() < TEST_TIMEOUT, "{path}: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The cookie of this name that a response sets, for a request header.
fn cookie(response: &Response, name: &str) -> Option<String> {
    let cookies = response.headers().get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let name = format!("__Host-{name}_0=");
    let mut named = cookies.filter(|cookie| cookie.starts_with(&name) && !cookie.contains("Max-Age=0"));
    let cookie = named.next()?;
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Secure", "; Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    Some(cookie.split(';').next().unwrap().to_owned())
}

#[tokio::test]
async fn people_log_in_and_see_what_their_roles_allow() {
    let team = Team::start().await;
    let page = team.get("/console/tools", "").await;
    assert_eq!(page.status(), 401);
    assert!(page.text().await.unwrap().contains("login?issuer="));
    let opened = team.log_in("ann").await;
    assert_eq!(opened.status(), StatusCode::SEE_OTHER);
    assert_eq!(opened.headers()["location"], "./tools?q=add");
    let ann = cookie(&opened, "toolhub_console").unwrap();
    let me: Value = team.get("/api/v1/me", &ann).await.json().await.unwrap();
    assert_eq!(me["id"], format!("oidc:{}#ann", team.provider.issuer));
    assert_eq!((&me["display"], &me["roles"]), (&json!("ann"), &json!(["auditor", "owner"])));
    for path in ["", "tools", "servers", "access", "audit", "settings"] {
        assert_eq!(team.get(&format!("/console/{path}"), &ann).await.status(), 200, "{path}");
    }
    // The agent acts as the local user, and is not for other people.
    assert_eq!(team.get("/console/ask", &ann).await.status(), 403);

    let bob = team.session("bob").await;
    for (path, status) in [
        ("", 200),
        ("tools", 200),
        ("calls", 200),
        ("servers", 403),
        ("servers/s", 403),
        ("skills", 403),
        ("access", 403),
        ("audit", 403),
        ("settings", 403),
        ("ask", 403),
    ] {
        let page = team.get(&format!("/console/{path}"), &bob).await;
        assert_eq!(page.status(), status, "{path}");
        let text = page.text().await.unwrap();
        assert!(!text.contains("href=\"./servers\"") && !text.contains("href=\"./settings\""), "{path}");
    }
    assert_eq!(team.get("/api/v1/servers", &bob).await.status(), 403);
    // Sessions are for the console, never for the gateway.
    let list = team.client.post(format!("{}/mcp", team.serving.root)).header("cookie", &ann).body("{}");
    assert_eq!(list.send().await.unwrap().status(), 401);
    let audit = team.serving.cli().run(&["audit", "show", "--kind", "login", "--json"]);
    assert!(audit.stdout.contains("#ann") && audit.stdout.contains("oidc"), "{audit:?}");
}

#[tokio::test]
async fn people_without_a_role_get_no_session() {
    let team = Team::start().await;
    let refused = team.log_in("carl").await;
    assert_eq!(refused.status(), 403);
    assert_eq!(cookie(&refused, "toolhub_console"), None);
    assert!(refused.text().await.unwrap().contains("[[auth.issuers]]"));
}

/// A changed configuration applies to open sessions: other roles at once, and none without the provider.
#[tokio::test]
async fn sessions_follow_the_configuration() {
    let team = Team::start().await;
    let bob = team.session("bob").await;
    let file = team.serving.cli().folder().join("toolhub.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(&file, before.replace("auditor = \"groups:platform\"", "auditor = \"groups:office\"")).unwrap();
    team.await_status("/console/audit", &bob, 200).await;
    let id = before.split("client_id").nth(1).unwrap().split('\n').next().unwrap();
    fs::write(&file, before.replace(&format!("client_id{id}\n"), "")).unwrap();
    team.await_status("/console/tools", &bob, 401).await;
    let begun = team.get("/console/login", "").await;
    assert_eq!(begun.status(), 401, "no login any more");
}

/// What others may try with a login: another browser, another login's code, a used code, a page elsewhere.
#[tokio::test]
async fn attack_logins() {
    let team = Team::start().await;
    let (mallory, address) = team.begin("").await;
    let stolen = team.approve("bob", &address).await;
    let (victim, _) = team.begin("").await;
    let with = |query: &[(&str, &str)]| {
        let mut url = Url::parse(&stolen).unwrap();
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .into_owned()
            .filter(|(name, _)| !query.iter().any(|(changed, _)| changed == name))
            .collect();
        let changed = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        url.query_pairs_mut().clear().extend_pairs(kept.into_iter().chain(changed));
        url.to_string()
    };
    let state = victim.split('.').nth(1).unwrap();
    for (name, url, cookie_text) in [
        ("no cookie", stolen.clone(), ""),
        ("the cookie of another login", stolen.clone(), victim.as_str()),
        ("the code of another login", with(&[("state", state)]), &victim),
        ("another issuer", with(&[("iss", "https://evil.example")]), &mallory),
        ("no code", with(&[("code", "")]), &mallory),
        ("an error", with(&[("error", "<script>access_denied</script>")]), &mallory),
        ("two cookies", stolen.clone(), &format!("{mallory}; {victim}")),
    ] {
        let refused = team.get(&url, cookie_text).await;
        assert_eq!(refused.status(), 403, "{name}");
        assert_eq!(cookie(&refused, "toolhub_console"), None, "{name}");
        assert!(!refused.text().await.unwrap().contains("<script>access"), "{name}");
    }
    // The code was redeemed with a wrong verifier above: the provider has revoked it.
    let (honest, address) = team.begin("").await;
    let callback = team.approve("bob", &address).await;
    assert_eq!(team.get(&callback, &honest).await.status(), StatusCode::SEE_OTHER);
    let again = team.get(&callback, &honest).await;
    assert_eq!((again.status().as_u16(), cookie(&again, "toolhub_console")), (403, None));
    // A link cannot lead away from the console.
    for next in ["https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "..%2F..%2Fmcp", "%5C%5Cevil"] {
        let (begun, address) = team.begin(next).await;
        let callback = team.approve("bob", &address).await;
        let opened = team.get(&callback, &begun).await;
        assert_eq!(opened.headers()["location"], "./", "{next}");
    }
    // On the addresses of this machine, where other programs get the same cookies, there are no sessions.
    let begun = team.client.get(format!("{}/console/login", team.serving.root)).send().await.unwrap();
    assert_eq!(begun.status(), 401);
}
