//! OAuth login to servers, and logout.

use toolhub_core::audit::{ChangeKind, ChangedObject};
use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::ports::CachedList;
use toolhub_core::{BoxFuture, Event, EventKind, Principal, ServerId, ToolError};
use toolhub_oauth::{OAuthError, Show};

use crate::hub::Hub;

/// The maximum number of logins if further scopes turn out to be required.
const MAX_LOGINS: u32 = 3;

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// No such server is configured.
    #[error("{}", self.localize(Lang::En))]
    UnknownServer,
    /// The login failed. `Display` omits the cause, which is the source of the error; [`Localize`] includes both.
    #[error("the login to `{server}` failed")]
    Failed {
        /// The server.
        server: ServerId,
        /// The cause.
        #[source]
        error: OAuthError,
    },
    /// The login succeeded, but the server still refuses requests.
    #[error("{}", self.localize(Lang::En))]
    NotServed(ToolError),
}

impl Localize for LoginError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::UnknownServer => lang.choose("there is no such server", "没有该服务器").to_owned(),
            Self::Failed { server, error } => {
                let why = error.localize(lang);
                lang.choose(
                    format!("the login to `{server}` failed: {why}"),
                    format!("登录 `{server}` 失败：{why}"),
                )
            }
            Self::NotServed(ToolError::LoginNeeded { server }) => lang.choose(
                format!("`{server}` refuses what the login brought: try once more, or ask its owner"),
                format!("`{server}` 不接受本次登录得到的令牌：请再试一次，或联系其所有者"),
            ),
            Self::NotServed(error) => error.localize(lang),
        }
    }
}

impl Hub {
    /// Logs in to a server and lists its tools. `show` receives the URL that the user must open in a browser; it is called again
    /// if the tools require further scopes. Dropping the future cancels the login.
    pub async fn login(&self, id: &str, show: Show<'_>) -> Result<CachedList, LoginError> {
        self.login_at(id, None, show).await
    }

    /// Like [`Self::login`], at the authorization server that the owner names. The credentials are bound to it.
    pub fn login_at<'a>(
        &'a self,
        id: &'a str,
        issuer: Option<&'a str>,
        show: Show<'a>,
    ) -> BoxFuture<'a, Result<CachedList, LoginError>> {
        Box::pin(async move {
            let server = self.servers.find(id);
            let server = server.ok_or(LoginError::UnknownServer)?;
            let failed = |error: OAuthError| LoginError::Failed { server: server.id().clone(), error };
            let token_manager = server.token_manager().map_err(failed)?;
            let mut logins = 0;
            loop {
                token_manager.login_at(issuer, show).await.map_err(failed)?;
                logins += 1;
                match self.list_server(id).await.ok_or(LoginError::UnknownServer)? {
                    Err(ToolError::LoginNeeded { .. })
                        if logins < MAX_LOGINS && token_manager.lacks_scopes() => {}
                    listed => return listed.map_err(LoginError::NotServed),
                }
            }
        })
    }

    /// Logs a principal of the gateway in to a server with `credentials = "caller"`. The login is used for calls of that principal
    /// only. `show` receives the URL that the principal must open in a browser.
    pub fn login_as<'a>(
        &'a self,
        id: &'a str,
        principal: &'a Principal,
        show: Show<'a>,
    ) -> BoxFuture<'a, Result<(), LoginError>> {
        Box::pin(async move {
            let server = self.servers.find(id).ok_or(LoginError::UnknownServer)?;
            let failed = |error: OAuthError| LoginError::Failed { server: server.id().clone(), error };
            server.token_manager_of(principal).map_err(failed)?.login(show).await.map_err(failed)?;
            self.record_login(id, principal.id(), ChangeKind::Created).await;
            Ok(())
        })
    }

    /// Appends the login of a principal at a server, or its end, to the audit log.
    pub(crate) async fn record_login(&self, server: &str, principal: &str, change: ChangeKind) {
        let name = format!("{server}: login of {principal}");
        if let Err(error) = self.record_change(ChangedObject::Server, &name, change).await {
            let text = LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
            let server = ServerId::new(server);
            self.events.emit(Event::now(None, EventKind::ServerNote { server, text }));
        }
    }

    /// Revokes and deletes the tokens of a principal at a server. Returns whether there were any.
    pub async fn logout_as(&self, id: &str, principal: &Principal) -> Result<bool, LoginError> {
        let server = self.servers.find(id).ok_or(LoginError::UnknownServer)?;
        let failed = |error: OAuthError| LoginError::Failed { server: server.id().clone(), error };
        let was_logged_in =
            server.token_manager_of(principal).map_err(failed)?.logout().await.map_err(failed)?;
        server.forget_principal(principal.id());
        if was_logged_in {
            self.record_login(id, principal.id(), ChangeKind::Deleted).await;
        }
        Ok(was_logged_in)
    }

    /// Deletes all logins of a principal that does not exist any more. Another one may get the same name.
    pub async fn forget_logins(&self, principal: &str) -> Result<usize, OAuthError> {
        for server in self.servers.snapshot().iter() {
            server.forget_principal(principal);
        }
        self.context.logins.remove_principal(principal).await
    }

    /// Revokes and deletes the tokens of a server. Returns whether there were any.
    pub async fn logout(&self, id: &str) -> Result<bool, LoginError> {
        let server = self.servers.find(id);
        let server = server.ok_or(LoginError::UnknownServer)?;
        let failed = |error: OAuthError| LoginError::Failed { server: server.id().clone(), error };
        server.token_manager().map_err(failed)?.logout().await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_login_cause_once() {
        let error_text = |error: LoginError| format!("{:#}", anyhow::Error::new(error));
        let failed = LoginError::Failed { server: ServerId::new("s"), error: OAuthError::NotOffered };
        let message = failed.localize(Lang::En);
        assert!(message.starts_with("the login to `s` failed: it does not say where to log in"), "{message}");
        assert_eq!(error_text(failed), message);
        let error = ToolError::LoginNeeded { server: ServerId::new("s") };
        let not_served = LoginError::NotServed(error);
        let message = not_served.localize(Lang::En);
        assert_eq!(error_text(not_served), message);
        assert_eq!(error_text(LoginError::UnknownServer), "there is no such server");
    }
}
