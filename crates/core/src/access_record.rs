//! A client's request after it was answered: who made it, what it was about and what it came to. What went in and out
//! is not part of it, nor anything that a client shows to be let in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::{Lang, Say};
use crate::trace::TraceContext;

/// A request of a client that was answered, or whose client did not wait for that.
#[derive(Debug, Clone)]
pub struct AccessRecord {
    /// Who made it, where that is known.
    pub principal: Option<Arc<str>>,
    /// How it came.
    pub way: RequestWay,
    /// The method of the message that it carried.
    pub method: Option<String>,
    /// The tool that it called.
    pub tool: Option<String>,
    /// The code of the error that it was answered with, where its message tells.
    pub error: Option<i64>,
    /// How many bytes it was answered with.
    pub bytes: u64,
    /// How long it took, from its first byte that was looked at to the last of its answer.
    pub took: Duration,
    /// Its place in a trace, where traces are made.
    pub trace: Option<AccessTrace>,
}

/// The place of a request in a trace.
#[derive(Debug, Clone)]
pub struct AccessTrace {
    /// Its own.
    pub own: TraceContext,
    /// The span that it belongs to, where it is its client's.
    pub parent: Option<u64>,
}

/// How a request came.
#[derive(Debug, Clone)]
pub enum RequestWay {
    /// Over HTTP.
    Http {
        /// From where.
        client: SocketAddr,
        /// `GET`, `POST` and so on.
        verb: String,
        /// The path alone: what stands behind it may name a session.
        path: String,
        /// What it was answered with; 499 where the client went away before.
        status: u16,
    },
    /// Over stdin and stdout.
    Stdio,
}

impl AccessRecord {
    /// The status of one that was not answered, since its client went away (as nginx writes it).
    pub const GONE: u16 = 499;
}

impl Say for AccessRecord {
    fn say(&self, lang: Lang) -> String {
        let who = self.principal.as_deref().unwrap_or("-");
        let about = [self.method.as_deref(), self.tool.as_deref()].into_iter().flatten();
        let about: String = about.map(|word| format!(" {word}")).collect();
        let (head, end) = match &self.way {
            RequestWay::Http { client, verb, path, status } => {
                (format!("{client} {who} {verb} {path}{about}"), status.to_string())
            }
            RequestWay::Stdio => (format!("stdio {who}{about}"), lang.pick("answered", "已回答").to_owned()),
        };
        let error = self.error.map(|code| format!(" ({code})")).unwrap_or_default();
        let end = format!("{end}{error}");
        let (bytes, took) = (self.bytes, self.took.as_millis());
        lang.pick(
            format!("{head}: {end}, {bytes} bytes in {took} ms"),
            format!("{head}：{end}，{bytes} 字节，用时 {took} 毫秒"),
        )
    }
}
