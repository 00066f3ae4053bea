//! The rights of the principal of a background response, decided again while no request of it is open.

use std::sync::Arc;
use std::time::SystemTime;

use toolhub::Gateways;
use toolhub_core::Principal;
use toolhub_core::principal::{LOCAL, PrincipalOrigin};
use toolhub_server::Authenticator as _;

/// The principal with this id, with the rights that it has now: the local user or a key.
pub(crate) fn current_principal(gateways: &Gateways, id: &str) -> Result<Arc<Principal>, String> {
    if id == LOCAL {
        return Ok(Arc::new(Principal::local()));
    }
    let mut keys = gateways.access().keys().into_iter().map(|key| key.principal);
    keys.find(|principal| **principal.id() == *id).ok_or_else(|| match id.starts_with("key:") {
        true => ended_key(gateways, id),
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
        PrincipalOrigin::Local if access.is_required() => {
            return Err("this hub requires a key now, and the request had none (此 hub 现在要求密钥，而该请求没有密钥)".to_owned());
        }
        PrincipalOrigin::Key { .. } if !access.is_current(principal) => {
            return Err(ended_key(gateways, principal.id()));
        }
        PrincipalOrigin::Oidc { .. } if principal.is_expired() => {
            return Err(
                "the access token of this request has expired: send the request again with a new one (此请求的访问令牌已过期，\
                 请用新令牌重新发送请求)"
                    .to_owned(),
            );
        }
        PrincipalOrigin::Oidc { .. } if !access.is_valid(principal) => {
            return Err(
                "the identity provider of this principal is not trusted any more (身份提供方已不受信任)"
                    .to_owned(),
            );
        }
        _ => {}
    }
    match gateways.may_use_profile(profile, principal) {
        true => Ok(()),
        false => Err("the key of this request may not use its profile any more (此密钥已无权使用该配置方案)"
            .to_owned()),
    }
}

/// Why a response of the key of this principal ends: the key as it was at the time of the request is not in force any more.
fn ended_key(gateways: &Gateways, id: &str) -> String {
    let known = gateways.access().keys().into_iter().find(|key| **key.principal.id() == *id);
    let why = match known {
        Some(key) if key.expires.is_some_and(|at| at <= SystemTime::now()) => {
            "the key of this request has expired: ask the owner of this hub for a new one (此请求的密钥已过期，请向此 hub \
             的所有者索取新密钥)"
        }
        Some(_) => {
            "the key of this request was replaced, or its rights were changed: send the request again (此请求的密钥已更换或其\
             权限有改动，请重新发送请求)"
        }
        None => {
            "the key of this request was revoked: ask the owner of this hub for another one (此请求的密钥已被吊销，请向此 hub \
             的所有者索取其他密钥)"
        }
    };
    why.to_owned()
}
