//! The access log record of a client request: principal, method and result. It contains neither request and response
//! bodies nor credentials.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::{Lang, Localize};
use crate::trace::TraceContext;

/// A client request that was answered or abandoned.
#[derive(Debug, Clone)]
pub struct AccessRecord {
    /// The authenticated principal, if any.
    pub principal: Option<Arc<str>>,
    /// The transport.
    pub transport: RequestTransport,
    /// The JSON-RPC method.
    pub method: Option<String>,
    /// The called tool.
    pub tool: Option<String>,
    /// The JSON-RPC error code of the response, if it is known.
    pub error: Option<i64>,
    /// Size of the response in bytes.
    pub bytes: u64,
    /// Duration from the first byte processed to the last byte of the response.
    pub took: Duration,
    /// The trace context, if tracing is enabled.
    pub trace: Option<AccessTrace>,
}

/// The trace context of a request.
#[derive(Debug, Clone)]
pub struct AccessTrace {
    /// The span of this request.
    pub own: TraceContext,
    /// The parent span, if the client sent one.
    pub parent: Option<u64>,
}

/// The transport of a request.
#[derive(Debug, Clone)]
pub enum RequestTransport {
    /// Over HTTP.
    Http {
        /// The client's address.
        client: SocketAddr,
        /// `GET`, `POST` and so on.
        verb: String,
        /// The path without the query, which may name a session.
        path: String,
        /// The status of the response; 499 if the client disconnected before it.
        status: u16,
    },
    /// Over stdin and stdout.
    Stdio,
}

impl AccessRecord {
    /// The status of a request whose client disconnected before the response (as in nginx).
    pub const CLIENT_CLOSED_REQUEST: u16 = 499;
}

impl Localize for AccessRecord {
    fn localize(&self, lang: Lang) -> String {
        let who = self.principal.as_deref().unwrap_or("-");
        let subject = [self.method.as_deref(), self.tool.as_deref()].into_iter().flatten();
        let subject: String = subject.map(|word| format!(" {word}")).collect();
        let (head, end) = match &self.transport {
            RequestTransport::Http { client, verb, path, status } => {
                (format!("{client} {who} {verb} {path}{subject}"), status.to_string())
            }
            RequestTransport::Stdio => {
                (format!("stdio {who}{subject}"), lang.choose("answered", "已回答").to_owned())
            }
        };
        let error = self.error.map(|code| format!(" ({code})")).unwrap_or_default();
        let end = format!("{end}{error}");
        let (bytes, took) = (self.bytes, self.took.as_millis());
        lang.choose(
            format!("{head}: {end}, {bytes} bytes in {took} ms"),
            format!("{head}：{end}，{bytes} 字节，用时 {took} 毫秒"),
        )
    }
}
