//! Public keys of a JWK set (RFC 7517), and the verification of signatures with them. A key verifies only the algorithms of its
//! own type.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::jws::Algorithm;

const RSA_MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
const COORDINATE_BYTES: usize = 32;
/// The first byte of an uncompressed point (SEC 1, section 2.3.3).
const UNCOMPRESSED_POINT: u8 = 4;

/// A key that verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Jwk {
    key_id: Option<String>,
    /// The only algorithm of the key, if its issuer restricts it.
    algorithm: Option<Algorithm>,
    key: PublicKey,
}

#[derive(Clone, PartialEq, Eq)]
enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256 { point: Vec<u8> },
    Ed25519 { point: Vec<u8> },
}

/// The members that are read. Certificates and private parts are ignored.
#[derive(Deserialize)]
struct JwkMembers {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// The key, if it can verify tokens; `None` for other types, curves, purposes and algorithms, and for short RSA keys.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let document = JwkMembers::deserialize(json).ok()?;
        let is_for_signatures = document.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let may_verify =
            document.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|name| name == "verify"));
        if !is_for_signatures || !may_verify {
            return None;
        }
        let algorithm = match &document.alg {
            Some(name) => Some(Algorithm::from_name(name)?),
            None => None,
        };
        let key = match (document.kty.as_str(), document.crv.as_deref()) {
            ("RSA", _) => rsa(&document)?,
            ("EC", Some("P-256")) => {
                let [x, y] = [coordinate(document.x.as_deref())?, coordinate(document.y.as_deref())?];
                PublicKey::P256 { point: [&[UNCOMPRESSED_POINT], &x[..], &y].concat() }
            }
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519 { point: coordinate(document.x.as_deref())? },
            _ => return None,
        };
        let jwk = Self { key_id: document.kid, algorithm, key };
        algorithm.is_none_or(|algorithm| jwk.supports(algorithm)).then_some(jwk)
    }

    /// Whether the key has this id and verifies this algorithm. A token without `kid` matches by algorithm alone.
    pub(super) fn matches(&self, key_id: Option<&str>, algorithm: Algorithm) -> bool {
        (key_id.is_none() || self.key_id.as_deref() == key_id) && self.supports(algorithm)
    }

    /// Whether the key has this id.
    pub(super) fn has_id(&self, key_id: &str) -> bool {
        self.key_id.as_deref() == Some(key_id)
    }

    fn supports(&self, algorithm: Algorithm) -> bool {
        let of_type = match self.key {
            PublicKey::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            PublicKey::P256 { .. } => algorithm == Algorithm::Es256,
            PublicKey::Ed25519 { .. } => algorithm == Algorithm::EdDsa,
        };
        of_type && self.algorithm.is_none_or(|only| only == algorithm)
    }

    /// Whether the signature of the message is valid.
    pub(super) fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.key, algorithm) {
            _ if !self.supports(algorithm) => return false,
            (PublicKey::Rsa { modulus, exponent }, _) => {
                let parameters = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signature)
            }
            (PublicKey::P256 { point }, _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (PublicKey::Ed25519 { point }, _) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

fn rsa(document: &JwkMembers) -> Option<PublicKey> {
    let (modulus, exponent) = (integer(document.n.as_deref())?, integer(document.e.as_deref())?);
    let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
    RSA_MODULUS_BITS.contains(&bits).then_some(PublicKey::Rsa { modulus, exponent })
}

/// A big-endian integer without leading zeros, which some issuers write although RFC 7518 §6.3.1.1 excludes them.
fn integer(text: Option<&str>) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[first..].to_vec())
}

fn coordinate(text: Option<&str>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok().filter(|bytes| bytes.len() == COORDINATE_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An RSA key with a modulus of this many bits. Its value is no valid modulus; only its size counts here.
    fn rsa_of_bits(bits: usize) -> Value {
        let mut modulus = vec![0xff; bits.div_ceil(8)];
        modulus[0] = 0xff >> ((8 - bits % 8) % 8);
        json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB"})
    }

    #[test]
    fn rejects_short_and_huge_rsa_keys() {
        for (bits, expect) in [
            (512, false),
            (1024, false),
            (2040, false),
            (2047, false),
            (2048, true),
            (4096, true),
            (8192, true),
            (8193, false),
        ] {
            assert_eq!(Jwk::from_json(&rsa_of_bits(bits)).is_some(), expect, "{bits}");
        }
        // Leading zeros do not make a key longer.
        let padded = [vec![0; 128], vec![0xff; 128]].concat();
        let padded = json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(padded), "e": "AQAB"});
        assert!(Jwk::from_json(&padded).is_none());
    }

    #[test]
    fn takes_only_keys_that_verify_signatures() {
        let with = |more: Value| {
            let mut key = rsa_of_bits(2048);
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Jwk::from_json(&key)
        };
        assert!(with(json!({})).is_some());
        assert!(with(json!({"use": "sig", "alg": "RS256", "key_ops": ["verify"]})).is_some());
        assert!(with(json!({"use": "enc"})).is_none());
        assert!(with(json!({"key_ops": ["encrypt"]})).is_none());
        assert!(with(json!({"alg": "RSA-OAEP"})).is_none());
        assert!(with(json!({"alg": "HS256"})).is_none());
        assert!(with(json!({"alg": "ES256"})).is_none());
        assert!(with(json!({"kid": 7})).is_none());
        let coordinate = URL_SAFE_NO_PAD.encode([1; 32]);
        let elliptic =
            |kty: &str, crv: &str| json!({"kty": kty, "crv": crv, "x": coordinate, "y": coordinate});
        assert!(Jwk::from_json(&elliptic("EC", "P-256")).is_some());
        assert!(Jwk::from_json(&elliptic("OKP", "Ed25519")).is_some());
        for (kty, crv) in
            [("EC", "P-384"), ("EC", "secp256k1"), ("EC", "Ed25519"), ("OKP", "X25519"), ("OKP", "P-256")]
        {
            assert!(Jwk::from_json(&elliptic(kty, crv)).is_none(), "{kty} {crv}");
        }
        assert!(Jwk::from_json(&json!({"kty": "oct", "k": coordinate})).is_none());
        assert!(Jwk::from_json(&json!({"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"})).is_none());
        assert!(Jwk::from_json(&json!("key")).is_none());
    }

    #[test]
    fn matches_algorithm_of_its_type_only() {
        let rsa = Jwk::from_json(&rsa_of_bits(2048)).unwrap();
        assert!(rsa.matches(None, Algorithm::Rs256) && rsa.matches(None, Algorithm::Ps256));
        assert!(!rsa.matches(None, Algorithm::Es256) && !rsa.matches(None, Algorithm::EdDsa));
        assert!(!rsa.matches(Some("other"), Algorithm::Rs256));
        let mut restricted = rsa_of_bits(2048);
        restricted["alg"] = json!("PS256");
        let restricted = Jwk::from_json(&restricted).unwrap();
        assert!(restricted.matches(None, Algorithm::Ps256) && !restricted.matches(None, Algorithm::Rs256));
    }
}
