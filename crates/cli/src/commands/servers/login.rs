//! `toolhub servers login` and `servers logout`.

use toolhub::keys::find_key;
use toolhub::{Hub, LoginError};
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{Localize as _, Principal, RawJson, RawObject, ToolError};
use toolhub_oauth::OAuthError;

use crate::app::App;
use crate::args::{LoginArgs, LogoutArgs};
use crate::commands::servers::unknown_server;
use crate::exit::{Exit, UsageError};
use crate::render::plural::plural;
use crate::render::screen::{BOLD, GOOD, NAME};
use crate::terminal::browser;

pub(crate) async fn login(app: &App, args: LoginArgs) -> anyhow::Result<Exit> {
    let (hub, lang, id) = (app.hub().await?, app.lang(), args.id.as_str());
    let show = |address: &str| {
        let opened = !args.no_browser && browser::open(address);
        let text = match opened {
            true => lang.choose(
                "your browser opens; if it does not, open this:",
                "正在打开浏览器；若没有打开，请访问：",
            ),
            false => lang.choose("open this in a browser to log in:", "请在浏览器中打开以下地址登录："),
        };
        // Printed even with `--quiet`: the login cannot continue without it.
        for line in [text, "", &format!("  {BOLD}{address}{BOLD:#}"), ""] {
            app.screen.to_stderr(line);
        }
    };
    if let Some(name) = &args.principal {
        let principal = find_principal(app, hub, name)?;
        return match app.interruptible(hub.login_as(id, &principal, &show)).await? {
            Ok(()) => {
                logged_in_as(app, id, principal.id());
                Ok(Exit::Done)
            }
            Err(error) => fail(app, id, &error).await,
        };
    }
    match app.interruptible(hub.login_at(id, args.issuer.as_deref(), &show)).await? {
        Ok(list) => {
            let tools = list.tools.len();
            if app.screen.json {
                let done =
                    RawObject::default().with("id", id).with("success", true).with("tools", tools as u64);
                app.screen.json(&RawJson::from(done));
            } else {
                let text = lang.choose(
                    format!("logged in, {}", plural(tools, "tool")),
                    format!("已登录，{tools} 个工具"),
                );
                app.screen.line(&format!("{GOOD}✓{GOOD:#} {NAME}{id}{NAME:#}  {text}"));
            }
            Ok(Exit::Done)
        }
        Err(error) => fail(app, id, &error).await,
    }
}

pub(crate) async fn logout(app: &App, args: LogoutArgs) -> anyhow::Result<Exit> {
    let (hub, lang, id) = (app.hub().await?, app.lang(), args.id.as_str());
    let logout = async {
        match &args.principal {
            Some(name) => Ok(hub.logout_as(id, &find_principal(app, hub, name)?).await),
            None => anyhow::Ok(hub.logout(id).await),
        }
    };
    match app.interruptible(logout).await?? {
        Ok(known) => {
            if app.screen.json {
                let done =
                    RawObject::default().with("id", id).with("success", true).with("was_logged_in", known);
                app.screen.json(&RawJson::from(done));
            } else {
                app.screen.note(&match known {
                    true => lang.choose(format!("logged out of `{id}`"), format!("已退出 `{id}`")),
                    false => {
                        lang.choose(format!("there was no login for `{id}`"), format!("没有登录 `{id}`"))
                    }
                });
            }
            Ok(Exit::Done)
        }
        Err(error) => fail(app, id, &error).await,
    }
}

/// A principal that may have a login, by the name of its key, or by its id at an identity provider.
fn find_principal(app: &App, hub: &Hub, name: &str) -> anyhow::Result<Principal> {
    let auth = &hub.settings().auth;
    let at_issuer = |id: &str| {
        let (issuer, subject) = id.strip_prefix("oidc:")?.rsplit_once('#')?;
        let is_known = auth.issuers.iter().any(|known| known.url == issuer);
        let origin = PrincipalOrigin::Oidc { issuer: issuer.to_owned(), subject: subject.to_owned() };
        (is_known && !subject.is_empty()).then(|| Principal::new(origin, PrincipalKind::Person))
    };
    if let Some(principal) = at_issuer(name) {
        return Ok(principal);
    }
    let key = name.strip_prefix("key:").unwrap_or(name);
    let token = find_key(auth, key).map_err(|error| UsageError(error.text(key).localize(app.lang())))?;
    Ok((*token.key().principal).clone())
}

fn logged_in_as(app: &App, id: &str, principal: &str) {
    if app.screen.json {
        let done = RawObject::default().with("id", id).with("success", true).with("principal", principal);
        return app.screen.json(&RawJson::from(done));
    }
    let text = app.lang().choose(format!("logged in for {principal}"), format!("已为 {principal} 登录"));
    app.screen.line(&format!("{GOOD}✓{GOOD:#} {NAME}{id}{NAME:#}  {text}"));
}

async fn fail(app: &App, id: &str, error: &LoginError) -> anyhow::Result<Exit> {
    let (kind, exit) = match error {
        LoginError::UnknownServer => return Err(unknown_server(app, app.hub().await?, id).into()),
        LoginError::Failed { error: OAuthError::TimedOut(_), .. } => ("timed_out", Exit::TimedOut),
        LoginError::Failed { error: OAuthError::Unreachable { .. }, .. } => {
            ("login_failed", Exit::Unreachable)
        }
        LoginError::Failed {
            error: OAuthError::NotHttp | OAuthError::OwnHeader | OAuthError::Config(_),
            ..
        } => ("usage", Exit::Usage),
        LoginError::Failed { .. } => ("login_failed", Exit::Failed),
        LoginError::NotServed(error) => (ToolError::kind(error), Exit::from(error)),
    };
    let text = error.localize(app.lang());
    if app.screen.json {
        let failed = RawObject::default().with("id", id).with("success", false).with("error", text.as_str());
        app.screen.json(&RawJson::from(failed.with("error_kind", kind)));
    }
    app.screen.error(&text);
    Ok(exit)
}
