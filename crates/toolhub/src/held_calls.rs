//! Held calls: calls that a rule with `effect = "ask"` parks until a person decides.
//!
//! Each call is a file in the data folder, a decision another, and the use of an approval a third. A file is created whole or
//! not at all and never replaced, so that a call is decided once and runs once, whatever is killed in between. Any command of
//! the same user can decide; a running hub looks for the file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolhub_core::json::canonical;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Principal, RawJson, Role};

/// The folder of held calls in the data folder.
const FOLDER: &str = "held";
/// How long the files of a call are kept after it has expired.
const RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of calls of one principal that wait at the same time.
const MAX_WAITING: usize = 1_000;
/// Number of hexadecimal digits at the beginning of an id that identify the principal.
const PRINCIPAL_DIGITS: usize = 8;
/// Number of hexadecimal digits after them that identify the call.
const CALL_DIGITS: usize = 16;
/// The file that is locked while a call is looked for and created.
const LOCK_FILE: &str = "lock";
/// One of this many new calls removes the files of calls that expired long ago.
const CLEANUP_INTERVAL: u32 = 256;

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
    /// How long it waits.
    pub hold: Duration,
}

impl NewHeldCall<'_> {
    /// The beginning of the ids of all calls of the principal.
    fn principal_prefix(&self) -> String {
        digest(&[self.principal.id()], PRINCIPAL_DIGITS)
    }

    /// The beginning of the ids of this call: equal calls share one decision.
    fn prefix(&self) -> String {
        let (sources, arguments) = (self.sources.join("\u{1f}"), canonical_text(self.arguments));
        let parts = [self.profile, self.tool, &sources, &arguments];
        format!("{}{}", self.principal_prefix(), digest(&parts, CALL_DIGITS))
    }

    /// Whether a held call is this one. The digest in its id is too short to rely on: its caller could search for two calls
    /// with the same digest, and run one with the approval of the other.
    fn is(&self, held: &HeldCall) -> bool {
        held.principal == **self.principal.id()
            && held.profile == self.profile
            && held.tool == self.tool
            && held.sources == self.sources
            && canonical_text(&held.arguments) == canonical_text(self.arguments)
    }
}

/// The arguments without differences of spelling and order.
fn canonical_text(arguments: &RawJson) -> String {
    canonical(arguments.get()).unwrap_or_else(|| arguments.get().to_owned())
}

/// The first hexadecimal digits of the SHA-256 of these parts.
fn digest(parts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut text: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
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
}

/// The state of a held call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeldState {
    /// No decision yet.
    #[default]
    Waiting,
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
}

impl HeldState {
    /// The name in output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved { .. } => "approved",
            Self::Denied { .. } => "denied",
            Self::Expired => "expired",
            Self::Used { .. } => "used",
        }
    }

    /// The id of the principal that decided.
    pub fn decided_by(&self) -> Option<&str> {
        match self {
            Self::Approved { by } | Self::Denied { by } | Self::Used { by } => Some(by),
            Self::Waiting | Self::Expired => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredDecision {
    approved: bool,
    by: String,
    at_ms: u64,
}

/// Who decides about held calls.
#[derive(Debug, Clone, Copy)]
pub struct Decider<'a> {
    /// The principal.
    pub principal: &'a Principal,
    /// Whether there is no other principal: the owner may then approve its own calls.
    pub is_alone: bool,
}

/// Why a decision was not accepted.
#[derive(Debug)]
pub enum DecideError {
    /// There is no such call.
    Unknown,
    /// The call is not waiting any more.
    NotWaiting(HeldState),
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
                format!("没有编号为 `{id}` 的待批准调用：可用 `toolhub waiting` 查看"),
            ),
            Self::NotWaiting(state) => LocalizedText::new(
                format!("`{id}` is not waiting any more: {}", state.name()),
                format!("`{id}` 已不在等待：{}", state.name()),
            ),
            Self::NotApprover => LocalizedText::new(
                "deciding about held calls needs the role `approver` or `owner`",
                "审批调用需要 `approver` 或 `owner` 角色",
            ),
            Self::OwnCall => LocalizedText::new(
                format!("`{id}` is your own call: another approver has to decide"),
                format!("`{id}` 是您自己的调用：须由其他审批人决定"),
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
    folder: PathBuf,
}

/// The ids of calls, by the names of their files.
#[derive(Debug, Default)]
struct Entries {
    calls: BTreeSet<String>,
    decided: BTreeSet<String>,
}

impl HeldCalls {
    /// The held calls in a data folder.
    pub fn in_folder(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Holds a call. Returns the existing entry if the same call is held already and was not used yet. Reads the names of the
    /// files, and only those files whose name belongs to this call.
    pub fn hold(&self, new: &NewHeldCall<'_>) -> io::Result<HeldCall> {
        create_private_folder(&self.folder)?;
        // Equal calls at the same moment, also of several processes, must find each other.
        let _lock = self.lock()?;
        let (prefix, entries) = (new.prefix(), self.entries_of(&new.principal_prefix())?);
        for id in entries.calls.iter().filter(|id| id.starts_with(&prefix)) {
            let Some(known) = self.get(id)? else { continue };
            // A denial holds until the call would have expired; then it may be asked for again.
            let is_open = !matches!(known.state, HeldState::Expired | HeldState::Used { .. })
                && known.expires_ms > millis(SystemTime::now());
            if is_open && new.is(&known) {
                return Ok(known);
            }
        }
        self.check_waiting(new.principal, &entries)?;
        if fastrand::u32(..CLEANUP_INTERVAL) == 0 {
            self.list()?;
        }
        let now = millis(SystemTime::now());
        let call = HeldCall {
            id: format!("{prefix}{:08x}", fastrand::u32(..)),
            principal: new.principal.id().to_string(),
            profile: new.profile.to_owned(),
            tool: new.tool.to_owned(),
            sources: new.sources.clone(),
            arguments: new.arguments.clone(),
            rule: new.rule.to_owned(),
            at_ms: now,
            expires_ms: now.saturating_add(u64::try_from(new.hold.as_millis()).unwrap_or(u64::MAX)),
            state: HeldState::Waiting,
            is_new: true,
        };
        self.create(&format!("{}.json", call.id), &serde_json::to_vec(&call)?)?;
        Ok(call)
    }

    /// Locks the folder for other calls of [`HeldCalls::hold`] until the file is dropped.
    fn lock(&self) -> io::Result<fs::File> {
        let file =
            fs::File::options().write(true).create(true).truncate(false).open(self.folder.join(LOCK_FILE))?;
        file.lock()?;
        Ok(file)
    }

    /// The names of files whose ids begin with a prefix.
    fn entries_of(&self, prefix: &str) -> io::Result<Entries> {
        let mut entries = Entries::default();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some((id, extension)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
            if id.starts_with(prefix) {
                match extension {
                    "json" => drop(entries.calls.insert(id.to_owned())),
                    "decision" => drop(entries.decided.insert(id.to_owned())),
                    _ => {}
                }
            }
        }
        Ok(entries)
    }

    /// Checks that another call of the principal may wait. The files are read only if there are many of them; those of expired
    /// calls are removed then.
    fn check_waiting(&self, principal: &Principal, entries: &Entries) -> io::Result<()> {
        let undecided: Vec<&String> = entries.calls.difference(&entries.decided).collect();
        if undecided.len() < MAX_WAITING {
            return Ok(());
        }
        let mut waiting = 0;
        for id in undecided {
            match self.get(id)? {
                Some(call) if call.state == HeldState::Expired => self.remove(id),
                Some(call) => waiting += usize::from(call.principal == **principal.id()),
                None => {}
            }
        }
        if waiting >= MAX_WAITING {
            return Err(io::Error::other("too many calls of this principal wait for approval"));
        }
        Ok(())
    }

    /// All held calls, oldest first. Removes the files of calls that expired long ago.
    pub fn list(&self) -> io::Result<Vec<HeldCall>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut calls = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            let Some(call) = self.get(id)? else { continue };
            let kept_until =
                call.expires_ms.saturating_add(u64::try_from(RETENTION.as_millis()).unwrap_or(0));
            if kept_until < millis(SystemTime::now()) {
                self.remove(id);
                continue;
            }
            calls.push(call);
        }
        calls.sort_by(|one, other| (one.at_ms, &one.id).cmp(&(other.at_ms, &other.id)));
        Ok(calls)
    }

    /// A held call by its reference.
    pub fn get(&self, id: &str) -> io::Result<Option<HeldCall>> {
        // A reference comes from a person or a client and becomes part of a path.
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let Some(bytes) = read_if_exists(&self.file(id, "json"))? else { return Ok(None) };
        let mut call: HeldCall = serde_json::from_slice(&bytes)?;
        call.state = self.state(id, call.expires_ms)?;
        Ok(Some(call))
    }

    fn state(&self, id: &str, expires_ms: u64) -> io::Result<HeldState> {
        let decision = read_if_exists(&self.file(id, "decision"))?;
        let decision = decision.map(|bytes| serde_json::from_slice::<StoredDecision>(&bytes)).transpose()?;
        let expired = millis(SystemTime::now()) >= expires_ms;
        Ok(match decision {
            Some(StoredDecision { approved: true, by, .. }) if self.file(id, "used").exists() => {
                HeldState::Used { by }
            }
            Some(StoredDecision { approved: false, by, .. }) => HeldState::Denied { by },
            _ if expired => HeldState::Expired,
            Some(StoredDecision { by, .. }) => HeldState::Approved { by },
            None => HeldState::Waiting,
        })
    }

    /// Decides about a call, once.
    pub fn decide(&self, id: &str, approved: bool, decider: Decider<'_>) -> Result<HeldCall, DecideError> {
        let call = self.get(id).map_err(DecideError::Io)?.ok_or(DecideError::Unknown)?;
        let Decider { principal, is_alone } = decider;
        if !principal.roles.contains(Role::Approver) && !principal.roles.contains(Role::Owner) {
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
        if call.state != HeldState::Waiting {
            return Err(DecideError::NotWaiting(call.state));
        }
        let by = principal.id().to_string();
        let decision = StoredDecision { approved, by, at_ms: millis(SystemTime::now()) };
        let bytes = serde_json::to_vec(&decision).map_err(|error| DecideError::Io(error.into()))?;
        match self.create(&format!("{id}.decision"), &bytes) {
            Ok(()) => {}
            // Another decision was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let state = self.state(id, call.expires_ms).map_err(DecideError::Io)?;
                return Err(DecideError::NotWaiting(state));
            }
            Err(error) => return Err(DecideError::Io(error)),
        }
        self.get(id).map_err(DecideError::Io)?.ok_or(DecideError::Unknown)
    }

    /// Uses an approval. Returns whether this call may run: true exactly once.
    pub fn consume(&self, id: &str) -> io::Result<bool> {
        match self.create(&format!("{id}.used"), b"") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a call that its caller withdrew, unless it was decided.
    pub fn withdraw(&self, id: &str) -> io::Result<()> {
        if self.get(id)?.is_some_and(|call| call.state == HeldState::Waiting) {
            self.remove(id);
        }
        Ok(())
    }

    /// Removes the calls of a principal whose key was revoked, unless they were denied or have run.
    pub fn withdraw_all(&self, principal: &str) -> io::Result<()> {
        for call in self.list()?.into_iter().filter(|call| call.principal == principal) {
            if matches!(call.state, HeldState::Waiting | HeldState::Approved { .. }) {
                self.remove(&call.id);
            }
        }
        Ok(())
    }

    fn file(&self, id: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{id}.{extension}"))
    }

    fn remove(&self, id: &str) {
        for extension in ["json", "decision", "used"] {
            let _ = fs::remove_file(self.file(id, extension));
        }
    }

    /// Creates a file with this content, durable and whole. Fails if it exists.
    fn create(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(self.folder.join(name)).map_err(|error| error.error)?;
        #[cfg(unix)]
        fs::File::open(&self.folder)?.sync_all()?;
        Ok(())
    }
}

fn read_if_exists(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
