//! The HTTP checks: session and version of a legacy client, headers of a modern one.

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use super::{
    headers,
    message::{Fault, Message, Params},
    peer::Peer,
    player_state::PlayerState,
    request_check::{self, Era},
    scenario::Eras,
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A received message.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) message: &'a Message,
    pub(super) params: &'a Params,
}

impl Caller<'_> {
    /// A supported version header makes a request modern even if its body does not.
    pub(super) fn era(&self, player_state: &PlayerState) -> Era {
        let scenario = &player_state.scenario;
        let version = text(self.headers, "mcp-protocol-version");
        let named = version.is_some_and(|version| scenario.supported.iter().any(|known| known == version));
        if scenario.era == Eras::Both && named {
            return Era::Modern;
        }
        Era::of(scenario, self.message, self.params)
    }

    /// The state of the client, and the error if its request is rejected.
    pub(super) fn admit(&self, player_state: &PlayerState, era: Era) -> (Arc<Peer>, Option<Fault>) {
        let negotiated = negotiation(self.headers).err();
        match era {
            Era::Legacy => match self.legacy_peer(player_state) {
                Ok(peer) => {
                    let refusal = negotiated.or_else(|| request_check::legacy(&peer, self.message));
                    (peer, refusal)
                }
                Err(fault) => (Peer::stateless(), negotiated.or(Some(fault))),
            },
            Era::Modern => (Peer::stateless(), negotiated.or_else(|| self.modern_refusal(player_state))),
        }
    }

    /// 2025-11-25, basic/transports, "Session Management" and "Protocol Version Header".
    fn legacy_peer(&self, player_state: &PlayerState) -> Result<Arc<Peer>, Fault> {
        if self.message.method() == "initialize" {
            return Ok(Peer::new());
        }
        let peer = session(player_state, self.headers)?;
        let version = text(self.headers, "mcp-protocol-version").unwrap_or("2025-03-26");
        if LEGACY.contains(&version)
            || player_state.scenario.version == version
            || player_state.scenario.version == "echo"
        {
            return Ok(peer);
        }
        Err(Fault::new(400, -32600, format!("Bad Request: Unsupported protocol version: {version}")))
    }

    fn modern_refusal(&self, player_state: &PlayerState) -> Option<Fault> {
        let scenario = &player_state.scenario;
        if self.message.id.is_none() || self.message.method() == "initialize" {
            return request_check::modern(scenario, self.message, self.params);
        }
        let headers = headers::check(scenario, self.headers, self.message, self.params);
        headers.err().or_else(|| request_check::modern(scenario, self.message, self.params))
    }
}

/// The peer of the session in the headers.
pub(super) fn session(player_state: &PlayerState, headers: &HeaderMap) -> Result<Arc<Peer>, Fault> {
    if !player_state.scenario.session {
        return Ok(Peer::stateless());
    }
    let id = text(headers, "mcp-session-id");
    let id = id.ok_or_else(|| Fault::new(400, -32600, "Bad Request: Missing session ID"))?;
    player_state.sessions.find(id).ok_or_else(|| Fault::new(404, -32600, "Session not found"))
}

/// Both eras require that a client accepts JSON and event streams, and sends JSON.
fn negotiation(headers: &HeaderMap) -> Result<(), Fault> {
    let accepted = text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    let takes = |kind: &str| accepted.contains(kind) || accepted.contains("*/*");
    if !takes("application/json") || !takes("text/event-stream") {
        let message = "Not Acceptable: Client must accept both application/json and text/event-stream";
        return Err(Fault::new(406, -32600, message));
    }
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(Fault::new(415, -32600, "Unsupported Media Type: Content-Type must be application/json"));
    }
    Ok(())
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
