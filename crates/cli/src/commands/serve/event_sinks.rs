//! Event sinks of a served hub: some receive calls and requests, some only requests. Without a sink for calls, no events are
//! emitted for them.

use std::sync::Arc;
use std::time::Duration;

use toolhub::{EventSink, Listeners, Localize as _};
use toolhub_server::{
    AccessLog, HubServer, LogDestination, ReportProblem, Sampler, Telemetry, TelemetryOptions,
};

use crate::app::App;

/// Timeout for exporting the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The event sinks of a served hub.
#[derive(Default)]
pub(crate) struct EventSinks {
    calls: Vec<Arc<dyn EventSink>>,
    log: Option<Arc<AccessLog>>,
    telemetry: Option<Telemetry>,
}

impl EventSinks {
    /// Adds a sink for calls and requests.
    pub(crate) fn listen(&mut self, listener: Arc<dyn EventSink>) {
        self.calls.push(listener);
    }

    /// Opens the access log, if one is configured.
    pub(crate) fn open_log(&mut self, app: &App, destination: Option<LogDestination>) -> anyhow::Result<()> {
        let Some(destination) = destination else { return Ok(()) };
        let log = AccessLog::open(destination, report_problem(app)).map_err(|error| {
            let lang = app.lang();
            anyhow::anyhow!(lang.choose(
                format!(
                    "the access log cannot be opened: {error}; name another file in `[serve] access_log`"
                ),
                format!("无法打开访问日志：{error}；请在 `[serve] access_log` 中换一个文件"),
            ))
        })?;
        self.log = Some(Arc::new(log));
        Ok(())
    }

    /// Starts the trace exporter, if one is configured.
    pub(crate) fn open_telemetry(&mut self, app: &App, options: Option<TelemetryOptions>) {
        let Some(options) = options else { return };
        let telemetry = Telemetry::start(options, report_problem(app));
        self.listen(telemetry.listener());
        self.telemetry = Some(telemetry);
    }

    /// The sampler for traces of requests.
    pub(crate) fn sampler(&self) -> Option<Sampler> {
        self.telemetry.as_ref().map(Telemetry::sampler)
    }

    /// Connects a server to all sinks.
    pub(crate) fn attach_to(&self, serving: HubServer) -> HubServer {
        let mut serving = serving.with_events(self.request_sink()).with_sampler(self.sampler());
        if let Some(log) = &self.log {
            serving = serving.with_loss_counter("access_log_lines", Arc::clone(log.lost()));
        }
        if let Some(telemetry) = &self.telemetry {
            serving = serving.with_loss_counter("spans", Arc::clone(telemetry.lost()));
        }
        serving
    }

    /// The sinks for calls.
    pub(crate) fn call_sinks(&self) -> impl Iterator<Item = &Arc<dyn EventSink>> {
        self.calls.iter()
    }

    /// The sinks for requests.
    pub(crate) fn request_sink(&self) -> Arc<dyn EventSink> {
        let log = self.log.iter().map(|log| Arc::clone(log) as Arc<dyn EventSink>);
        Arc::new(Listeners::new(self.calls.iter().cloned().chain(log).collect()))
    }

    /// Flushes all sinks, within their timeouts.
    pub(crate) async fn close(self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.close(FLUSH_TIMEOUT).await;
        }
        if let Some(log) = self.log {
            let _ = tokio::task::spawn_blocking(move || log.close()).await;
        }
    }
}

/// A callback that prints problems as warnings.
fn report_problem(app: &App) -> ReportProblem {
    let (screen, lang) = (Arc::clone(&app.screen), app.lang());
    Arc::new(move |text| screen.warn(&text.localize(lang)))
}
