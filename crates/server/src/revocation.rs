//! Streams end when the credentials that opened them are revoked or expire.

use std::time::Instant;

use futures_util::{FutureExt as _, StreamExt as _};
use toolhub_core::principal::Origin;
use toolhub_mcp_gateway::{Events, PrincipalHandle};

/// Returns the events until the principal is revoked or `expires` has passed.
pub(crate) fn until_revoked(events: Events, principal: &PrincipalHandle, expires: Option<Instant>) -> Events {
    if principal.identity().origin == Origin::Local {
        return events;
    }
    let revoked = principal.revoked();
    let ended = async move {
        match expires {
            Some(expires) => {
                let _ = tokio::time::timeout_at(expires.into(), revoked).await;
            }
            None => revoked.await,
        }
    };
    Box::pin(events.take_until(ended.boxed()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use toolhub_core::Principal;
    use toolhub_mcp_gateway::{Limits, PrincipalTable};

    use super::*;

    fn endless() -> Events {
        Box::pin(futures_util::stream::pending())
    }

    #[tokio::test]
    async fn stream_ends_when_its_principal_is_revoked() {
        let table = PrincipalTable::new(Limits::default());
        let ann = table.of(&Arc::new(Principal::of_key("ann")));
        let mut events = until_revoked(endless(), &ann, None);
        let pending = tokio::time::timeout(Duration::from_millis(20), events.next()).await;
        assert!(pending.is_err(), "open before the revocation");
        table.revoke(|_| false);
        assert_eq!(events.next().await, None);
    }

    #[tokio::test]
    async fn stream_ends_when_its_token_expires() {
        let ann = PrincipalHandle::new(Principal::of_key("ann"));
        let expires = tokio::time::Instant::now().into_std() + Duration::from_millis(20);
        assert_eq!(until_revoked(endless(), &ann, Some(expires)).next().await, None);
    }

    #[tokio::test]
    async fn stream_of_the_local_user_does_not_end() {
        let mut events = until_revoked(endless(), &PrincipalHandle::local(), None);
        assert!(tokio::time::timeout(Duration::from_millis(20), events.next()).await.is_err());
    }
}
