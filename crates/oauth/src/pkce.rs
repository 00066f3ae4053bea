//! Random strings, and PKCE: proof that the client that redeems a code is the one that requested it (RFC 7636).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use toolhub_core::Secret;

use crate::error::OAuthError;

/// 256 random bits in 43 characters.
pub(crate) fn random() -> Result<Secret, OAuthError> {
    let mut bytes = zeroize::Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *bytes)
        .map_err(|error| OAuthError::Config(format!("this system gives no random numbers: {error}")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

/// The code challenge of a verifier (S256).
pub(crate) fn challenge_of(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_example_of_rfc_7636() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge_of(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn random_values_differ() {
        let (one, two) = (random().unwrap(), random().unwrap());
        assert_eq!(one.expose().len(), 43);
        assert_ne!(one, two);
    }
}
