//! The host of a run: a process of this machine, or one behind the port [`ScriptHost`].

use std::time::Duration;

use serde::Serialize;
use toolhub_core::lang::LocalizedText;
use toolhub_core::script_host::{ScriptHost, ScriptHostEnd, ScriptHostEndCause, ScriptHostEvent};

use crate::host_process::{HostEvent, HostProcess};
use crate::protocol;

/// A host that has a script.
pub(crate) enum Host {
    Local(Box<HostProcess>),
    Remote(RemoteHost),
}

/// A host behind the port.
pub(crate) struct RemoteHost {
    host: Box<dyn ScriptHost>,
    max_line: usize,
    end: Option<ScriptHostEnd>,
}

impl Host {
    pub(crate) fn remote(host: Box<dyn ScriptHost>, max_line: usize) -> Self {
        Self::Remote(RemoteHost { host, max_line, end: None })
    }

    /// Queues a message; [`Self::next_if`] writes it.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), serde_json::Error> {
        match self {
            Self::Local(process) => process.send(message),
            Self::Remote(remote) => {
                remote.host.send(&protocol::encode(message)?);
                Ok(())
            }
        }
    }

    /// As [`HostProcess::next_if`].
    pub(crate) async fn next_if(&mut self, reads: bool) -> HostEvent {
        match self {
            Self::Local(process) => process.next_if(reads).await,
            Self::Remote(remote) => match remote.host.next(reads).await {
                ScriptHostEvent::Line(line) if line.len() > remote.max_line => HostEvent::LineTooLong,
                ScriptHostEvent::Line(line) => HostEvent::Line(line),
                ScriptHostEvent::Written => HostEvent::Written,
                ScriptHostEvent::Ended(end) => {
                    remote.end = Some(end);
                    HostEvent::Closed
                }
            },
        }
    }

    /// How the host ended, after [`HostEvent::Closed`].
    pub(crate) async fn end(&mut self) -> ScriptHostEnd {
        match self {
            Self::Local(process) => process.exit().await.end(),
            Self::Remote(remote) => remote.end.clone().unwrap_or_else(|| ScriptHostEnd {
                cause: ScriptHostEndCause::Other,
                text: LocalizedText::new("exit status unknown", "退出状态未知"),
            }),
        }
    }

    /// CPU time that the host has used; `None` if it is not known.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        match self {
            Self::Local(process) => process.cpu_time(),
            Self::Remote(remote) => remote.host.cpu_time(),
        }
    }

    /// Whether the host may still read answers. It has ended otherwise, or soon will.
    pub(crate) fn accepts_answers(&self) -> bool {
        match self {
            Self::Local(process) => process.accepts_answers(),
            Self::Remote(remote) => remote.end.is_none(),
        }
    }

    /// Bytes that are queued.
    pub(crate) fn unsent(&self) -> usize {
        match self {
            Self::Local(process) => process.unsent(),
            Self::Remote(remote) => remote.host.unsent(),
        }
    }
}
