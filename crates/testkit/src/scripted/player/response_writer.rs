//! The destination of a response: lines on stdout, or an HTTP response.

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
};

use super::http_writer::HttpResponseWriter;

/// The connection to the client.
#[derive(Debug)]
pub(super) enum ResponseWriter {
    Lines(Lines),
    Http(HttpResponseWriter),
}

impl ResponseWriter {
    /// Sends a JSON-RPC message.
    pub(super) async fn message(&mut self, text: &str) {
        match self {
            Self::Lines(lines) => lines.line(text).await,
            Self::Http(http) => http.message(text).await,
        }
    }

    /// Sends a line over stdio, a part of the body over HTTP, verbatim.
    pub(super) async fn raw(&mut self, text: &str) {
        match self {
            Self::Lines(lines) => lines.line(text).await,
            Self::Http(http) => http.bytes(text.as_bytes().to_vec()).await,
        }
    }

    pub(super) async fn bytes(&mut self, bytes: Vec<u8>) {
        match self {
            Self::Lines(lines) => lines.send(bytes, After::Continue).await,
            Self::Http(http) => http.bytes(bytes).await,
        }
    }

    /// Sends the start of a message that never ends.
    pub(super) async fn endless(&mut self, bytes: Vec<u8>) {
        match self {
            Self::Lines(lines) => lines.send(bytes, After::StopWriting).await,
            Self::Http(http) => http.endless(bytes).await,
        }
    }

    pub(super) fn http(&mut self) -> Option<&mut HttpResponseWriter> {
        match self {
            Self::Lines(_) => None,
            Self::Http(http) => Some(http),
        }
    }
}

/// A handle of the writer of stdout: packets are written completely, even if the sender is dropped.
#[derive(Debug, Clone)]
pub(super) struct Lines(mpsc::Sender<Packet>);

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    after: After,
    written: oneshot::Sender<()>,
}

#[derive(Debug, PartialEq, Eq)]
enum After {
    Continue,
    StopWriting,
}

impl Lines {
    /// Creates the handle and the writer future.
    pub(super) fn new(output: impl AsyncWrite + Unpin) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(sender), write(output, receiver))
    }

    /// Writes a line, and returns when it has been flushed.
    pub(super) async fn line(&self, text: &str) {
        self.send(format!("{text}\n").into_bytes(), After::Continue).await;
    }

    async fn send(&self, bytes: Vec<u8>, after: After) {
        let (written, done) = oneshot::channel();
        if self.0.send(Packet { bytes, after, written }).await.is_ok() {
            _ = done.await;
        }
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut packets: mpsc::Receiver<Packet>) {
    let mut silent = false;
    while let Some(packet) = packets.recv().await {
        if !silent {
            // A disconnected client is detected on stdin.
            _ = output.write_all(&packet.bytes).await;
            _ = output.flush().await;
        }
        silent |= packet.after == After::StopWriting;
        _ = packet.written.send(());
    }
}
