//! The client's side of a link to a running hub (see `crate::relay`): a transport over the hub's connection to the server.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::io::{AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf};
use tokio_util::task::TaskTracker;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson, ServerId};
use toolhub_mcp_wire::McpError;
use toolhub_mcp_wire::jsonrpc::{self, on_one_line};

use super::lines::{LineReader, MAX_LINE_BYTES, ReadLine};
use super::mux::{Mux, MuxHandle};
use super::pipe_writer::PipeWriter;
use super::{OutgoingRequest, Repeat, ServerMessageHandler, Transport};
use crate::connection::ServerInfo;
use crate::relay::{
    FAILURE_CODE, Forwarding, HELLO_TIMEOUT, Hello, LINK_WRITE_TIMEOUT, RelayStream, RelayedError, Welcome,
};

type Stream = Box<dyn RelayStream>;
type LinkWriter = Arc<PipeWriter<WriteHalf<Stream>>>;
type Reader = LineReader<BufReader<ReadHalf<Stream>>>;

/// A link whose server is connected.
pub(crate) struct RelayLink {
    reader: Reader,
    writer: WriteHalf<Stream>,
    pub(crate) server_info: ServerInfo,
}

/// The reason why there is no link.
pub(crate) enum LinkError {
    /// The hub cannot be used; nothing was sent to the server.
    Unusable(LocalizedText),
    /// The hub matches, but could not connect to the server.
    Failed(McpError),
}

/// Requests a link to a server. The caller applies the connect timeout; a hub that does not answer at all is given up after
/// [`HELLO_TIMEOUT`].
pub(crate) async fn open(stream: Stream, hello: &Hello, server: &ServerId) -> Result<RelayLink, LinkError> {
    let silent = || LinkError::Unusable(LocalizedText::new("it does not answer", "它没有响应"));
    let ended = || LinkError::Unusable(LocalizedText::new("it ended", "它已结束"));
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = LineReader::new(BufReader::with_capacity(64 << 10, reader), MAX_LINE_BYTES);
    let mut text = RawJson::of(hello).get().to_owned();
    text.push('\n');
    let greet = async {
        writer.write_all(text.as_bytes()).await.ok()?;
        next(&mut reader).await
    };
    let first = tokio::time::timeout(HELLO_TIMEOUT, greet).await.map_err(|_| silent())?;
    match first.ok_or_else(ended)? {
        Welcome::Connecting => {}
        Welcome::Refused { en, zh } => return Err(LinkError::Unusable(LocalizedText::new(en, zh))),
        Welcome::Ready { .. } | Welcome::Failed { .. } => return Err(silent()),
    }
    match next(&mut reader).await.ok_or_else(ended)? {
        Welcome::Failed { failure } => Err(LinkError::Failed(failure.into_error(server))),
        welcome => {
            let server_info = welcome.server_info().ok_or_else(silent)?;
            Ok(RelayLink { reader, writer, server_info })
        }
    }
}

async fn next(reader: &mut Reader) -> Option<Welcome> {
    match reader.next().await {
        ReadLine::Whole(line) => serde_json::from_slice(&line).ok(),
        ReadLine::TooLong(_) | ReadLine::End => None,
    }
}

/// The transport to a server through a hub.
pub(crate) struct RelayTransport {
    handle: MuxHandle<LinkWriter>,
    server: ServerId,
}

impl RelayTransport {
    /// Starts to read the link; requests and notifications of the server go to `inbox`.
    pub(crate) fn new(
        link: RelayLink,
        server: ServerId,
        inbox: Arc<dyn ServerMessageHandler>,
        tasks: &TaskTracker,
    ) -> Self {
        let RelayLink { reader, writer, .. } = link;
        let sink = Arc::new(PipeWriter::new(writer));
        let (handle, mux) = MuxHandle::new(Arc::clone(&sink), inbox);
        tasks.spawn(read(reader, mux, sink));
        Self { handle, server }
    }
}

fn hub_ended() -> LocalizedText {
    LocalizedText::new("the running `toolhub serve` ended", "正在运行的 `toolhub serve` 已结束")
}

fn closed_error() -> McpError {
    McpError::connect(hub_ended())
}

impl Transport for RelayTransport {
    fn request<'a>(&'a self, mut request: OutgoingRequest<'a>) -> BoxFuture<'a, Result<RawJson, McpError>> {
        let forwarding = Forwarding {
            name: request.name.map(str::to_owned),
            headers: request.headers.to_vec(),
            repeatable: request.repeat == Repeat::Safe,
        };
        request.body = with_forwarding(on_one_line(request.body), &forwarding);
        Box::pin(async move {
            match self.handle.request(request, closed_error).await {
                Err(McpError::Rpc { code: FAILURE_CODE, data: Some(data), message }) => {
                    let failure =
                        data.decode::<RelayedError>().map(|failure| failure.into_error(&self.server));
                    Err(failure.unwrap_or(McpError::Unreadable { detail: message }))
                }
                answer => answer,
            }
        })
    }

    fn notify(&self, body: String) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(std::future::ready(self.handle.notify(on_one_line(body), closed_error)))
    }

    fn is_open(&self) -> bool {
        self.handle.is_open()
    }
}

/// Adds `forwarding` as the last member of the message.
fn with_forwarding(mut body: String, forwarding: &Forwarding) -> String {
    if body.ends_with('}') {
        body.pop();
        let _ = write!(body, ",\"forwarding\":{}}}", RawJson::of(forwarding));
    }
    body
}

/// Reads a link until either side closes it. Unanswered requests may have taken effect.
async fn read(mut reader: Reader, mut mux: Mux<LinkWriter>, sink: LinkWriter) {
    let handle_dropped = mux.handle_dropped();
    let reading = async {
        loop {
            match reader.next().await {
                ReadLine::Whole(line) => drop(mux.receive(&line.into())),
                ReadLine::TooLong(start) => {
                    let detail = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
                    mux.fail_malformed(jsonrpc::extract_id(&start), detail);
                }
                ReadLine::End => return,
            }
        }
    };
    let is_over = tokio::select! {
        () = handle_dropped.cancelled() => false,
        () = reading => true,
        _ = sink.drive(LINK_WRITE_TIMEOUT) => true,
    };
    if is_over {
        mux.end();
        mux.fail_all(&McpError::Lost { cause: hub_ended(), stderr: Vec::new(), exit: None });
    }
    sink.close();
}
