//! The parts of the protocol that only legacy clients use: `initialize`, sessions, responses to server requests and
//! cancellation (≤ 2025-11-25).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolhub_core::millis::unix_millis;
use toolhub_core::shared_state::{ChangeVersions, SharedState};
use toolhub_core::{RawJson, RawObject};
use toolhub_mcp_wire::Era;
use toolhub_mcp_wire::era::LEGACY;

use crate::budget::BudgetedResource;
use crate::client_handle::{ClientInfo, PendingClientRequests};
use crate::known_clients::ClientProtocol;
use crate::listen::check_uri;
use crate::rpc_error::{RpcError, RpcResult};
use crate::session::{NewSession, RemovedSessions, Session};
use crate::session_ids::{ResumableSession, SessionIds};
use crate::session_owner::adopted_by;
use crate::{Gateway, PrincipalHandle, gateway_capabilities, random_token, server_info};

/// Maximum length of the capabilities of a client in bytes.
const MAX_CAPABILITIES_BYTES: usize = 64 << 10;
/// Pause before the store is asked again after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which it is checked whether this replica counted as ended for a moment.
const INTERRUPTION_INTERVAL: Duration = Duration::from_millis(500);
/// How long another replica may take to adopt a session.
const ADOPTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How far the clocks of replicas may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Handles `initialize`. Returns the session and the result. `ids` issues the session id if the session is to be
    /// resumable.
    pub(super) async fn initialize(
        &self,
        params: &RawObject,
        principal: &PrincipalHandle,
        ids: Option<&SessionIds>,
    ) -> Result<(Arc<Session>, RawJson), RpcError> {
        let requested = params.get("protocolVersion").and_then(|version| version.decode::<String>().ok());
        let Some(requested) = requested else {
            return Err(RpcError::invalid_params("`protocolVersion` must name your protocol revision"));
        };
        // A client that requests an unknown revision is offered our newest (2025-11-25, basic/lifecycle).
        let version = LEGACY.iter().copied().find(|supported| *supported == requested).unwrap_or(LEGACY[0]);
        // The capabilities are kept as long as the session.
        if params
            .get("capabilities")
            .is_some_and(|capabilities| capabilities.get().len() > MAX_CAPABILITIES_BYTES)
        {
            let why = format!("`capabilities` have at most {MAX_CAPABILITIES_BYTES} bytes");
            return Err(RpcError::invalid_params(why));
        }
        let declared = params.get("capabilities").filter(|capabilities| capabilities.is_object());
        let declared = declared.map_or_else(RawJson::empty_object, RawJson::detach);
        let issued = match ids {
            Some(ids) => ids.issue(principal, version, &declared).await,
            None => None,
        };
        let (id, stamp) = match issued {
            Some((id, stamp)) => (id, Some(stamp)),
            None => {
                let no_randomness = || RpcError::new(-32603, "no session could be made");
                (random_token().ok_or_else(no_randomness)?, None)
            }
        };
        let info = ClientInfo {
            number: self.new_client(),
            era: Era::Legacy,
            capabilities: declared,
            server_requests: Arc::default(),
            level: Arc::default(),
        };
        let protocol = ClientProtocol { era: Era::Legacy, revision: version };
        self.known_clients.record(params.get("clientInfo"), principal.identity(), &protocol);
        let principal = principal.clone();
        let session = Session::new(NewSession { id, stamp, epoch: 0, principal, version, info });
        let session = Arc::new(session);
        let mut result = RawObject::default()
            .with("protocolVersion", version)
            .with("capabilities", gateway_capabilities(Era::Legacy))
            .with("serverInfo", server_info());
        if let Some(instructions) = self.backend.instructions() {
            result.set("instructions", instructions);
        }
        Ok((session, result.into_raw()))
    }

    /// Adds a session. Sessions of the same principal that are evicted for it cannot be resumed: otherwise clients with
    /// more sessions than allowed would evict each other's forever.
    pub(super) fn add_session(&self, session: Arc<Session>) {
        self.note_evicted(&self.sessions.insert(session));
    }

    fn note_evicted(&self, removed: &RemovedSessions) {
        for session in &removed.evicted {
            if let Some(stamp) = &session.stamp {
                self.session_ids.end(&session.principal, stamp);
            }
        }
    }

    /// Rebuilds the session of an id that is not in memory, after a restart or because the session expired. Returns
    /// `None` if the session has been ended.
    pub(super) fn rebuild_session(
        &self,
        id: &str,
        principal: &PrincipalHandle,
        resumable: ResumableSession,
    ) -> Option<Arc<Session>> {
        let ResumableSession { stamp, version, capabilities, .. } = resumable;
        let create = || {
            if self.session_ids.is_ended(principal, &stamp) {
                return None;
            }
            // Milliseconds increase faster than the number of restarts, streams and server requests of one client.
            let epoch = unix_millis(SystemTime::now()).max(1);
            let info = ClientInfo {
                number: self.new_client(),
                era: Era::Legacy,
                capabilities,
                server_requests: Arc::new(PendingClientRequests::starting_after(epoch)),
                level: Arc::default(),
            };
            let (id, stamp, principal) = (id.to_owned(), Some(stamp), principal.clone());
            Some(Arc::new(Session::new(NewSession { id, stamp, epoch, principal, version, info })))
        };
        let (session, removed) = self.sessions.get_or_insert(id, principal, create)?;
        self.note_evicted(&removed);
        Some(session)
    }

    /// Closes the sessions that clients have ended at other replicas, while it is polled.
    pub async fn follow_ended_sessions(&self) {
        let record = self.session_ids.record();
        let Some(state) = record.shared() else { return };
        let (mut seen_versions, mut since) = (ChangeVersions::default(), SystemTime::now());
        loop {
            match state.changed(&seen_versions).await {
                Ok(now) => seen_versions = now,
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
            let now = SystemTime::now();
            // The clocks of replicas differ, and an entry becomes visible after it was created.
            let Ok(ended) = record.ended_since(since - CLOCK_TOLERANCE).await else { continue };
            since = now;
            let is_ended = |session: &Session| {
                let stamp = session.stamp.as_ref();
                stamp.is_some_and(|stamp| self.session_ids.is_among(&session.principal, stamp, &ended))
            };
            if !ended.is_empty() {
                self.sessions.close_where(is_ended);
            }
        }
    }

    /// Closes the sessions that other replicas have adopted because this one counted as ended, while it is polled.
    pub async fn follow_adopted_sessions(&self) {
        let record = self.session_ids.record();
        let Some(state) = record.shared() else { return };
        let mut seen = state.interruptions();
        loop {
            tokio::time::sleep(INTERRUPTION_INTERVAL).await;
            let now = state.interruptions();
            if now == seen {
                continue;
            }
            // An adoption that began before this replica counted as alive again may end after the first look.
            let is_complete = self.close_adopted(&**state).await;
            tokio::time::sleep(ADOPTION_TIMEOUT).await;
            if is_complete && self.close_adopted(&**state).await {
                seen = now;
            }
        }
    }

    /// Closes the sessions that live at another replica now. `false` if the store could not be read.
    async fn close_adopted(&self, state: &dyn SharedState) -> bool {
        for id in self.sessions.ids() {
            match adopted_by(state, &id).await {
                Ok(Some(owner)) if owner != state.replica() => self.sessions.remove(&id),
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Ends a session permanently, at the request of its client.
    pub(super) async fn end_session(&self, session: &Session) {
        // Recorded before it is removed, since it could be resumed in between.
        if let Some(stamp) = &session.stamp {
            self.session_ids.end(&session.principal, stamp);
        }
        self.sessions.remove(&session.id);
        if let Some(stamp) = &session.stamp {
            self.session_ids.persist_end(&session.principal, stamp).await;
        }
    }

    /// Handles a notification of a client.
    pub(super) fn handle_notification(&self, session: &Session, method: &str, params: Option<&RawJson>) {
        if method == "notifications/cancelled"
            && let Some(params) = params.and_then(RawJson::object)
            && let Some(id) = params.get("requestId")
        {
            session.cancel(id);
        }
    }

    /// Subscribes a client to a resource.
    pub(super) async fn subscribe_session(&self, session: Option<&Session>, params: &RawObject) -> RpcResult {
        let uri = subscribed_uri(params)?;
        let Some(session) = session.filter(|session| !session.is_subscribed(&uri)) else {
            return Ok(RawJson::empty_object());
        };
        let permit = session.principal.take(BudgetedResource::Subscriptions, 1)?;
        let subscription = self.subscribe(uri.clone(), permit).await?;
        session.add_subscription(uri, subscription);
        Ok(RawJson::empty_object())
    }

    /// Unsubscribes a client from a resource.
    pub(super) async fn unsubscribe_session(
        &self,
        session: Option<&Session>,
        params: &RawObject,
    ) -> RpcResult {
        let uri = subscribed_uri(params)?;
        if let Some(subscription) = session.and_then(|session| session.remove_subscription(&uri)) {
            subscription.end().await?;
        }
        Ok(RawJson::empty_object())
    }
}

/// Returns the URI of a subscription request.
fn subscribed_uri(params: &RawObject) -> Result<String, RpcError> {
    let uri = params.get("uri").and_then(|uri| uri.decode::<String>().ok());
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`uri` must name a resource"))?;
    check_uri(&uri)?;
    Ok(uri)
}

/// Sets the minimum level of log messages for a client.
pub(super) fn set_level(session: Option<&Session>, params: &RawObject) -> RpcResult {
    let level = params.get("level").and_then(|level| level.decode::<String>().ok()).unwrap_or_default();
    match session {
        Some(session) if !session.info.level.set(&level) => {
            Err(RpcError::invalid_params(format!("`{level}` is no level: take one from debug to emergency")))
        }
        _ => Ok(RawJson::empty_object()),
    }
}
