//! Traces for OpenTelemetry: spans are made of the event stream and sent to a collector, a group at a time. Whoever is
//! served never waits for that, and where nobody collects, nothing is made.

mod export;
mod otlp;
mod sampler;
mod span;
mod spans;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhub_core::EventSink;
use url::Url;

use crate::access_log::Trouble;

pub use sampler::Sampler;

use self::export::Exporter;
use self::otlp::Resource;
use self::spans::Spans;

/// Spans that may wait; what comes then is counted, and not sent.
const WAITING: usize = 4_096;

/// Where spans go, and which.
#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    /// Where the collector takes traces.
    pub url: Url,
    /// Headers that it wants, such as a key.
    pub headers: HeaderMap,
    /// What the hub is called there.
    pub service: String,
    /// The share of traces that are recorded, where their beginning is here.
    pub sampling: f64,
}

/// Makes spans and sends them.
#[derive(Debug)]
pub struct Telemetry {
    spans: Arc<Spans>,
    sampler: Sampler,
    lost: Arc<AtomicU64>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Telemetry {
    /// Begins to send; `trouble` hears once where the collector cannot be reached.
    pub fn start(options: TelemetryOptions, trouble: Trouble) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        let (lost, closing, tasks) =
            (Arc::<AtomicU64>::default(), CancellationToken::new(), TaskTracker::new());
        let TelemetryOptions { url, headers, service, sampling } = options;
        let resource = Resource { service };
        let exporter = Exporter { url, headers, resource, trouble, lost: Arc::clone(&lost) };
        tasks.spawn(exporter.run(waiting, closing.clone()));
        let spans = Arc::new(Spans::new(queue, Arc::clone(&lost)));
        Self { spans, sampler: Sampler::new(sampling), lost, tasks, closing }
    }

    /// Who makes spans of events.
    pub fn listener(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.spans) as _
    }

    /// Which requests are part of which trace.
    pub fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// Counts the spans that could not be sent.
    pub fn lost(&self) -> &Arc<AtomicU64> {
        &self.lost
    }

    /// Sends what waits, within that time.
    pub async fn close(&self, patience: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
    }
}
