//! `toolhub keys`: the keys with which people and programs connect to the gateway.

use std::time::SystemTime;

use toolhub::keys::{self, KeyError, NewKey};
use toolhub::settings::{RevokedKey, Settings, TokenSettings, parse_time};
use toolhub_core::audit::{ChangeKind, ChangedObject};
use toolhub_core::{Localize as _, RawJson, RawObject, Role};

use crate::app::App;
use crate::args::access::{KeysArgs, KeysCommand, NewKeyArgs};
use crate::exit::{Exit, UsageError};
use crate::render::screen::{BAD, DIM, NAME};
use crate::render::table::{Cell, table_lines};

pub(crate) async fn run(app: &App, args: &KeysArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => list(app, false),
        Some(KeysCommand::List(args)) => list(app, args.all),
        Some(KeysCommand::New(new)) => create(app, new).await,
        Some(KeysCommand::Show(key)) => show(app, &key.name),
        Some(KeysCommand::Revoke(key)) => revoke(app, &key.name).await,
        Some(KeysCommand::Rotate(key)) => rotate(app, &key.name).await,
    }
}

pub(crate) fn failed(app: &App, error: &KeyError, name: &str) -> anyhow::Error {
    UsageError(error.text(name).localize(app.lang())).into()
}

/// Appends a change to the audit log. It is already in force: a failure is reported and does not undo it.
async fn record(app: &App, name: &str, change: ChangeKind) -> anyhow::Result<()> {
    let hub = app.hub().await?;
    if let Err(error) = hub.record_change(ChangedObject::Key, name, change).await {
        app.screen.warn(&error.localize(app.lang()));
    }
    Ok(())
}

fn settings(app: &App) -> anyhow::Result<Settings> {
    Ok(Settings::read(&app.paths()?)?)
}

async fn create(app: &App, args: &NewKeyArgs) -> anyhow::Result<Exit> {
    let new = new_key(app, args)?;
    let name = new.name.as_str();
    let paths = app.paths()?;
    let secret = keys::create(&paths.config, &new).map_err(|error| failed(app, &error, name))?;
    app.keep_trust(&paths, &[&paths.config]);
    record(app, name, ChangeKind::Created).await?;
    print_secret(app, name, &secret)
}

/// The settings of a new key.
pub(crate) fn new_key(app: &App, args: &NewKeyArgs) -> anyhow::Result<NewKey> {
    let name = args.name.trim();
    if name.is_empty() {
        let why = app.lang().choose(
            "a key needs the name of the person or program that uses it",
            "密钥需要使用者（人或程序）的名称",
        );
        return Err(UsageError(why.to_owned()).into());
    }
    check_flags(app, args)?;
    Ok(NewKey {
        name: name.to_owned(),
        roles: args.roles.clone(),
        profiles: args.profiles.clone(),
        expires: args.expires.clone(),
        per_day: args.per_day,
        same_person: args.same_person,
    })
}

/// Checks the values of the flags before the file is edited, so that an error names the flag.
fn check_flags(app: &App, args: &NewKeyArgs) -> anyhow::Result<()> {
    let lang = app.lang();
    if let Some(role) = args.roles.iter().find(|role| Role::from_name(role).is_none()) {
        let known = Role::ALL.map(Role::name);
        return Err(UsageError(lang.choose(
            format!("`--role {role}`: there is no such role; there are: {}", known.join(", ")),
            format!("`--role {role}`：没有这个角色；可用的角色：{}", known.join("、")),
        ))
        .into());
    }
    if let Some(expires) = args.expires.as_deref().filter(|expires| parse_time(expires).is_none()) {
        return Err(UsageError(lang.choose(
            format!("`--expires {expires}`: write a date or time such as 2027-01-31 or 2027-01-31T12:00:00Z"),
            format!("`--expires {expires}`：请写日期或时间，如 2027-01-31 或 2027-01-31T12:00:00Z"),
        ))
        .into());
    }
    Ok(())
}

async fn rotate(app: &App, name: &str) -> anyhow::Result<Exit> {
    let paths = app.paths()?;
    let secret = keys::rotate(&paths.config, name).map_err(|error| failed(app, &error, name))?;
    app.keep_trust(&paths, &[&paths.config]);
    record(app, name, ChangeKind::Updated).await?;
    print_secret(app, name, &secret)
}

fn print_secret(app: &App, name: &str, secret: &str) -> anyhow::Result<Exit> {
    let (lang, config) = (app.lang(), app.paths()?.config);
    print_key(app, name, secret);
    if app.screen.json {
        return Ok(Exit::Done);
    }
    let config = config.display();
    app.screen.to_stderr(&lang.choose(
        format!(
            "Give this key to `{name}`; it is not shown again. Its hash is in `{config}`; a running `toolhub serve` accepts it now. \
             Clients send it as `Authorization: Bearer KEY`."
        ),
        format!(
            "请把此密钥交给 `{name}`；它不会再次显示。其哈希已写入 `{config}`，正在运行的 `toolhub serve` 会立即接受它。\
             客户端以 `Authorization: Bearer 密钥` 发送。"
        ),
    ));
    Ok(Exit::Done)
}

/// Prints a key, without advice.
pub(crate) fn print_key(app: &App, name: &str, secret: &str) {
    match app.screen.json {
        true => app.screen.json(&RawObject::default().with("name", name).with("key", secret).into_raw()),
        false => app.screen.line(secret),
    }
}

async fn revoke(app: &App, name: &str) -> anyhow::Result<Exit> {
    let paths = app.paths()?;
    keys::revoke(&paths.config, name).map_err(|error| failed(app, &error, name))?;
    app.keep_trust(&paths, &[&paths.config]);
    record(app, name, ChangeKind::Deleted).await?;
    if let Err(error) = app.hub().await?.forget_logins(&format!("key:{name}")).await {
        app.screen.warn(&error.localize(app.lang()));
    }
    print_revoked(app, name);
    if !app.screen.json && !settings(app)?.auth.is_required() {
        app.screen.note(app.lang().choose(
            "that was the last key: the next `toolhub serve` needs none, and accepts this machine only",
            "这是最后一个密钥：下次启动的 `toolhub serve` 不再要求密钥，且只接受本机连接",
        ));
    }
    Ok(Exit::Done)
}

/// Prints that a key is revoked.
pub(crate) fn print_revoked(app: &App, name: &str) {
    if app.screen.json {
        app.screen.json(&RawObject::default().with("name", name).with("revoked", true).into_raw());
        return;
    }
    app.screen.line(&app.lang().choose(
        format!("`{name}` is revoked: open connections that use it end within a second"),
        format!("已吊销 `{name}`：使用它的连接将在一秒内断开"),
    ));
}

fn is_expired(token: &TokenSettings) -> bool {
    let expires = token.expires.as_deref().and_then(parse_time);
    expires.is_some_and(|at| at <= SystemTime::now())
}

fn as_json(token: &TokenSettings) -> RawObject {
    RawObject::default()
        .with("name", token.name.as_str())
        .with("principal", format!("key:{}", token.name))
        .with("roles", RawJson::of(&roles(token)))
        .with("profiles", RawJson::of(&token.profiles))
        .with("expires", RawJson::of(&token.expires))
        .with("expired", is_expired(token))
        .with("per_day", RawJson::of(&token.per_day))
}

fn roles(token: &TokenSettings) -> Vec<String> {
    token.roles.clone().unwrap_or_else(|| vec!["caller".to_owned()])
}

fn list(app: &App, all: bool) -> anyhow::Result<Exit> {
    let auth = settings(app)?.auth;
    print(app, &auth.tokens, if all { &auth.revoked } else { &[] });
    Ok(Exit::Done)
}

/// Prints keys, and the names of revoked ones.
pub(crate) fn print(app: &App, tokens: &[TokenSettings], revoked: &[RevokedKey]) {
    if app.screen.json {
        let revoked = revoked
            .iter()
            .map(|key| RawObject::default().with("name", key.name.as_str()).with("revoked", key.at.as_str()));
        let all: Vec<RawObject> = tokens.iter().map(as_json).chain(revoked).collect();
        app.screen.json(&RawJson::of(&all));
        return;
    }
    if tokens.is_empty() && revoked.is_empty() {
        app.screen.note(app.lang().choose(
            "there are no keys: `toolhub keys new NAME` makes one",
            "没有密钥：可用 `toolhub keys new 名称` 生成",
        ));
        return;
    }
    let revoked = revoked.iter().map(|key| revoked_row(app, key));
    let rows: Vec<Vec<Cell>> = tokens.iter().map(|token| row(app, token)).chain(revoked).collect();
    for line in table_lines(&rows, "", app.screen.width()) {
        app.screen.line(&line);
    }
}

fn row(app: &App, token: &TokenSettings) -> Vec<Cell> {
    let lang = app.lang();
    let profiles = match &token.profiles {
        None => lang.choose("all profiles", "所有配置方案").to_owned(),
        Some(profiles) => profiles.join(", "),
    };
    let expires = match &token.expires {
        None => Cell::new(lang.choose("no expiry", "不过期"), DIM),
        Some(at) if is_expired(token) => {
            Cell::new(lang.choose(format!("expired {at}"), format!("已过期 {at}")), BAD)
        }
        Some(at) => Cell::from(lang.choose(format!("until {at}"), format!("有效至 {at}"))),
    };
    let budget = token.per_day.map(|limit| lang.choose(format!("{limit} a day"), format!("每日 {limit} 次")));
    vec![
        Cell::new(token.name.as_str(), NAME),
        Cell::from(roles(token).join(", ")),
        Cell::from(profiles),
        expires,
        Cell::from(budget.unwrap_or_default()),
    ]
}

fn revoked_row(app: &App, key: &RevokedKey) -> Vec<Cell> {
    let at = &key.at;
    let state = app.lang().choose(format!("revoked {at}"), format!("已吊销 {at}"));
    vec![
        Cell::new(key.name.as_str(), NAME),
        Cell::from(String::new()),
        Cell::from(String::new()),
        Cell::new(state, BAD),
        Cell::from(String::new()),
    ]
}

fn show(app: &App, name: &str) -> anyhow::Result<Exit> {
    let auth = settings(app)?.auth;
    let token = keys::find_key(&auth, name).map_err(|error| failed(app, &error, name))?;
    print_one(app, token);
    Ok(Exit::Done)
}

/// Prints one key.
pub(crate) fn print_one(app: &App, token: &TokenSettings) {
    if app.screen.json {
        app.screen.json(&as_json(token).into_raw());
        return;
    }
    for line in table_lines(&[row(app, token)], "", app.screen.width()) {
        app.screen.line(&line);
    }
}
