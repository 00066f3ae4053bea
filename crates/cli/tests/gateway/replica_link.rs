//! Two real gateways with one PostgreSQL database, linked within the process of the test: requests of sessions that live at the
//! other gateway are served there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolhub::settings::Paths;
use toolhub::trust::Workspace;
use toolhub::{Gateways, Hub, Lang, NotificationBus};
use toolhub_core::shared_state::ReplicaId;
use toolhub_core::{BoxFuture, Principal};
use toolhub_mcp_gateway::{
    HttpReply, LinkError, PrincipalHandle, ReplicaLink, ReplicaRequest, ReplicaResponse, RequestContext,
    SseEvents, StepUp,
};
use toolhub_server::hash_of;
use toolhub_testkit::postgres::PostgresServer;
use toolhub_testkit::scripted::{HttpServer, Script};

use crate::serving::TEST_TIMEOUT;

/// A link to gateways in this process.
#[derive(Default)]
pub(crate) struct LocalLink {
    pub(crate) gateways: Mutex<HashMap<ReplicaId, Weak<Gateways>>>,
    sent: AtomicUsize,
    /// Whether responses are lost on their way.
    pub(crate) loses_responses: AtomicBool,
}

impl ReplicaLink for LocalLink {
    fn send(
        &self,
        to: ReplicaId,
        request: ReplicaRequest,
    ) -> BoxFuture<'_, Result<ReplicaResponse, LinkError>> {
        let gateways = self.gateways.lock().unwrap().get(&to).and_then(Weak::upgrade);
        Box::pin(async move {
            let gateways = gateways.ok_or(LinkError::Unreachable)?;
            self.sent.fetch_add(1, Ordering::Relaxed);
            let response = gateways.serve_replica(request).await;
            match self.loses_responses.load(Ordering::Relaxed) {
                true => Err(LinkError::Lost),
                false => Ok(response),
            }
        })
    }
}

pub(crate) struct Linked {
    pub(crate) hubs: Vec<Arc<Hub>>,
    pub(crate) gateways: Vec<Arc<Gateways>>,
    pub(crate) link: Arc<LocalLink>,
    /// Keep the views of the gateways up to date.
    following: JoinSet<()>,
    _server: HttpServer,
    _folders: Vec<tempfile::TempDir>,
}

impl Linked {
    async fn start() -> Self {
        let database = PostgresServer::shared().new_database();
        Self::start_with([&database, &database], "").await
    }

    /// Starts two gateways that reach their database under these URLs, with further settings.
    pub(crate) async fn start_with(databases: [&str; 2], more: &str) -> Self {
        let question = json!({"method": "elicitation/create", "params": {
            "message": "delete?", "requestedSchema": {"type": "object", "properties": {}}}});
        let script = Script::legacy()
            .plain_tool("work")
            .plain_tool("ask")
            .on("tools/call:ask", json!([{"request": question}, {"answer": true}]));
        let server = HttpServer::start(&script);
        let link = Arc::new(LocalLink::default());
        let (mut hubs, mut gateways, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        let mut following = JoinSet::new();
        for database in databases {
            let folder = tempfile::tempdir().unwrap();
            let mut settings =
                format!("[store]\nurl = \"{database}\"\n[profiles.default]\nexpose = \"all\"\n{more}");
            for name in ["ann", "bob"] {
                let hash = hash_of(name);
                settings.push_str(&format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n"));
            }
            std::fs::write(folder.path().join("toolhub.toml"), settings).unwrap();
            let servers = json!({"mcpServers": {"s": {"type": "http", "url": server.url}}});
            std::fs::write(folder.path().join("mcp.json"), servers.to_string()).unwrap();
            let paths = Paths {
                config: folder.path().join("toolhub.toml"),
                servers: folder.path().join("mcp.json"),
                data_dir: folder.path().join("home"),
                workspace: Workspace::default(),
                home_dir: None,
            };
            let notifications = NotificationBus::default();
            let builder = Hub::builder().paths(paths).handler(Arc::new(notifications.clone()));
            let hub = Arc::new(builder.build().await.unwrap());
            let one = Arc::new(Gateways::new(Arc::clone(&hub), notifications, Lang::En).unwrap());
            one.set_replica_link(&(Arc::clone(&link) as Arc<dyn ReplicaLink>));
            link.gateways.lock().unwrap().insert(hub.store().unwrap().replica(), Arc::downgrade(&one));
            let followed = Arc::clone(&one);
            following.spawn(async move { followed.follow().await });
            let since = Instant::now();
            while one.tools() == 0 || hub.catalog().named("ask").next().is_none() {
                assert!(since.elapsed() < TEST_TIMEOUT, "the server is not listed");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            hubs.push(hub);
            gateways.push(one);
            folders.push(folder);
        }
        // The views are rebuilt after the catalog.
        tokio::time::sleep(Duration::from_millis(500)).await;
        Self { hubs, gateways, link, following, _server: server, _folders: folders }
    }

    pub(crate) async fn post(&self, replica: usize, caller: &Caller, body: Value) -> HttpReply {
        let gateway = self.gateways[replica].profile(None).unwrap();
        let (principal, step_up) = (caller.principal.clone(), StepUp::of(&caller.principal));
        let context = RequestContext { principal, trace: None, step_up };
        context.scope(gateway.post(&caller.headers, body.to_string().into(), &caller.principal)).await
    }

    /// How many requests went over the link.
    pub(crate) fn sent(&self) -> usize {
        self.link.sent.load(Ordering::Relaxed)
    }

    pub(crate) async fn close(mut self) {
        self.following.shutdown().await;
        for gateways in &self.gateways {
            gateways.close(Duration::from_secs(5)).await;
        }
        for hub in &self.hubs {
            hub.shutdown().await;
        }
    }
}

/// A legacy client.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) principal: PrincipalHandle,
    pub(crate) headers: HeaderMap,
}

impl Caller {
    /// The client with the key of this name.
    pub(crate) fn new(name: &str, linked: &Linked) -> Self {
        let principal = linked.gateways[0].access().find_key(name).unwrap();
        Self { principal: PrincipalHandle::without_limits(principal), headers: HeaderMap::new() }
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }

    pub(crate) async fn initialize(&mut self, linked: &Linked, replica: usize) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let HttpReply::Body { session: Some(session), .. } = linked.post(replica, self, hello).await else {
            panic!("no session")
        };
        self.set("mcp-session-id", &session);
        self.set("mcp-protocol-version", "2025-11-25");
    }
}

pub(crate) fn call(id: u32, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(crate) fn status(reply: &HttpReply) -> u16 {
    match reply {
        HttpReply::Body { status, .. } => *status,
        HttpReply::Events(_) => 200,
    }
}

pub(crate) fn text(reply: HttpReply) -> String {
    match reply {
        HttpReply::Body { body, .. } => body.parts().concat(),
        HttpReply::Events(_) => panic!("a stream"),
    }
}

/// The next message of a stream.
async fn message(events: &mut SseEvents) -> Value {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await.unwrap().unwrap();
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            return serde_json::from_str(data).unwrap();
        }
    }
}

/// A call of the tool `ask` by a modern client.
pub(crate) fn modern(mut body: Value, caller: &Caller) -> (Value, Caller) {
    let mut caller = caller.clone();
    body["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}});
    caller.set("mcp-protocol-version", "2026-07-28");
    caller.set("mcp-method", "tools/call");
    caller.set("mcp-name", "ask");
    (body, caller)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_served_at_the_owner_of_their_session() {
    let linked = Linked::start().await;
    let (mut ann, bob) = (Caller::new("ann", &linked), Caller::new("bob", &linked));
    ann.initialize(&linked, 0).await;
    assert!(text(linked.post(0, &ann, call(1, "work")).await).contains("\"result\""));
    assert_eq!(linked.sent(), 0);
    assert!(text(linked.post(1, &ann, call(2, "work")).await).contains("\"result\""));
    assert_eq!(linked.sent(), 1);
    let second = linked.gateways[1].profile(None).unwrap();
    assert_eq!(second.sessions(), 0, "the session has one owner");

    // The call is made at one replica, its question answered at the other, whichever the client reaches.
    for (asked, answered) in [(0, 1), (1, 0), (1, 1)] {
        let HttpReply::Events(mut events) = linked.post(asked, &ann, call(3, "ask")).await else {
            panic!("no stream")
        };
        let question = message(&mut events).await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        // Another principal cannot answer, at any replica.
        let mut thief = ann.clone();
        thief.principal = bob.principal.clone();
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        for replica in [0, 1] {
            assert_eq!(status(&linked.post(replica, &thief, answer.clone()).await), 404);
        }
        assert_eq!(status(&linked.post(answered, &ann, answer).await), 202);
        let result = message(&mut events).await;
        assert!(result["result"].to_string().contains("decline"), "{result}");
    }

    // A key that is not in force at the owner is refused there, whatever the other replica states. The session does not end: a changed
    // key may reach one replica before the other.
    let mut revoked = Principal::clone(ann.principal.identity());
    revoked.key_sha256 = Some(Arc::from(hash_of("another key")));
    let mut other_key = ann.clone();
    other_key.principal = PrincipalHandle::new(revoked);
    assert_eq!(status(&linked.post(1, &other_key, call(5, "work")).await), 503);

    // The end of the session is served at its owner, too.
    let ended = second.delete(&ann.headers, &ann.principal).await;
    assert_eq!(status(&ended), 204);
    for replica in [0, 1] {
        assert_eq!(status(&linked.post(replica, &ann, call(4, "work")).await), 404, "{replica}");
    }
    linked.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_of_a_modern_client_reaches_the_replica_that_waits_for_it() {
    let linked = Linked::start().await;
    let (ann, bob) = (Caller::new("ann", &linked), Caller::new("bob", &linked));
    let (body, caller) = modern(call(1, "ask"), &ann);
    let asked: Value = serde_json::from_str(&text(linked.post(0, &caller, body).await)).unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut retry = call(2, "ask");
    retry["params"]["requestState"] = asked["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({"question-1": {"action": "decline"}});
    // The state is of use to its principal alone, at any replica.
    for replica in [0, 1] {
        let (body, thief) = modern(retry.clone(), &bob);
        let refused: Value = serde_json::from_str(&text(linked.post(replica, &thief, body).await)).unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let (body, caller) = modern(retry.clone(), &ann);
    let answered = text(linked.post(1, &caller, body).await);
    assert!(answered.contains("decline") && answered.contains("\"id\":2"), "{answered}");
    // It is used up.
    let (body, caller) = modern(retry, &ann);
    let again: Value = serde_json::from_str(&text(linked.post(1, &caller, body).await)).unwrap();
    assert_eq!(again["error"]["code"], -32602, "{again}");
    linked.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_while_the_owner_cannot_be_reached() {
    let linked = Linked::start().await;
    let mut ann = Caller::new("ann", &linked);
    ann.initialize(&linked, 0).await;
    linked.link.gateways.lock().unwrap().clear();
    let refused = linked.post(1, &ann, call(1, "work")).await;
    assert_eq!(status(&refused), 503);
    assert!(text(refused).contains("nothing was done"));
    // Its owner serves it.
    assert!(text(linked.post(0, &ann, call(2, "work")).await).contains("\"result\""));
    linked.close().await;
}
