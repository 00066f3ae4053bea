//! One connection to one server: requests in the form its era wants, and what the server says unasked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolhub_core::lang::Text;
use toolhub_core::{Event, EventKind, EventSink, RawJson, RawObject, ServerId, ToolDefinition};

use crate::era::{Era, modern_meta};
use crate::error::McpError;
use crate::headers;
use crate::transport::{Inbox, OnProgress, OutgoingRequest, StderrRing, Transport};
use crate::wire;

/// A transport and the ids of what is sent over it.
pub(crate) struct Channel {
    transport: Box<dyn Transport>,
    ids: AtomicU64,
}

/// A request before it has an id.
#[derive(Default)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) params: RawObject,
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) on_progress: Option<OnProgress>,
}

impl Channel {
    pub(crate) fn new(transport: Box<dyn Transport>) -> Self {
        Self { transport, ids: AtomicU64::new(1) }
    }

    /// Asks as it stands; `meta` is what the era adds.
    pub(crate) async fn ask(&self, ask: Ask, mut meta: RawObject) -> Result<RawJson, McpError> {
        let Ask { method, mut params, name, headers, on_progress } = ask;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        if on_progress.is_some() {
            meta.set("progressToken", id);
        }
        if !meta.is_empty() {
            params.set("_meta", meta);
        }
        let body = wire::request(id, method, &params);
        self.transport.request(OutgoingRequest { id, method, name, body, headers, on_progress }).await
    }

    pub(crate) async fn notify(&self, method: &str) -> Result<(), McpError> {
        self.transport.notify(wire::notification(method, &RawObject::default())).await
    }
}

/// What a server said of itself when it was met.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) era: Era,
    pub(crate) version: String,
    /// Name and version, as it gives them.
    pub(crate) peer: String,
}

/// A server that is connected.
pub(crate) struct Connection {
    channel: Channel,
    pub(crate) greeting: Greeting,
    stderr: StderrRing,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("greeting", &self.greeting).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(channel: Channel, greeting: Greeting, stderr: StderrRing) -> Self {
        Self { channel, greeting, stderr }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.channel.transport.is_open()
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Asks in the form the server's era wants.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<RawJson, McpError> {
        let meta = match self.greeting.era {
            Era::Legacy => RawObject::default(),
            Era::Modern => modern_meta(&self.greeting.version),
        };
        let result = self.channel.ask(ask, meta).await?;
        match input_required(&result) {
            true => Err(McpError::unreadable("the server asks for input, which nobody here can give")),
            false => Ok(result),
        }
    }

    /// Calls a tool; gives its result as it was sent.
    pub(crate) async fn call_tool(
        &self,
        tool: &ToolDefinition,
        arguments: &RawJson,
        on_progress: OnProgress,
    ) -> Result<RawJson, McpError> {
        let name = tool.name().as_str();
        let headers = match self.greeting.era {
            Era::Legacy => Vec::new(),
            Era::Modern => {
                headers::of_arguments(&headers::mirrored(tool.input_schema()).unwrap_or_default(), arguments)
            }
        };
        let params = RawObject::default().with("name", name).with("arguments", arguments.clone());
        self.ask(Ask {
            method: "tools/call",
            params,
            name: Some(name.to_owned()),
            headers,
            on_progress: Some(on_progress),
        })
        .await
    }
}

/// Whether a modern result is a question back (2026-07-28, patterns/mrtr).
fn input_required(result: &RawJson) -> bool {
    result.get().contains("input_required")
        && result.object().is_some_and(|members| {
            members.get("resultType").is_some_and(|kind| kind.get() == "\"input_required\"")
        })
}

/// Answers what a server asks, and passes on what it tells.
pub(crate) struct Doorman {
    pub(crate) server: ServerId,
    pub(crate) events: Arc<dyn EventSink>,
}

impl Doorman {
    fn note(&self, text: Text) {
        self.events.emit(Event::now(None, EventKind::ServerNote { server: self.server.clone(), text }));
    }
}

impl Inbox for Doorman {
    fn request(&self, method: &str, _: Option<&RawJson>) -> Result<RawJson, (i64, String)> {
        match method {
            "ping" => Ok(RawJson::empty_object()),
            other => {
                self.note(Text::new(
                    format!("asked for `{other}`, refused"),
                    format!("请求 `{other}`，已拒绝"),
                ));
                Err((-32601, format!("method not found: {other}")))
            }
        }
    }

    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let said = params.map(|params| format!(": {params}")).unwrap_or_default();
        let said: String = said.chars().take(500).collect();
        self.note(Text::new(format!("says `{method}`{said}"), format!("通知 `{method}`{said}")));
    }

    fn oddity(&self, detail: String) {
        self.note(Text::new(format!("sent {detail}"), format!("发来无法使用的内容：{detail}")));
    }
}
