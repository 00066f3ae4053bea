//! `conformance-server stdio | http PORT`: all fixtures that the official conformance suite requires of a server, built
//! with the official Rust SDK, in both eras. The suite can test it directly or through a gateway.
#![expect(
    deprecated,
    reason = "legacy clients still use features that 2026-07-28 deprecates, such as logging"
)]

mod completion;
mod exchange;
mod handler;
mod http;
mod input_requests;
mod media;
mod prompts;
mod resources;
mod server_state;
mod skills;
mod tools;

use std::process::ExitCode;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use tokio_util::io::InspectReader;

use crate::handler::Server;
use crate::server_state::ServerState;

const USAGE: &str = "usage: conformance-server stdio\n       conformance-server http PORT   (0 picks a port)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server_state = Arc::new(ServerState::new()?);
    match arguments.as_slice() {
        ["stdio"] => serve_stdio(server_state).await?,
        ["http", port] => http::serve(port.parse()?, server_state).await?,
        _ => {
            write_line(&mut std::io::stderr(), USAGE)?;
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves until EOF on stdin. The SDK then waits some seconds for running requests; a subscription would never end by
/// itself, so it is cancelled.
async fn serve_stdio(server_state: Arc<ServerState>) -> anyhow::Result<()> {
    let closing = server_state.closing.clone();
    let (stdin, stdout) = rmcp::transport::stdio();
    let stdin = InspectReader::new(stdin, move |read| {
        if read.is_empty() {
            closing.cancel();
        }
    });
    Server::new(server_state).serve((stdin, stdout)).await?.waiting().await?;
    Ok(())
}

/// Writes and flushes a line, since the parent process may wait for it.
fn write_line(to: &mut impl std::io::Write, line: &str) -> std::io::Result<()> {
    writeln!(to, "{line}")?;
    to.flush()
}
