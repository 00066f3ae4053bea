//! The hosts of this machine behind the port [`ScriptHosts`]: a cluster worker runs the scripts of replicas with them.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::BoxFuture;
use toolhub_core::lang::LocalizedText;
use toolhub_core::script_host::{
    ScriptHost, ScriptHostEnd, ScriptHostEndCause, ScriptHostEvent, ScriptHosts,
};

use crate::host_process::{HostEvent, HostProcess};
use crate::pool::HostPool;
use crate::report::ScriptFailure;
use crate::runner::RunnerConfig;

/// Hosts of this machine. The limits of the configuration bound each of them, whatever a script asks for.
#[derive(Debug)]
pub struct LocalHosts(Arc<HostPool>);

impl LocalHosts {
    /// Starts nothing yet. Must be called within the runtime that outlives all runs.
    pub fn new(config: RunnerConfig) -> Self {
        let RunnerConfig { host, limits, warm_hosts, .. } = config;
        Self(HostPool::new(host, limits, warm_hosts))
    }

    /// Ends the hosts that are kept ready.
    pub async fn shutdown(&self) {
        self.0.close().await;
    }
}

impl ScriptHosts for LocalHosts {
    fn begin<'a>(&'a self, first: &'a [u8]) -> BoxFuture<'a, Result<Box<dyn ScriptHost>, LocalizedText>> {
        Box::pin(async move {
            let failed = |failure: Box<ScriptFailure>| failure.message;
            let process = self.0.begin(first).await.map_err(failed)?;
            let host = LocalHost { process: Some(process), pool: Arc::clone(&self.0), has_ended: false };
            Ok(Box::new(host) as Box<dyn ScriptHost>)
        })
    }
}

/// A process that runs a script.
struct LocalHost {
    /// Taken when this is dropped.
    process: Option<HostProcess>,
    pool: Arc<HostPool>,
    has_ended: bool,
}

impl ScriptHost for LocalHost {
    fn send(&mut self, lines: &[u8]) {
        if let Some(process) = &mut self.process {
            process.send_lines(lines);
        }
    }

    fn unsent(&self) -> usize {
        self.process.as_ref().map_or(0, HostProcess::unsent)
    }

    fn next(&mut self, reads: bool) -> BoxFuture<'_, ScriptHostEvent> {
        Box::pin(async move {
            let Some(process) = self.process.as_mut().filter(|_| !self.has_ended) else {
                return std::future::pending().await;
            };
            let event = match process.next_if(reads).await {
                HostEvent::Line(line) => ScriptHostEvent::Line(line),
                HostEvent::Written => ScriptHostEvent::Written,
                HostEvent::LineTooLong => ScriptHostEvent::Ended(line_too_long()),
                HostEvent::Closed => ScriptHostEvent::Ended(process.exit().await.end()),
            };
            self.has_ended = matches!(event, ScriptHostEvent::Ended(_));
            event
        })
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.process.as_ref().and_then(HostProcess::cpu_time)
    }
}

impl Drop for LocalHost {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            self.pool.discard(process);
        }
    }
}

fn line_too_long() -> ScriptHostEnd {
    ScriptHostEnd {
        cause: ScriptHostEndCause::Other,
        text: LocalizedText::new("it sent a message that is too long", "它发送了过长的消息"),
    }
}
