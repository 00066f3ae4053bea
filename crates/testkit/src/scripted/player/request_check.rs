//! The checks of a server of each era before it handles a request, independent of the transport.

use serde_json::json;

use super::{
    message::{Fault, Message, Params},
    peer::Peer,
    plan::Actions,
    scenario::{Eras, Scenario},
};

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// 2026-07-28, basic/versioning: a dual-era server selects its behaviour by the first request of the client.
    pub(super) fn of(scenario: &Scenario, message: &Message, params: &Params) -> Self {
        match scenario.era {
            Eras::Legacy => Self::Legacy,
            Eras::Modern => Self::Modern,
            Eras::Both if params.meta.version.is_some() || message.method() == "server/discover" => {
                Self::Modern
            }
            Eras::Both => Self::Legacy,
        }
    }
}

/// The decision about a request: the script's actions, and the error that replaces the default response.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) actions: Actions,
    pub(super) refusal: Option<Fault>,
}

impl Verdict {
    /// A list for the opening methods, or for `*`, is performed even if the checks fail.
    pub(super) fn new(
        scenario: &Scenario,
        message: &Message,
        params: &Params,
        refusal: Option<Fault>,
    ) -> Self {
        let key = scenario.on.key(message.method(), params.name.as_deref());
        let passes = refusal.is_none() || matches!(key, Some("initialize" | "server/discover" | "*"));
        let actions = key.filter(|_| passes).and_then(|key| scenario.on.take(key));
        Self { actions: actions.unwrap_or_default(), refusal }
    }
}

/// A legacy server accepts only pings before its handshake is complete. The error code is that of the Python SDK.
pub(super) fn legacy(peer: &Peer, message: &Message) -> Option<Fault> {
    let method = message.method();
    let open = matches!(method, "initialize" | "ping") || method.starts_with("notifications/");
    (!open && !peer.is_ready()).then(|| Fault::new(400, -32602, "Invalid request parameters"))
}

/// 2026-07-28, basic#_meta and basic/versioning: every request contains a supported version, and capabilities.
pub(super) fn modern(scenario: &Scenario, message: &Message, params: &Params) -> Option<Fault> {
    if message.method() == "initialize" {
        return Some(unsupported(scenario, params.protocol_version.as_deref()));
    }
    // Notifications contain neither.
    message.id.as_ref()?;
    let Some(version) = params.meta.version.as_deref() else {
        return Some(Fault::new(400, -32602, "Missing _meta field: io.modelcontextprotocol/protocolVersion"));
    };
    if !scenario.supported.iter().any(|known| known == version) {
        return Some(unsupported(scenario, Some(version)));
    }
    let missing = params.meta.capabilities.is_none();
    missing
        .then(|| Fault::new(400, -32602, "Missing _meta field: io.modelcontextprotocol/clientCapabilities"))
}

fn unsupported(scenario: &Scenario, requested: Option<&str>) -> Fault {
    let data = json!({"supported": scenario.versions(), "requested": requested});
    Fault::new(400, -32022, "Unsupported protocol version").with_data(&data)
}
