//! Login to HTTP servers with OAuth 2.1 (2026-07-28, basic/authorization). Transports use the trait [`Authorizer`]; the command
//! line uses [`TokenManager`]. The configuration of a server is read elsewhere, and comes through [`ResolveEndpoint`].
//! The other side, the hub as a protected resource, is [`resource_server`].

mod address;
mod binding;
mod callback;
mod challenge;
mod client;
mod discover;
mod error;
mod fetch;
pub mod http_client;
mod issuer;
mod keyring;
mod lock;
mod login;
mod login_context;
mod page;
mod pending_login;
mod pkce;
mod plain_text;
mod record;
mod registration;
mod renew;
mod resolver;
mod resource;
pub mod resource_server;
mod scopes;
mod send;
mod store;
mod token;
mod token_key;
mod token_manager;

pub use error::OAuthError;
pub use login::Show;
pub use pending_login::PendingLogin;
pub use send::{Authorizer, Repeat, RequestRefusal, ResponseTo, is_unprocessed, send, send_again};
pub use store::TokenStore;
pub use token_manager::{CredentialOwner, LoginEndpoint, ResolveEndpoint, TokenManager, TokenManagerContext};
