//! The specification of one configured server: its transport and the owner's settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use toolhub_client_config::TransportSpec;
use toolhub_core::approval::Pin;
use toolhub_core::{Consent, Hints, OAuthSpec, ServerId, hex};
use toolhub_mcp_wire::Era;

/// A server in the configuration.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The server id.
    pub id: ServerId,
    /// The transport.
    pub transport: TransportSpec,
    /// The protocol era to use; detected if this is `None`.
    pub era: Option<Era>,
    /// The connect timeout.
    pub connect_timeout: Duration,
    /// The call timeout, if it differs from the default.
    pub call_timeout: Option<Duration>,
    /// How long a child may be idle before it is stopped; `None` for never.
    pub idle_timeout: Option<Duration>,
    /// Whether all callers share one instance.
    pub instances: Instances,
    /// How many workers of a cluster run it at the same time, each for a part of the callers.
    pub copies: usize,
    /// What a worker of a cluster must offer to run it.
    pub labels: Vec<String>,
    /// Whose credentials calls of gateway clients use.
    pub credentials: Credentials,
    /// The roots to report, as URIs; those of its single client if this is `None`.
    pub roots: Option<Vec<String>>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The allowed tools; all if this is `None`.
    pub tools: Option<Vec<String>>,
    /// Tools that are switched off.
    pub disabled_tools: Vec<String>,
    /// The owner's hints about the effects of tools, by name; `*` for all.
    pub hints: BTreeMap<String, Hints>,
    /// The owner's tags for tools, by name; `*` for all.
    pub tags: BTreeMap<String, Vec<String>>,
    /// The policy for tools that differ from the approved ones.
    pub pin: Pin,
    /// The OAuth settings.
    pub oauth: OAuthSpec,
    /// The file it was read from.
    pub origin: PathBuf,
    /// Whether it may be started or contacted.
    pub consent: Consent,
}

/// Whose credentials calls of gateway clients use. Each principal has its own instance unless they are shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Those of the hub.
    #[default]
    Shared,
    /// Those of the principal, which logs in to the server itself.
    Caller,
    /// The principal's access token, exchanged for one of the server (RFC 8693).
    Exchange,
}

impl Credentials {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Caller => "caller",
            Self::Exchange => "exchange",
        }
    }
}

/// How processes or sessions of a server are shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Instances {
    /// All callers share one.
    #[default]
    Shared,
    /// Each principal of the gateway has its own.
    Caller {
        /// Maximum number of instances.
        max: usize,
    },
}

impl Instances {
    /// The default maximum number of instances of one server.
    pub const DEFAULT_MAX: usize = 32;
}

impl ServerSpec {
    /// A server as the `mcpServers` format describes it, with defaults for all other settings.
    pub fn new(id: ServerId, transport: TransportSpec, origin: PathBuf) -> Self {
        Self {
            id,
            transport,
            era: None,
            connect_timeout: Duration::from_secs(30),
            call_timeout: None,
            idle_timeout: Some(Duration::from_secs(600)),
            instances: Instances::default(),
            copies: 1,
            labels: Vec::new(),
            credentials: Credentials::default(),
            roots: None,
            enabled: true,
            tools: None,
            disabled_tools: Vec::new(),
            hints: BTreeMap::new(),
            tags: BTreeMap::new(),
            pin: Pin::default(),
            oauth: OAuthSpec::default(),
            origin,
            consent: Consent::default(),
        }
    }

    /// A hash that changes when the server may be another one: over the JSON of its transport, in which different entries have
    /// different texts, and the digest of the folder and files that its consent is bound to.
    pub fn fingerprint(&self) -> String {
        // The tools may differ between eras, and a failure in one era does not apply to the other.
        let era = self.era.map(|era| era.name());
        let entry = json!([self.transport.name(), self.transport_json(), era, self.consent.digest()]);
        hex::encode(&Sha256::digest(entry.to_string().as_bytes())[..16])
    }

    /// Whether a connection made for the other entry can serve this one: all settings are equal. The files that consent is
    /// bound to are not compared, since they are checked before each start; nor is the sandbox, which does not expose its
    /// policy.
    pub fn is_same_entry(&self, other: &Self) -> bool {
        let settings = |spec: &Self| {
            (
                (spec.era, spec.connect_timeout, spec.call_timeout, spec.idle_timeout),
                (spec.instances, spec.copies, spec.labels.clone()),
                (
                    spec.roots.clone(),
                    spec.enabled,
                    (spec.tools.clone(), spec.disabled_tools.clone()),
                    spec.tags.clone(),
                    spec.origin.clone(),
                ),
                (
                    spec.credentials,
                    spec.hints.clone(),
                    spec.pin,
                    spec.oauth.clone(),
                    format!("{:?}", spec.consent),
                ),
            )
        };
        self.id == other.id
            && self.transport.name() == other.transport.name()
            && self.transport_json() == other.transport_json()
            && settings(self) == settings(other)
    }

    /// The transport as JSON.
    pub(super) fn transport_json(&self) -> serde_json::Value {
        match &self.transport {
            TransportSpec::Stdio(spec) => json!({
                "command": spec.command,
                "args": spec.args,
                "env": spec.env,
                "cwd": spec.cwd,
                "env_pass": spec.env_pass,
            }),
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
                json!({"url": spec.url, "headers": spec.headers})
            }
        }
    }

    /// The owner's hints about the effects of a tool.
    pub fn hints_of(&self, tool: &str) -> Hints {
        let named = self.hints.get(tool).copied().unwrap_or_default();
        named.or(self.hints.get("*").copied().unwrap_or_default())
    }

    /// The owner's tags for a tool; may be empty.
    pub fn tags_of(&self, tool: &str) -> Vec<String> {
        self.tags.get(tool).or_else(|| self.tags.get("*")).cloned().unwrap_or_default()
    }

    /// Whether a tool is allowed.
    pub fn allows(&self, tool: &str) -> bool {
        let is_named = |names: &Vec<String>| names.iter().any(|name| name == tool);
        self.tools.as_ref().is_none_or(is_named) && !is_named(&self.disabled_tools)
    }
}
