//! The OAuth 2.1 resource server (2025-11-25 and 2026-07-28, basic/authorization): protected resource metadata, challenges, and the
//! verification of access tokens. The HTTP server calls it; rules and roles are evaluated elsewhere.
//!
//! Signatures are verified with `ring` directly. It is a dependency already (rustls), the four algorithms are four calls, and
//! header and claims are parsed strictly here: a JWT library would parse them a second time, ignore duplicate keys, and need a
//! provider of our own over `ring`.

mod claims;
mod clock;
mod identity;
mod introspection;
mod json_object;
mod jwk;
mod jws;
mod key_set;
mod metadata;
mod person_login;
mod provider;
mod settings;
mod token_cache;
mod token_error;
mod verifier;
mod www_authenticate;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod introspection_tests;
#[cfg(test)]
mod key_set_tests;
#[cfg(test)]
mod person_login_tests;
#[cfg(test)]
mod test_issuer;
#[cfg(test)]
mod test_keys;

pub use identity::Person;
pub use metadata::{MetadataDetails, ProtectedResource};
pub use person_login::{BegunLogin, LoginResponse};
pub use settings::{IntrospectionClient, LoginClient, ResourceServer, RoleCondition, TrustedIssuer};
pub use token_error::{TokenError, TokenErrorKind};
pub use verifier::{TokenVerifier, VerifiedToken};
pub use www_authenticate::BearerChallenge;
