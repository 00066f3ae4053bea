//! Browser sessions of the console at several `toolhub serve` with one PostgreSQL database: opened at one replica, used and ended at
//! each.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::task::JoinSet;
use toolhub_server::hash_of;
use toolhub_testkit::postgres::PostgresServer;

use crate::console::link;
use crate::raw_client::http;
use crate::serving::{Serving, hub};

/// The name under which a load balancer offers all replicas.
const HOST: &str = "hub.example";
/// How long the end of a session may take to reach the other replicas.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Two replicas with data folders of their own.
struct Replicas {
    serving: Vec<Serving>,
    database: String,
    client: Client,
}

impl Replicas {
    fn start() -> Self {
        let database = PostgresServer::shared().new_database();
        let settings = format!("[store]\nurl = \"{database}\"\n[serve]\nhosts = [\"{HOST}\"]\n");
        let serving = (0..2).map(|_| Serving::start(hub(&settings))).collect();
        http();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Self { serving, database, client }
    }

    /// A ticket that a command beside a replica has made.
    fn ticket(&self, replica: usize) -> String {
        link(&self.serving[replica]).rsplit('/').next().unwrap().to_owned()
    }

    async fn get(&self, replica: usize, path: &str, cookie: &str) -> Response {
        let request = self.client.get(format!("{}/{path}", self.serving[replica].root)).header("host", HOST);
        request.header("cookie", cookie).send().await.unwrap()
    }

    /// Opens a link. Returns the cookie of the session.
    async fn open(&self, replica: usize, ticket: &str) -> Option<String> {
        let opened = self.get(replica, &format!("console/open/{ticket}"), "").await;
        let cookie = opened.headers().get("set-cookie")?.to_str().unwrap();
        assert_eq!(opened.status(), StatusCode::SEE_OTHER);
        Some(cookie.split(';').next().unwrap().to_owned())
    }

    /// Whose session it is, at a replica.
    async fn principal(&self, replica: usize, cookie: &str) -> Option<String> {
        let response = self.get(replica, "api/v1/me", cookie).await;
        match response.status().as_u16() {
            200 => Some(response.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()),
            status => {
                assert_eq!(status, 401);
                None
            }
        }
    }

    async fn log_out(&self, replica: usize, cookie: &str) {
        let (_, token) = cookie.split_once('=').unwrap();
        let request = self.client.post(format!("{}/api/v1/session:end", self.serving[replica].root));
        let request =
            request.header("host", HOST).header("cookie", cookie).header("origin", format!("http://{HOST}"));
        let request = request.header("x-csrf-token", hash_of(&format!("toolhub csrf {token}"))).body("{}");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }

    /// All shared entries as text.
    async fn stored(&self) -> String {
        let (client, connection) =
            tokio_postgres::connect(&self.database, tokio_postgres::NoTls).await.unwrap();
        let mut driving = JoinSet::new();
        driving.spawn(connection);
        let rows =
            client.query("SELECT row(entry.*)::text FROM toolhub.shared_state AS entry", &[]).await.unwrap();
        driving.shutdown().await;
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
    }
}

/// Many browsers with one link, at both replicas: one of them gets a session.
#[tokio::test(flavor = "multi_thread")]
async fn ticket_opens_one_session_at_all_replicas_together() {
    let replicas = Replicas::start();
    for from in [0, 1] {
        let ticket = replicas.ticket(from);
        assert!(!replicas.stored().await.contains(&ticket), "a ticket is stored as a hash");
        let opened = join_all((0..12).map(|number| replicas.open(number % 2, &ticket))).await;
        assert_eq!(opened.iter().flatten().count(), 1, "{opened:?}");
        for replica in [0, 1] {
            assert_eq!(replicas.open(replica, &ticket).await, None);
        }
        let cookie = opened.into_iter().flatten().next().unwrap();
        for replica in [0, 1] {
            assert_eq!(replicas.principal(replica, &cookie).await.as_deref(), Some("local"));
        }
    }
    for wrong in ["0".repeat(64), String::new(), "x".to_owned()] {
        assert_eq!(replicas.open(0, &wrong).await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_used_and_ended_at_every_replica() {
    let mut replicas = Replicas::start();
    // Other programs may delay one of the ends.
    let mut shortest = Duration::MAX;
    for (opened_at, ended_at) in [(0, 0), (0, 1), (1, 0)] {
        let cookie = replicas.open(opened_at, &replicas.ticket(0)).await.unwrap();
        let other = replicas.open(1, &replicas.ticket(1)).await.unwrap();
        let (_, token) = cookie.split_once('=').unwrap();
        let stored = replicas.stored().await;
        assert!(!stored.contains(token) && stored.contains(&hash_of(token)), "a session is stored as a hash");
        let mut streams = Vec::new();
        for replica in [0, 1] {
            let stream = replicas.get(replica, "api/v1/events", &cookie).await;
            assert_eq!(stream.status(), 200);
            streams.push(stream.bytes_stream());
        }
        for stream in &mut streams {
            assert!(stream.next().await.unwrap().is_ok());
        }
        replicas.log_out(ended_at, &cookie).await;
        let since = Instant::now();
        for replica in [0, 1] {
            assert_eq!(replicas.principal(replica, &cookie).await, None, "{opened_at} {ended_at} {replica}");
        }
        for mut stream in streams {
            while stream.next().await.is_some() {}
        }
        shortest = shortest.min(since.elapsed());
        assert!(!replicas.stored().await.contains(&hash_of(token)));
        // Other sessions go on.
        for replica in [0, 1] {
            assert_eq!(replicas.principal(replica, &other).await.as_deref(), Some("local"));
        }
    }
    assert!(shortest < END_TIMEOUT, "{shortest:?}");
    // A session outlives the replica that has opened it.
    let cookie = replicas.open(0, &replicas.ticket(0)).await.unwrap();
    drop(replicas.serving.remove(0).kill());
    assert_eq!(replicas.principal(0, &cookie).await.as_deref(), Some("local"));
}

/// Cookies that were made up, or that name an entry of another kind, open nothing.
#[tokio::test(flavor = "multi_thread")]
async fn ids_of_other_entries_are_no_sessions() {
    let replicas = Replicas::start();
    let cookie = replicas.open(0, &replicas.ticket(0)).await.unwrap();
    let (name, token) = cookie.split_once('=').unwrap();
    for wrong in
        [hash_of(token), replicas.ticket(0), token.to_uppercase(), format!("{token}0"), String::new()]
    {
        if wrong != *token {
            assert_eq!(replicas.principal(1, &format!("{name}={wrong}")).await, None, "{wrong}");
        }
    }
    assert_eq!(replicas.principal(1, &format!("{cookie}; {cookie}")).await, None);
}
