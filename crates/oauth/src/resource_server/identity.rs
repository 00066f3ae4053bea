//! Checks the claims of a token that its issuer vouches for, and makes the principal of them.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolhub_core::principal::{PrincipalKind, PrincipalOrigin};
use toolhub_core::{Principal, Roles};

use super::claims::Claims;
use super::settings::{RoleCondition, TrustedIssuer};
use super::token_error::TokenErrorKind;
use crate::fetch::sanitize_text;

/// OpenID Connect Core 1.0, section 2: the subject has at most 255 characters.
const MAX_SUBJECT_CHARS: usize = 255;
/// Claims that only ID tokens and logout tokens have (OpenID Connect Core 1.0, section 2; Back-Channel Logout 1.0, section 2.4).
const ID_TOKEN_CLAIMS: [&str; 5] = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/// The content of an acceptable token.
pub(super) struct Identity {
    pub(super) principal: Principal,
    /// The audiences of the token.
    pub(super) audiences: Vec<String>,
    /// The claim `exp`.
    pub(super) expires: Option<SystemTime>,
}

/// A person as an ID token describes it. Its roles follow from the settings at the time of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The issuer identifier.
    pub issuer: String,
    /// The subject at the issuer.
    pub subject: String,
    /// A name for people, never used for decisions.
    pub display: String,
    /// The groups at the time of the login.
    pub groups: Vec<String>,
}

/// Checks everything but issuer, audience and signature.
pub(super) fn identify(
    issuer: &TrustedIssuer,
    claims: &Claims,
    now: SystemTime,
) -> Result<Identity, TokenErrorKind> {
    identify_as(issuer, claims, now, claims.text("sub"))
}

/// Like [`identify`], for the answer of an introspection endpoint: `sub` is optional there (RFC 7662 §2.2), and absent for a
/// token of the client credentials grant. Its subject is then `client:ID`, which no other subject of that issuer equals unless
/// the issuer itself names one so.
pub(super) fn identify_introspected(
    issuer: &TrustedIssuer,
    claims: &Claims,
    now: SystemTime,
) -> Result<Identity, TokenErrorKind> {
    let client = claims.text("client_id").filter(|_| !claims.contains("sub"));
    let client = client.filter(|id| !id.trim().is_empty()).map(|id| format!("client:{id}"));
    identify_as(issuer, claims, now, claims.text("sub").or(client.as_deref()))
}

fn identify_as(
    issuer: &TrustedIssuer,
    claims: &Claims,
    now: SystemTime,
    subject: Option<&str>,
) -> Result<Identity, TokenErrorKind> {
    let expires = claims.check_times(now)?;
    if is_other_kind(claims) {
        return Err(TokenErrorKind::NotAccessToken);
    }
    if claims.contains("cnf")
        || claims.text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("DPoP"))
    {
        return Err(TokenErrorKind::SenderConstrained);
    }
    let audiences = claims.list("aud").ok_or(TokenErrorKind::Audience)?;
    Ok(Identity { principal: principal(issuer, claims, subject)?, audiences, expires })
}

/// Whether the claims are those of an ID token, a refresh token or a logout token. Some issuers give all tokens the same
/// header, and name the kind in a claim (`typ` of Keycloak, `token_use` of Cognito and Hydra).
fn is_other_kind(claims: &Claims) -> bool {
    let is_other = |name: &str, accepted: &[&str]| {
        claims.get(name).is_some_and(|value| {
            !value.as_str().is_some_and(|value| accepted.iter().any(|name| name.eq_ignore_ascii_case(value)))
        })
    };
    ID_TOKEN_CLAIMS.iter().any(|name| claims.contains(name))
        || is_other("typ", &["Bearer", "at+jwt", "DPoP"])
        || is_other("token_use", &["access", "access_token"])
        || is_other("token_type", &["Bearer", "access_token", "DPoP"])
}

fn principal(
    issuer: &TrustedIssuer,
    claims: &Claims,
    subject: Option<&str>,
) -> Result<Principal, TokenErrorKind> {
    let subject = subject.ok_or(TokenErrorKind::Subject)?;
    // A rule for the trimmed subject would not match it.
    let is_usable = !subject.is_empty()
        && subject.trim() == subject
        && subject.chars().count() <= MAX_SUBJECT_CHARS
        && !subject.chars().any(is_invisible);
    if !is_usable {
        return Err(TokenErrorKind::Subject);
    }
    // A token of the client credentials grant is of a program (RFC 9068 §2.2).
    let is_program =
        !claims.contains("sub") || ["client_id", "azp"].iter().any(|name| claims.text(name) == Some(subject));
    let kind = if is_program { PrincipalKind::Program } else { PrincipalKind::Person };
    let origin = PrincipalOrigin::Oidc { issuer: issuer.url.clone(), subject: subject.to_owned() };
    let mut principal = Principal::new(origin, kind);
    if let Some(display) = display(claims) {
        principal.display = display;
    }
    principal.groups = claims.list_at_path(&issuer.groups_claim).unwrap_or_default();
    principal.scopes = claims.scopes();
    principal.roles = roles(issuer, &principal);
    Ok(principal)
}

/// The person that an ID token describes, whose signature, audience and times were checked.
pub(super) fn identify_person(issuer: &TrustedIssuer, claims: &Claims) -> Result<Person, TokenErrorKind> {
    let principal = principal(issuer, claims, claims.text("sub"))?;
    let PrincipalOrigin::Oidc { issuer, subject } = principal.origin else {
        return Err(TokenErrorKind::Subject);
    };
    Ok(Person { issuer, subject, display: principal.display, groups: principal.groups })
}

/// The principal of a person, with the roles of the issuer's settings.
pub(super) fn person_principal(issuer: &TrustedIssuer, person: &Person) -> Principal {
    let origin = PrincipalOrigin::Oidc { issuer: issuer.url.clone(), subject: person.subject.clone() };
    let mut principal = Principal::new(origin, PrincipalKind::Person);
    principal.display.clone_from(&person.display);
    principal.groups.clone_from(&person.groups);
    principal.roles = roles(issuer, &principal);
    principal
}

fn roles(issuer: &TrustedIssuer, principal: &Principal) -> Roles {
    let is_met = |condition: &RoleCondition| match condition {
        RoleCondition::Everyone => true,
        RoleCondition::Group(name) => principal.groups.contains(name),
        RoleCondition::Scope(name) => principal.scopes.contains(name),
    };
    let granted = issuer.roles.iter().filter(|(_, conditions)| conditions.iter().any(is_met));
    granted.map(|(role, _)| *role).collect()
}

/// A name for people. It may be chosen by the user, so it is cleaned, and never used for decisions.
fn display(claims: &Claims) -> Option<String> {
    let names = ["name", "preferred_username", "email", "client_id"];
    let clean = |text: &str| {
        sanitize_text(&text.chars().filter(|c| c.is_whitespace() || !is_invisible(*c)).collect::<String>())
    };
    names.iter().filter_map(|name| claims.text(name)).map(clean).find(|name| !name.is_empty())
}

/// Control characters, and those that hide text or change its direction.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::{Value, json};
    use toolhub_core::Role;

    use super::*;

    fn identity(issuer: &TrustedIssuer, more: &Value) -> Result<Identity, TokenErrorKind> {
        let mut claims = json!({"sub": "ann", "aud": "hub"});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        identify(issuer, &Claims::new(claims.as_object().unwrap().clone()), SystemTime::now())
    }

    fn kind(more: &Value) -> Option<TokenErrorKind> {
        identity(&TrustedIssuer::new("https://idp.example"), more).err()
    }

    #[test]
    fn grants_roles_by_group_and_scope() {
        let conditions = |text: &str| text.split(' ').map(|text| text.parse().unwrap()).collect();
        let roles = HashMap::from([
            (Role::Viewer, conditions("*")),
            (Role::Operator, conditions("groups:platform groups:admins")),
            (Role::Auditor, conditions("scope:audit")),
        ]);
        let issuer = TrustedIssuer { roles, ..TrustedIssuer::new("https://idp.example") };
        let roles = |claims: Value| identity(&issuer, &claims).ok().unwrap().principal.roles.to_string();
        assert_eq!(roles(json!({})), "viewer");
        assert_eq!(roles(json!({"groups": ["admins"]})), "viewer, operator");
        assert_eq!(roles(json!({"groups": "platform", "scope": "a audit"})), "viewer, operator, auditor");
        // Similar names, a group as a scope, and a scope as a group give nothing.
        for claims in [
            json!({"groups": ["Admins"]}),
            json!({"groups": ["admins x"]}),
            json!({"groups": "platform admins"}),
            json!({"groups": ["audit"]}),
            json!({"scope": "platform"}),
            json!({"groups": {"admins": true}}),
            json!({"roles": ["operator"]}),
        ] {
            assert_eq!(roles(claims.clone()), "viewer", "{claims}");
        }
        let strict = TrustedIssuer::new("https://idp.example");
        assert!(identity(&strict, &json!({"roles": ["owner"]})).ok().unwrap().principal.roles.is_empty());
    }

    #[test]
    fn describes_the_principal() {
        let issuer = TrustedIssuer::new("https://idp.example");
        let principal = |claims: Value| identity(&issuer, &claims).ok().unwrap().principal;
        let ann =
            principal(json!({"name": "", "preferred_username": "Ann\u{202e}\n A", "email": "a@b.example"}));
        assert_eq!((ann.id().as_ref(), ann.display.as_str()), ("oidc:https://idp.example#ann", "Ann A"));
        assert_eq!(ann.kind, PrincipalKind::Person);
        assert_eq!(principal(json!({"email": "a@b.example"})).display, "a@b.example");
        assert_eq!(principal(json!({})).display, "ann");
        let job = principal(json!({"sub": "job", "client_id": "job"}));
        assert_eq!((job.kind, job.display.as_str()), (PrincipalKind::Program, "job"));
    }

    #[test]
    fn rejects_tokens_of_other_kinds() {
        for claims in [
            json!({"nonce": "n"}),
            json!({"at_hash": "h"}),
            json!({"c_hash": "h"}),
            json!({"events": {}}),
            json!({"typ": "ID"}),
            json!({"typ": "Refresh"}),
            json!({"typ": 1}),
            json!({"token_use": "id"}),
            json!({"token_type": "refresh_token"}),
        ] {
            assert_eq!(kind(&claims), Some(TokenErrorKind::NotAccessToken), "{claims}");
        }
        assert_eq!(kind(&json!({"typ": "Bearer", "token_use": "access", "token_type": "bearer"})), None);
        assert_eq!(kind(&json!({"cnf": {"jkt": "x"}})), Some(TokenErrorKind::SenderConstrained));
        assert_eq!(kind(&json!({"token_type": "DPoP"})), Some(TokenErrorKind::SenderConstrained));
        assert_eq!(kind(&json!({"aud": null})), Some(TokenErrorKind::Audience));
        assert_eq!(kind(&json!({"aud": ["hub", 1]})), Some(TokenErrorKind::Audience));
    }

    #[test]
    fn introspected_token_without_subject_is_of_its_client() {
        let issuer = TrustedIssuer::new("https://idp.example");
        let identity = |claims: &Value| {
            let claims = Claims::new(claims.as_object().unwrap().clone());
            identify_introspected(&issuer, &claims, SystemTime::now()).map(|identity| identity.principal)
        };
        let job = identity(&json!({"aud": "hub", "client_id": "job"})).unwrap();
        assert_eq!(&**job.id(), "oidc:https://idp.example#client:job");
        assert_eq!(job.kind, PrincipalKind::Program);
        let ann = identity(&json!({"aud": "hub", "client_id": "editor", "sub": "ann"})).unwrap();
        assert_eq!(&**ann.id(), "oidc:https://idp.example#ann");
        assert_eq!(identity(&json!({"aud": "hub"})).err(), Some(TokenErrorKind::Subject));
        assert_eq!(
            identity(&json!({"aud": "hub", "client_id": "job", "sub": 1})).err(),
            Some(TokenErrorKind::Subject)
        );
    }

    #[test]
    fn rejects_unusable_subjects() {
        for subject in [
            json!(null),
            json!(""),
            json!("  "),
            json!(" ann"),
            json!("ann "),
            json!("ann\u{a0}"),
            json!(7),
            json!(["ann"]),
            json!("a\nb"),
            json!("a\u{202e}b"),
            json!("x".repeat(256)),
        ] {
            assert_eq!(kind(&json!({"sub": subject})), Some(TokenErrorKind::Subject), "{subject}");
        }
        assert_eq!(kind(&json!({"sub": "x".repeat(255)})), None);
        assert_eq!(kind(&json!({"sub": "ann lee"})), None);
    }
}
