//! The rights of the principal of a background response, decided again while no request of it is open.

use std::sync::Arc;

use toolhub::Gateways;
use toolhub_core::Principal;
use toolhub_core::principal::{LOCAL, Origin};
use toolhub_server::Authenticator as _;

/// The principal with this id, with the rights that it has now: the local user or a key.
pub(crate) fn current_principal(gateways: &Gateways, id: &str) -> Result<Arc<Principal>, String> {
    if id == LOCAL {
        return Ok(Arc::new(Principal::local()));
    }
    let mut keys = gateways.access().keys().into_iter().map(|key| key.principal);
    keys.find(|principal| **principal.id() == *id).ok_or_else(|| match id.starts_with("key:") {
        true => revoked(),
        false => {
            "a person must log in again before their response continues (用户需重新登录后才能继续)".to_owned()
        }
    })
}

/// Checks that a principal may use a profile now.
pub(crate) fn check(
    gateways: &Gateways,
    principal: &Arc<Principal>,
    profile: Option<&str>,
) -> Result<(), String> {
    let access = gateways.access();
    match &principal.origin {
        // The local user has all rights, and exists only while no key is required.
        Origin::Local if access.is_required() => {
            return Err("this hub requires a key now, and the request had none (此 hub 现在要求密钥，而该请求没有密钥)".to_owned());
        }
        Origin::Key { .. } if !access.is_current(principal) => return Err(revoked()),
        Origin::Oidc { .. } if !access.is_valid(principal) => {
            return Err(
                "the identity provider of this principal is not trusted any more (身份提供方已不受信任)"
                    .to_owned(),
            );
        }
        _ => {}
    }
    match gateways.may_use_profile(profile, principal) {
        true => Ok(()),
        false => {
            Err("the key of this request may not use its profile any more (此密钥已无权使用该配置档)"
                .to_owned())
        }
    }
}

/// Why a response of a revoked or expired key ends.
pub(crate) fn revoked() -> String {
    "the key of this request was revoked or has expired (此请求的密钥已被吊销或已过期)".to_owned()
}
