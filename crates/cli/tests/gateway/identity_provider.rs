//! Access tokens of a real identity provider (npm `oidc-provider`) at the gateway: accepted, refused, recorded, revoked, and never
//! written anywhere.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use toolhub_testkit::CommandLine;
use toolhub_testkit::identity_provider::IdentityProvider;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{ERAS, Era, RawClient, http};
use crate::serving::{Serving, TEST_TIMEOUT, hub};
use crate::team_access::KeptConnection;

/// Seconds that a token is valid for, at the provider.
const TOKEN_LIFETIME: u64 = 3600;
/// Seconds that the gateway adds for differing clocks.
const CLOCK_SKEW: u64 = 60;
/// How long a revoked token may still be accepted, and a margin for the requests of the test.
const REVOCATION_DELAY: Duration = Duration::from_secs(61);
/// The minimum time between two fetches of keys, and a margin.
const KEY_FETCH_INTERVAL: Duration = Duration::from_secs(35);

const PROFILES: &str = "[profiles.default]\nexpose = \"all\"\n[profiles.ops]\nexpose = \"all\"\n";

/// An address that is free at the moment.
pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A gateway that accepts tokens of a provider.
pub(crate) struct ProtectedGateway {
    pub(crate) provider: IdentityProvider,
    pub(crate) serving: Serving,
}

/// The settings of a gateway that accepts tokens of a provider.
#[derive(Default)]
pub(crate) struct ProtectedSettings<'a> {
    /// Further keys of the issuer.
    pub(crate) issuer: &'a str,
    /// Further sections.
    pub(crate) sections: &'a str,
    /// Whether it writes traces.
    pub(crate) trace: bool,
}

/// A server with two tools that return their arguments.
fn sheets() -> Script {
    Script::both().plain_tool("read_sheet").plain_tool("write_sheet")
}

impl ProtectedGateway {
    /// Starts both. Every principal is a caller; those in the group `platform` are owners.
    pub(crate) fn start(settings: &ProtectedSettings<'_>) -> Self {
        let mut cli = hub("");
        cli.server("s", &sheets());
        Self::before(cli, IdentityProvider::start(), settings)
    }

    /// Like `start`, with this provider and these servers.
    pub(crate) fn before(
        cli: CommandLine,
        provider: IdentityProvider,
        settings: &ProtectedSettings<'_>,
    ) -> Self {
        let address = free_address();
        let ProtectedSettings { issuer, sections, trace } = settings;
        let text = format!(
            "{PROFILES}[auth]\nresource = \"http://{address}\"\n[[auth.issuers]]\nurl = \"{}\"\n\
             roles = {{ caller = \"*\", owner = \"groups:platform\" }}\n{issuer}\n{sections}",
            provider.issuer
        );
        fs::write(cli.folder().join("toolhub.toml"), text).unwrap();
        let verbosity: &[&str] = if *trace { &["--trace"] } else { &[] };
        let command = cli.command(&[verbosity, &["serve", "--json", "--bind", &address]].concat());
        Self { provider, serving: Serving::run(cli, command) }
    }

    /// The audience of a profile; `None` is the default profile.
    fn audience(&self, profile: Option<&str>) -> String {
        profile.map_or_else(|| self.serving.url(), |profile| format!("{}/{profile}", self.serving.url()))
    }

    /// An access token of the program `ci` for the default profile, requested with further parameters.
    async fn token(&self, parameters: &[(&str, &str)]) -> String {
        let audience = self.audience(None);
        self.token_for(&audience, parameters).await
    }

    /// Like `token`, for another audience.
    async fn token_for(&self, audience: &str, parameters: &[(&str, &str)]) -> String {
        let grant = [("grant_type", "client_credentials"), ("resource", audience)];
        let answer = self.post("/token", &[&grant, parameters].concat()).await;
        answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// A POST to the provider by the program `ci`.
    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let request = http().post(self.provider.url(path)).basic_auth("ci", Some("ci-secret"));
        let text =
            request.headers(form_header()).body(encode(form)).send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// The tokens of a person who logs in with an authorization code and PKCE.
    pub(crate) async fn log_in(&self, account: &str, parameters: &[(&str, &str)]) -> Value {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let (redirect, audience) = ("http://127.0.0.1:5555/callback", self.audience(None));
        let query = encode(&[
            ("client_id", "desktop"),
            ("response_type", "code"),
            ("redirect_uri", redirect),
            ("scope", "openid sheets:read"),
            ("resource", &audience),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ]);
        let to = self.provider.url(&format!("/auth?{query}"));
        let approve = format!("/test/approve?{}", encode(&[("account", account), ("to", &to)]));
        let answer = http().get(self.provider.url(&approve)).send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        let location = url::Url::parse(answer["location"].as_str().unwrap()).unwrap();
        let code = location.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
        let grant = [
            ("grant_type", "authorization_code"),
            ("client_id", "desktop"),
            ("code", &code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect),
        ];
        let body = encode(&[&grant, parameters].concat());
        let request = http().post(self.provider.url("/token")).headers(form_header()).body(body);
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    }

    /// The response to a list request with this token at a profile.
    async fn list_at(&self, profile: Option<&str>, token: &str) -> Response {
        let client = RawClient::with_token(&self.audience(profile), Era::Modern, Some(token)).await;
        client.request("1", "tools/list", "").send().await.unwrap()
    }

    /// The status of a list request with this token.
    async fn status(&self, token: &str) -> u16 {
        self.list_at(None, token).await.status().as_u16()
    }

    /// The number of requests for a path of the provider.
    async fn requests(&self, path: &str) -> u64 {
        let text =
            http().get(self.provider.url("/test/requests")).send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()[path].as_u64().unwrap_or_default()
    }

    /// The principals of the recorded calls, the last one first, once there are this many.
    fn recorded_principals(&self, count: usize) -> Vec<String> {
        let calls = await_history(self.serving.cli(), &[], count);
        calls.iter().map(|call| call["principal"].as_str().unwrap().to_owned()).collect()
    }
}

/// The recorded calls that these options of `history` select, once there are this many: a call is stored after its response.
pub(crate) fn await_history(cli: &CommandLine, options: &[&str], count: usize) -> Vec<Value> {
    let since = Instant::now();
    loop {
        let history = cli.run(&[&["history", "--json", "-n", "1000"], options].concat()).json();
        let calls = history.as_array().unwrap();
        if calls.len() >= count {
            return calls.clone();
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{} of {count} calls are recorded", calls.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn encode(form: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish()
}

fn form_header() -> reqwest::header::HeaderMap {
    let value = reqwest::header::HeaderValue::from_static("application/x-www-form-urlencoded");
    std::iter::once((reqwest::header::CONTENT_TYPE, value)).collect()
}

fn challenge(response: &Response) -> String {
    response.headers()["www-authenticate"].to_str().unwrap().to_owned()
}

/// A parameter of a challenge.
fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    Some(rest.split_once('"')?.0)
}

#[tokio::test]
async fn token_of_the_provider_is_accepted_and_recorded_with_its_subject() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let issuer = &gateway.provider.issuer;
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
        let token = gateway.token(&[("alg", algorithm)]).await;
        for era in ERAS {
            let client = RawClient::with_token(&gateway.serving.url(), era, Some(&token)).await;
            assert!(client.tools().await.contains(&"read_sheet".to_owned()), "{algorithm} {era:?}");
            assert_eq!(client.call("read_sheet", r#"{"row":1}"#).await.text(), r#"{"row":1}"#);
        }
    }
    assert_eq!(gateway.recorded_principals(8), vec![format!("oidc:{issuer}#ci"); 8]);
    assert_eq!(gateway.requests("/jwks").await, 1, "the keys are fetched once");
    let tokens = gateway.log_in("bob", &[]).await;
    let client =
        RawClient::with_token(&gateway.serving.url(), Era::Legacy, tokens["access_token"].as_str()).await;
    client.call("read_sheet", "{}").await.text();
    assert_eq!(gateway.recorded_principals(9)[0], format!("oidc:{issuer}#bob"));
    let by = format!("oidc:{issuer}#bob");
    assert_eq!(await_history(gateway.serving.cli(), &["--by", &by], 1).len(), 1);
    // The provider answers a refresh token with another access token of the same person.
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let grant = [("grant_type", "refresh_token"), ("client_id", "desktop"), ("refresh_token", refresh)];
    let request = http().post(gateway.provider.url("/token")).headers(form_header()).body(encode(&grant));
    let refreshed: Value =
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    let refreshed = refreshed["access_token"].as_str().unwrap_or_else(|| panic!("{refreshed}"));
    assert_ne!(Some(refreshed), tokens["access_token"].as_str());
    assert_eq!(gateway.status(refreshed).await, 200);
    assert_eq!(gateway.status(refresh).await, 401, "a refresh token is no access token");
}

#[tokio::test]
async fn token_for_another_audience_is_refused() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let root = &gateway.serving.root;
    let (default, ops) = (gateway.audience(None), gateway.audience(Some("ops")));
    for (audience, profile, expected) in [
        (default.as_str(), None, 200),
        (&ops, Some("ops"), 200),
        (&ops, None, 401),
        (&default, Some("ops"), 401),
        (root, None, 401),
        (&format!("{default}/"), None, 401),
        (&format!("{default}/other"), None, 401),
        ("http://other.example/mcp", None, 401),
        (&gateway.provider.issuer, None, 401),
    ] {
        let token = gateway.token_for(audience, &[]).await;
        let response = gateway.list_at(profile, &token).await;
        assert_eq!(response.status(), expected, "{audience} at {profile:?}");
        if expected == 401 {
            assert_eq!(parameter(&challenge(&response), "error"), Some("invalid_token"), "{audience}");
        }
    }
    // A token that one profile has accepted is not accepted at another one afterwards, on the same connection.
    let token = gateway.token(&[]).await;
    for expected in [(None, 200), (Some("ops"), 401), (None, 200)] {
        assert_eq!(gateway.list_at(expected.0, &token).await.status(), expected.1, "{expected:?}");
    }
    // The OpenAI-compatible endpoint takes the profile from a header.
    let for_ops = gateway.token_for(&ops, &[]).await;
    for (token, project, expected) in [
        (&token, None, 200),
        (&token, Some("ops"), 401),
        (&token, Some(""), 200),
        (&for_ops, Some("ops"), 200),
        (&for_ops, None, 401),
    ] {
        let mut request = http().get(format!("{root}/v1/models")).bearer_auth(token);
        if let Some(project) = project {
            request = request.header("OpenAI-Project", project);
        }
        assert_eq!(request.send().await.unwrap().status(), expected, "at /v1 for {project:?}");
    }
    // A session of one profile does not open another one.
    let mut client = RawClient::with_token(&default, Era::Legacy, Some(&token)).await;
    client.move_to(&ops);
    assert_eq!(client.request("1", "tools/list", "").send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn expired_and_future_tokens_are_refused() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    for (age, expected) in [
        (0_i64, 200),
        // Expired, but within the tolerance for differing clocks.
        (3600 + 30, 200),
        (3600 + 61, 401),
        (7200, 401),
        (-30, 200),
        (-120, 401),
    ] {
        let token = gateway.token(&[("age", &age.to_string())]).await;
        assert_eq!(gateway.status(&token).await, expected, "issued {age} s ago");
    }
    // A token that is accepted and expires afterwards, on the same connection.
    let age = (TOKEN_LIFETIME + CLOCK_SKEW - 2).to_string();
    let token = gateway.token(&[("age", &age)]).await;
    let mut connection = KeptConnection::open(&gateway.serving, &token);
    assert_eq!(connection.status(), Some(200));
    let since = Instant::now();
    while connection.status() == Some(200) {
        assert!(since.elapsed() < Duration::from_secs(20), "the connection still accepts the token");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(KeptConnection::open(&gateway.serving, &token).status(), Some(401));
}

#[tokio::test]
async fn stream_ends_when_its_token_expires() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let lasting = gateway.token(&[]).await;
    let age = (TOKEN_LIFETIME + CLOCK_SKEW - 3).to_string();
    for era in ERAS {
        let short = gateway.token(&[("age", &age)]).await;
        let url = gateway.serving.url();
        let mut ending = RawClient::with_token(&url, era, Some(&short)).await.listen().await;
        let mut staying = RawClient::with_token(&url, era, Some(&lasting)).await.listen().await;
        let since = Instant::now();
        let end = tokio::time::timeout(Duration::from_secs(6), ending.is_broken()).await;
        assert!(end.is_ok(), "{era:?}: the stream is still open");
        assert!(since.elapsed() > Duration::from_millis(500), "{era:?}: it was open before");
        let stays = tokio::time::timeout(Duration::from_millis(500), staying.is_broken()).await;
        assert!(stays.is_err(), "{era:?}: the other stream stays open");
    }
}

#[tokio::test]
async fn rotated_keys_are_fetched_and_removed_keys_are_not_used() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let first = gateway.token(&[]).await;
    assert_eq!(gateway.status(&first).await, 200);
    gateway.post("/test/rotate", &[]).await;
    let second = gateway.token(&[]).await;
    let is_accepted_in_time = async |token: &str| {
        let since = Instant::now();
        while gateway.status(token).await != 200 {
            if since.elapsed() > KEY_FETCH_INTERVAL {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        true
    };
    assert!(is_accepted_in_time(&second).await, "the new key is fetched");
    assert_eq!(gateway.status(&first).await, 200, "the old key is still published");
    gateway.post("/test/rotate", &[]).await;
    gateway.post("/test/retire", &[]).await;
    let third = gateway.token(&[]).await;
    assert!(is_accepted_in_time(&third).await, "the newest key is fetched");
    // With the new set the old keys are gone, although both tokens were verified before.
    for old in [&first, &second] {
        assert_eq!(gateway.status(old).await, 401);
    }
    let fetches = gateway.requests("/jwks").await;
    assert_eq!(fetches, 3, "each refused token may not fetch the keys");
}

#[tokio::test]
async fn opaque_token_is_refused_after_its_revocation() {
    let introspection = "introspection = { client_id = \"hub\", client_secret = \"hub-secret\" }";
    let gateway =
        ProtectedGateway::start(&ProtectedSettings { issuer: introspection, ..ProtectedSettings::default() });
    let tokens = gateway.log_in("bob", &[("format", "opaque")]).await;
    let token = tokens["access_token"].as_str().unwrap();
    assert!(!token.contains('.'), "it is opaque");
    for _ in 0..5 {
        assert_eq!(gateway.status(token).await, 200);
    }
    let client = RawClient::with_token(&gateway.serving.url(), Era::Legacy, Some(token)).await;
    client.call("read_sheet", "{}").await.text();
    assert_eq!(gateway.recorded_principals(1), [format!("oidc:{}#bob", gateway.provider.issuer)]);
    assert_eq!(gateway.requests("/token/introspection").await, 1, "the answer is cached");
    let mut stream = client.listen().await;
    // Never used before its revocation.
    let unused = gateway.log_in("ann", &[("format", "opaque")]).await;
    for revoked in [token, unused["access_token"].as_str().unwrap()] {
        let body = encode(&[("client_id", "desktop"), ("token", revoked)]);
        let url = gateway.provider.url("/token/revocation");
        assert_eq!(http().post(url).headers(form_header()).body(body).send().await.unwrap().status(), 200);
    }
    let since = Instant::now();
    assert_eq!(gateway.status(unused["access_token"].as_str().unwrap()).await, 401);
    assert_eq!(gateway.status("an-opaque-token-of-nobody").await, 401);
    while gateway.status(token).await == 200 {
        assert!(since.elapsed() < REVOCATION_DELAY, "the token is still accepted");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(client.request("1", "tools/list", "").send().await.unwrap().status(), 401);
    let end = tokio::time::timeout(Duration::from_secs(2), stream.is_broken()).await;
    assert!(end.is_ok(), "the stream of the revoked token is still open");
}

#[tokio::test]
async fn missing_scopes_are_named_at_once_and_a_token_with_them_works() {
    let rules = "[[auth.rules]]\nname = \"read\"\neffect = \"allow\"\ntools = [\"read_sheet\"]\n\
        [[auth.rules]]\nname = \"write\"\neffect = \"allow\"\ntools = [\"write_sheet\"]\nscope = \"sheets:read sheets:write\"\n";
    let gateway =
        ProtectedGateway::start(&ProtectedSettings { sections: rules, ..ProtectedSettings::default() });
    let url = gateway.serving.url();
    for era in ERAS {
        let plain = gateway.token(&[]).await;
        let client = RawClient::with_token(&url, era, Some(&plain)).await;
        let tools = client.tools().await;
        assert!(
            tools.contains(&"write_sheet".to_owned()),
            "{era:?}: a call would ask for the scopes: {tools:?}"
        );
        assert_eq!(client.call("read_sheet", "{}").await.text(), "{}", "{era:?}");
        let params = r#""name":"write_sheet","arguments":{}"#;
        let response = client.request("1", "tools/call", params).send().await.unwrap();
        assert_eq!(response.status(), 403, "{era:?}");
        let challenge = challenge(&response);
        assert_eq!(parameter(&challenge, "error"), Some("insufficient_scope"), "{challenge}");
        assert_eq!(parameter(&challenge, "scope"), Some("sheets:read sheets:write"), "{challenge}");
        let metadata = parameter(&challenge, "resource_metadata").unwrap();
        assert_eq!(http().get(metadata).send().await.unwrap().status(), 200);
        // One of two scopes is not enough; the challenge still names all that the call needs.
        let partial = gateway.token(&[("scope", "sheets:write")]).await;
        let client = RawClient::with_token(&url, era, Some(&partial)).await;
        let response = client.request("1", "tools/call", params).send().await.unwrap();
        assert_eq!(response.status(), 403, "{era:?}");
        let full = gateway.token(&[("scope", "sheets:read sheets:write")]).await;
        let client = RawClient::with_token(&url, era, Some(&full)).await;
        assert_eq!(client.call("write_sheet", r#"{"row":2}"#).await.text(), r#"{"row":2}"#, "{era:?}");
    }
    let calls = await_history(gateway.serving.cli(), &["--tool", "write_sheet"], 2);
    let rules: Vec<_> = calls.iter().map(|call| call["rule"].clone()).collect();
    assert_eq!(rules, ["write", "write"], "only the calls that ran");
}

#[tokio::test]
async fn other_tokens_of_the_provider_are_refused() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let tokens = gateway.log_in("ann", &[]).await;
    assert_eq!(gateway.status(tokens["access_token"].as_str().unwrap()).await, 200);
    assert_eq!(gateway.status(tokens["id_token"].as_str().unwrap()).await, 401, "an ID token");
    assert_eq!(gateway.status(tokens["refresh_token"].as_str().unwrap()).await, 401, "a refresh token");
    let opaque = gateway.token(&[("format", "opaque")]).await;
    assert_eq!(gateway.status(&opaque).await, 401, "an opaque token without introspection");
    // A valid token of a provider that is not configured.
    let stranger = IdentityProvider::start();
    let stranger = ProtectedGateway { provider: stranger, serving: gateway.serving };
    let token = stranger.token(&[]).await;
    assert_eq!(stranger.status(&token).await, 401, "a token of another provider");
    drop(gateway.provider);
}

#[tokio::test]
async fn challenge_leads_to_the_metadata_of_the_profile() {
    let rules = "[[auth.rules]]\neffect = \"allow\"\nscope = \"sheets:read\"\n";
    let gateway =
        ProtectedGateway::start(&ProtectedSettings { sections: rules, ..ProtectedSettings::default() });
    let root = &gateway.serving.root;
    for profile in [None, Some("ops")] {
        let audience = gateway.audience(profile);
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let response = http().request(method.clone(), &audience).send().await.unwrap();
            assert_eq!(response.status(), 401, "{method} {audience}");
            let challenge = challenge(&response);
            assert!(
                challenge.starts_with("Bearer ") && parameter(&challenge, "error").is_none(),
                "{challenge}"
            );
            assert!(!challenge.contains("offline_access"), "{challenge}");
            let metadata = parameter(&challenge, "resource_metadata").unwrap();
            let suffix = profile.map(|profile| format!("/{profile}")).unwrap_or_default();
            assert_eq!(metadata, format!("{root}/.well-known/oauth-protected-resource/mcp{suffix}"));
            let response = http().get(metadata).send().await.unwrap();
            assert_eq!(response.headers()["content-type"], "application/json");
            let metadata: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(metadata["resource"], audience.as_str());
            assert_eq!(metadata["authorization_servers"], json!([gateway.provider.issuer]));
            assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
            assert_eq!(metadata["scopes_supported"], json!(["sheets:read"]));
        }
    }
    let plain = gateway.serving.get("/.well-known/oauth-protected-resource").await;
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert_eq!(plain["authorization_servers"], json!([gateway.provider.issuer]));
}

#[tokio::test]
async fn token_outside_of_the_header_is_refused_and_written_nowhere() {
    let settings = ProtectedSettings {
        sections: "[serve]\naccess_log = \"requests\"\n",
        trace: true,
        ..ProtectedSettings::default()
    };
    let gateway = ProtectedGateway::start(&settings);
    let (token, url) = (gateway.token(&[]).await, gateway.serving.url());
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let mut client = RawClient::with_token(&format!("{url}?access_token={token}"), Era::Modern, None).await;
    assert_eq!(client.request("1", "tools/list", "").send().await.unwrap().status(), 401, "in the query");
    let form = http().post(&url).headers(form_header()).body(format!("access_token={token}"));
    assert_eq!(form.send().await.unwrap().status(), 401, "in the body");
    for (name, value) in [("cookie", format!("access_token={token}")), ("x-access-token", token.clone())] {
        let request =
            http().post(&url).header(name, value).header("content-type", "application/json").body(list);
        assert_eq!(request.send().await.unwrap().status(), 401, "in {name}");
    }
    // Valid, invalid and malformed tokens.
    client.move_to(&url);
    for (credentials, expected) in [
        (format!("Bearer {token}"), 200),
        (format!("Bearer {token}x"), 401),
        (format!("DPoP {token}"), 401),
        (format!("Bearer {token} {token}"), 401),
    ] {
        client.set("authorization", &credentials);
        let response = client.request("1", "tools/list", "").send().await.unwrap();
        assert_eq!(response.status(), expected, "{}", credentials.split(' ').next().unwrap());
    }
    client.set("authorization", &format!("Bearer {token}"));
    client.call("read_sheet", "{}").await.text();
    let twice = http().post(&url).header("authorization", format!("Bearer {token}"));
    let twice = twice.header("authorization", format!("Bearer {token}")).body(list);
    assert_eq!(twice.send().await.unwrap().status(), 400, "repeated");
    let folder = gateway.serving.folder().to_owned();
    let stderr = gateway.serving.stderr();
    assert!(stderr.contains("/mcp"), "the trace shows requests: {stderr}");
    let (log, since) = (folder.join("requests"), Instant::now());
    let subject = format!("oidc:{}#ci", gateway.provider.issuer);
    while !fs::read_to_string(&log).is_ok_and(|text| text.contains(&subject)) {
        assert!(
            since.elapsed() < TEST_TIMEOUT,
            "the access log names the principal: {:?}",
            fs::read_to_string(&log)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let parts: Vec<&str> = token.split('.').collect();
    assert_nowhere(&folder, &[parts[1], parts[2]]);
}

/// Checks that no file of a folder contains one of these texts.
fn assert_nowhere(folder: &std::path::Path, secrets: &[&str]) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_nowhere(&path, secrets);
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            for secret in secrets {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "a token is in {}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn unreachable_provider_refuses_new_tokens_only() {
    let gateway = ProtectedGateway::start(&ProtectedSettings::default());
    let known = gateway.token(&[]).await;
    assert_eq!(gateway.status(&known).await, 200);
    let stranger = gateway.token(&[("alg", "ES256")]).await;
    gateway.post("/test/rotate", &[]).await;
    let unknown = gateway.token(&[]).await;
    let ProtectedGateway { provider, serving } = gateway;
    let url = serving.url();
    drop(provider);
    let response = async |token: &str| {
        let client = RawClient::with_token(&url, Era::Modern, Some(token)).await;
        client.request("1", "tools/list", "").send().await.unwrap()
    };
    let status = async |token: &str| response(token).await.status().as_u16();
    assert_eq!(status(&known).await, 200, "a verified token");
    assert_eq!(status(&stranger).await, 200, "its key is known");
    // Its key is newer than the known ones, which may not be fetched again yet.
    let later = response(&unknown).await;
    assert_eq!(later.status(), 503);
    let seconds = later.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
    assert_eq!(status(&known).await, 200);
    // A gateway that never reached the provider cannot tell whether a token is valid.
    let serving = serving.restarted().await;
    let client = RawClient::with_token(&serving.url(), Era::Modern, Some(&known)).await;
    let response = client.request("1", "tools/list", "").send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(parameter(&challenge(&response), "error"), None);
}

/// Introspection is for opaque tokens, also those of programs, which have no subject; JWTs are verified by their signature.
#[tokio::test]
async fn introspection_accepts_jwts_and_tokens_of_programs() {
    let issuer = "introspection = { client_id = \"hub\", client_secret = \"hub-secret\" }";
    let gateway = ProtectedGateway::start(&ProtectedSettings { issuer, ..ProtectedSettings::default() });
    let jwt = gateway.token(&[]).await;
    let opaque = gateway.token(&[("format", "opaque")]).await;
    assert_eq!((gateway.status(&jwt).await, gateway.status(&opaque).await), (200, 200));
}
