//! Sends spans to the collector in batches. If the collector is unreachable, that is reported once, and attempts are
//! repeated with exponential backoff; meanwhile spans are counted as lost and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use toolhub_core::lang::LocalizedText;
use url::{Host, Url};

use super::otlp::OtlpResource;
use super::span::Span;
use crate::access_log::ReportProblem;

/// Maximum number of spans per batch.
const MAX_BATCH_SPANS: usize = 512;
/// How long a batch is filled.
const BATCH_WINDOW: Duration = Duration::from_secs(1);
/// Timeout of an export request.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The backoff after a failure, initially and at most.
const MIN_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Sends spans to the collector.
pub(super) struct Exporter {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) resource: OtlpResource,
    pub(super) report_problem: ReportProblem,
    pub(super) lost: Arc<AtomicU64>,
}

impl Exporter {
    /// Sends spans until `closing` is cancelled, then those that are still queued.
    pub(super) async fn run(self, mut waiting: Receiver<Span>, closing: CancellationToken) {
        let client = match client(&self.url) {
            Ok(client) => client,
            Err(why) => return self.report(&why),
        };
        let (mut failing, mut backoff) = (false, MIN_BACKOFF);
        let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
        loop {
            let open = gather(&mut waiting, &mut batch, &closing).await;
            if !batch.is_empty() {
                let sent = self.send(&client, &batch).await;
                if sent.is_err() {
                    self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                }
                batch.clear();
                match sent {
                    Ok(()) => (failing, backoff) = (false, MIN_BACKOFF),
                    Err(why) => {
                        if !std::mem::replace(&mut failing, true) {
                            self.report(&why);
                        }
                        // Backoff after a failure.
                        let _ = tokio::time::timeout(backoff, closing.cancelled()).await;
                        backoff = (backoff * 2).min(MAX_BACKOFF);
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
        let answer = request.timeout(EXPORT_TIMEOUT).send().await.map_err(|error| root_cause(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    }

    /// Reports a failure. Only host and port are named, as path and query may contain a key.
    fn report(&self, why: &str) {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or_default();
        (self.report_problem)(LocalizedText::new(
            format!(
                "traces cannot be sent to {host}:{port}: {why}; serving goes on, and they are sent again when they can be"
            ),
            format!("无法向 {host}:{port} 发送追踪数据：{why}；服务不受影响，恢复后会继续发送"),
        ));
    }
}

/// Fills a batch. Returns whether more spans may follow.
async fn gather(waiting: &mut Receiver<Span>, batch: &mut Vec<Span>, closing: &CancellationToken) -> bool {
    let gathering = async {
        if waiting.recv_many(batch, MAX_BATCH_SPANS).await == 0 {
            return false;
        }
        let until = tokio::time::Instant::now() + BATCH_WINDOW;
        while batch.len() < MAX_BATCH_SPANS {
            let free_slots = MAX_BATCH_SPANS - batch.len();
            match tokio::time::timeout_at(until, waiting.recv_many(batch, free_slots)).await {
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
            batch.push(span);
        }
        false
    })
}

fn client(url: &Url) -> Result<reqwest::Client, String> {
    // Fails only if another provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let is_loopback_host = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let builder = reqwest::Client::builder().user_agent(concat!("toolhub/", env!("CARGO_PKG_VERSION")));
    // A collector on this machine is contacted without a proxy.
    let builder = if is_loopback_host { builder.no_proxy() } else { builder };
    builder.redirect(reqwest::redirect::Policy::none()).build().map_err(|error| root_cause(&error))
}

/// Returns the innermost cause, which does not contain the URL.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
