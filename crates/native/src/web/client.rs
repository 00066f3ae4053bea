//! The HTTP client of the search, created at the first search, since loading certificates takes time.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use super::error::SearchError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 3;

/// The shared client.
pub(super) fn client() -> Result<Client, SearchError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        // Fails only if another provider is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirect to another origin would send the query, and possibly the key, to a server that the user did not
        // choose.
        let same_origin = Policy::custom(|attempt| {
            let from = attempt.previous().last().map(Url::origin);
            if from == Some(attempt.url().origin()) && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        Client::builder()
            .user_agent(concat!("toolhub/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(same_origin)
            .build()
            .map_err(|error| root_cause(&error))
    });
    client.clone().map_err(|cause| SearchError::NoClient { cause })
}

/// The innermost error. Outer errors include the URL, which may contain a password.
pub(super) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
