//! The consequences of a failed request: whether it is repeated after its session expired, and whether it counts as a failure of
//! the server.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::RawJson;
use toolhub_core::error::Effect;
use toolhub_mcp_wire::McpError;

use crate::connection::Connection;
use crate::server_status::FailureMark;
use crate::supervisor::Server;
use crate::transport::Repeat;

/// How long the probe waits for an answer before a failure opens the circuit.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Server {
    /// Discards a connection whose session expired during a request, and returns whether the request is repeated over a new one.
    /// A request that may have side effects is repeated only if the server certainly did not process it.
    pub(crate) fn discard_expired(
        &self,
        connection: &Arc<Connection>,
        effect: Effect,
        repeat: Repeat,
    ) -> bool {
        self.discard(connection);
        effect == Effect::None || repeat == Repeat::Safe
    }

    /// The error of a request over `connection`, if it counts for the circuit breaker. After a lost request that would open the
    /// circuit for all callers, probes whether the server still answers: over HTTP a lost request does not end the connection,
    /// and the arguments of one caller may be the cause, which must not block the others.
    pub(crate) async fn counted_failure<'e>(
        &self,
        connection: &Connection,
        error: &'e McpError,
    ) -> Option<&'e McpError> {
        let is_lost = matches!(error, McpError::Lost { .. });
        let opens = is_lost && self.lock_status().breaker.opens_with_next_failure();
        let responds = opens && connection.is_open() && connection.responds(PROBE_TIMEOUT).await;
        (!responds).then_some(error)
    }

    /// Records the outcome of a request of another process, which repeats it itself if the session has expired.
    pub(crate) async fn record_relayed(
        &self,
        connection: &Arc<Connection>,
        began: FailureMark,
        result: &Result<RawJson, McpError>,
    ) {
        if matches!(result, Err(McpError::SessionExpired { .. })) {
            self.discard(connection);
        }
        let failure = match result {
            Ok(_) => None,
            Err(error) => self.counted_failure(connection, error).await,
        };
        self.record_outcome(began, failure);
    }
}
