//! The socket over which commands of the same user reach the servers of a running `toolhub serve`.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub::settings::Settings;
use toolhub::{Gateways, HubSocket};

use super::app::App;

/// The principal of callers without a token, and of the owner's commands where there are no tokens.
const LOCAL: &str = "local";
/// The principal of the owner's commands where callers have tokens.
const OWNER: &str = "owner";

/// Binds the socket and serves it in a task of the set. A hub without it serves its clients as usual.
pub(super) async fn start(
    app: &App,
    gateways: &Gateways,
    stop: &CancellationToken,
    drain: Duration,
) -> JoinSet<()> {
    let (hub, lang) = (gateways.hub(), app.lang());
    let settings = hub.settings();
    let mut serving = JoinSet::new();
    match HubSocket::bind(&hub.places().home).await {
        Ok(socket) => {
            let relay = socket.relay(hub, &principal(settings));
            serving.spawn(socket.serve(relay, stop.clone(), drain));
        }
        Err(error) => app.screen.warn(&lang.pick(
            format!("`toolhub call` and other commands start their own servers, since the hub's socket cannot be made: {error}"),
            format!("无法创建 hub 的套接字，`toolhub call` 等命令将自行启动服务器：{error}"),
        )),
    }
    serving
}

/// The name under which the owner's commands are callers; no token has it.
fn principal(settings: &Settings) -> String {
    let tokens = &settings.auth.tokens;
    let mut name = if tokens.is_empty() { LOCAL } else { OWNER }.to_owned();
    while tokens.iter().any(|token| token.name == name) {
        name.push('\'');
    }
    name
}
