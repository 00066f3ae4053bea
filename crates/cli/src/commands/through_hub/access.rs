//! `waiting`, `audit` and `keys` through a hub.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jiff::Timestamp;
use reqwest::Method;
use serde::Deserialize;
use toolhub::held_calls::{HeldCall, HeldState};
use toolhub::keys::KeyError;
use toolhub::settings::{RevokedKey, TokenSettings};
use toolhub_core::audit::AuditKind;
use toolhub_core::millis::unix_millis;
use toolhub_core::{RawJson, RawObject};

use crate::app::App;
use crate::args::access::{
    AuditArgs, AuditCommand, AuditExportArgs, AuditShowArgs, HeldCallsArgs, HeldCallsCommand, KeysArgs,
    KeysCommand, NewKeyArgs,
};
use crate::commands::access::audit::{self, ShownRecord};
use crate::commands::access::{held_calls, keys};
use crate::commands::history::principal_id;
use crate::commands::through_hub::refuse_options;
use crate::commands::through_hub::servers::parse_time;
use crate::exit::{Exit, UsageError};
use crate::hub_api::error::HubError;
use crate::hub_api::{ApiPath, HubApi, ListPage};

/// The maximum number of records on a page.
const PAGE_SIZE: usize = 500;

/// A held call as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteHeldCall {
    id: String,
    state: String,
    principal: String,
    profile: String,
    tool: String,
    sources: Vec<String>,
    arguments: RawJson,
    rule: String,
    #[serde(default)]
    script: Option<String>,
    decided_by: Option<String>,
    at: String,
    expires: String,
}

impl From<RemoteHeldCall> for HeldCall {
    fn from(call: RemoteHeldCall) -> Self {
        let millis = |text: &str| unix_millis(parse_time(text).unwrap_or(UNIX_EPOCH));
        let by = call.decided_by.unwrap_or_default();
        let state = match call.state.as_str() {
            "approved" => HeldState::Approved { by },
            "denied" => HeldState::Denied { by },
            "expired" => HeldState::Expired,
            "used" => HeldState::Used { by },
            "withdrawn" => HeldState::Withdrawn,
            _ => HeldState::Held,
        };
        Self {
            id: call.id,
            principal: call.principal,
            profile: call.profile,
            tool: call.tool,
            sources: call.sources,
            arguments: call.arguments,
            rule: call.rule,
            definition: String::new(),
            script: call.script,
            at_ms: millis(&call.at),
            expires_ms: millis(&call.expires),
            state,
            is_new: false,
            holder: None,
        }
    }
}

pub(crate) async fn held_calls(app: &App, api: &HubApi, args: &HeldCallsArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => {
            let query = [("all", if args.all { "true" } else { "false" })];
            let page: ListPage<RemoteHeldCall> = api.get(&ApiPath::new("waiting"), &query).await?;
            // The API has the newest first, the command the oldest.
            let calls: Vec<HeldCall> = page.items.into_iter().rev().map(HeldCall::from).collect();
            held_calls::print(app, &calls);
            Ok(Exit::Done)
        }
        Some(HeldCallsCommand::Approve(call)) => decide(app, api, &call.id, true).await,
        Some(HeldCallsCommand::Deny(call)) => decide(app, api, &call.id, false).await,
    }
}

async fn decide(app: &App, api: &HubApi, id: &str, approved: bool) -> anyhow::Result<Exit> {
    let verb = if approved { ":approve" } else { ":deny" };
    let path = ApiPath::item("waiting", id, verb)?;
    match api.post::<RemoteHeldCall>(&path, RawObject::default()).await {
        Ok(call) => {
            held_calls::print_decision(app, &call.into(), approved);
            Ok(Exit::Done)
        }
        // As the local command, which reports the state of the call as wrong usage.
        Err(HubError::Problem(problem)) if matches!(problem.kind.as_str(), "not-found" | "not-waiting") => {
            Err(UsageError(problem.detail).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A record of the audit log as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteRecord {
    sequence: u64,
    at: String,
    principal: String,
    kind: String,
    object: String,
    state: String,
    reference: Option<String>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    approver: Option<String>,
}

impl From<RemoteRecord> for ShownRecord {
    fn from(record: RemoteRecord) -> Self {
        Self {
            sequence: record.sequence,
            at: parse_time(&record.at).unwrap_or(SystemTime::UNIX_EPOCH),
            principal: record.principal,
            kind: record.kind,
            object: record.object,
            state: record.state,
            reference: record.reference,
            rule: record.rule,
            approver: record.approver,
        }
    }
}

/// The result of a verification as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteVerification {
    intact: bool,
    records: u64,
    text: String,
    #[serde(default = "is_present")]
    has_last_checkpoint: bool,
}

/// A hub that does not report the last checkpoint may have it.
fn is_present() -> bool {
    true
}

pub(crate) async fn audit(app: &App, api: &HubApi, args: AuditArgs) -> anyhow::Result<Exit> {
    match audit::chosen(app, args)? {
        AuditCommand::Show(args) => show(app, api, &args).await,
        AuditCommand::Verify(args) => {
            refuse_options(app, &[("FILE", args.file.is_some())])?;
            verify(app, api).await
        }
        AuditCommand::Export(args) => export(app, api, &args).await,
    }
}

async fn show(app: &App, api: &HubApi, args: &AuditShowArgs) -> anyhow::Result<Exit> {
    let limit = args.limit.unwrap_or(audit::DEFAULT_RECORDS);
    let principal = args.by.as_deref().map(principal_id);
    let since = args.since.and_then(|span| SystemTime::now().checked_sub(span.0));
    let since = since.and_then(|since| Timestamp::try_from(since).ok()).map(|since| since.to_string());
    let page_size = limit.clamp(1, PAGE_SIZE).to_string();
    let filters = [
        ("principal", principal.as_deref()),
        ("kind", audit::checked_kind(app, args)?.map(AuditKind::name)),
        ("reference", args.reference.as_deref()),
        ("since", since.as_deref()),
        ("limit", Some(page_size.as_str())),
    ];
    let filters: Vec<(&str, &str)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let records: Vec<RemoteRecord> = api.get_all(&ApiPath::new("audit"), &filters, Some(limit)).await?;
    let records: Vec<ShownRecord> = records.into_iter().map(ShownRecord::from).collect();
    audit::print(app, &records);
    Ok(Exit::Done)
}

async fn verify(app: &App, api: &HubApi) -> anyhow::Result<Exit> {
    let found: RemoteVerification = api.post(&ApiPath::new("audit:verify"), RawObject::default()).await?;
    if !found.has_last_checkpoint {
        audit::warn_of_missing_checkpoint(app);
    }
    audit::print_verdict(app, found.intact, found.records, &found.text);
    Ok(if found.intact { Exit::Done } else { Exit::Failed })
}

async fn export(app: &App, api: &HubApi, args: &AuditExportArgs) -> anyhow::Result<Exit> {
    let query = [("format", args.format.as_str())];
    let bytes = api.get_bytes(&ApiPath::new("audit/export"), &query).await?;
    if args.file == Path::new("-") {
        app.screen.verbatim(&String::from_utf8_lossy(&bytes));
        return Ok(Exit::Done);
    }
    let name = args.file.display();
    let mut file = File::create(&args.file).with_context(|| name.to_string())?;
    file.write_all(&bytes).with_context(|| name.to_string())?;
    let size = bytes.len();
    app.screen.note(
        &app.lang()
            .choose(format!("wrote {size} bytes to `{name}`"), format!("已将 {size} 字节写入 `{name}`")),
    );
    Ok(Exit::Done)
}

/// A key as the API describes it.
#[derive(Debug, Deserialize)]
struct RemoteKey {
    name: String,
    roles: Vec<String>,
    profiles: Option<Vec<String>>,
    expires: Option<String>,
    per_day: Option<u64>,
    /// When it was revoked. Hubs of older versions do not list revoked keys.
    #[serde(default)]
    revoked: Option<String>,
}

impl From<RemoteKey> for TokenSettings {
    fn from(key: RemoteKey) -> Self {
        let RemoteKey { name, roles, profiles, expires, per_day, revoked: _ } = key;
        Self { name, sha256: String::new(), roles: Some(roles), profiles, expires, per_day }
    }
}

/// A new key as the API returns it.
#[derive(Debug, Deserialize)]
struct NewSecret {
    name: String,
    key: String,
}

pub(crate) async fn keys(app: &App, api: &HubApi, args: &KeysArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => keys::print(app, &keys_in_force(api).await?, &[]),
        Some(KeysCommand::List(args)) => {
            let query: &[_] = if args.all { &[("all", "true")] } else { &[] };
            let (tokens, revoked) = all_keys(api, query).await?;
            keys::print(app, &tokens, &revoked);
        }
        Some(KeysCommand::Show(wanted)) => {
            let keys = keys_in_force(api).await?;
            let key = keys.iter().find(|key| key.name == wanted.name);
            let key = key.ok_or_else(|| keys::failed(app, &KeyError::Unknown, &wanted.name))?;
            keys::print_one(app, key);
        }
        Some(KeysCommand::New(new)) => return create_key(app, api, new).await,
        Some(KeysCommand::Rotate(key)) => {
            let path = ApiPath::item("keys", &key.name, ":rotate")?;
            let secret = api.post::<NewSecret>(&path, RawObject::default()).await;
            print_secret(app, &secret.map_err(|error| key_error(app, &key.name, error))?);
        }
        Some(KeysCommand::Revoke(key)) => {
            let path = ApiPath::item("keys", &key.name, "")?;
            let revoked = api.write::<RawJson>(Method::DELETE, &path, RawObject::default()).await;
            revoked.map_err(|error| key_error(app, &key.name, error))?;
            keys::print_revoked(app, &key.name);
        }
    }
    Ok(Exit::Done)
}

async fn keys_in_force(api: &HubApi) -> Result<Vec<TokenSettings>, HubError> {
    Ok(all_keys(api, &[]).await?.0)
}

/// The keys in force and the revoked ones.
async fn all_keys(
    api: &HubApi,
    query: &[(&str, &str)],
) -> Result<(Vec<TokenSettings>, Vec<RevokedKey>), HubError> {
    let page: ListPage<RemoteKey> = api.get(&ApiPath::new("keys"), query).await?;
    let (mut tokens, mut revoked) = (Vec::new(), Vec::new());
    for mut key in page.items {
        match key.revoked.take() {
            Some(at) => revoked.push(RevokedKey { name: key.name, at }),
            None => tokens.push(TokenSettings::from(key)),
        }
    }
    Ok((tokens, revoked))
}

async fn create_key(app: &App, api: &HubApi, args: &NewKeyArgs) -> anyhow::Result<Exit> {
    let new = keys::new_key(app, args)?;
    let mut body = RawObject::default()
        .with("name", new.name.as_str())
        .with("roles", RawJson::of(&new.roles))
        .with("profiles", RawJson::of(&new.profiles))
        .with("expires", RawJson::of(&new.expires))
        .with("per_day", RawJson::of(&new.per_day));
    if new.same_person {
        body.set("same_person", true);
    }
    let secret = api.post::<NewSecret>(&ApiPath::new("keys"), body).await;
    print_secret(app, &secret.map_err(|error| key_error(app, &new.name, error))?);
    Ok(Exit::Done)
}

/// The local command reports an unknown key, and a name that is in use, as wrong usage.
fn key_error(app: &App, name: &str, error: HubError) -> anyhow::Error {
    match error {
        HubError::Problem(problem) if problem.kind == "not-found" => {
            keys::failed(app, &KeyError::Unknown, name)
        }
        HubError::Problem(problem) if problem.kind == "config" => UsageError(problem.detail).into(),
        error => error.into(),
    }
}

fn print_secret(app: &App, NewSecret { name, key }: &NewSecret) {
    keys::print_key(app, name, key);
    if !app.screen.json {
        app.screen.to_stderr(&app.lang().choose(
            format!("Give this key to `{name}`; it is not shown again. The hub accepts it now. Clients send it as `Authorization: Bearer KEY`."),
            format!("请把此密钥交给 `{name}`；它不会再次显示。hub 会立即接受它。客户端以 `Authorization: Bearer 密钥` 发送。"),
        ));
    }
}
