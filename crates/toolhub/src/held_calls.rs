//! Held calls: calls that a rule with `effect = "ask"` parks until a person decides.
//!
//! A hub with a store of its own keeps them as files ([`files`]), so that a command of the same user decides without a
//! connection to the hub. Hubs that share a store keep them there ([`shared`]): a call may be made at one, approved at another,
//! and used at a third. Both store a decision once and its use once, whatever is killed in between.

mod files;
mod shared;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolhub_access::may_decide_held_calls;
use toolhub_core::json::canonical_json;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::millis::{duration_millis, unix_millis};
use toolhub_core::ports::HubStore;
use toolhub_core::shared_state::ChangeVersions;
use toolhub_core::{CallId, Principal, RawJson, Role, hex};

use files::HeldCallFiles;
pub use files::HolderLock;
use shared::SharedHeldCalls;

/// How long a call is kept after it has expired.
const RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of calls of one principal that wait at the same time.
const MAX_HELD: usize = 1_000;
/// Maximum length of the arguments of a held call, in bytes: a person reads them before the decision.
const MAX_ARGUMENT_BYTES: usize = 256 << 10;
/// Maximum length of the arguments of all stored calls of one principal, in bytes. Ended calls give way to new ones.
const MAX_STORED_BYTES: usize = 16 << 20;
/// Number of hexadecimal digits at the beginning of an id that identify the principal.
const PRINCIPAL_DIGITS: usize = 8;
/// Number of hexadecimal digits after them that identify the call.
const CALL_DIGITS: usize = 16;
/// How often a decision is looked for if nothing announces it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A call that is to be held.
#[derive(Debug, Clone)]
pub struct NewHeldCall<'a> {
    /// The principal that made it.
    pub principal: &'a Principal,
    /// The profile through which it was made.
    pub profile: &'a str,
    /// The tool, by its name in the catalog.
    pub tool: &'a str,
    /// The sources that may serve it.
    pub sources: Vec<String>,
    /// The arguments that will be sent.
    pub arguments: &'a RawJson,
    /// The rule that holds it.
    pub rule: &'a str,
    /// Identifies the tools that may serve it, so that an approval is not used for another definition.
    pub definition: String,
    /// How long it waits.
    pub hold: Duration,
    /// The call of the script that makes it, if a script does. Such a call belongs to that run alone: no other call uses its
    /// approval, and it is withdrawn when the run ends, also if the hub is killed.
    pub script: Option<&'a CallId>,
}

/// The beginning of the ids of all calls of a principal.
fn principal_prefix(principal: &str) -> String {
    short_digest(&[principal], PRINCIPAL_DIGITS)
}

/// Which calls of a principal must be removed before another one of this length is stored: the oldest that have ended. An error
/// if that is not enough.
fn ended_to_remove(mut stored: Vec<HeldCall>, length: usize) -> io::Result<Vec<HeldCall>> {
    let mut bytes: usize = length + stored.iter().map(|call| call.arguments.get().len()).sum::<usize>();
    stored.sort_by_key(|call| call.at_ms);
    let now = unix_millis(SystemTime::now());
    let mut removed = Vec::new();
    for call in stored {
        // A denial is in force until the call would have expired.
        let has_ended = match call.state {
            HeldState::Used { .. } | HeldState::Expired | HeldState::Withdrawn => true,
            HeldState::Denied { .. } => call.expires_ms < now,
            HeldState::Held | HeldState::Approved { .. } => false,
        };
        if bytes > MAX_STORED_BYTES && has_ended {
            bytes -= call.arguments.get().len();
            removed.push(call);
        }
    }
    match bytes > MAX_STORED_BYTES {
        true => {
            Err(io::Error::other("the calls of this principal that wait for approval are too long together"))
        }
        false => Ok(removed),
    }
}

impl NewHeldCall<'_> {
    /// The beginning of the ids of all calls of the principal.
    fn principal_prefix(&self) -> String {
        principal_prefix(self.principal.id())
    }

    /// The beginning of the ids of this call: equal calls share one decision.
    fn prefix(&self) -> String {
        let (sources, arguments) = (self.sources.join("\u{1f}"), canonical_text(self.arguments));
        let parts = [self.profile, self.tool, &sources, &arguments];
        format!("{}{}", self.principal_prefix(), short_digest(&parts, CALL_DIGITS))
    }

    /// The call as it is stored first.
    fn to_held_call(&self) -> HeldCall {
        let now = unix_millis(SystemTime::now());
        HeldCall {
            id: format!("{}{:08x}", self.prefix(), fastrand::u32(..)),
            principal: self.principal.id().to_string(),
            profile: self.profile.to_owned(),
            tool: self.tool.to_owned(),
            sources: self.sources.clone(),
            arguments: self.arguments.clone(),
            rule: self.rule.to_owned(),
            definition: self.definition.clone(),
            script: self.script.map(ToString::to_string),
            at_ms: now,
            expires_ms: now.saturating_add(duration_millis(self.hold)),
            state: HeldState::Held,
            is_new: true,
            holder: None,
        }
    }

    /// Whether a held call decides about this one: it is the same call, of the same run if a script makes it. A denial is about
    /// the call in any run: a script that runs again does not ask again.
    fn is_decided_by(&self, held: &HeldCall) -> bool {
        let is_same_run = held.script.as_deref() == self.script.map(CallId::as_str);
        self.has_request_of(held) && (is_same_run || matches!(held.state, HeldState::Denied { .. }))
    }

    /// Whether a held call has the same tool and arguments. The digest in its id is too short to rely on: its caller could search for two calls
    /// with the same digest, and run one with the approval of the other.
    fn has_request_of(&self, held: &HeldCall) -> bool {
        held.principal == **self.principal.id()
            && held.profile == self.profile
            && held.tool == self.tool
            && held.sources == self.sources
            && held.definition == self.definition
            && canonical_text(&held.arguments) == canonical_text(self.arguments)
    }
}

/// The arguments without differences of spelling and order.
fn canonical_text(arguments: &RawJson) -> String {
    canonical_json(arguments.get()).unwrap_or_else(|| arguments.get().to_owned())
}

/// The first hexadecimal digits of the SHA-256 of these parts.
fn short_digest(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut text = hex::encode(&hash.finalize());
    text.truncate(digits);
    text
}

/// A held call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldCall {
    /// Its reference.
    pub id: String,
    /// The id of the principal that made it.
    pub principal: String,
    /// The profile through which it was made.
    pub profile: String,
    /// The tool, by its name in the catalog.
    pub tool: String,
    /// The sources that may serve it.
    pub sources: Vec<String>,
    /// The arguments that will be sent.
    pub arguments: RawJson,
    /// The rule that holds it.
    pub rule: String,
    /// Identifies the tools that may serve it.
    #[serde(default)]
    pub definition: String,
    /// The id of the call of the script that made it, if a script did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
    /// Its state.
    #[serde(skip)]
    pub state: HeldState,
    /// Whether [`HeldCalls::hold`] created it just now.
    #[serde(skip)]
    pub is_new: bool,
    /// Shows other processes that the script still waits; see [`files`].
    #[serde(skip)]
    pub holder: Option<Arc<HolderLock>>,
}

/// The state of a held call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeldState {
    /// No decision yet.
    #[default]
    Held,
    /// It may run, once.
    Approved {
        /// The id of the principal that decided.
        by: String,
    },
    /// It must not run.
    Denied {
        /// The id of the principal that decided.
        by: String,
    },
    /// It was not decided, or not used, in time.
    Expired,
    /// It was approved and has been run.
    Used {
        /// The id of the principal that approved it.
        by: String,
    },
    /// The script that made it has ended: nothing waits for a decision any more.
    Withdrawn,
}

impl HeldState {
    /// The name in output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Held => "waiting",
            Self::Approved { .. } => "approved",
            Self::Denied { .. } => "denied",
            Self::Expired => "expired",
            Self::Used { .. } => "used",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// What the state is called in messages for people.
    pub fn label(&self) -> LocalizedText {
        let (en, zh) = match self {
            Self::Held => ("waiting", "等待中"),
            Self::Approved { .. } => ("approved", "已批准"),
            Self::Denied { .. } => ("denied", "已拒绝"),
            Self::Expired => ("expired", "已过期"),
            Self::Used { .. } => ("used", "已执行"),
            Self::Withdrawn => ("withdrawn: its script has ended", "已撤回：脚本已结束"),
        };
        LocalizedText::new(en, zh)
    }

    /// The id of the principal that decided.
    pub fn decided_by(&self) -> Option<&str> {
        match self {
            Self::Approved { by } | Self::Denied { by } | Self::Used { by } => Some(by),
            Self::Held | Self::Expired | Self::Withdrawn => None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredDecision {
    approved: bool,
    by: String,
    at_ms: u64,
}

impl HeldCall {
    /// Whether an equal call shares it instead of being held anew. A denial holds until the call would have expired.
    fn is_open(&self) -> bool {
        !matches!(self.state, HeldState::Expired | HeldState::Used { .. } | HeldState::Withdrawn)
            && self.expires_ms > unix_millis(SystemTime::now())
    }

    /// Whether its state depends on whether the script that made it still runs.
    fn depends_on_script(&self) -> bool {
        self.script.is_some() && matches!(self.state, HeldState::Held | HeldState::Approved { .. })
    }

    /// The state after this decision.
    fn state_after(&self, decision: Option<StoredDecision>, is_used: bool) -> HeldState {
        let is_expired = unix_millis(SystemTime::now()) >= self.expires_ms;
        match decision {
            Some(StoredDecision { approved: true, by, .. }) if is_used => HeldState::Used { by },
            Some(StoredDecision { approved: false, by, .. }) => HeldState::Denied { by },
            _ if is_expired => HeldState::Expired,
            Some(StoredDecision { by, .. }) => HeldState::Approved { by },
            None => HeldState::Held,
        }
    }
}

/// Who decides about held calls.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    /// The principal.
    pub principal: &'a Principal,
    /// Whether there is no other principal: the owner may then approve its own calls.
    pub is_alone: bool,
}

impl Decider<'_> {
    /// Whether the principal may approve a call, and the call still waits for a decision.
    pub fn may_approve(self, call: &HeldCall) -> bool {
        call.state == HeldState::Held && self.check(call, true).is_ok()
    }

    /// Checks whether the principal may approve or deny a call, whatever its state.
    fn check(self, call: &HeldCall, approved: bool) -> Result<(), DecideError> {
        let Self { principal, is_alone } = self;
        if !may_decide_held_calls(principal.roles) {
            return Err(DecideError::NotApprover);
        }
        // A call of a profile that the principal may not use does not exist for it.
        if !principal.may_use_profile(&call.profile) {
            return Err(DecideError::Unknown);
        }
        let is_own = **principal.id() == *call.principal;
        if approved && is_own && !(is_alone && principal.roles.contains(Role::Owner)) {
            return Err(DecideError::OwnCall);
        }
        Ok(())
    }
}

/// Why a decision was not accepted.
#[derive(Debug)]
pub enum DecideError {
    /// There is no such call.
    Unknown,
    /// The call is not held any more.
    NotHeld(HeldState),
    /// The principal may not decide.
    NotApprover,
    /// A principal may not approve its own call.
    OwnCall,
    /// The decision could not be stored.
    Io(io::Error),
}

impl DecideError {
    /// The message for the person.
    pub fn text(&self, id: &str) -> LocalizedText {
        match self {
            Self::Unknown => LocalizedText::new(
                format!("no call is held under `{id}`: `toolhub waiting` lists them"),
                format!("没有编号为 `{id}` 的待审批调用：可用 `toolhub waiting` 查看"),
            ),
            Self::NotHeld(HeldState::Withdrawn) => LocalizedText::new(
                format!("`{id}` was withdrawn: the script that made the call has ended"),
                format!("`{id}` 已撤回：发起该调用的脚本已结束"),
            ),
            Self::NotHeld(state) => {
                let label = state.label();
                LocalizedText::new(
                    format!("`{id}` is no longer waiting: {}", label.localize(Lang::En)),
                    format!("`{id}` 已处理：{}", label.localize(Lang::Zh)),
                )
            }
            Self::NotApprover => LocalizedText::new(
                "deciding about held calls needs the role `approver` or `owner`",
                "审批调用需要 `approver` 或 `owner` 角色",
            ),
            Self::OwnCall => LocalizedText::new(
                format!("`{id}` is your own call: another approver has to decide"),
                format!("`{id}` 是你自己的调用：须由其他审批人决定"),
            ),
            Self::Io(error) => LocalizedText::new(
                format!("the decision could not be stored: {error}"),
                format!("无法保存决定：{error}"),
            ),
        }
    }
}

/// The held calls of a hub.
#[derive(Debug, Clone)]
pub struct HeldCalls {
    storage: Storage,
}

#[derive(Debug, Clone)]
enum Storage {
    Files(HeldCallFiles),
    Shared(SharedHeldCalls),
}

/// What a caller that waits for decisions has seen already.
#[derive(Debug, Default)]
pub struct SeenDecisions(Option<ChangeVersions>);

impl HeldCalls {
    /// The held calls in a data folder.
    pub fn in_folder(home: &Path) -> Self {
        Self { storage: Storage::Files(HeldCallFiles::in_folder(home)) }
    }

    /// The held calls of all hubs that share a store.
    pub fn in_store(store: Arc<dyn HubStore>) -> Self {
        Self { storage: Storage::Shared(SharedHeldCalls::new(store)) }
    }

    /// Holds a call. Returns the existing one if the same call is held already and was not used yet.
    pub async fn hold(&self, new: &NewHeldCall<'_>) -> io::Result<HeldCall> {
        let length = new.arguments.get().len();
        if length > MAX_ARGUMENT_BYTES {
            return Err(io::Error::other(format!(
                "its arguments have {length} bytes; a call that needs approval may have {MAX_ARGUMENT_BYTES}"
            )));
        }
        match &self.storage {
            Storage::Files(files) => files.hold(new),
            Storage::Shared(shared) => shared.hold(new).await,
        }
    }

    /// All held calls, oldest first.
    pub async fn list(&self) -> io::Result<Vec<HeldCall>> {
        self.list_of(None).await
    }

    /// The held calls of a principal, or all; oldest first.
    pub async fn list_of(&self, principal: Option<&str>) -> io::Result<Vec<HeldCall>> {
        let mut calls = match &self.storage {
            Storage::Files(files) => {
                let (files, principal) = (files.clone(), principal.map(str::to_owned));
                // Reads many files.
                let list = move || files.list(principal.as_deref());
                tokio::task::spawn_blocking(list).await.map_err(io::Error::other)??
            }
            Storage::Shared(shared) => shared.list(principal).await?,
        };
        calls.sort_by(|one, other| (one.at_ms, &one.id).cmp(&(other.at_ms, &other.id)));
        Ok(calls)
    }

    /// A held call by its reference.
    pub async fn get(&self, id: &str) -> io::Result<Option<HeldCall>> {
        // A reference comes from a person or a client, and becomes part of a path.
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        match &self.storage {
            Storage::Files(files) => files.get(id),
            Storage::Shared(shared) => shared.get(id).await,
        }
    }

    /// Decides about a call, once.
    pub async fn decide(
        &self,
        id: &str,
        approved: bool,
        decider: Decider<'_>,
    ) -> Result<HeldCall, DecideError> {
        let call = self.get(id).await.map_err(DecideError::Io)?.ok_or(DecideError::Unknown)?;
        decider.check(&call, approved)?;
        if call.state != HeldState::Held {
            return Err(DecideError::NotHeld(call.state));
        }
        let by = decider.principal.id().to_string();
        let decision = StoredDecision { approved, by, at_ms: unix_millis(SystemTime::now()) };
        let stored = match &self.storage {
            Storage::Files(files) => files.store_decision(id, &decision),
            Storage::Shared(shared) => shared.store_decision(id, &decision).await,
        };
        let is_first = stored.map_err(DecideError::Io)?;
        let decided = self.get(id).await.map_err(DecideError::Io)?.ok_or(DecideError::Unknown)?;
        // Another decision was faster, or the script of the call has ended meanwhile.
        let has_effect = is_first && !matches!(decided.state, HeldState::Withdrawn | HeldState::Expired);
        if has_effect { Ok(decided) } else { Err(DecideError::NotHeld(decided.state)) }
    }

    /// Uses an approval. Returns whether this call may run: true exactly once.
    pub async fn consume(&self, id: &str) -> io::Result<bool> {
        match &self.storage {
            Storage::Files(files) => files.consume(id),
            Storage::Shared(shared) => shared.consume(id).await,
        }
    }

    /// Removes a call that its caller withdrew, unless it was decided.
    pub async fn withdraw(&self, id: &str) -> io::Result<()> {
        match &self.storage {
            Storage::Files(files) => files.withdraw(id),
            Storage::Shared(shared) => shared.withdraw(id).await,
        }
    }

    /// Withdraws a call of a script that has ended. Returns whether it was open: true once, for the record of it.
    pub async fn withdraw_of_script(&self, id: &str) -> io::Result<bool> {
        match &self.storage {
            Storage::Files(files) => files.withdraw_of_script(id),
            Storage::Shared(shared) => shared.withdraw_of_script(id).await,
        }
    }

    /// Withdraws the calls whose scripts ended together with their hub. Returns those that were open until now.
    pub async fn withdraw_orphans(&self) -> io::Result<Vec<HeldCall>> {
        let mut withdrawn = Vec::new();
        for call in self.list().await? {
            let is_orphan = call.script.is_some() && call.state == HeldState::Withdrawn;
            if is_orphan && self.withdraw_of_script(&call.id).await? {
                withdrawn.push(call);
            }
        }
        Ok(withdrawn)
    }

    /// Removes the calls of a principal whose key was revoked, unless they were denied or have run.
    pub async fn withdraw_all(&self, principal: &str) -> io::Result<()> {
        match &self.storage {
            Storage::Files(files) => files.withdraw_all(principal),
            Storage::Shared(shared) => shared.withdraw_all(principal).await,
        }
    }

    /// Waits until there may be a decision that the caller has not seen. The first wait returns at once.
    pub async fn wait_for_decision(&self, seen: &mut SeenDecisions) {
        match &self.storage {
            Storage::Files(_) if seen.0.is_none() => seen.0 = Some(ChangeVersions::default()),
            Storage::Files(_) => tokio::time::sleep(POLL_INTERVAL).await,
            Storage::Shared(shared) => shared.wait_for_change(&mut seen.0).await,
        }
    }
}

#[cfg(test)]
mod tests;
