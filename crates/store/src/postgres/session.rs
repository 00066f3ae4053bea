//! One connection to PostgreSQL: established within a timeout, configured, and closed on drop.

use std::error::Error as _;
use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Error};

use super::security::Security;
use super::tls::Tls;
use crate::postgres::PgUrl;

/// Connect timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// All tables are in a separate schema. The timeouts are the server's counterpart of ours: it must not hold a lock
/// for a client that has gone.
const SETTINGS: &str = "SET search_path TO toolhub; SET client_min_messages TO warning;
    SET statement_timeout TO '20s'; SET lock_timeout TO '8s'; SET idle_in_transaction_session_timeout TO '20s';
    SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3;";

/// The data needed to connect repeatedly.
#[derive(Clone)]
pub(super) struct Address {
    url: PgUrl,
    tls: Tls,
}

impl Address {
    pub(super) fn new(url: &PgUrl) -> Result<Self, String> {
        let mut url = url.clone();
        if url.config.get_application_name().is_none() {
            url.config.application_name("toolhub");
        }
        url.config.keepalives_idle(Duration::from_secs(30));
        let tls = Tls::new(&url)?;
        Ok(Self { url, tls })
    }

    /// Whether a connection failed because the certificate could not be verified. The driver reports this only as
    /// text.
    pub(super) fn failed_to_verify(&self, cause: &str) -> bool {
        self.url.security == Security::Verified && cause.starts_with("error performing TLS handshake")
    }

    /// Connects a session whose notifications are forwarded.
    pub(super) async fn connect_with_notifications(
        &self,
        notifications: mpsc::Sender<()>,
    ) -> Result<Session, String> {
        let connecting = async {
            let (client, connection) = self.url.config.connect(self.tls.clone()).await?;
            let (alive, ended) = watch::channel(());
            let driver = drive_notified(connection, notifications, alive);
            client.batch_execute(SETTINGS).await?;
            Ok(Session { client, ended, _driver: driver })
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connecting) => connecting.map_err(|error: Error| error_text(&error)),
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }

    /// Connects and configures the session.
    pub(super) async fn connect(&self) -> Result<Session, String> {
        let connecting = async {
            let (client, connection) = self.url.config.connect(self.tls.clone()).await?;
            let (mut driver, (alive, ended)) = (JoinSet::new(), watch::channel(()));
            driver.spawn(async move {
                // Users of the client get the error too.
                let _ = connection.await;
                drop(alive);
            });
            client.batch_execute(SETTINGS).await?;
            Ok(Session { client, ended, _driver: driver })
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connecting) => connecting.map_err(|error| error_text(&error)),
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }
}

/// Drives a connection, and forwards its notifications.
fn drive_notified<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    notifications: mpsc::Sender<()>,
    alive: watch::Sender<()>,
) -> JoinSet<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                let _ = notifications.try_send(());
            }
        }
        drop(alive);
    });
    driver
}

/// A connection.
pub(super) struct Session {
    pub(super) client: Client,
    /// Its sender is dropped when the connection ends.
    ended: watch::Receiver<()>,
    /// The task that drives the connection; aborted on drop.
    _driver: JoinSet<()>,
}

impl Session {
    /// Completes when the connection has ended.
    pub(super) async fn closed(&self) {
        let _ = self.ended.clone().changed().await;
    }
}

/// Whether the error is transient, caused by the connection or the current state rather than by the statement: it may
/// succeed on a new connection, or later.
pub(super) fn is_transient(error: &Error) -> bool {
    let Some(code) = error.code() else { return error.as_db_error().is_none() && is_broken(error) };
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // 08: connection exceptions; 57P: the server or this session was terminated.
    passing.contains(code) || ["08", "57P"].iter().any(|class| code.code().starts_with(class))
}

/// Whether another connection must be tried: this one reached a read-only server, as after a failover.
pub(super) fn is_read_only_server(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

fn is_broken(error: &Error) -> bool {
    error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}

/// The error message with its cause.
pub(super) fn error_text(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db_error), _) => match db_error.detail() {
            Some(detail) => format!("{}: {detail}", db_error.message()),
            None => db_error.message().to_owned(),
        },
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
