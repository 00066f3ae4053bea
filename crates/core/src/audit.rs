//! Events for the audit log, and the port through which they are appended. The crate `audit` encodes and chains them.

use std::sync::Arc;
use std::time::SystemTime;

use crate::boxed::BoxFuture;
use crate::call_log::CallStatus;
use crate::store_error::StoreError;

/// A SHA-256 digest.
pub type Sha256Digest = [u8; 32];

/// Something that is recorded in the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// When it happened; for a call, when it began.
    pub at: SystemTime,
    /// The id of the principal that did it.
    pub principal: Arc<str>,
    /// What was done.
    pub action: AuditAction,
}

impl AuditEvent {
    /// An event that happens now.
    pub fn now(principal: &Arc<str>, action: AuditAction) -> Self {
        Self { at: SystemTime::now(), principal: Arc::clone(principal), action }
    }
}

/// What a principal did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditAction {
    /// It presented credentials.
    Login(LoginEvent),
    /// It was refused something.
    Refusal(RefusalEvent),
    /// It called a tool. The store appends these itself; other code does not.
    Call(CallEvent),
    /// It read a resource, or got a prompt or a skill.
    Use(UseEvent),
    /// A call of it was held, or it decided about a held call.
    HeldCall(HeldCallEvent),
    /// It changed a key, a rule, the configuration or a server.
    Change(ChangeEvent),
}

impl AuditAction {
    /// The object of the action, and what happened to it.
    pub fn object_and_state(&self) -> (String, String) {
        match self {
            Self::Login(login) => {
                let state = if login.accepted { "accepted" } else { "refused" };
                let reason = login.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                (login.method.clone(), format!("{state}{reason}"))
            }
            Self::Refusal(refusal) => (refusal.resource.clone(), format!("{} refused", refusal.operation)),
            Self::Call(call) => (call.tool.clone(), call.status.name().to_owned()),
            Self::HeldCall(held) => (held.tool.clone(), held.decision.name().to_owned()),
            Self::Use(used) => (used.item.clone(), used.operation.clone()),
            Self::Change(change) => {
                let detail = change.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
                (change.name.clone(), format!("{}{detail}", change.change.name()))
            }
        }
    }

    /// The kind of the action.
    pub fn kind(&self) -> AuditKind {
        match self {
            Self::Login(_) => AuditKind::Login,
            Self::Refusal(_) => AuditKind::Refusal,
            Self::Call(_) => AuditKind::Call,
            Self::HeldCall(_) => AuditKind::HeldCall,
            Self::Use(_) => AuditKind::Use,
            Self::Change(change) => match change.object {
                ChangedObject::Key => AuditKind::KeyChange,
                ChangedObject::Rule => AuditKind::RuleChange,
                ChangedObject::Config => AuditKind::ConfigChange,
                ChangedObject::Server => AuditKind::ServerChange,
            },
        }
    }
}

/// A kind of audit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditKind {
    /// A login.
    Login,
    /// A refusal.
    Refusal,
    /// A call.
    Call,
    /// A held call.
    HeldCall,
    /// A change of a key.
    KeyChange,
    /// A change of a rule.
    RuleChange,
    /// A change of the configuration.
    ConfigChange,
    /// A change of a server.
    ServerChange,
    /// The use of a resource, a prompt or a skill.
    Use,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Login,
        Self::Refusal,
        Self::Call,
        Self::HeldCall,
        Self::KeyChange,
        Self::RuleChange,
        Self::ConfigChange,
        Self::ServerChange,
        Self::Use,
    ];

    /// Name in exports and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Refusal => "refusal",
            Self::Call => "call",
            Self::HeldCall => "held_call",
            Self::KeyChange => "key_change",
            Self::RuleChange => "rule_change",
            Self::ConfigChange => "config_change",
            Self::ServerChange => "server_change",
            Self::Use => "use",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Credentials were presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginEvent {
    /// How: `key`, `jwt`, `introspection` or another mechanism.
    pub method: String,
    /// Whether they were accepted.
    pub accepted: bool,
    /// Why not, if they were rejected.
    pub reason: Option<String>,
    /// The network address of the client, if known.
    pub address: Option<String>,
}

/// Access was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalEvent {
    /// What was tried, such as `call` or `keys.revoke`.
    pub operation: String,
    /// The tool or other object that it concerned.
    pub resource: String,
    /// The rule that forbids it; `None` if no rule allows it.
    pub rule: Option<String>,
    /// The reference that the caller received.
    pub reference: String,
}

/// A call of a tool. The payload is not part of the log, only its digest.
///
/// A call enters the log when it ends, or, if its hub died, as [`CallStatus::Unknown`] when another hub notices that. If
/// the end of such a call becomes known after all, it enters the log once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEvent {
    /// The record id of the call.
    pub record: String,
    /// The tool or capability.
    pub tool: String,
    /// The sources that answered, or else those that were attempted.
    pub sources: Vec<String>,
    /// The SHA-256 of the arguments as they are stored. Long arguments are stored as a prefix with the SHA-256 of the
    /// whole text, which this digest therefore covers too.
    pub arguments_sha256: Sha256Digest,
    /// The outcome. `Unknown` means that it may have taken effect.
    pub status: CallStatus,
    /// Whether the call may change state.
    pub may_change: bool,
    /// The rule that allowed it.
    pub rule: Option<String>,
    /// The principal that approved it, if it was held.
    pub approver: Option<String>,
}

/// A resource was read, or a prompt or a skill was got. The content is not part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseEvent {
    /// What was done: `read`, `get prompt` or `get skill`.
    pub operation: String,
    /// The URI, or the name of the prompt.
    pub item: String,
    /// The server that has it; `None` if the hub itself has it.
    pub server: Option<String>,
    /// The rule that allowed it.
    pub rule: Option<String>,
}

/// A call was held for approval, or decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCallEvent {
    /// The reference of the held call.
    pub reference: String,
    /// The tool.
    pub tool: String,
    /// The principal that made the call.
    pub caller: String,
    /// What happened.
    pub decision: HeldCallDecision,
    /// The rule that holds it.
    pub rule: Option<String>,
    /// The SHA-256 of the arguments that the decision is about.
    pub arguments_sha256: Option<Sha256Digest>,
}

/// What happened to a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldCallDecision {
    /// It waits.
    Held,
    /// It was approved.
    Approved,
    /// It was denied.
    Denied,
    /// It expired without a decision.
    Expired,
    /// It was withdrawn, because the script that made it has ended.
    Withdrawn,
}

impl HeldCallDecision {
    /// Every decision.
    pub const ALL: [Self; 5] = [Self::Held, Self::Approved, Self::Denied, Self::Expired, Self::Withdrawn];

    /// Name in exports and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn: the script has ended",
        }
    }
}

/// A key, a rule, the configuration or a server was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeEvent {
    /// What was changed.
    pub object: ChangedObject,
    /// Its name; secrets are never part of the log.
    pub name: String,
    /// How it was changed.
    pub change: ChangeKind,
    /// The SHA-256 of the new definition, if there is one.
    pub sha256: Option<Sha256Digest>,
    /// Further details without secrets.
    pub detail: Option<String>,
}

/// A kind of object whose changes are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangedObject {
    /// A key.
    Key,
    /// A rule.
    Rule,
    /// The configuration.
    Config,
    /// A server.
    Server,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was updated; a key was rotated.
    Updated,
    /// It was deleted; a key was revoked.
    Deleted,
}

impl ChangeKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

    /// Name in exports and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

/// The audit log, to which events are appended. Calls are appended by the store when it records them.
pub trait AuditLog: Send + Sync {
    /// Appends an event, and waits until it is durable. Waits for room if the log cannot keep up; nothing is dropped
    /// silently. An action that must be on record must not proceed if this fails.
    fn append(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Discards events: for a hub without audit log.
#[derive(Debug, Clone, Copy, Default)]
pub struct DisabledAuditLog;

impl AuditLog for DisabledAuditLog {
    fn append(&self, _: AuditEvent) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_distinct_names() {
        for kind in AuditKind::ALL {
            assert_eq!(AuditKind::from_name(kind.name()), Some(kind));
        }
        let change = ChangeEvent {
            object: ChangedObject::Server,
            name: "notes".to_owned(),
            change: ChangeKind::Created,
            sha256: None,
            detail: None,
        };
        assert_eq!(AuditAction::Change(change).kind(), AuditKind::ServerChange);
    }
}
