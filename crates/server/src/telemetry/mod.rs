//! OpenTelemetry traces: derives spans from the event stream and sends them to a collector in batches. Requests never
//! wait for that, and no spans are created if no collector is configured.

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

use crate::access_log::ReportProblem;

pub use sampler::Sampler;

use self::export::Exporter;
use self::otlp::OtlpResource;
use self::spans::Spans;

/// Maximum number of queued spans; further ones are counted as lost.
const MAX_QUEUED_SPANS: usize = 4_096;

/// The options of tracing.
#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    /// The traces endpoint of the collector.
    pub url: Url,
    /// Additional headers, for example an API key.
    pub headers: HeaderMap,
    /// The `service.name`.
    pub service: String,
    /// The fraction of new traces that is sampled.
    pub sampling: f64,
}

/// Creates and exports spans.
#[derive(Debug)]
pub struct Telemetry {
    spans: Arc<Spans>,
    sampler: Sampler,
    lost: Arc<AtomicU64>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Telemetry {
    /// Starts the exporter. `report_problem` is called once when the collector becomes unreachable.
    pub fn start(options: TelemetryOptions, report_problem: ReportProblem) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_SPANS);
        let (lost, closing, tasks) =
            (Arc::<AtomicU64>::default(), CancellationToken::new(), TaskTracker::new());
        let TelemetryOptions { url, headers, service, sampling } = options;
        let resource = OtlpResource { service };
        let exporter = Exporter { url, headers, resource, report_problem, lost: Arc::clone(&lost) };
        tasks.spawn(exporter.run(waiting, closing.clone()));
        let spans = Arc::new(Spans::new(queue, Arc::clone(&lost)));
        Self { spans, sampler: Sampler::new(sampling), lost, tasks, closing }
    }

    /// Returns the event sink that derives spans from events.
    pub fn listener(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.spans) as _
    }

    /// Returns the sampler, which assigns requests to traces.
    pub fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// Returns the counter of lost spans.
    pub fn lost(&self) -> &Arc<AtomicU64> {
        &self.lost
    }

    /// Sends the queued spans, within `timeout`.
    pub async fn close(&self, timeout: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(timeout, self.tasks.wait()).await;
    }
}
