//! Links through which callers of the gateway log in to servers with `credentials = "caller"`.
//!
//! A login must belong to the caller that asked for it. The caller enters its key or token on the page of the link, so that no
//! other user can be led to log in for it; the form is accepted from that page only; and the response of the authorization server counts
//! only in the browser where the form was sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use toolhub_client_config::TransportSpec;
use toolhub_core::audit::ChangeKind;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, Principal, Secret, ServerId};
use toolhub_mcp_client::Server;
use toolhub_mcp_gateway::random_token;
use toolhub_oauth::{OAuthError, PendingLogin};
use toolhub_server::{Authenticator as _, LoginCookie, LoginPage, LoginPageRequest, LoginStep};
use url::Url;

use super::Gateways;
use super::login_pages::{self, PageText};
use super::public_url::PublicUrl;

/// How long a link can be used.
const LINK_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum number of links. The oldest one is removed.
const MAX_LINKS: usize = 1000;
/// How many wrong credentials end a link.
const MAX_ATTEMPTS: u8 = 5;

/// The outcome for a call whose caller lacks a login.
pub(super) enum CallerLogin {
    /// It has logged in meanwhile: the call may be repeated.
    Done,
    /// It has to log in first.
    Needed(String),
}

/// The open links.
#[derive(Debug)]
pub(super) struct LoginLinks {
    /// The public URL of the gateway; without it there are no links.
    base: Option<PublicUrl>,
    links: Mutex<HashMap<String, Arc<LoginLink>>>,
}

/// A link for one principal to log in to one server.
#[derive(Debug)]
pub(super) struct LoginLink {
    pub(super) id: String,
    principal: Arc<str>,
    server: ServerId,
    /// The name of the cookie.
    cookie: String,
    created: Instant,
    state: Mutex<LinkState>,
    is_done: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct LinkState {
    attempts: u8,
    begun: Option<BegunLogin>,
}

/// A login that waits for the response of the authorization server.
#[derive(Debug)]
struct BegunLogin {
    login: PendingLogin,
    /// What the caller entered. It must still be valid at the end.
    credential: Secret,
    /// The cookie of the browser where it began.
    browser: Secret,
}

impl LoginLink {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the login is complete.
    pub(super) async fn completed(&self) {
        // The sender lives as long as the link.
        let _ = self.is_done.subscribe().wait_for(|is_done| *is_done).await;
    }
}

impl LoginLinks {
    /// Links below the public URL of the gateway.
    pub(super) fn new(base: Option<&str>) -> Self {
        Self { base: PublicUrl::parse(base), links: Mutex::default() }
    }

    fn links(&self) -> MutexGuard<'_, HashMap<String, Arc<LoginLink>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page_url(&self, page: &str) -> Option<String> {
        Some(self.base.as_ref()?.page(&format!("/login{page}")))
    }

    /// The link of a principal to a server, with its URL; a new one if there is none. `None` if the gateway has no public URL.
    pub(super) fn link(&self, principal: &Arc<str>, server: &ServerId) -> Option<(Arc<LoginLink>, String)> {
        self.base.as_ref()?;
        let mut links = self.links();
        links.retain(|_, link| link.created.elapsed() < LINK_LIFETIME && !*link.is_done.borrow());
        let is_same = |link: &&Arc<LoginLink>| link.principal == *principal && link.server == *server;
        if let Some(link) = links.values().find(is_same).cloned() {
            let url = self.page_url(&format!("/{}", link.id))?;
            return Some((link, url));
        }
        if links.len() >= MAX_LINKS {
            let oldest = links.values().min_by_key(|link| link.created).map(|link| link.id.clone());
            oldest.map(|id| links.remove(&id));
        }
        let id = random_text()?;
        let link = Arc::new(LoginLink {
            id: id.clone(),
            principal: Arc::clone(principal),
            server: server.clone(),
            cookie: random_token()?,
            created: Instant::now(),
            state: Mutex::default(),
            is_done: watch::Sender::new(false),
        });
        let url = self.page_url(&format!("/{id}"))?;
        links.insert(id, Arc::clone(&link));
        Some((link, url))
    }

    /// Removes the links of a principal that does not exist any more.
    pub(super) fn forget_principal(&self, principal: &str) {
        self.links().retain(|_, link| *link.principal != *principal);
    }

    fn find(&self, id: &str) -> Option<Arc<LoginLink>> {
        let link = self.links().get(id).cloned()?;
        (link.created.elapsed() < LINK_LIFETIME && !*link.is_done.borrow()).then_some(link)
    }

    /// Takes the begun login with this state out of its link, if the browser is the one that began it.
    fn take_begun(&self, state: &str, cookies: &[(String, Secret)]) -> Option<(Arc<LoginLink>, BegunLogin)> {
        let links: Vec<Arc<LoginLink>> = self.links().values().cloned().collect();
        links.into_iter().find_map(|link| {
            let mut link_state = link.state();
            let is_own = link_state.begun.as_ref().is_some_and(|begun| {
                let mut login_cookies = cookies.iter().filter(|(name, _)| *name == link.cookie);
                // Two cookies of one name come from different hosts.
                let is_browser = match (login_cookies.next(), login_cookies.next()) {
                    (Some((_, cookie)), None) => is_same(cookie.expose(), begun.browser.expose()),
                    _ => false,
                };
                is_browser && is_same(begun.login.state().expose(), state)
            });
            let begun = link_state.begun.take_if(|_| is_own);
            drop(link_state);
            begun.map(|begun| (link, begun))
        })
    }
}

/// The host of a server.
fn host_of(server: &Server) -> Option<String> {
    match &server.spec().transport {
        TransportSpec::Http(http) | TransportSpec::Sse(http) => {
            Url::parse(&http.url).ok()?.host_str().map(str::to_owned)
        }
        TransportSpec::Stdio(_) => None,
    }
}

/// Compares in constant time.
fn is_same(one: &str, other: &str) -> bool {
    let differing =
        one.bytes().zip(other.bytes()).fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && differing == 0
}

/// 256 random bits as text.
fn random_text() -> Option<String> {
    random_token().zip(random_token()).map(|(one, other)| one + &other)
}

impl Gateways {
    /// A page of a caller's login to a server.
    pub(super) async fn show_login_page(&self, request: LoginPageRequest) -> Option<LoginPage> {
        self.login_links.base.as_ref()?;
        let LoginPageRequest { step, cookies } = request;
        Some(match step {
            LoginStep::Show { link } => match self.login_links.find(&link) {
                Some(link) => self.form_page(200, &link, None),
                None => login_pages::message(404, &PageText::UNKNOWN_LINK),
            },
            LoginStep::Begin { link, credential, origin } => {
                self.begin_login(&link, credential, origin.as_deref()).await
            }
            LoginStep::Finish { query } => self.finish_login(&query, &cookies).await,
        })
    }

    fn form_page(&self, status: u16, link: &LoginLink, problem: Option<&PageText<'_>>) -> LoginPage {
        let host = self.hub.servers.find(link.server.as_str()).and_then(|server| host_of(&server));
        let host = host.unwrap_or_default();
        let form =
            login_pages::LoginForm { principal: &link.principal, server: link.server.as_str(), host: &host };
        login_pages::form(status, &form, problem)
    }

    /// The principal of a key or token, whichever profile it is for.
    async fn identify(&self, credential: &Secret) -> Option<Arc<Principal>> {
        let find = || {
            let profiles = std::iter::once(None).chain(self.names().map(Some));
            let mut verified_callers =
                profiles.filter_map(|profile| self.access.find(credential.expose(), profile));
            verified_callers.next().map(|verified| verified.principal)
        };
        if let Some(principal) = find() {
            return Some(principal);
        }
        // A token that is verified for one profile can be found for the others.
        match self.access.verify(credential.expose(), None).await {
            Ok(verified) => Some(verified.principal),
            Err(_) => find(),
        }
    }

    async fn begin_login(&self, id: &str, credential: Secret, origin: Option<&str>) -> LoginPage {
        let links = &self.login_links;
        // Another site must not send the form: its user would log in for the attacker.
        let own_origin = links.base.as_ref().map(PublicUrl::origin);
        if origin.is_none() || origin != own_origin.as_deref() {
            return login_pages::message(403, &PageText::OTHER_SITE);
        }
        let Some(link) = links.find(id) else { return login_pages::message(404, &PageText::UNKNOWN_LINK) };
        let principal = self.identify(&credential).await;
        let Some(principal) = principal.filter(|principal| *principal.id() == link.principal) else {
            let mut state = link.state();
            state.attempts = state.attempts.saturating_add(1);
            let is_over = state.attempts >= MAX_ATTEMPTS;
            drop(state);
            if is_over {
                links.links().remove(id);
                return login_pages::message(403, &PageText::TOO_MANY_ATTEMPTS);
            }
            return self.form_page(403, &link, Some(&PageText::OTHER_PRINCIPAL));
        };
        let begun = self.begin_at_server(&link, &principal).await;
        let (login, browser) = match begun {
            Ok(begun) => begun,
            Err(error) => return failed_page(&error),
        };
        let page = login_pages::forward(login.url(), link.server.as_str());
        let cookie = LoginCookie {
            name: link.cookie.clone(),
            value: browser.clone(),
            secure: links.base.as_ref().is_some_and(PublicUrl::is_https),
            max_age: LINK_LIFETIME,
        };
        link.state().begun = Some(BegunLogin { login, credential, browser });
        LoginPage { cookie: Some(cookie), ..page }
    }

    async fn begin_at_server(
        &self,
        link: &LoginLink,
        principal: &Principal,
    ) -> Result<(PendingLogin, Secret), OAuthError> {
        let unavailable = || OAuthError::Config("the server is not configured any more".to_owned());
        let server = self.hub.servers.find(link.server.as_str()).ok_or_else(unavailable)?;
        let redirect = self.login_links.page_url("/callback").ok_or_else(unavailable)?;
        let login = server.token_manager_of(principal)?.begin_login(&redirect).await?;
        Ok((login, Secret::new(random_text().ok_or_else(unavailable)?)))
    }

    async fn finish_login(&self, query: &str, cookies: &[(String, Secret)]) -> LoginPage {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let state = pairs.find_map(|(name, value)| (name == "state").then(|| value.into_owned()));
        let begun = state.and_then(|state| self.login_links.take_begun(&state, cookies));
        let Some((link, begun)) = begun else { return login_pages::message(400, &PageText::OTHER_BROWSER) };
        // The key may have been revoked, rotated or expired while the browser was at the authorization server.
        let principal = self.identify(&begun.credential).await;
        let is_valid = principal.is_some_and(|principal| *principal.id() == link.principal);
        if !is_valid || self.login_links.find(&link.id).is_none() {
            return login_pages::message(404, &PageText::UNKNOWN_LINK);
        }
        match begun.login.finish(query).await {
            Ok(()) => {
                self.hub.record_login(link.server.as_str(), &link.principal, ChangeKind::Created).await;
                link.is_done.send_replace(true);
                login_pages::message(200, &PageText::DONE)
            }
            Err(error) => failed_page(&error),
        }
    }
}

fn failed_page(error: &OAuthError) -> LoginPage {
    let text = match error {
        // The cause is for the owner, and names files.
        OAuthError::Store(_) => LocalizedText::new("it cannot be stored", "无法保存"),
        error => error.text(),
    };
    let (en, zh) = (text.localize(Lang::En), text.localize(Lang::Zh));
    let (en, zh) = (format!("The login failed: {en}"), format!("登录失败：{zh}"));
    login_pages::message(400, &PageText { sign: "✗", en: &en, zh: &zh })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (Arc<str>, ServerId) {
        (Arc::from("key:ann"), ServerId::new("notes"))
    }

    #[test]
    fn a_principal_has_one_link_per_server() {
        let links = LoginLinks::new(Some("https://hub.example/tools/"));
        let (ann, notes) = ids();
        let (first, url) = links.link(&ann, &notes).unwrap();
        assert_eq!(url, format!("https://hub.example/tools/login/{}", first.id));
        assert_eq!(links.link(&ann, &notes).unwrap().0.id, first.id);
        assert_ne!(links.link(&Arc::from("key:bob"), &notes).unwrap().0.id, first.id);
        assert_ne!(links.link(&ann, &ServerId::new("mail")).unwrap().0.id, first.id);
        links.forget_principal("key:ann");
        assert!(links.find(&first.id).is_none());
        assert_eq!(links.links().len(), 1);
    }

    #[test]
    fn links_are_bounded_and_need_a_public_url() {
        let links = LoginLinks::new(None);
        let (ann, notes) = ids();
        assert!(links.link(&ann, &notes).is_none());
        let links = LoginLinks::new(Some("http://127.0.0.1:8080"));
        for index in 0..MAX_LINKS + 10 {
            assert!(links.link(&Arc::from(format!("key:{index}")), &notes).is_some());
        }
        assert_eq!(links.links().len(), MAX_LINKS);
    }
}
