//! Who sees what is served: listeners of the event stream, some for calls and requests, some for requests alone, so that
//! calls tell nothing where nobody wants to hear it.

use std::sync::Arc;
use std::time::Duration;

use toolhub::{EventSink, Listeners, Say as _};
use toolhub_server::{AccessLog, LogPlace, Sampler, Serving, Telemetry, TelemetryOptions, Trouble};

use super::app::App;

/// How long the last spans may take to be sent.
const LAST: Duration = Duration::from_secs(2);

/// Who sees what.
#[derive(Default)]
pub(super) struct Outlook {
    calls: Vec<Arc<dyn EventSink>>,
    log: Option<Arc<AccessLog>>,
    telemetry: Option<Telemetry>,
}

impl Outlook {
    /// Adds somebody who hears of everything.
    pub(super) fn listen(&mut self, listener: Arc<dyn EventSink>) {
        self.calls.push(listener);
    }

    /// Writes requests down there, if anywhere.
    pub(super) fn open_log(&mut self, app: &App, place: Option<LogPlace>) -> anyhow::Result<()> {
        let Some(place) = place else { return Ok(()) };
        let log = AccessLog::open(place, trouble(app)).map_err(|error| {
            let lang = app.lang();
            anyhow::anyhow!(lang.pick(
                format!(
                    "the access log cannot be opened: {error}; name another file in `[serve] access_log`"
                ),
                format!("无法打开访问日志：{error}；请在 `[serve] access_log` 中换一个文件"),
            ))
        })?;
        self.log = Some(Arc::new(log));
        Ok(())
    }

    /// Sends traces there, if anywhere.
    pub(super) fn open_telemetry(&mut self, app: &App, options: Option<TelemetryOptions>) {
        let Some(options) = options else { return };
        let telemetry = Telemetry::start(options, trouble(app));
        self.listen(telemetry.listener());
        self.telemetry = Some(telemetry);
    }

    /// Who gives requests their places in traces.
    pub(super) fn sampler(&self) -> Option<Sampler> {
        self.telemetry.as_ref().map(Telemetry::sampler)
    }

    /// A server that tells all of these.
    pub(super) fn told_by(&self, serving: Serving) -> Serving {
        let mut serving = serving.told_to(self.of_requests()).traced_by(self.sampler());
        if let Some(log) = &self.log {
            serving = serving.counting_losses("access_log_lines", Arc::clone(log.lost()));
        }
        if let Some(telemetry) = &self.telemetry {
            serving = serving.counting_losses("spans", Arc::clone(telemetry.lost()));
        }
        serving
    }

    /// Who hears of calls.
    pub(super) fn of_calls(&self) -> impl Iterator<Item = &Arc<dyn EventSink>> {
        self.calls.iter()
    }

    /// Who hears of requests.
    pub(super) fn of_requests(&self) -> Arc<dyn EventSink> {
        let log = self.log.iter().map(|log| Arc::clone(log) as Arc<dyn EventSink>);
        Arc::new(Listeners::new(self.calls.iter().cloned().chain(log).collect()))
    }

    /// Waits until what was told is written, within limits.
    pub(super) async fn close(self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.close(LAST).await;
        }
        if let Some(log) = self.log {
            let _ = tokio::task::spawn_blocking(move || log.close()).await;
        }
    }
}

/// What says on the screen what did not work.
fn trouble(app: &App) -> Trouble {
    let (screen, lang) = (Arc::clone(&app.screen), app.lang());
    Arc::new(move |text| screen.warn(&text.say(lang)))
}
