//! The Unix socket through which commands of the same user use the servers of a running `toolhub serve`.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolhub::{Gateways, HubSocket};
use toolhub_core::principal::LOCAL;

use crate::app::App;

/// Binds the socket and serves it in a task of the returned set. If this fails, the hub serves its clients without it.
pub(crate) async fn start(
    app: &App,
    gateways: &Gateways,
    stop: &CancellationToken,
    drain: Duration,
) -> JoinSet<()> {
    let (hub, lang) = (gateways.hub(), app.lang());
    let mut serving = JoinSet::new();
    match HubSocket::bind(&hub.paths().data_dir).await {
        Ok(socket) => {
            let relay = socket.relay(hub, LOCAL);
            serving.spawn(socket.serve(relay, stop.clone(), drain));
        }
        Err(error) => app.screen.warn(&lang.choose(
            format!("`toolhub call` and other commands start their own servers, since the hub's socket cannot be made: {error}"),
            format!("无法创建 hub 的套接字，`toolhub call` 等命令将自行启动服务器：{error}"),
        )),
    }
    serving
}
