//! Principals: the persons and programs that make calls, and their roles.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use crate::secret::Secret;

/// What a principal may do in general. Roles are additive; rules restrict calls further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sees states and tools of its profiles.
    Viewer,
    /// Calls what the rules allow; manages its own keys, logins and calls.
    Caller,
    /// Decides held calls and changed tools.
    Approver,
    /// Manages servers, profiles and skills.
    Operator,
    /// Reads all payloads and the audit log, and changes nothing.
    Auditor,
    /// Manages principals, rules, keys and the configuration.
    Owner,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] =
        [Self::Viewer, Self::Caller, Self::Approver, Self::Operator, Self::Auditor, Self::Owner];

    /// The name in the configuration and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Caller => "caller",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Auditor => "auditor",
            Self::Owner => "owner",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roles(u8);

impl Roles {
    /// No role.
    pub const NONE: Self = Self(0);

    /// Every role, as the local user has without `[auth]`.
    pub fn all() -> Self {
        Role::ALL.into_iter().collect()
    }

    /// Whether the set contains the role.
    pub fn contains(self, role: Role) -> bool {
        self.0 & Self::from(role).0 != 0
    }

    /// Whether the sets have a role in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set has no role.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.contains(*role))
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self(1 << role as u8)
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().fold(Self::NONE, |all, role| all | Self::from(role))
    }
}

impl BitOr for Roles {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Roles {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, role) in self.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(role.name())?;
        }
        Ok(())
    }
}

/// How a principal proved its identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrincipalOrigin {
    /// The user of this machine.
    Local,
    /// A key of the configuration.
    Key {
        /// The key's name.
        name: String,
    },
    /// A token of an identity provider.
    Oidc {
        /// The provider's issuer URL.
        issuer: String,
        /// The subject at that provider.
        subject: String,
    },
}

impl fmt::Display for PrincipalOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str(LOCAL),
            Self::Key { name } => write!(f, "key:{name}"),
            Self::Oidc { issuer, subject } => write!(f, "oidc:{issuer}#{subject}"),
        }
    }
}

/// The id of the local user.
pub const LOCAL: &str = "local";

/// Whether a principal is a person or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// A person.
    Person,
    /// A program, such as a CI job.
    Program,
}

/// A person or a program that makes calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    id: Arc<str>,
    /// How it proved its identity.
    pub origin: PrincipalOrigin,
    /// Whether it is a person or a program.
    pub kind: PrincipalKind,
    /// A name for people, which may not be unique.
    pub display: String,
    /// Its roles.
    pub roles: Roles,
    /// Its groups at the identity provider.
    pub groups: Vec<String>,
    /// The scopes of its token.
    pub scopes: Vec<String>,
    /// The profiles that it may use; `None` for all.
    pub profiles: Option<Vec<String>>,
    /// The SHA-256 of its key, if it has one. Another key may get the name of a revoked one.
    pub key_sha256: Option<Arc<str>>,
    /// The access token that it presented, if an identity provider issued it. It may be exchanged at that provider, and is sent
    /// nowhere else.
    pub token: Option<Secret>,
    /// When its credential expires. Nothing is done for it afterwards, also in requests that began before.
    pub expires: Option<SystemTime>,
}

impl Principal {
    /// Creates a principal without roles.
    pub fn new(origin: PrincipalOrigin, kind: PrincipalKind) -> Self {
        let display = match &origin {
            PrincipalOrigin::Local => LOCAL.to_owned(),
            PrincipalOrigin::Key { name } => name.clone(),
            PrincipalOrigin::Oidc { subject, .. } => subject.clone(),
        };
        let (roles, id) = (Roles::NONE, Arc::from(origin.to_string()));
        Self {
            id,
            origin,
            kind,
            display,
            roles,
            groups: Vec::new(),
            scopes: Vec::new(),
            profiles: None,
            key_sha256: None,
            token: None,
            expires: None,
        }
    }

    /// The user of this machine, who owns the hub.
    pub fn local() -> Self {
        Self { roles: Roles::all(), ..Self::new(PrincipalOrigin::Local, PrincipalKind::Person) }
    }

    /// The principal of a key.
    pub fn of_key(name: &str) -> Self {
        Self::new(PrincipalOrigin::Key { name: name.to_owned() }, PrincipalKind::Program)
    }

    /// The principal with these roles.
    #[must_use]
    pub fn with_roles(mut self, roles: impl Into<Roles>) -> Self {
        self.roles = roles.into();
        self
    }

    /// The principal with the token that it presented.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(Secret::new(token));
        self
    }

    /// The principal with the time when its credential expires.
    #[must_use]
    pub fn with_expiry(mut self, expires: Option<SystemTime>) -> Self {
        self.expires = expires;
        self
    }

    /// Whether its credential has expired.
    pub fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| SystemTime::now() >= expires)
    }

    /// The unique id, in storage and output: `local`, `key:NAME` or `oidc:ISSUER#SUBJECT`.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether it may use the profile.
    pub fn may_use_profile(&self, profile: &str) -> bool {
        self.profiles.as_ref().is_none_or(|profiles| profiles.iter().any(|name| name == profile))
    }
}

/// Who made a call, and what allowed it. Stored with the call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authorization {
    /// The id of the principal that made the call.
    pub principal: Arc<str>,
    /// The rule that allowed it; `None` if no rules are configured.
    pub rule: Option<Arc<str>>,
    /// The id of the principal that approved it, if it was held.
    pub approver: Option<Arc<str>>,
}

impl Default for Authorization {
    /// A call of the local user.
    fn default() -> Self {
        static LOCAL_ID: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(LOCAL));
        Self { principal: Arc::clone(&LOCAL_ID), rule: None, approver: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_different_origins_never_collide() {
        let subject = |issuer: &str, subject: &str| {
            PrincipalOrigin::Oidc { issuer: issuer.to_owned(), subject: subject.to_owned() }.to_string()
        };
        assert_eq!(Principal::local().id().as_ref(), "local");
        assert_eq!(Principal::of_key("local").id().as_ref(), "key:local");
        assert_eq!(subject("https://idp.example", "ann"), "oidc:https://idp.example#ann");
        assert_ne!(Principal::of_key("ann").id().as_ref(), subject("https://idp.example", "ann"));
    }

    #[test]
    fn roles_are_additive() {
        let roles: Roles = [Role::Caller, Role::Auditor].into_iter().collect();
        assert!(roles.contains(Role::Caller) && roles.contains(Role::Auditor));
        assert!(!roles.contains(Role::Owner));
        assert_eq!(roles.to_string(), "caller, auditor");
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
            assert!(Roles::all().contains(role));
        }
        assert_eq!(Role::from_name("admin"), None);
    }
}
