//! One connection to PostgreSQL: made within a deadline, set up, and gone with its owner.

use std::error::Error as _;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::security::Security;
use super::tls::Tls;
use crate::owner::OwnerId;
use crate::postgres::PgUrl;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// Everything of ours stands in a schema of its own. The limits are the server's side of our deadlines: it must not hold
/// a lock for somebody who is gone.
const SETTINGS: &str = "SET search_path TO toolhub; SET client_min_messages TO warning;
    SET statement_timeout TO '20s'; SET lock_timeout TO '8s'; SET idle_in_transaction_session_timeout TO '20s';
    SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10; SET tcp_keepalives_count TO 3;";

/// What is needed to connect, again and again.
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

    /// Whether a connection failed since the server did not prove by TLS who it is. The driver tells it by text alone.
    pub(super) fn failed_to_verify(&self, cause: &str) -> bool {
        self.url.security == Security::Verified && cause.starts_with("error performing TLS handshake")
    }

    /// Makes a connection and sets it up.
    pub(super) async fn connect(&self) -> Result<Session, String> {
        let made = async {
            let (client, connection) = self.url.config.connect(self.tls.clone()).await?;
            let mut driver = JoinSet::new();
            driver.spawn(async move {
                // Whoever uses the client hears of it too.
                let _ = connection.await;
            });
            client.batch_execute(SETTINGS).await?;
            Ok(Session { client, _driver: driver })
        };
        match timeout(CONNECT, made).await {
            Ok(made) => made.map_err(|error| told(&error)),
            Err(_) => Err(format!("no connection within {} s", CONNECT.as_secs())),
        }
    }
}

/// A connection.
pub(super) struct Session {
    pub(super) client: Client,
    /// Moves what is sent and received; ends with this.
    _driver: JoinSet<()>,
}

impl Session {
    /// Shows everybody that the owner lives, for as long as this connection does; whether that worked. It does not while
    /// the server still believes in an earlier connection of the same owner, which shows the same.
    pub(super) async fn show_life(&self, owner: OwnerId) -> Result<bool, Error> {
        let lock = format!("SELECT pg_try_advisory_lock({})", owner.0);
        let answer = self.client.simple_query(&lock).await?;
        Ok(answer
            .iter()
            .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))))
    }
}

/// Whether it was the connection or the moment that failed, and not what was asked: it may go better on a new
/// connection, or later.
pub(super) fn is_passing(error: &Error) -> bool {
    let Some(code) = error.code() else { return error.as_db_error().is_none() && is_broken(error) };
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // 08: the connection, 57P: somebody stopped the server, or us.
    passing.contains(code) || ["08", "57P"].iter().any(|class| code.code().starts_with(class))
}

/// Whether another connection must be tried: this one has got to a server that may not write, as after a change of the
/// leading server.
pub(super) fn is_misled(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

fn is_broken(error: &Error) -> bool {
    error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}

/// What went wrong, with its cause.
pub(super) fn told(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => match said.detail() {
            Some(detail) => format!("{}: {detail}", said.message()),
            None => said.message().to_owned(),
        },
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
