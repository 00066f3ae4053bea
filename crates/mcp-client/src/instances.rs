//! Instances of a server per caller, if configured: a process or session for each principal, with its own credentials if those
//! are not shared, stopped when idle, and limited in number.

use std::borrow::Cow;
use std::sync::Arc;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::principal::{LOCAL, PrincipalOrigin};
use toolhub_core::{CallerHandle, Principal, Secret, hex};
use toolhub_mcp_wire::McpError;
use toolhub_oauth::{CredentialOwner, OAuthError, TokenManager};

use crate::config::Credentials;
use crate::instance_pool::PooledInstance;
use crate::supervisor::Server;

/// A principal whose tokens are exchanged has at most this part of the instances: one for each of its tokens.
const EXCHANGE_SHARES: usize = 4;

impl Server {
    /// The instance for this caller: its own, or this one, which also serves calls without a principal.
    pub(crate) fn instance<'a>(
        self: &'a Arc<Self>,
        caller: Option<&CallerHandle>,
    ) -> Result<Cow<'a, Arc<Self>>, McpError> {
        let Some(pool) = self.pool() else { return Ok(Cow::Borrowed(self)) };
        let Some((caller, principal)) = caller.and_then(|caller| Some((caller, caller.principal_id()?)))
        else {
            return Ok(Cow::Borrowed(self));
        };
        let owner = self.credential_owner(caller, principal)?;
        let name = match &owner {
            // Tokens of one principal may have different scopes.
            CredentialOwner::Exchange { token, .. } => {
                Cow::Owned(format!("{principal}\n{}", digest_of(token)))
            }
            CredentialOwner::Hub | CredentialOwner::Principal { .. } => Cow::Borrowed(principal),
        };
        let key =
            caller.principal().filter(|identity| matches!(identity.origin, PrincipalOrigin::Key { .. }));
        let mut instances = pool.by_principal();
        if let Some(own_instance) = instances.get(&*name) {
            // Another key may have got the name of a revoked one. The principal of an unchanged key stays the same object.
            if key.map(Arc::as_ptr) == own_instance.key.as_ref().map(Arc::as_ptr) {
                return Ok(Cow::Owned(Arc::clone(&own_instance.server)));
            }
            own_instance.server.retire();
            instances.remove(&*name);
        }
        if let CredentialOwner::Exchange { .. } = owner {
            // A principal with many tokens must not take the instances of others.
            let share = pool.max().div_ceil(EXCHANGE_SHARES);
            let is_own = |name: &str| name.split('\n').next() == Some(principal);
            if instances.keys().filter(|name| is_own(name)).count() >= share {
                instances.retain(|name, own_instance| {
                    let is_kept = !is_own(name) || own_instance.server.has_requests();
                    if !is_kept {
                        own_instance.server.retire();
                    }
                    is_kept
                });
            }
            if instances.keys().filter(|name| is_own(name)).count() >= share {
                return Err(self.too_many_instances(share));
            }
        }
        if instances.len() >= pool.max() {
            // Removes stopped instances. One that was just returned to a caller is still referenced by it. An instance with an
            // exchanged token has no state that would be lost.
            let is_exchange = self.spec().credentials == Credentials::Exchange;
            instances.retain(|_, PooledInstance { server: instance, .. }| {
                let is_idle = Arc::strong_count(instance) == 1 && !instance.is_in_use();
                let may_end = is_exchange && !instance.has_requests();
                if may_end {
                    instance.retire();
                }
                !is_idle && !may_end
            });
        }
        if instances.len() >= pool.max() {
            return Err(self.too_many_instances(pool.max()));
        }
        let secret = key.and_then(|key| key.key_sha256.as_deref()).unwrap_or_default();
        let own_instance = Arc::new(self.new_instance(owner, digest(&format!("{name}\n\n{secret}"))));
        instances
            .insert(name.into(), PooledInstance { server: Arc::clone(&own_instance), key: key.cloned() });
        Ok(Cow::Owned(own_instance))
    }

    /// Whose credentials a call uses. Never those of the hub for another principal than its owner, unless they are shared.
    fn credential_owner(&self, caller: &CallerHandle, principal: &str) -> Result<CredentialOwner, McpError> {
        let credentials = self.spec().credentials;
        if credentials == Credentials::Shared || principal == LOCAL {
            return Ok(CredentialOwner::Hub);
        }
        self.token_manager().map_err(|error| self.no_own_credentials(&error.text()))?;
        let identity = caller.principal().filter(|identity| **identity.id() == *principal);
        let identity = identity.ok_or_else(|| self.no_token_to_exchange())?;
        let id = Arc::clone(identity.id());
        match (credentials, &identity.origin, &identity.token) {
            (Credentials::Exchange, PrincipalOrigin::Oidc { issuer, .. }, Some(token)) => {
                Ok(CredentialOwner::Exchange { id, issuer: issuer.clone(), token: token.clone() })
            }
            (Credentials::Exchange, _, _) => Err(self.no_token_to_exchange()),
            (Credentials::Caller | Credentials::Shared, _, _) => {
                Ok(CredentialOwner::Principal { id, key_sha256: identity.key_sha256.clone() })
            }
        }
    }

    /// The token manager of a principal that logs in itself.
    pub fn token_manager_of(&self, principal: &Principal) -> Result<TokenManager, OAuthError> {
        let owner = match self.spec().credentials {
            Credentials::Caller => CredentialOwner::Principal {
                id: Arc::clone(principal.id()),
                key_sha256: principal.key_sha256.clone(),
            },
            Credentials::Shared | Credentials::Exchange => {
                let id = self.id();
                return Err(OAuthError::Config(format!(
                    "its callers have no logins of their own: `credentials = \"caller\"` for `{id}` in `[[servers]]` gives them some"
                )));
            }
        };
        Ok(self.token_manager()?.of_owner(owner))
    }

    /// Ends the instances of a principal, whose credentials they hold in memory.
    pub fn forget_principal(&self, principal: &str) {
        let Some(pool) = self.pool() else { return };
        pool.by_principal().retain(|name, instance| {
            let is_own = name.split('\n').next() == Some(principal);
            if is_own {
                instance.server.retire();
            }
            !is_own
        });
    }

    fn no_own_credentials(&self, why: &LocalizedText) -> McpError {
        let (en, zh) = (why.localize(Lang::En), why.localize(Lang::Zh));
        McpError::permanent(LocalizedText::new(
            format!("its callers cannot have credentials of their own: {en}"),
            format!("它的调用方不能使用各自的凭据：{zh}"),
        ))
    }

    fn no_token_to_exchange(&self) -> McpError {
        McpError::permanent(LocalizedText::new(
            "it needs a token of your identity provider: a key cannot be exchanged",
            "它需要身份提供方签发的令牌：密钥无法交换",
        ))
    }

    fn too_many_instances(&self, max: usize) -> McpError {
        McpError::permanent(LocalizedText::new(
            format!(
                "it already runs {max} instances, one for each caller: raise `max_instances` for it under `[[servers]]`, \
                 or wait until one has been idle for its `idle_timeout`"
            ),
            format!(
                "它已运行 {max} 个实例（每个调用方一个）：请在 `[[servers]]` 中调大它的 `max_instances`，\
                 或等待某个实例闲置超过 `idle_timeout`"
            ),
        ))
    }
}

/// A hash of a token, to tell tokens apart.
fn digest_of(token: &Secret) -> String {
    digest(token.expose())
}

fn digest(text: &str) -> String {
    hex::sha256(text.as_bytes())
}
