//! Opens TCP and TLS connections for the direct client. Servers behind a proxy use the general client.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll, Waker};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service as _;

use toolhub_core::lang::LocalizedText;
use toolhub_oauth::http_client::{CONNECT_TIMEOUT, root_cause};

/// The reason for a failed connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// Nothing listens at the address; the cause.
    Refused(String),
    /// The server cannot be reached for another reason.
    Unreachable(LocalizedText),
    /// The TLS handshake failed. Nothing was sent; the general client may support the server's HTTP version, or report the
    /// certificate error.
    Tls,
}

/// A connection to a server.
#[derive(Debug)]
pub(super) enum HttpStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl HttpStream {
    /// Connects to the host of `uri`, which must have a scheme and an authority.
    pub(super) async fn connect(uri: &Uri) -> Result<Self, ConnectError> {
        let connecting = connector().call(uri.clone());
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(stream) => stream.map_err(|error| match is_refused(&error) {
                true => ConnectError::Refused(root_cause(&error)),
                false => ConnectError::Unreachable(root_cause(&error).into()),
            })?,
            Err(_) => {
                let cause = LocalizedText::new("it does not answer", "没有响应");
                return Err(ConnectError::Unreachable(cause));
            }
        };
        let stream = TokioIo::into_inner(stream);
        if uri.scheme_str() != Some("https") {
            return Ok(Self::Plain(stream));
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::Tls)?;
        let config = tls_config().ok_or(ConnectError::Tls)?;
        let handshake = TlsConnector::from(config).connect(name, stream);
        match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => Ok(Self::Tls(Box::new(stream))),
            Ok(Err(_)) | Err(_) => Err(ConnectError::Tls),
        }
    }

    /// Whether the server has neither sent anything nor closed the connection.
    pub(super) fn is_silent(&mut self) -> bool {
        match self {
            Self::Plain(stream) => {
                stream.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
            }
            // TLS records without data, such as session tickets, may have arrived.
            Self::Tls(stream) => {
                let (mut byte, mut context) = ([0], Context::from_waker(Waker::noop()));
                let read = Pin::new(stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte));
                read.is_pending()
            }
        }
    }
}

/// Whether a connection failed because nothing listens at the address.
pub(super) fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let cause_of_io = cause.downcast_ref::<io::Error>();
        if cause_of_io.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// What to do if nothing listens at an address.
pub(super) fn refused_text(host_and_port: &str, cause: &str) -> LocalizedText {
    LocalizedText::new(
        format!("nothing listens at {host_and_port}: start the server, or correct its URL ({cause})"),
        format!("{host_and_port} 没有程序在监听：请启动该服务器，或更正其网址（{cause}）"),
    )
}

impl AsyncRead for HttpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Whether requests to `uri` use a proxy, according to the environment or the system settings.
pub(super) fn has_proxy(uri: &Uri) -> bool {
    static PROXIES: LazyLock<Matcher> = LazyLock::new(Matcher::from_system);
    PROXIES.intercept(uri).is_some()
}

/// Resolves host names and connects, with fallback between IPv4 and IPv6.
fn connector() -> HttpConnector {
    static CONNECTOR: LazyLock<HttpConnector> = LazyLock::new(|| {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        // Disables Nagle's algorithm: a message is one small write.
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector
    });
    CONNECTOR.clone()
}

/// TLS configuration for HTTP/1.1 with the system's trusted certificates; `None` if they cannot be loaded.
fn tls_config() -> Option<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
    let build = || {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .ok()?;
        let mut config = builder.with_platform_verifier().ok()?.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(Arc::new(config))
    };
    CONFIG.get_or_init(build).clone()
}
