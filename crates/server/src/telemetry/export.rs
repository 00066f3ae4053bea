//! Sends spans to the collector, a group at a time. A collector that cannot be reached is told of once, and asked again
//! ever more seldom; meanwhile spans are counted and let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use toolhub_core::lang::Text;
use url::{Host, Url};

use super::otlp::Resource;
use super::span::Span;
use crate::access_log::Trouble;

/// Spans that are sent at a time.
const TOGETHER: usize = 512;
/// How long a group is gathered.
const GATHER: Duration = Duration::from_secs(1);
/// How long sending may take.
const SENDING: Duration = Duration::from_secs(10);
/// How long a collector is left alone after a failure, at first and at most.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Sends spans.
pub(super) struct Exporter {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) resource: Resource,
    pub(super) trouble: Trouble,
    pub(super) lost: Arc<AtomicU64>,
}

impl Exporter {
    /// Sends what comes, until `closing`; then what is left.
    pub(super) async fn run(self, mut waiting: Receiver<Span>, closing: CancellationToken) {
        let client = match client(&self.url) {
            Ok(client) => client,
            Err(why) => return self.tell(&why),
        };
        let (mut failing, mut pause) = (false, PAUSE);
        let mut group = Vec::with_capacity(TOGETHER);
        loop {
            let open = gather(&mut waiting, &mut group, &closing).await;
            if !group.is_empty() {
                let sent = self.send(&client, &group).await;
                if sent.is_err() {
                    self.lost.fetch_add(group.len() as u64, Ordering::Relaxed);
                }
                group.clear();
                match sent {
                    Ok(()) => (failing, pause) = (false, PAUSE),
                    Err(why) => {
                        if !std::mem::replace(&mut failing, true) {
                            self.tell(&why);
                        }
                        // Who cannot be reached is not asked for every span.
                        let _ = tokio::time::timeout(pause, closing.cancelled()).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
            }
            if !open {
                return;
            }
        }
    }

    async fn send(&self, client: &reqwest::Client, spans: &[Span]) -> Result<(), String> {
        let request = client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(self.resource.message(spans));
        let answer = request.timeout(SENDING).send().await.map_err(|error| root_cause(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    }

    /// The path and what stands behind it may hold a key, so only the place is named.
    fn tell(&self, why: &str) {
        let place = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or_default();
        (self.trouble)(Text::new(
            format!(
                "traces cannot be sent to {place}:{port}: {why}; serving goes on, and they are sent again when they can be"
            ),
            format!("无法向 {place}:{port} 发送追踪数据：{why}；服务不受影响，恢复后会继续发送"),
        ));
    }
}

/// Fills a group; whether more can come.
async fn gather(waiting: &mut Receiver<Span>, group: &mut Vec<Span>, closing: &CancellationToken) -> bool {
    let gathering = async {
        if waiting.recv_many(group, TOGETHER).await == 0 {
            return false;
        }
        let until = tokio::time::Instant::now() + GATHER;
        while group.len() < TOGETHER {
            let room = TOGETHER - group.len();
            match tokio::time::timeout_at(until, waiting.recv_many(group, room)).await {
                Ok(0) => return false,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        true
    };
    let open = tokio::select! {
        biased;
        () = closing.cancelled() => None,
        open = gathering => Some(open),
    };
    open.unwrap_or_else(|| {
        waiting.close();
        while let Ok(span) = waiting.try_recv() {
            group.push(span);
        }
        false
    })
}

fn client(url: &Url) -> Result<reqwest::Client, String> {
    // Fails only where somebody installed another provider before, which will do as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let builder = reqwest::Client::builder().user_agent(concat!("toolhub/", env!("CARGO_PKG_VERSION")));
    // Nobody stands between this machine and itself.
    let builder = if here { builder.no_proxy() } else { builder };
    builder.redirect(reqwest::redirect::Policy::none()).build().map_err(|error| root_cause(&error))
}

/// The innermost reason, and never the url.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
