//! Login to HTTP servers with OAuth 2.1 (2026-07-28, basic/authorization). The transport uses the trait [`Authorizer`]; the
//! command line uses [`Guard`].

mod address;
mod binding;
mod callback;
mod challenge;
mod discover;
mod error;
mod fetch;
mod guard;
mod issuer;
mod keyring;
mod lock;
mod login;
mod page;
mod pkce;
mod record;
mod registration;
mod renew;
mod resolver;
mod resource;
mod scopes;
mod secret;
mod send;
mod store;
mod token;

pub use error::OAuthError;
pub use guard::Guard;
pub(crate) use guard::Surroundings;
pub(crate) use lock::create_private;
pub use login::Show;
pub use secret::Secret;
#[cfg(test)]
pub(crate) use send::Refusal;
pub(crate) use send::{Authorizer, Repeat, is_unprocessed, send};
pub use store::TokenStore;
