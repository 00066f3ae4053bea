//! Asks a caller of the gateway to log in to a server that needs its own credentials.

use std::time::Duration;

use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::LOCAL;
use toolhub_core::{CallerHandle, Localize as _, RawJson, RawObject, ServerId};
use toolhub_mcp_client::config::Credentials;

use super::backend::HubBackend;
use super::login_links::{CallerLogin, LoginLink};

/// How long a call waits for the login after the client accepted to open the link.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

impl HubBackend {
    /// Lets the caller log in to a server, if each caller of that server has its own login; `None` if not.
    pub(super) async fn log_in_caller(
        &self,
        server: &ServerId,
        caller: &CallerHandle,
    ) -> Option<CallerLogin> {
        let principal = caller.principal()?.id();
        let is_own = self.hub.servers.find(server.as_str())?.spec().credentials == Credentials::Caller;
        if !is_own || **principal == *LOCAL {
            return None;
        }
        let Some((link, url)) = self.login_links.link(principal, server) else {
            let text = LocalizedText::new(
                format!(
                    "`{server}` needs a login of your own: ask the owner of this gateway to log you in (`{principal}`)"
                ),
                format!("`{server}` 需要你自己登录：请联系本网关的所有者为你登录（`{principal}`）"),
            );
            return Some(CallerLogin::Needed(text.localize(self.lang)));
        };
        let asked = tokio::select! {
            biased;
            () = link.completed() => true,
            accepted = self.ask_to_open(&link, &url, server, caller) => {
                accepted && tokio::time::timeout(LOGIN_TIMEOUT, link.completed()).await.is_ok()
            }
        };
        if asked {
            let params = RawObject::default().with("elicitationId", link.id.as_str()).into_raw();
            caller.notify("notifications/elicitation/complete", Some(&params));
            return Some(CallerLogin::Done);
        }
        let text = LocalizedText::new(
            format!("`{server}` needs a login of your own: open {url}, then repeat the call"),
            format!("`{server}` 需要你自己登录：请打开 {url}，然后重新调用"),
        );
        Some(CallerLogin::Needed(text.localize(self.lang)))
    }

    /// Asks the user of the client to open the link. Returns whether they accepted; a client without that capability does not.
    async fn ask_to_open(
        &self,
        link: &LoginLink,
        url: &str,
        server: &ServerId,
        caller: &CallerHandle,
    ) -> bool {
        let opens_urls =
            || caller.capabilities().object()?.get("elicitation")?.object()?.get("url").map(|_| ());
        if opens_urls().is_none() {
            return false;
        }
        let message = LocalizedText::new(
            format!("`{server}` needs a login of your own."),
            format!("`{server}` 需要你自己登录。"),
        );
        let params = RawObject::default()
            .with("mode", "url")
            .with("elicitationId", link.id.as_str())
            .with("url", url)
            .with("message", message.localize(self.lang));
        let answer = caller.ask("elicitation/create".to_owned(), Some(params.into_raw())).await;
        let action = |answer: &RawJson| answer.object()?.get("action")?.decode::<String>().ok();
        answer.is_ok_and(|answer| action(&answer).as_deref() == Some("accept"))
    }
}
