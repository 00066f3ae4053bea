//! A small MCP server with the official Rust SDK, over stdio or HTTP: an independent peer for tests.
#![expect(missing_docs, reason = "the SDK's macros write undocumented items")]

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub struct Greeting {
    /// The name to greet.
    pub name: String,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub struct Echo {
    /// What to repeat.
    pub text: String,
    /// How many times.
    pub count: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Greeter;

#[tool_router]
impl Greeter {
    #[tool(description = "Greets somebody")]
    fn greet(&self, Parameters(Greeting { name }): Parameters<Greeting>) -> String {
        format!("你好，{name}")
    }

    /// The tool that `gateway-load` calls.
    #[tool(name = "echo_0", description = "Repeats a text so many times", annotations(read_only_hint = true))]
    fn echo(&self, Parameters(Echo { text, count }): Parameters<Echo>) -> String {
        vec![text; count.unwrap_or(1).min(100)].join(" ")
    }
}

#[tool_handler]
impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Some(port) = std::env::args().nth(1) else {
        Greeter.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let service: StreamableHttpService<Greeter, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Greeter), Default::default(), StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
