//! What only legacy clients do: they greet, keep sessions, answer questions and give requests up (≤ 2025-11-25).

use std::sync::Arc;

use toolhub_core::{RawJson, RawObject};

use super::backend::RpcError;
use super::budget::Resource;
use super::link::ClientFacts;
use super::listen::check_uri;
use super::running::Served;
use super::session::Session;
use super::{Gateway, Principal, capabilities, secret, server_info};
use crate::era::{Era, LEGACY};

/// The longest capabilities of a client.
const MAX_CAPABILITIES_BYTES: usize = 64 << 10;

impl Gateway {
    /// Greets a client: its session, and what it is told.
    pub(super) fn initialize(
        &self,
        params: &RawObject,
        principal: &Principal,
    ) -> Result<(Arc<Session>, RawJson), RpcError> {
        let wanted = params.get("protocolVersion").and_then(|version| version.decode::<String>().ok());
        let Some(wanted) = wanted else {
            return Err(RpcError::invalid_params("`protocolVersion` must name the revision you speak"));
        };
        // Whoever wants another revision is offered our newest (2025-11-25, basic/lifecycle).
        let version = LEGACY.iter().copied().find(|known| *known == wanted).unwrap_or(LEGACY[0]);
        // They are kept for as long as the session.
        if params.get("capabilities").is_some_and(|can| can.get().len() > MAX_CAPABILITIES_BYTES) {
            let why = format!("`capabilities` have at most {MAX_CAPABILITIES_BYTES} bytes");
            return Err(RpcError::invalid_params(why));
        }
        let can = params.get("capabilities").filter(|can| can.is_object()).map(RawJson::apart);
        let facts = ClientFacts {
            number: self.new_client(),
            era: Era::Legacy,
            capabilities: can.unwrap_or_else(RawJson::empty_object),
            questions: Arc::default(),
            level: Arc::default(),
        };
        let no_chance = || RpcError::new(-32603, "no session could be made");
        let id = secret().ok_or_else(no_chance)?;
        let session = Arc::new(Session::new(id, principal.clone(), version, facts));
        let mut greeting = RawObject::default()
            .with("protocolVersion", version)
            .with("capabilities", capabilities(Era::Legacy))
            .with("serverInfo", server_info());
        if let Some(instructions) = self.backend.instructions() {
            greeting.set("instructions", instructions);
        }
        Ok((session, greeting.into_raw()))
    }

    /// Hears what a client tells.
    pub(super) fn hear(&self, session: &Session, method: &str, params: Option<&RawJson>) {
        if method == "notifications/cancelled"
            && let Some(params) = params.and_then(RawJson::object)
            && let Some(id) = params.get("requestId")
        {
            session.cancel(id);
        }
    }

    /// A client subscribes to a resource.
    pub(super) async fn watch(&self, session: Option<&Session>, params: &RawObject) -> Served {
        let uri = watched_uri(params)?;
        let Some(session) = session.filter(|session| !session.watches(&uri)) else {
            return Ok(RawJson::empty_object());
        };
        let permit = session.principal.take(Resource::Subscriptions, 1)?;
        let subscription = self.subscribe(uri.clone(), permit).await?;
        session.watch(uri, subscription);
        Ok(RawJson::empty_object())
    }

    /// A client unsubscribes from a resource.
    pub(super) async fn unwatch(&self, session: Option<&Session>, params: &RawObject) -> Served {
        let uri = watched_uri(params)?;
        if let Some(subscription) = session.and_then(|session| session.unwatch(&uri)) {
            subscription.end().await?;
        }
        Ok(RawJson::empty_object())
    }
}

/// The resource that a client subscribes to or unsubscribes from.
fn watched_uri(params: &RawObject) -> Result<String, RpcError> {
    let uri = params.get("uri").and_then(|uri| uri.decode::<String>().ok());
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`uri` must name a resource"))?;
    check_uri(&uri)?;
    Ok(uri)
}

/// A client hears only what is grave enough from now on.
pub(super) fn set_level(session: Option<&Session>, params: &RawObject) -> Served {
    let level = params.get("level").and_then(|level| level.decode::<String>().ok()).unwrap_or_default();
    match session {
        Some(session) if !session.facts.level.set(&level) => {
            Err(RpcError::invalid_params(format!("`{level}` is no level: take one from debug to emergency")))
        }
        _ => Ok(RawJson::empty_object()),
    }
}
