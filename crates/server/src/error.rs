//! The errors of the server.

use std::net::SocketAddr;

use toolhub_core::lang::{Lang, Localize};

/// Why the server could not start or continue.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum ServeError {
    /// The address is reachable from other machines, and no token is configured.
    TokenRequired(SocketAddr),
    /// The address cannot be bound.
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Connections can no longer be accepted.
    Io(#[from] std::io::Error),
}

impl Localize for ServeError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::TokenRequired(address) => lang.choose(
                format!(
                    "{address} can be reached from other machines, so callers must show a token: make one with \
                     `toolhub keys new NAME`, or bind to 127.0.0.1"
                ),
                format!(
                    "{address} 可被其他机器访问，调用方必须出示令牌：请用 `toolhub keys new NAME` 生成，\
                     或绑定到 127.0.0.1"
                ),
            ),
            Self::Bind { address, source } => lang.choose(
                format!("cannot listen on {address}: {source}; choose another with `--bind`"),
                format!("无法监听 {address}：{source}；请用 `--bind` 换一个地址"),
            ),
            Self::Io(error) => lang.choose(format!("serving failed: {error}"), format!("服务失败：{error}")),
        }
    }
}
