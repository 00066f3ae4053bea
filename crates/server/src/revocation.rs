//! Streams end when the credentials that opened them are revoked or expire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use toolhub_core::Secret;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_mcp_gateway::{PrincipalHandle, SseEvents};

use crate::authenticator::{Authenticator, TokenRefusal};

/// How long an unreachable identity provider is waited for before the token is verified again.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(10);
/// How often an unreachable identity provider is asked before the stream ends.
const MAX_UNAVAILABLE: usize = 6;

/// The credential that opened a stream.
pub(crate) struct StreamCredential {
    pub(crate) principal: PrincipalHandle,
    /// `None` if the token never has to be verified again.
    pub(crate) recheck: Option<Recheck>,
}

/// A token that must be verified again.
pub(crate) struct Recheck {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) token: Secret,
    pub(crate) profile: Option<String>,
    pub(crate) at: Instant,
}

impl Recheck {
    /// Verifies the token whenever that is due. Completes when it is not valid any more.
    async fn until_invalid(mut self) {
        let mut unavailable = 0;
        loop {
            tokio::time::sleep_until(self.at.into()).await;
            let profile = self.profile.as_deref();
            let found = self.authenticator.find(self.token.expose(), profile);
            let verified = match found.filter(|found| found.recheck.is_none_or(|at| at > Instant::now())) {
                Some(found) => Ok(found),
                None => self.authenticator.verify(self.token.expose(), profile).await,
            };
            match verified.map(|verified| verified.recheck) {
                Ok(None) => std::future::pending().await,
                Ok(Some(at)) if at > Instant::now() => {
                    (self.at, unavailable) = (at, 0);
                }
                Err(TokenRefusal::Unavailable | TokenRefusal::NewKey { .. })
                    if unavailable < MAX_UNAVAILABLE =>
                {
                    unavailable += 1;
                    self.at = Instant::now() + UNAVAILABLE_PAUSE;
                }
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}

/// Returns the events until the principal is revoked or its token is not valid any more.
pub(crate) fn until_revoked(events: SseEvents, credential: StreamCredential) -> SseEvents {
    let StreamCredential { principal, recheck } = credential;
    if principal.identity().origin == PrincipalOrigin::Local {
        return events;
    }
    let ended = async move {
        let invalid = async {
            match recheck {
                Some(recheck) => recheck.until_invalid().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = principal.revoked() => {}
            () = invalid => {}
        }
    };
    Box::pin(events.take_until(ended.boxed()))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use toolhub_core::Principal;
    use toolhub_mcp_gateway::{BudgetLimits, PrincipalTable};

    use super::*;
    use crate::authenticator::{KeyTable, StaticKey, hash_of};

    fn endless() -> SseEvents {
        Box::pin(futures_util::stream::pending())
    }

    #[tokio::test]
    async fn stream_ends_when_its_principal_is_revoked() {
        let table = PrincipalTable::new(BudgetLimits::default());
        let principal = table.of(&Arc::new(Principal::of_key("ann")));
        let mut events = until_revoked(endless(), StreamCredential { principal, recheck: None });
        let pending = tokio::time::timeout(Duration::from_millis(20), events.next()).await;
        assert!(pending.is_err(), "open before the revocation");
        table.revoke(|_| false);
        assert_eq!(events.next().await, None);
    }

    fn recheck(expires: Option<SystemTime>) -> Option<Recheck> {
        let key = StaticKey { expires, ..StaticKey::of_caller("ann", hash_of("t")) };
        Some(Recheck {
            authenticator: Arc::new(KeyTable::from(vec![key])),
            token: Secret::new("t"),
            profile: None,
            at: Instant::now(),
        })
    }

    #[tokio::test]
    async fn stream_ends_when_its_token_expires() {
        let principal = PrincipalHandle::new(Principal::of_key("ann"));
        let expires = SystemTime::now() + Duration::from_millis(50);
        let credential = StreamCredential { principal, recheck: recheck(Some(expires)) };
        let mut events = until_revoked(endless(), credential);
        assert!(tokio::time::timeout(Duration::from_millis(10), events.next()).await.is_err());
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), events.next()).await.ok(), Some(None));
    }

    #[tokio::test]
    async fn stream_goes_on_while_its_token_is_valid() {
        let principal = PrincipalHandle::new(Principal::of_key("ann"));
        let credential = StreamCredential { principal, recheck: recheck(None) };
        let mut events = until_revoked(endless(), credential);
        assert!(tokio::time::timeout(Duration::from_millis(50), events.next()).await.is_err());
        let credential = StreamCredential { principal: PrincipalHandle::local(), recheck: None };
        let mut events = until_revoked(endless(), credential);
        assert!(tokio::time::timeout(Duration::from_millis(50), events.next()).await.is_err());
    }
}
